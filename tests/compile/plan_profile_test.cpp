#include "calque/compile/plan_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/nn/nn.h"
#include "calque/op/ops.h"
#include "calque/run/plan.h"
#include "calque/trace/make_fx.h"

namespace calque {
namespace {

struct TwoLayers : Typed<TwoLayers> {
  Child<Linear> up = child<Linear>("up", 4, 64);
  Child<Linear> down = child<Linear>("down", 64, 2);
  Tensor forward(const Tensor& x) { return down(up(x).softmax(-1)); }
};

std::shared_ptr<const Plan> plan_of_layers(const Tensor& x) {
  TwoLayers model;
  const TracedGraph traced = make_fx_values([&](const Values& v) { return model.call(v); }, {x},
                                            {.pre_dispatch = true, .record_module_stack = true});
  PlanOptions options;
  options.optimize = false;
  return Plan::make(*traced.module, options);
}

TEST(PlanProfile, every_step_of_every_run_is_there) {
  const Tensor x = ones({8, 4});
  const auto plan = plan_of_layers(x);
  const PlanProfile profile = profile_plan(*plan, {x}, 3);
  ASSERT_EQ(profile.runs.size(), 3u);
  EXPECT_EQ(profile.runs[0].size(), plan->num_steps());
  int64_t last = 0;
  for (const auto& run : profile.runs)
    for (const ProfiledStep& step : run) {
      EXPECT_GE(step.start_ns, last);
      last = step.start_ns + step.duration_ns;
    }
  EXPECT_GT(profile.median_run_ms(), 0);
  EXPECT_THROW(profile_plan(*plan, {x}, 0), UserError);
}

TEST(PlanProfile, rows_sum_up_by_operator_and_by_module) {
  const Tensor x = ones({8, 4});
  const PlanProfile profile = profile_plan(*plan_of_layers(x), {x}, 2);
  const auto rows = profile_rows(profile, ProfileBy::op);
  double share = 0;
  int64_t calls = 0;
  for (const ProfileRow& row : rows) {
    share += row.share;
    calls += row.calls;
    if (row.name.find("softmax") != std::string::npos) {
      EXPECT_EQ(row.bytes, 8 * 64 * 4);
    }
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(calls, static_cast<int64_t>(profile.runs[0].size()));
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_GE(rows[i - 1].ms, rows[i].ms);
  std::vector<std::string> modules;
  for (const ProfileRow& row : profile_rows(profile, ProfileBy::module)) modules.push_back(row.name);
  EXPECT_THAT(modules, testing::IsSupersetOf({"up", "down"}));
  EXPECT_EQ(profile_rows(profile, ProfileBy::step).size(), profile.runs[0].size());
}

TEST(PlanProfile, a_step_holds_what_it_gave_and_what_is_still_needed) {
  const Tensor x = ones({8, 4});
  const PlanProfile profile = profile_plan(*plan_of_layers(x), {x}, 1);
  std::vector<int64_t> memory;
  for (const ProfiledStep& step : profile.runs[0]) memory.push_back(step.memory);
  constexpr int64_t hidden = 8 * 64 * 4, out = 8 * 2 * 4;
  EXPECT_EQ(memory, (std::vector<int64_t>{hidden, 2 * hidden, hidden + out}));
  EXPECT_EQ(profile.peak_memory(), 2 * hidden);
}

TEST(PlanProfile, a_view_holds_its_base_and_nothing_of_an_input) {
  const Tensor x = ones({4, 4});
  const TracedGraph traced = make_fx_values(
      [](const Values& v) -> Value {
        return v[0].to_tensor().view({16}).neg().view({2, 8}).t().softmax(-1);
      },
      {x}, {});
  PlanOptions options;
  options.optimize = false;
  const PlanProfile profile = profile_plan(*Plan::make(*traced.module, options), {x}, 1);
  std::vector<int64_t> memory;
  for (const ProfiledStep& step : profile.runs[0]) memory.push_back(step.memory);
  EXPECT_EQ(memory, (std::vector<int64_t>{0, 64, 64, 64, 128}));
}

TEST(PlanProfile, a_fused_step_says_what_it_computes) {
  const Tensor x = ones({4, 4});
  const TracedGraph traced = make_fx_values(
      [](const Values& v) -> Value { return (v[0].to_tensor().sin() * v[0].to_tensor() + 1).relu(); }, {x}, {});
  const PlanProfile profile = profile_plan(*Plan::make(*traced.module), {x}, 1);
  ASSERT_EQ(profile.runs[0].size(), 1u);
  EXPECT_EQ(profile.runs[0][0].op, "sin + mul + add + relu");
}

TEST(PlanProfile, the_page_has_every_step_and_no_name_ends_its_data) {
  PlanProfile profile;
  const std::string hostile = "</script><script>alert(1)</script>";
  profile.runs = {
      {{hostile, hostile, "a." + hostile, 0, 5'000'000, 8, 8}, {"b", "aten.sin.default", "", 5, 1'000'000, 4, 12}}};
  const std::string page = profile_html(profile, hostile);
  const auto count = [&](const std::string& text) {
    size_t n = 0;
    for (size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("</script"), 2u);
  EXPECT_EQ(count("<script"), 2u);
  EXPECT_EQ(count("http://www.w3.org/2000/svg"), count("://"));  // a name, no address
  const std::string begin = "id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  const auto data = nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(data["title"], hostile);
  ASSERT_EQ(data["steps"].size(), 2u);
  EXPECT_EQ(data["steps"][0]["module"], "a." + hostile);
  EXPECT_EQ(data["steps"][0]["ms"], 5);
  EXPECT_EQ(data["steps"][1]["memory"], 12);
}

TEST(PlanProfile, the_trace_is_chromes) {
  const Tensor x = ones({8, 4});
  const PlanProfile profile = profile_plan(*plan_of_layers(x), {x}, 2);
  const auto trace = nlohmann::json::parse(profile_chrome_trace(profile));
  ASSERT_EQ(trace["traceEvents"].size(), 2 * 2 * profile.runs[0].size());
  for (size_t i = 0; i < trace["traceEvents"].size(); ++i) {
    const auto& event = trace["traceEvents"][i];
    if (i % 2 == 1) {
      EXPECT_EQ(event["ph"], "C");
      EXPECT_EQ(event["args"]["bytes"], profile.runs[0][i / 2 % profile.runs[0].size()].memory);
      continue;
    }
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_TRUE(event["args"].contains("module"));
  }
}

}  // namespace
}  // namespace calque

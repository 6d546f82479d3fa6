// What is reported of compilations: the profiler, the fields of metrics, the structured trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/compile/debug.h"
#include "calque/compile/metrics.h"
#include "calque/compile/profiler.h"
#include "calque/compile/same.h"
#include "calque/compile/structured_trace.h"
#include "calque/compile/timed.h"
#include "calque/op/ops.h"
#include "compile/md5.h"

namespace calque {
namespace {

using ::testing::HasSubstr;

Tensor branching(const Tensor& x) {
  const Tensor y = x + 1;
  return y.sum().gt(0).item<bool>() ? y.sin() : y.cos();
}

TEST(Reports, the_profiler_counts_graphs_and_says_why_they_were_made) {
  reset_compile();
  const CompileProfiler profiler;
  EXPECT_THAT(profiler.report(), HasSubstr("No graph breaks detected."));
  EXPECT_THAT(profiler.report(), HasSubstr("No recompilation detected."));
  CompileOptions o;
  o.with = profiler.backend();
  o.name = "branching";
  const auto f = compile(branching, o);
  f(ones({3}));
  f(ones({3}, DType::float64));
  EXPECT_EQ(profiler.get_metrics().frame_count, 4u);
  EXPECT_GE(profiler.get_metrics().op_count, 8u);
  const std::string report = profiler.report();
  EXPECT_THAT(report, HasSubstr("a branch on data"));
  EXPECT_THAT(report, HasSubstr("dtype mismatch. expected float32, actual float64"));
  EXPECT_THAT(report, HasSubstr("A recompile_limit of 2 avoids"));
}

TEST(Reports, metrics_have_pytorchs_names_and_absent_fields_are_null) {
  CompilationMetrics m;
  m.compile_id = "1/2";
  m.guard_count = 7;
  m.restart_reasons = {"b", "a"};
  const auto json = nlohmann::json::parse(to_json(m));
  EXPECT_EQ(json["compile_id"], "1/2");
  EXPECT_EQ(json["guard_count"], 7);
  EXPECT_TRUE(json["fail_reason"].is_null());
  EXPECT_EQ(json["restart_reasons"], (nlohmann::json{"a", "b"}));
  EXPECT_EQ(json.size(), fields(m).size());
}

TEST(Reports, timed_runs_start_from_the_same_seed) {
  int runs = 0;
  const auto run = [&] {
    ++runs;
    return Value(rand({3}));
  };
  const Timed first = timed(run), again = timed(run, 3);
  EXPECT_EQ(runs, 4);
  EXPECT_TRUE(same(first.result, again.result));
  EXPECT_GT(again.seconds, 0);
  EXPECT_THROW(timed(run, 0), UserError);
}

TEST(Reports, the_times_are_logged_when_a_program_ends) {
  const auto ends = [] {
    set_logs("timing");
    compile(branching)(ones({2}));
    std::exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // tests before this one left threads
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "\\[timing\\] Function +Runtimes");
}

TEST(Reports, md5_has_the_values_of_its_rfc) {
  EXPECT_EQ(compile_detail::md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(compile_detail::md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(compile_detail::md5_hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Reports, the_structured_trace_has_a_line_of_json_for_each_event) {
  const std::string folder = testing::TempDir() + "/calque_trace";
  set_structured_trace(folder);
  const std::string path = structured_trace_path();
  const auto f = compile(branching);
  f(ones({3}));
  set_structured_trace("");
  EXPECT_EQ(structured_trace_path(), "");
  std::ifstream in(path);
  std::map<std::string, int> events;
  bool has_payload = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("\t")) {
      EXPECT_TRUE(has_payload) << line;
      continue;
    }
    const size_t begin = line.find("] {");
    ASSERT_NE(begin, std::string::npos) << line;
    EXPECT_TRUE(line.starts_with("V"));
    const auto event = nlohmann::json::parse(line.substr(begin + 2));
    has_payload = event.contains("has_payload");
    if (has_payload) {
      EXPECT_EQ(event["has_payload"].get<std::string>().size(), 32u);
    }
    ++events[event.begin().key() == "str" ? "str" : [&] {
      for (const char* kind : {"dynamo_start", "dynamo_output_graph", "dynamo_guards", "artifact", "compilation_metrics"})
        if (event.contains(kind)) return kind;
      return "other";
    }()];
  }
  EXPECT_EQ(events["dynamo_start"], 2);
  EXPECT_EQ(events["dynamo_output_graph"], 2);
  EXPECT_EQ(events["compilation_metrics"], 2);
  EXPECT_EQ(events["other"], 0);
  EXPECT_THROW(set_structured_trace("/proc/nowhere"), UserError);
  std::filesystem::remove_all(folder);
}

TEST(Reports, the_debug_folder_holds_graphs_guards_passes_and_plans) {
  const std::string folder = testing::TempDir() + "/calque_debug";
  set_compile_debug(folder);
  const std::filesystem::path run = get_debug_dir();
  EXPECT_THAT(run.filename().string(), testing::MatchesRegex("run_[0-9_]+-pid_[0-9]+"));
  const auto f = compile(branching);
  f(ones({3}));
  set_compile_debug("");
  EXPECT_EQ(get_debug_dir(), "");
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run))
    files.insert(entry.path().filename().string());
  EXPECT_THAT(files, testing::IsSupersetOf({"graph.txt", "code.py", "guards.txt", "symbols.txt", "metrics.json",
                                            "graph_break.txt", "plan.txt", "part_0", "pass_0.txt"}));
  EXPECT_THROW(set_compile_debug("/proc/nowhere"), UserError);
  set_compile_debug("");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace calque

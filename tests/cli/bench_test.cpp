// What calque bench prints for programs to read. How long anything takes is no test's business; that the numbers fit each other is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cli_support.h"
#include "support/folder_support.h"

namespace calque::bench_test {
namespace {

using nlohmann::json;

json measured(const std::string& arguments) {
  const cli_test::Result r = cli_test::calque_run("bench --json " + arguments);
  EXPECT_EQ(r.status, 0) << r.out;
  return json::parse(r.out);
}

TEST(Bench, numbers_fit_each_other) {
  const json one = measured("mlp -n 9 --threads 1");
  EXPECT_EQ(one["runs"], 9);
  EXPECT_EQ(one["threads"], 1);
  EXPECT_EQ(one["ran"], "compiled");
  EXPECT_EQ(one["graphs"], 1);
  EXPECT_EQ(one["graph_breaks"], 0);
  EXPECT_EQ(one["inputs"], json::parse(R"({"x": {"dtype": "float32", "shape": [4, 16]}})"));
  EXPECT_GT(one["fastest_ms"], 0);
  EXPECT_GT(one["first_ms"], 0);
  EXPECT_LE(one["fastest_ms"], one["lower_quartile_ms"]);
  EXPECT_LE(one["lower_quartile_ms"], one["median_ms"]);
  EXPECT_LE(one["median_ms"], one["upper_quartile_ms"]);
  EXPECT_LE(one["upper_quartile_ms"], one["slowest_ms"]);
}

TEST(Bench, one_run_has_one_time) {
  const json one = measured("mlp -n 1 --eager");
  EXPECT_EQ(one["ran"], "eager");
  EXPECT_FALSE(one.contains("graphs"));
  for (const char* name : {"lower_quartile_ms", "median_ms", "upper_quartile_ms", "slowest_ms"})
    EXPECT_EQ(one[name], one["fastest_ms"]) << name;
}

TEST(Bench, a_program_runs_by_its_plan_or_node_by_node) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("attention.pt2");
  ASSERT_EQ(cli_test::calque_run("export attention -q -o " + path + " --dynamic 'x=batch,length,*'").status, 0);
  const json plan = measured(path + " -n 2"), eager = measured(path + " -n 2 --eager");
  EXPECT_EQ(plan["ran"], "plan");
  EXPECT_EQ(eager["ran"], "interpreter");
  EXPECT_EQ(plan["inputs"], json::parse(R"({"x": {"dtype": "float32", "shape": [2, 7, 32]}})"));
  EXPECT_EQ(plan["inputs"], eager["inputs"]);
}

}  // namespace
}  // namespace calque::bench_test

// Counters, phases, logs and the memory of warnings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "calque/base/counters.h"
#include "calque/base/duplicate_warnings.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/phases.h"

namespace calque {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Books : ::testing::Test {
  void SetUp() override {
    counters().clear();
    reset_phases();
    reset_frame_count();
  }
  void TearDown() override {
    set_logs("");
    set_log_sink(nullptr);
    set_log_file("");
  }
};

TEST_F(Books, counters_count_by_category_and_name) {
  counters().add("graph_break", "a branch on data");
  counters().add("graph_break", "a branch on data", 2);
  counters().add("stats", "calls_captured", 5);
  EXPECT_EQ(counters().get("graph_break", "a branch on data"), 3u);
  EXPECT_EQ(counters().get("graph_break", "another"), 0u);
  EXPECT_THAT(counters().all(), ElementsAre(Pair("graph_break", ElementsAre(Pair("a branch on data", 3u))),
                                            Pair("stats", ElementsAre(Pair("calls_captured", 5u)))));
  counters().clear("stats");
  EXPECT_EQ(counters().all().size(), 1u);
}

TEST_F(Books, frames_are_numbered_from_one_and_counted) {
  EXPECT_EQ(increment_frame(), 1u);
  EXPECT_EQ(increment_frame(), 2u);
  EXPECT_EQ(current_frame(), 2u);
  EXPECT_EQ(counters().get("frames", "total"), 2u);
  reset_frame_count();
  EXPECT_EQ(current_frame(), 0u);
}

TEST_F(Books, counters_of_many_threads_are_all_there) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 1000; ++k) counters().add("stats", "calls");
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(counters().get("stats", "calls"), 4000u);
}

TEST_F(Books, phases_nest_and_keep_every_duration) {
  increment_frame();
  {
    const Phase outer("compile", "entire_frame_compile");
    { const Phase inner("backend", "backend_compile"); }
    { const Phase inner("backend", "backend_compile"); }
  }
  const std::vector<PhaseEvent> events = phase_events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].name, "backend");
  EXPECT_EQ(events[0].depth, 1);
  EXPECT_EQ(events[2].name, "compile");
  EXPECT_EQ(events[2].depth, 0);
  EXPECT_EQ(events[2].frame, 1u);
  EXPECT_LE(events[2].start_us, events[0].start_us);
  EXPECT_EQ(phase_durations()["backend"].size(), 2u);
  const auto stages = frame_times(1);
  EXPECT_EQ(stages.size(), 2u);
  EXPECT_GE(stages.at("entire_frame_compile"), stages.at("backend_compile"));
  EXPECT_THAT(time_report(), HasSubstr("TIMING: backend_compile:"));
  EXPECT_THAT(time_report(), HasSubstr(" entire_frame_compile:"));
  EXPECT_THAT(time_report(), HasSubstr(" total_wall_time:"));
}

TEST_F(Books, a_phase_that_throws_is_no_time_of_its_frame) {
  increment_frame();
  try {
    const Phase phase("compile", "entire_frame_compile");
    throw UserError("no");
  } catch (const UserError&) {
  }
  EXPECT_EQ(phase_durations()["compile"].size(), 1u);
  EXPECT_TRUE(frame_times(1).empty());
  EXPECT_EQ(time_report(), "");
}

TEST_F(Books, compile_times_are_a_table_or_values_with_commas) {
  { const Phase p("one"); }
  { const Phase p("two"); }
  { const Phase p("two"); }
  EXPECT_THAT(compile_times(), HasSubstr("Function  "));
  EXPECT_THAT(compile_times(), HasSubstr("two       0.0000, 0.0000"));
  EXPECT_THAT(compile_times(true), HasSubstr("two             0.0000"));  // a column of numbers is to the right
  const CompileTimesCsv csv = compile_times_csv();
  EXPECT_THAT(csv.headers, ElementsAre("one", "two"));
  EXPECT_THAT(csv.values[1], ::testing::MatchesRegex("\"0\\.0000[0-9]*, 0\\.0000[0-9]*\""));
  EXPECT_THAT(compile_times_csv(true).values[1], ::testing::MatchesRegex("0\\.0000[0-9]*"));
}

TEST_F(Books, logs_are_silent_until_they_are_asked_for) {
  std::vector<std::string> lines;
  set_log_sink(
      [&](Log log, std::string_view text) { lines.push_back(std::string(log_name(log)) + ": " + std::string(text)); });
  write_log(Log::guards, "unheard");
  set_logs("+guards, recompiles,-plan");
  EXPECT_TRUE(log_enabled(Log::guards));
  EXPECT_FALSE(log_enabled(Log::plan));
  write_log(Log::guards, "a");
  write_log_verbose(Log::guards, "b");
  write_log(Log::recompiles, "c");
  write_log_verbose(Log::recompiles, "unheard");
  write_log(Log::graph_breaks, "unheard");
  EXPECT_THAT(lines, ElementsAre("guards: a", "guards: b", "recompiles: c"));
  set_logs("all,-guards");
  EXPECT_TRUE(log_enabled(Log::perf));
  EXPECT_FALSE(log_enabled(Log::guards));
}

TEST_F(Books, a_log_that_does_not_exist_changes_nothing_and_lists_the_names) {
  set_logs("guards");
  try {
    set_logs("recompiles,+gards");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("found '+gards'; the names are dynamo, graph,"));
  }
  EXPECT_TRUE(log_enabled(Log::guards));
  EXPECT_FALSE(log_enabled(Log::recompiles));
}

TEST_F(Books, every_log_stands_at_its_place_in_the_list) {
  for (size_t i = 0; i < log_names().size(); ++i) EXPECT_EQ(static_cast<size_t>(log_names()[i].log), i);
  EXPECT_EQ(log_names().back().log, Log::timing);
}

TEST_F(Books, logs_go_to_a_file) {
  const std::string path = ::testing::TempDir() + "/calque_logs.txt";
  std::remove(path.c_str());
  set_logs("guards");
  set_log_file(path);
  write_log(Log::guards, "one\ntwo");
  set_log_file("");
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), "[guards] one\n[guards] two\n");
  EXPECT_THROW(set_log_file("/nowhere/at/all"), UserError);
}

TEST_F(Books, duplicate_texts_are_remembered_up_to_a_limit) {
  DuplicateWarningChecker seen(3);
  EXPECT_TRUE(seen.add("a"));
  EXPECT_FALSE(seen.add("a"));
  seen.add("b");
  seen.add("c");
  EXPECT_FALSE(seen.add("a"));  // used again: "b" is the oldest now
  EXPECT_TRUE(seen.add("d"));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_FALSE(seen.add("a"));
  EXPECT_TRUE(seen.add("b"));
  seen.set_verbose(true);
  EXPECT_TRUE(seen.add("b"));
  seen.reset();
  EXPECT_EQ(seen.size(), 0u);
}

TEST_F(Books, colours_are_taken_out_of_texts) {
  EXPECT_EQ(strip_color("\x1b[1;31mred\x1b[0m and plain"), "red and plain");
  EXPECT_EQ(strip_color("an end \x1b["), "an end \x1b[");
}

}  // namespace
}  // namespace calque

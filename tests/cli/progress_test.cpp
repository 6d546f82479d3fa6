// The progress of a command: what is drawn on a terminal, and only there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/cli_support.h"
#include "support/folder_support.h"

namespace calque::progress_test {
namespace {

using cli_test::Result;
using cli_test::shell_run;
using testing::HasSubstr;
using testing::Not;

TEST(Progress, nothing_is_drawn_into_a_pipe) {
  const test::TemporaryFolder folder;
  const Result r = shell_run("$CALQUE export tiny-lm -o " + folder.path("p.pt2"));
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(r.out, Not(HasSubstr("exporting")));
}

TEST(Quiet, warnings_and_summaries_are_left_out_and_errors_are_not) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(shell_run("$CALQUE save tiny-lm -q -o " + folder.path("m")).out, "");
  EXPECT_EQ(shell_run("$CALQUE --quiet export mlp -o " + folder.path("p.pt2")).out, "");
  EXPECT_THAT(shell_run("$CALQUE info -q " + folder.path("absent")).out, HasSubstr("calque: "));
  EXPECT_THAT(shell_run("$CALQUE info -q " + folder.path("p.pt2")).out, HasSubstr("PyTorch program"));
}

}  // namespace
}  // namespace calque::progress_test

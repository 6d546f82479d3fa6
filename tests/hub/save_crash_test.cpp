#include "hub/save_crash_support.h"

#include <gtest/gtest.h>

#include "hub/hub_support.h"

namespace calque::save_crash_test {
namespace {

using namespace hub_test;

// ./test peers kills 300 times; here a few, so that a mistake is found early.
TEST(SaveCrash, killed_at_random_moments_the_old_or_the_new_checkpoint_is_whole) {
  TemporaryFolder work;
  const CrashReport report = kill_while_saving(work.path(), 25, 1, FolderWriter::Exchange::whole);
  EXPECT_EQ(report.broken, "");
  EXPECT_EQ(report.first + report.second, 25);
}

TEST(SaveCrash, where_folders_cannot_be_exchanged_the_old_one_is_recovered) {
  TemporaryFolder work;
  const CrashReport report = kill_while_saving(work.path(), 15, 2, FolderWriter::Exchange::renames);
  EXPECT_EQ(report.broken, "");
}

TEST(SaveCrash, a_full_disk_leaves_the_old_checkpoint) {
  TemporaryFolder work;
  const CrashReport report = fill_the_disk_while_saving(work.path(), 20);
  EXPECT_EQ(report.broken, "");
  EXPECT_EQ(report.first, 20);
  EXPECT_EQ(report.second, 1);
}

}  // namespace
}  // namespace calque::save_crash_test

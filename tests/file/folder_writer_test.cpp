#include "calque/file/folder_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "calque/base/error.h"
#include "support/folder_support.h"

namespace calque::folder_writer_test {
namespace {

namespace fs = std::filesystem;
using Exchange = FolderWriter::Exchange;
using Names = std::set<std::string>;

class FolderWriterTest : public ::testing::TestWithParam<Exchange> {
 protected:
  static bool ours(const std::string& name) { return name.starts_with("w"); }
  const test::TemporaryFolder work_;
};

TEST_P(FolderWriterTest, replaces_its_files_and_keeps_the_others) {
  const fs::path folder = work_ / "a b" / "m";
  {
    FolderWriter writer(folder, ours, GetParam());
    test::write_file(writer.path() / "w1", "1");
    writer.commit();
  }
  test::write_file(folder / "other", "kept");
  fs::create_directories(folder / "deep/er");
  test::write_file(folder / "deep/er/x", "y");
  FolderWriter writer(folder, ours, GetParam());
  test::write_file(writer.path() / "w2", "2");
  EXPECT_EQ(test::names_in(folder).count("w2"), 0U);
  EXPECT_EQ(writer.commit(), GetParam());
  EXPECT_EQ(test::names_in(folder), (Names{"w2", "other", "deep"}));
  EXPECT_EQ(test::read_file(folder / "deep/er/x"), "y");
  EXPECT_EQ(test::names_in(folder.parent_path()), Names{"m"});
}

TEST_P(FolderWriterTest, without_commit_nothing_has_happened) {
  test::write_file(work_ / "unrelated", "");
  const fs::path folder = work_ / "m";
  fs::create_directory(folder);
  test::write_file(folder / "w1", "1");
  {
    FolderWriter writer(folder, ours, GetParam());
    test::write_file(writer.path() / "w1", "2");
  }
  EXPECT_EQ(test::read_file(folder / "w1"), "1");
  EXPECT_EQ(test::names_in(folder), Names{"w1"});
  EXPECT_EQ(test::names_in(work_.path()), (Names{"m", "unrelated"}));
}

TEST_P(FolderWriterTest, leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not) {
  const fs::path folder = work_ / "m";
  fs::create_directories(folder / ".123.saving");
  fs::create_directories(work_ / ".m.999-0.saving/x");
  fs::create_directories(work_ / ".m.x.saving");
  fs::create_directories(work_ / ".mm.999-0.saving");
  FolderWriter living(folder, ours, GetParam());
  test::write_file(living.path() / "w1", "1");
  if (GetParam() != Exchange::in_place) {
    FolderWriter second(folder, ours, GetParam());
    test::write_file(second.path() / "w2", "2");
    second.commit();
  }
  EXPECT_TRUE(fs::exists(living.path() / "w1"));
  living.commit();
  EXPECT_EQ(test::names_in(folder), Names{"w1"});
  EXPECT_EQ(test::names_in(work_.path()), (Names{"m", ".m.x.saving", ".mm.999-0.saving"}));
}

TEST_P(FolderWriterTest, the_mode_of_the_folder_stays) {
  const fs::path folder = work_ / "m";
  fs::create_directory(folder);
  ::chmod(folder.c_str(), 0750);
  FolderWriter writer(folder, ours, GetParam());
  test::write_file(writer.path() / "w1", "1");
  writer.commit();
  struct stat info {};
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0750U);
}

INSTANTIATE_TEST_SUITE_P(All, FolderWriterTest, ::testing::Values(Exchange::whole, Exchange::renames, Exchange::in_place));

using FolderWriterErrors = FolderWriterTest;
INSTANTIATE_TEST_SUITE_P(All, FolderWriterErrors, ::testing::Values(Exchange::whole));

TEST_P(FolderWriterErrors, a_file_in_the_way_is_named) {
  test::write_file(work_ / "m", "file");
  try {
    FolderWriter writer(work_ / "m", ours);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write the folder " + (work_ / "m").string() +
                                             ": it exists and is not a folder; give the name of a folder");
  }
}

TEST_P(FolderWriterErrors, a_crash_between_two_renames_is_recovered) {
  fs::create_directory(work_ / ".m.previous");
  test::write_file(work_ / ".m.previous/w1", "old");
  EXPECT_TRUE(FolderWriter::recover(work_ / "m"));
  EXPECT_FALSE(FolderWriter::recover(work_ / "m"));
  EXPECT_EQ(test::read_file(work_ / "m/w1"), "old");
}

TEST_P(FolderWriterErrors, a_parent_that_may_not_be_written) {
  const fs::path closed = work_ / "closed", folder = closed / "m";
  fs::create_directories(folder);
  ::chmod(closed.c_str(), 0555);
  const auto writes_in_place = [&] {
    FolderWriter writer(folder, ours);
    test::write_file(writer.path() / "w1", "1");
    return writer.commit() == Exchange::in_place && test::names_in(folder) == Names{"w1"};
  };
  if (::geteuid() != 0) {
    EXPECT_TRUE(writes_in_place());
  } else {  // root may write everywhere: a process of nobody's does it
    constexpr uid_t nobody = 65534;
    for (const fs::path& path : {work_.path(), closed, folder}) ASSERT_EQ(::chown(path.c_str(), nobody, nobody), 0);
    EXPECT_EXIT(std::_Exit(::setuid(nobody) == 0 && writes_in_place() ? 0 : 1), testing::ExitedWithCode(0), "");
  }
  ::chmod(closed.c_str(), 0755);
}

}  // namespace
}  // namespace calque::folder_writer_test

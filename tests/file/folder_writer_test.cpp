#include "calque/file/folder_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "calque/base/error.h"

namespace calque {
namespace {

namespace fs = std::filesystem;
using Exchange = FolderWriter::Exchange;
using Names = std::set<std::string>;

class FolderWriterTest : public ::testing::TestWithParam<Exchange> {
 protected:
  FolderWriterTest() {
    std::string pattern = (fs::temp_directory_path() / "calque_folder_XXXXXX").string();
    work_ = ::mkdtemp(pattern.data());
  }
  ~FolderWriterTest() override {
    std::error_code ignored;
    fs::remove_all(work_, ignored);
  }
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string get(const fs::path& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  static Names names(const fs::path& folder) {
    Names out;
    for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename().string());
    return out;
  }
  static bool ours(const std::string& name) { return name.starts_with("w"); }
  fs::path work_;
};

TEST_P(FolderWriterTest, replaces_its_files_and_keeps_the_others) {
  const fs::path folder = work_ / "a b" / "m";
  {
    FolderWriter writer(folder, ours, GetParam());
    put(writer.path() / "w1", "1");
    writer.commit();
  }
  put(folder / "other", "kept");
  fs::create_directories(folder / "deep/er");
  put(folder / "deep/er/x", "y");
  FolderWriter writer(folder, ours, GetParam());
  put(writer.path() / "w2", "2");
  EXPECT_EQ(names(folder).count("w2"), 0U);
  EXPECT_EQ(writer.commit(), GetParam());
  EXPECT_EQ(names(folder), (Names{"w2", "other", "deep"}));
  EXPECT_EQ(get(folder / "deep/er/x"), "y");
  EXPECT_EQ(names(folder.parent_path()), Names{"m"});
}

TEST_P(FolderWriterTest, without_commit_nothing_has_happened) {
  put(work_ / "unrelated", "");
  const fs::path folder = work_ / "m";
  fs::create_directory(folder);
  put(folder / "w1", "1");
  {
    FolderWriter writer(folder, ours, GetParam());
    put(writer.path() / "w1", "2");
  }
  EXPECT_EQ(get(folder / "w1"), "1");
  EXPECT_EQ(names(folder), Names{"w1"});
  EXPECT_EQ(names(work_), (Names{"m", "unrelated"}));
}

TEST_P(FolderWriterTest, leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not) {
  const fs::path folder = work_ / "m";
  fs::create_directories(folder / ".123.saving");
  fs::create_directories(work_ / ".m.999-0.saving/x");
  fs::create_directories(work_ / ".m.x.saving");
  fs::create_directories(work_ / ".mm.999-0.saving");
  FolderWriter living(folder, ours, GetParam());
  put(living.path() / "w1", "1");
  if (GetParam() != Exchange::in_place) {
    FolderWriter second(folder, ours, GetParam());
    put(second.path() / "w2", "2");
    second.commit();
  }
  EXPECT_TRUE(fs::exists(living.path() / "w1"));
  living.commit();
  EXPECT_EQ(names(folder), Names{"w1"});
  EXPECT_EQ(names(work_), (Names{"m", ".m.x.saving", ".mm.999-0.saving"}));
}

TEST_P(FolderWriterTest, the_mode_of_the_folder_stays) {
  const fs::path folder = work_ / "m";
  fs::create_directory(folder);
  ::chmod(folder.c_str(), 0750);
  FolderWriter writer(folder, ours, GetParam());
  put(writer.path() / "w1", "1");
  writer.commit();
  struct stat info {};
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0750U);
}

INSTANTIATE_TEST_SUITE_P(All, FolderWriterTest, ::testing::Values(Exchange::whole, Exchange::renames, Exchange::in_place));

using FolderWriterErrors = FolderWriterTest;
INSTANTIATE_TEST_SUITE_P(All, FolderWriterErrors, ::testing::Values(Exchange::whole));

TEST_P(FolderWriterErrors, a_file_in_the_way_is_named) {
  put(work_ / "m", "file");
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
  put(work_ / ".m.previous/w1", "old");
  EXPECT_TRUE(FolderWriter::recover(work_ / "m"));
  EXPECT_FALSE(FolderWriter::recover(work_ / "m"));
  EXPECT_EQ(get(work_ / "m/w1"), "old");
}

TEST_P(FolderWriterErrors, a_parent_that_may_not_be_written) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const fs::path folder = work_ / "closed/m";
  fs::create_directories(folder);
  ::chmod((work_ / "closed").c_str(), 0555);
  FolderWriter writer(folder, ours);
  put(writer.path() / "w1", "1");
  EXPECT_EQ(writer.commit(), Exchange::in_place);
  EXPECT_EQ(names(folder), Names{"w1"});
  ::chmod((work_ / "closed").c_str(), 0755);
}

}  // namespace
}  // namespace calque

// Temporary names: what a writer leaves when it is done, abandoned or killed; and which mapped file an address is in.
#include "calque/file/temporaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calque/file/file_writer.h"
#include "calque/file/folder_writer.h"
#include "calque/file/mapped_file.h"
#include "support/error_support.h"
#include "support/folder_support.h"

namespace calque::temporaries_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using Names = std::set<std::string>;

// The status of a child process that runs fn.
template <class F>
int status_in_child(F&& fn) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      fn();
    } catch (...) {
      ::_exit(3);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

void put(FileWriter& writer, std::string_view text) { writer.write(text.data(), text.size()); }

TEST(Temporaries, the_next_writer_of_a_file_removes_what_the_dead_left_and_nothing_else) {
  const test::TemporaryFolder work;
  const std::string target = work.path("x");
  // A process that ends without destructors, as by SIGKILL.
  EXPECT_EQ(status_in_child([&] {
              FileWriter first(target), second(target);
              put(first, "dead");
              ::_exit(0);
            }),
            0);
  EXPECT_EQ(work.names().size(), 2U);
  work.write(".xx.0.tmp", "another file's");
  work.write(".x.tmp", "a user's");
  {
    FileWriter writer(target);
    EXPECT_EQ(work.names().size(), 3U);  // its own one
    put(writer, "new");
    writer.commit();
  }
  EXPECT_EQ(work.names(), (Names{"x", ".xx.0.tmp", ".x.tmp"}));
  EXPECT_EQ(test::read_file(target), "new");
}

TEST(Temporaries, writers_of_one_file_that_live_at_once_do_not_touch_each_other) {
  const test::TemporaryFolder work;
  const std::string target = work.path("x");
  FileWriter first(target);
  put(first, "first");
  EXPECT_EQ(status_in_child([&] {
              FileWriter second(target);
              put(second, "second");
              second.commit();
            }),
            0);
  EXPECT_EQ(test::read_file(target), "second");
  first.commit();
  EXPECT_EQ(test::read_file(target), "first");
  EXPECT_EQ(work.names(), Names{"x"});
}

TEST(Temporaries, abandoned_writers_leave_nothing_and_the_targets_are_as_they_were) {
  const test::TemporaryFolder work;
  work.write("x", "old");
  work.write("m/w", "old");
  EXPECT_EQ(status_in_child([&] {
              FileWriter file(work.path("x"));
              put(file, "new");
              FolderWriter folder(work / "m", [](const std::string&) { return true; });
              test::write_file(folder.path() / "w", "new");
              FileWriter inside((folder.path() / "v").string());
              FolderWriter in_place(
                  work / "m", [](const std::string&) { return true; }, FolderWriter::Exchange::in_place);
              test::write_file(in_place.path() / "w", "new");
              abandon_writing();
              ::_exit(0);
            }),
            0);
  EXPECT_EQ(work.names(), (Names{"x", "m"}));
  EXPECT_EQ(test::names_in(work / "m"), Names{"w"});
  EXPECT_EQ(test::read_file(work / "x"), "old");
  EXPECT_EQ(test::read_file(work / "m/w"), "old");
}

TEST(Temporaries, names_that_cannot_be_replaced_are_refused) {
  const auto all = [](const std::string&) { return true; };
  EXPECT_THAT(error_of([] { FileWriter(""); }, ErrorKind::bad_file), HasSubstr("a file whose name is empty"));
  EXPECT_THAT(error_of([&] { FolderWriter("", all); }, ErrorKind::bad_file), HasSubstr("a folder whose name is empty"));
  for (const char* name : {".", "..", "/"})
    EXPECT_THAT(error_of([&] { FolderWriter(name, all); }, ErrorKind::bad_file), HasSubstr("the current folder")) << name;
  const test::TemporaryFolder work;
  fs::create_symlink(work / "b", work / "a");
  fs::create_symlink(work / "a", work / "b");
  EXPECT_THAT(error_of([&] { FolderWriter(work / "a", all); }, ErrorKind::bad_file),
              AllOf(HasSubstr(work.path("a")), HasSubstr("symbolic links")));
}

TEST(Temporaries, a_folder_that_cannot_be_read_is_not_replaced_by_one_without_its_files) {
  const test::TemporaryFolder work;
  work.write("m/README.md", "kept");
  constexpr uid_t nobody = 65534;  // root may read everything
  if (::geteuid() == 0) {
    for (const fs::path& path : {work.path(), work / "m", work / "m/README.md"})
      ASSERT_EQ(::chown(path.c_str(), nobody, nobody), 0);
  }
  EXPECT_EQ(status_in_child([&] {
              if (::geteuid() == 0 && ::setuid(nobody) != 0) ::_exit(4);
              FolderWriter writer(work / "m", [](const std::string&) { return false; });
              fs::permissions(work / "m", fs::perms::owner_write | fs::perms::owner_exec);
              const std::string error = error_of([&] { writer.commit(); });
              fs::permissions(work / "m", fs::perms::owner_all);
              if (error.find("carry over") == std::string::npos) ::_exit(5);
            }),
            0);
  EXPECT_EQ(test::read_file(work / "m/README.md"), "kept");
}

TEST(MappedFile, an_address_says_which_file_is_mapped_there) {
  const test::TemporaryFolder work;
  const std::string a = work.write("a", std::string(10000, 'a')), b = work.write("b", "b");
  auto first = MappedFile::open(a);
  const auto second = MappedFile::open(b);
  const std::byte* inside = first->bytes().data() + 9999;
  EXPECT_EQ(std::string(mapped_file_at(inside)), a);
  EXPECT_EQ(std::string(mapped_file_at(second->bytes().data())), b);
  EXPECT_EQ(mapped_file_at(&inside), nullptr);
  first.reset();
  EXPECT_EQ(mapped_file_at(inside), nullptr);
}

TEST(MappedFile, writing_the_bytes_of_a_file_that_was_cut_off_names_it) {
  const test::TemporaryFolder work;
  const std::string source = work.write("source", std::string(100000, 'a'));
  const auto mapped = MappedFile::open(source);
  fs::resize_file(source, 0);
  FileWriter writer(work.path("x"));
  EXPECT_THAT(error_of([&] { writer.write(mapped->bytes()); }, ErrorKind::bad_file),
              AllOf(HasSubstr(work.path("x")), HasSubstr(source + ", which its bytes come from, was cut off")));
  EXPECT_EQ(work.names(), Names{"source"});
}

}  // namespace
}  // namespace calque::temporaries_test

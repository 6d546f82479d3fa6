#include "clones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

// `bin/clones .` lists shorter runs too.
TEST(Clones, no_run_of120_tokens_stands_twice) {
  for (const Clone& c : find_clones(test::source_folder(), 120))
    ADD_FAILURE() << c.here.file << ":" << c.here.first << "-" << c.here.last << " stands at " << c.earlier.file << ":"
                  << c.earlier.first << "-" << c.earlier.last << " as well (" << c.tokens << " tokens)";
}

// The finder itself, on two files made for each test.
std::vector<Clone> clones_of(const std::string& a, const std::string& b, int least) {
  const test::TemporaryFolder root;
  fs::create_directories(root / "src");
  std::ofstream(root / "src/a.cpp") << a;
  std::ofstream(root / "src/b.cpp") << b;
  return find_clones(root.path(), least);
}

const std::string loop = "int sum = 0;\nfor (int i = 0; i < n; ++i) sum += values[i];\nreturn sum;\n";

TEST(Clones, finds_a_copy_with_another_layout_and_other_comments) {
  const auto found = clones_of("int x;\n" + loop,
                               "// sums\nint sum = 0;  // so far\nfor (int i = 0; i < n; ++i)\n  sum += values[i];\n"
                               "return sum;\n",
                               20);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].earlier.file, "src/a.cpp");
  EXPECT_EQ(found[0].earlier.first, 2);
  EXPECT_EQ(found[0].here.file, "src/b.cpp");
  EXPECT_EQ(found[0].here.first, 2);
  EXPECT_EQ(found[0].here.last, 5);
}

TEST(Clones, finds_a_copy_in_the_same_file) { EXPECT_EQ(clones_of(loop + "int y;\n" + loop, "", 20).size(), 1u); }

TEST(Clones, ignores_shorter_runs_and_other_names) {
  EXPECT_TRUE(clones_of(loop, loop, 40).empty());
  EXPECT_TRUE(clones_of(loop, "int sum = 0;\nfor (int i = 0; i < m; ++i) sum += numbers[i];\nreturn sum;\n", 20).empty());
}

TEST(Clones, ignores_tables_of_numbers) {
  const std::string table = "int a[] = {1, 2, -3, 0x40, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n";
  EXPECT_TRUE(clones_of(table, table, 12).empty());
  EXPECT_EQ(clones_of(table, table, 9).size(), 1u) << "int a [ ] = { 16 } ;";
}

TEST(Clones, reads_strings_whole) {
  EXPECT_TRUE(clones_of("f(\"a // b\", 1, 2, 3);", "f(\"a // c\", 1, 2, 3);", 9).empty());
  EXPECT_EQ(clones_of("f(R\"(x ) y)\", 1);", "g; f(R\"(x ) y)\", 1);", 6).size(), 1u);
}

}  // namespace
}  // namespace calque::layering

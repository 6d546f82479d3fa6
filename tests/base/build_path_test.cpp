#include <gtest/gtest.h>

#include <source_location>

namespace calque::build_path_test {
namespace {

// Graphs carry source locations, and files must be byte-stable: a location names the file within the tree.
TEST(BuildPath, is_mapped_away_from_source_locations) {
  EXPECT_STREQ(std::source_location::current().file_name(), "tests/base/build_path_test.cpp");
  EXPECT_STREQ(__FILE__, "tests/base/build_path_test.cpp");
}

}  // namespace
}  // namespace calque::build_path_test

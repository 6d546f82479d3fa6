#include "calque/base/version.h"

#include <gtest/gtest.h>

#include <string>

namespace calque::version_test {
namespace {

TEST(Version, is_three_numbers_with_dots_between) {
  const std::string text(version());
  int major = -1;
  int minor = -1;
  int patch = -1;
  int read = 0;
  ASSERT_EQ(std::sscanf(text.c_str(), "%d.%d.%d%n", &major, &minor, &patch, &read), 3);
  EXPECT_EQ(static_cast<std::size_t>(read), text.size());
  EXPECT_GE(major, 0);
}

}  // namespace
}  // namespace calque::version_test

// What a call threw, as text: for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "calque/base/error.h"

namespace calque::test {

// The text of the UserError that `fn` throws, which is of this kind where one is given; "" when it throws none.
template <class F>
std::string error_of(F&& fn, std::optional<ErrorKind> kind = std::nullopt) {
  try {
    fn();
  } catch (const UserError& e) {
    if (kind) {
      EXPECT_EQ(e.kind(), *kind) << e.what();
    }
    return e.what();
  }
  return "";
}

// The same without the call that the text ends with.
template <class F>
std::string reason_of(F&& fn) {
  try {
    fn();
  } catch (const UserError& e) {
    return std::string(e.reason());
  }
  return "";
}

}  // namespace calque::test

#include "calque/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace calque {
namespace {

TEST(ChatTemplate, placeholder) {
  EXPECT_EQ(ChatTemplate::from_text("{{ messages[0].content }}").render({{"user", "a"}}), "a");
}

}  // namespace
}  // namespace calque

// A template cut into its text and the tokens of its tags, with the white space that tags take away already gone (trim_blocks and
// lstrip_blocks are on, as transformers has them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace calque::jinja {

struct Token {
  enum class Type : uint8_t { data, tag_begin, tag_end, print_begin, print_end, name, text, integer, floating, sign, end };
  Type type;
  uint32_t line;
  std::string value;  // a sign is written as it stands: "==", "|"
  bool is(std::string_view sign) const { return type == Type::sign && value == sign; }
  bool is_name(std::string_view name) const { return type == Type::name && value == name; }
};

std::vector<Token> tokens_of(std::string_view source);

[[noreturn]] void syntax_error(uint32_t line, const std::string& message);

}  // namespace calque::jinja

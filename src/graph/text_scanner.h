// The characters of a text with line and column, for parsers. Errors are UserErrors that say where.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "calque/base/error.h"

namespace calque {

class TextScanner {
 public:
  explicit TextScanner(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void advance(size_t count = 1) { at_ += count; }
  bool starts_with(std::string_view s) const { return text_.substr(at_).starts_with(s); }

  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') advance();
  }
  void skip_blank() {
    while (!at_end() && std::isspace(static_cast<unsigned char>(peek()))) advance();
  }
  // After white space: is it next? Then it is taken.
  bool accept(std::string_view s) {
    skip_blank();
    if (!starts_with(s)) return false;
    advance(s.size());
    return true;
  }
  void expect(std::string_view s) {
    if (!accept(s)) fail("expected '" + std::string(s) + "'");
  }
  template <class P>
  std::string_view take_while(P&& accepts) {
    const size_t begin = at_;
    while (!at_end() && accepts(peek())) advance();
    return text_.substr(begin, at_ - begin);
  }
  std::string_view identifier() {
    skip_blank();
    return take_while([](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
  }
  size_t position() const { return at_; }
  void go_to(size_t position) { at_ = position; }

  [[noreturn]] void fail(const std::string& why) const {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    std::string found = at_end()
                            ? "the end of the text"
                            : "'" + std::string(text_.substr(at_, std::min<size_t>(20, text_.find('\n', at_) - at_))) + "'";
    throw UserError(what_ + ", line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + why +
                    ", found " + found);
  }

 private:
  std::string_view text_;
  std::string what_;
  size_t at_ = 0;
};

}  // namespace calque

#include "lexer.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>

namespace calque::layering {
namespace {

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  static bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  void skip_to(size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }
  size_t find(std::string_view what, size_t from) const { return std::min(text_.find(what, from), text_.size()); }

  size_t end_of_directive() const {
    size_t end = find("\n", at_);
    while (end < text_.size() && end > 0 && text_[end - 1] == '\\') end = find("\n", end + 1);
    return end;
  }
  size_t end_of_literal(char quote) const {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    return end + 1;
  }

  void step() {
    const char c = peek();
    if (std::isspace(static_cast<unsigned char>(c))) return skip_to(at_ + 1);
    if (c == '#') return skip_to(end_of_directive());
    if (c == '/' && peek(1) == '/') return skip_to(find("\n", at_));
    if (c == '/' && peek(1) == '*') return skip_to(find("*/", at_) + 2);
    if (c == 'R' && peek(1) == '"') {
      const size_t open = find("(", at_);
      const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
      return add_to(find(close, open) + close.size());
    }
    if (c == '"' || c == '\'') return add_to(end_of_literal(c));
    size_t end = at_ + 1;
    if (std::isdigit(static_cast<unsigned char>(c))) {
      while (end < text_.size() && (in_word(text_[end]) || text_[end] == '.' || text_[end] == '\'')) ++end;
    } else if (in_word(c)) {
      while (end < text_.size() && in_word(text_[end])) ++end;
    }
    add_to(end);
  }
  void add_to(size_t end) {
    tokens_.push_back({text_.substr(at_, end - at_), line_});
    skip_to(end);
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

bool Token::is_word() const {
  const bool begins = std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_';
  return begins && !text.starts_with("R\"");
}
bool Token::is_number() const { return std::isdigit(static_cast<unsigned char>(text[0])); }

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace calque::layering

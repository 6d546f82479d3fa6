#include "sym/linear_text.h"

#include <cctype>
#include <charconv>

namespace calque {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<NamedDim::Derived> read() {
    NamedDim::Derived out{"", 0, 0};
    bool negative = eat('-');
    do {
      if (!term(negative ? -1 : 1, out)) return {};
      spaces();
      if (rest_.empty()) return out;
      negative = rest_.front() == '-';
    } while (eat('+') || eat('-'));
    return {};
  }

 private:
  void spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool eat(char c) {
    spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<int64_t> number() {
    spaces();
    int64_t out = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc() || (!rest_.empty() && rest_.front() == '-')) return {};
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return out;
  }
  std::string name() {
    spaces();
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_')) ++n;
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  bool term(int64_t sign, NamedDim::Derived& out) {
    spaces();
    if (rest_.empty()) return false;
    int64_t coefficient = sign;
    if (std::isdigit(static_cast<unsigned char>(rest_.front()))) {
      const std::optional<int64_t> n = number();
      if (!n) return false;
      coefficient = sign * *n;
      if (!eat('*')) {
        out.offset += coefficient;
        return true;
      }
    }
    const std::string symbol = name();
    if (symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol[0]))) return false;
    spaces();
    if (!rest_.empty() && rest_.front() == '*') {  // sympy never prints a number behind; a person may
      rest_.remove_prefix(1);
      const std::optional<int64_t> n = number();
      if (!n) return false;
      coefficient *= *n;
    }
    if (!out.root.empty() && out.root != symbol) return false;
    out.root = symbol;
    out.multiplier += coefficient;
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<NamedDim::Derived> parse_linear(std::string_view text) { return Reader(text).read(); }

std::string linear_text(const NamedDim::Derived& linear) {
  std::string product = linear.root;
  if (linear.multiplier == -1)
    product = "-" + linear.root;
  else if (linear.multiplier != 1)
    product = std::to_string(linear.multiplier) + "*" + linear.root;
  if (linear.offset == 0) return product;
  if (linear.multiplier < 0 && linear.offset > 0) return std::to_string(linear.offset) + " - " + product.substr(1);
  return product + (linear.offset < 0 ? " - " : " + ") + std::to_string(std::abs(linear.offset));
}

}  // namespace calque

#include "calque/nn/sizes.h"

#include "calque/base/error.h"

namespace calque {

std::string nn_detail::tuple_text(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + (values.size() == 1 ? ",)" : ")");
}

[[noreturn]] static void wrong_count(const char* what, size_t expected, size_t found) {
  throw UserError(std::string(what) + ": expected one number or " + std::to_string(expected) + ", found " +
                  std::to_string(found));
}

std::vector<int64_t> Sizes::expanded(size_t n, const char* what) const {
  if (single_) return std::vector<int64_t>(n, values_[0]);
  if (values_.size() != n) wrong_count(what, n, values_.size());
  return values_;
}

std::string Sizes::str() const { return single_ ? std::to_string(values_[0]) : nn_detail::tuple_text(values_); }

std::vector<OptionalSizes::Size> OptionalSizes::expanded(size_t n, const char* what) const {
  if (single_) return std::vector<Size>(n, values_[0]);
  if (values_.size() != n) wrong_count(what, n, values_.size());
  return values_;
}

std::string OptionalSizes::str() const {
  const auto one = [](const Size& size) { return size ? std::to_string(*size) : std::string("None"); };
  if (single_) return one(values_[0]);
  std::string out = "(";
  for (size_t i = 0; i < values_.size(); ++i) out += (i ? ", " : "") + one(values_[i]);
  return out + (values_.size() == 1 ? ",)" : ")");
}

}  // namespace calque

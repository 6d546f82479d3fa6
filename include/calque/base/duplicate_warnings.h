// DuplicateWarningChecker: which texts were seen lately, for warnings that are given once. The newest 4096 by default, so that a
// program that runs for long does not fill memory. Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace calque {

class DuplicateWarningChecker {
 public:
  explicit DuplicateWarningChecker(size_t maximum = 4096) : maximum_(maximum) {}
  DuplicateWarningChecker(const DuplicateWarningChecker&) = delete;
  DuplicateWarningChecker& operator=(const DuplicateWarningChecker&) = delete;
  // Whether the text is new; always true where all are wanted. A text that is asked for again stays longer.
  bool add(const std::string& text);
  void reset();
  size_t size() const { return texts_.size(); }
  void set_verbose(bool verbose) { verbose_ = verbose; }

 private:
  size_t maximum_;
  bool verbose_ = false;
  std::list<std::string> texts_;  // the one used last in front
  std::unordered_map<std::string_view, std::list<std::string>::iterator> places_;
};

}  // namespace calque

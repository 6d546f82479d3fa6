#include "calque/base/duplicate_warnings.h"

namespace calque {

bool DuplicateWarningChecker::add(const std::string& text) {
  const auto at = places_.find(text);
  if (at != places_.end()) {
    texts_.splice(texts_.begin(), texts_, at->second);
    return verbose_;
  }
  texts_.push_front(text);
  places_.emplace(texts_.front(), texts_.begin());
  if (texts_.size() > maximum_) {
    places_.erase(texts_.back());
    texts_.pop_back();
  }
  return true;
}

void DuplicateWarningChecker::reset() {
  places_.clear();
  texts_.clear();
}

}  // namespace calque

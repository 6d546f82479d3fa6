// CallCounter: a mode that counts the operators called while it is on (ModeScope on(counter)), by name, and hands every call on.
// In the user slot it sees calls after composite operators are taken apart, in the pre_dispatch slot as they were written.
#pragma once

#include <map>
#include <string>

#include "calque/op/mode.h"

namespace calque {

class CallCounter : public Mode {
 public:
  explicit CallCounter(ModeSlot slot = ModeSlot::user) : slot_(slot) {}
  ModeSlot slot() const override { return slot_; }
  Value call(const Operator& op, const Values& args) override {
    ++counts_[op.name()];
    ++total_;
    return call_next(op, args);
  }

  size_t total() const { return total_; }
  size_t count(const std::string& name) const {  // "aten::add.Tensor"
    const auto at = counts_.find(name);
    return at == counts_.end() ? 0 : at->second;
  }
  const std::map<std::string, size_t>& by_operator() const { return counts_; }

 private:
  ModeSlot slot_;
  size_t total_ = 0;
  std::map<std::string, size_t> counts_;
};

}  // namespace calque

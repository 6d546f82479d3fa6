// FunctionalMode: turns programs that write into tensors and look at them through views into programs that do neither.
// A tensor of the mode holds a value; writing it computes a new value, which all views of the same memory see. The
// modes below are asked for functional operators only. At the end the writes to inputs are told, or copied back.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "calque/op/mode.h"

namespace calque {

class FunctionalMode : public Mode, public std::enable_shared_from_this<FunctionalMode> {
 public:
  // `pre_dispatch`: above the pre-dispatch recorder, so that composite operators stay whole unless they write or alias.
  static std::shared_ptr<FunctionalMode> make(bool pre_dispatch = false) {
    return std::shared_ptr<FunctionalMode>(new FunctionalMode(pre_dispatch));
  }

  ModeSlot slot() const override { return pre_dispatch_ ? ModeSlot::function : ModeSlot::functional; }
  Value call(const Operator& op, const Values& args) override;

  // A tensor of this mode with that value.
  Tensor wrap(const Tensor& value);
  Value wrap(const Value& tree);
  // The value that a tensor of this mode has now; others are given back.
  Tensor unwrap(const Tensor& t) const;
  Value unwrap(const Value& tree) const;
  // Whether the memory behind a wrapped tensor was written since it was wrapped.
  bool was_written(const Tensor& t) const;

  // Calls pass through while in scope.
  class OffScope {
   public:
    explicit OffScope(FunctionalMode& mode) : mode_(mode), before_(std::exchange(mode.off_, true)) {}
    ~OffScope() { mode_.off_ = before_; }
    OffScope(const OffScope&) = delete;
    OffScope& operator=(const OffScope&) = delete;

   private:
    FunctionalMode& mode_;
    bool before_;
  };

 private:
  explicit FunctionalMode(bool pre_dispatch) : pre_dispatch_(pre_dispatch) {}
  // The kinds of calls; `inner` are the arguments as what tensors of this mode stand for.
  Value call_view(const Operator& op, const Values& args, const Values& inner);
  Value call_inplace_view(const Operator& op, const Values& args, const Values& inner);
  Value call_writing(const Operator& op, const Values& args, const Values& inner, const std::vector<size_t>& written);
  const bool pre_dispatch_;
  bool off_ = false;
};

bool is_functional(const Tensor& t);

// A functional mode pushed, and with it the way in which the graphs of higher-order calls are recorded.
class FunctionalScope {
 public:
  explicit FunctionalScope(FunctionalMode& mode);
  ~FunctionalScope();
  FunctionalScope(const FunctionalScope&) = delete;
  FunctionalScope& operator=(const FunctionalScope&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A function that computes what `fn` does without in-place operators: writes to inputs become one copy_ to each at the
// end. What is traced below it has no other mutation.
std::function<Value(const Values&)> functionalize(std::function<Value(const Values&)> fn, bool pre_dispatch = false);

}  // namespace calque

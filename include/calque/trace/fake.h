// FakeMode: answers operator calls from shape rules alone. Its tensors have sizes, strides, dtype and a claimed device
// ("cuda" needs no GPU, and is "cuda:0") but no data. Real tensors are converted once each, aliasing kept; tensors of one element made
// from literals remember their value. A fake tensor shares ownership of its mode and of the real tensor it was made from;
// the mode owns neither. One mode serves one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/op/mode.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/symbolic_context.h"

namespace calque {

struct FakeOptions {
  std::shared_ptr<ShapeEnv> env = {};  // where symbols are made; null: no symbols, data-dependent calls are errors
  bool static_shapes = false;          // with an environment: converted tensors keep plain sizes all the same
  bool allow_non_fake_inputs = false;  // real tensors that meet fake ones are converted instead of refused
  bool allow_meta = true;              // tensors on the meta device may be used
  bool backed_items = false;           // item() of an integer input without dimensions gives a symbol with a hint
  bool use_cache = true;               // remember the results of calls
  // Ask of sizes also what PyTorch asks and no result needs, so that the guards are its own; for comparison.
  bool pytorch_guards = false;
};

struct FakeCacheInfo {
  size_t hits = 0;
  size_t misses = 0;
  size_t bypasses = 0;
  size_t size = 0;
};

class FakeMode : public Mode, public std::enable_shared_from_this<FakeMode> {
 public:
  static std::shared_ptr<FakeMode> make(FakeOptions options = {});
  ~FakeMode() override;

  ModeSlot slot() const override { return ModeSlot::fake; }
  Value call(const Operator& op, const Values& args) override;
  std::optional<Value> file_content(const Value& content) override;

  // The fake tensor for a real one: the same one for the same tensor, storages shared as the real ones are. With
  // symbolic sizes each dimension gets a symbol, as `context` says; `source` is what guards call the tensor.
  Tensor from_tensor(const Tensor& real, const Source& source = Source::constant("input"),
                     const SymbolicContext* context = nullptr);
  // As from_tensor for tensors in a tree; the rest is kept.
  Value from_value(const Value& tree);
  // A fake tensor that remembers its value: `real` must not be written by anyone else.
  Tensor from_constant(const Tensor& real);
  // A fresh one of these sizes.
  Tensor make_fake(const Meta& meta);

  const FakeOptions& options() const { return options_; }
  const std::shared_ptr<ShapeEnv>& env() const { return options_.env; }
  FakeCacheInfo cache_info() const;
  size_t memo_size() const;  // real tensors that have a living fake one

 private:
  friend class FakeExtra;
  struct Impl;
  explicit FakeMode(FakeOptions options);
  struct Operands;
  Value answer(const Operator& op, const Values& args);
  Operands survey(const Operator& op, const Values& args) const;
  std::optional<Value> fold(const Operator& op, const Values& args);
  void forget_written(const Operator& op, const Values& args);
  Value run_rule(const Operator& op, const Values& args);
  Tensor from_closed_over(const Tensor& real);

  FakeOptions options_;
  std::unique_ptr<Impl> impl_;
};

// The mode that a tensor made by the calling thread now would belong to; null when none is on.
FakeMode* active_fake_mode();
// The mode that made a tensor; null for others.
FakeMode* fake_mode_of(const Tensor& t);
// What a fake tensor is known to hold; undefined when it is not known.
Tensor fake_constant(const Tensor& t);

}  // namespace calque

// Counts the bytes that results of operators still hold: what a computation keeps for its backward pass.
#pragma once

#include <cstddef>
#include <map>

#include "calque/op/mode.h"
#include "calque/op/tree.h"

namespace calque::test {

class LiveBytes final : public Mode {
 public:
  ModeSlot slot() const override { return ModeSlot::user; }
  Value call(const Operator& op, const Values& args) override {
    Value result = call_next(op, args);
    for (const Value& leaf : tree_leaves(result))
      if (leaf.is_tensor()) seen_.try_emplace(leaf.to_tensor().storage().get(), leaf.to_tensor().storage());
    return result;
  }
  // Of the storages made since then, those that somebody else holds too.
  size_t count() const {
    size_t bytes = 0;
    for (const auto& [address, storage] : seen_)
      if (storage.use_count() > 1) bytes += storage->nbytes();
    return bytes;
  }

 private:
  std::map<const Storage*, Ref<Storage>> seen_;
};

}  // namespace calque::test

// ExprMap: from expressions to T, for the expressions that a trace meets with every tensor. Open addressing by address;
// nothing is taken out again, and an entry moves when another is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace calque {

class Expr;

template <class T>
class ExprMap {
 public:
  T* find(const Expr* e) {
    if (slots_.empty()) return nullptr;
    Slot& at = slots_[place(e)];
    return at.key ? &at.value : nullptr;
  }
  const T* find(const Expr* e) const { return const_cast<ExprMap*>(this)->find(e); }
  bool contains(const Expr* e) const { return find(e) != nullptr; }
  // The entry of `e`, and whether it is new.
  std::pair<T*, bool> try_emplace(const Expr* e, T value = {}) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& at = slots_[place(e)];
    if (at.key) return {&at.value, false};
    at = {e, std::move(value)};
    ++count_;
    return {&at.value, true};
  }
  T& operator[](const Expr* e) { return *try_emplace(e).first; }

 private:
  struct Slot {
    const Expr* key = nullptr;
    T value{};
  };
  // Where `e` is, or belongs.
  size_t place(const Expr* e) const {
    size_t at = (reinterpret_cast<uintptr_t>(e) * 0x9e3779b97f4a7c15ULL) >> shift_;
    while (slots_[at].key && slots_[at].key != e) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : 2 * slots_.size()));
    shift_ = before.empty() ? 58 : shift_ - 1;
    for (Slot& slot : before)
      if (slot.key) slots_[place(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;  // a power of two
  size_t count_ = 0;
  int shift_ = 58;
};

}  // namespace calque

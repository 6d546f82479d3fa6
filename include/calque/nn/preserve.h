// What a run may change and a caller may want back: the default generator's stream, and a module's parameters and
// buffers. Both belong to the object they were taken from; neither locks a module against other threads.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/nn/module.h"

namespace calque {

// The default generator goes on, when the scope ends, from where it was when it began.
class RngStateScope {
 public:
  RngStateScope();
  ~RngStateScope();
  RngStateScope(const RngStateScope&) = delete;
  RngStateScope& operator=(const RngStateScope&) = delete;

 private:
  std::vector<uint8_t> state_;
};

// A copy of every parameter and buffer of a module and its children, shared ones once. restore() puts the same tensors
// back into the same places, with the values they had; it may be called again. The module must outlive it and keep its
// children. Fake tensors are put back, their values are not known.
class StateSnapshot {
 public:
  explicit StateSnapshot(Module& module);
  void restore() const;

 private:
  struct Place {
    TensorSlot* slot;
    Tensor tensor;
  };
  std::vector<Place> places_;
  std::vector<std::pair<Tensor, Tensor>> values_;  // a tensor and what it held
};

// Restores parameters, buffers and the generator when the scope ends, however it ends.
class StateScope {
 public:
  explicit StateScope(Module& module) : state_(module) {}
  ~StateScope() { state_.restore(); }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  RngStateScope generator_;
  StateSnapshot state_;
};

}  // namespace calque

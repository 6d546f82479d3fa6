// What tensor(...) makes of a symbolic number. It is specialised, as PyTorch's make_fx has it; while this scope is open on the
// calling thread the number stays what it is, in a call of scalar_tensor, as torch.export has it.
#pragma once

namespace calque {

class SymbolicLiteralsScope {
 public:
  SymbolicLiteralsScope();
  ~SymbolicLiteralsScope();
  SymbolicLiteralsScope(const SymbolicLiteralsScope&) = delete;
  SymbolicLiteralsScope& operator=(const SymbolicLiteralsScope&) = delete;

 private:
  bool before_;
};

}  // namespace calque

// MetaParametersScope: modules that the calling thread makes while it lives get parameters without data (on the meta
// device), so that nothing is allocated or initialised that a checkpoint will bring. Buffers stay real: many are computed
// by the module itself. What a constructor writes into a parameter afterwards goes nowhere; what it assigns to one stays.
#pragma once

namespace calque {

class MetaParametersScope {
 public:
  MetaParametersScope();
  ~MetaParametersScope();
  MetaParametersScope(const MetaParametersScope&) = delete;
  MetaParametersScope& operator=(const MetaParametersScope&) = delete;

  static bool active();

 private:
  bool before_;
};

}  // namespace calque

// torch.backends.cudnn.enabled: what layers hand to operators that take `cudnn_enable`. It changes no result here, but graphs
// show it. On by default; a thread's own.
#pragma once

namespace calque {

bool cudnn_enabled();

class CudnnScope {
 public:
  explicit CudnnScope(bool enabled);
  ~CudnnScope();
  CudnnScope(const CudnnScope&) = delete;
  CudnnScope& operator=(const CudnnScope&) = delete;

 private:
  bool before_;
};

}  // namespace calque

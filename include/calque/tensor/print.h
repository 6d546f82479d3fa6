// How tensors are printed: PyTorch's options with PyTorch's defaults. `Tensor::str()` uses the options of the process;
// `tensor_str` takes them as an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calque/tensor/tensor_base.h"

namespace calque {

struct PrintOptions {
  int precision = 4;         // digits after the point
  int64_t threshold = 1000;  // tensors of more elements are summarised
  int64_t edgeitems = 3;     // what a summary shows at either end of a dimension
  int64_t linewidth = 80;
  std::optional<bool> sci_mode;  // scientific notation; chosen from the values when not given

  bool operator==(const PrintOptions&) const = default;
  static PrintOptions short_profile() { return {.precision = 2, .edgeitems = 2, .sci_mode = {}}; }
  static PrintOptions full_profile() { return {.threshold = INT64_MAX, .sci_mode = {}}; }
};

// What made the tensor, as op/grad_node.h names it ("MulBackward0"); empty for leaves. Null until something was recorded.
using GradFnNamer = std::string (*)(const TensorBase& tensor);
void set_grad_fn_namer(GradFnNamer namer);

std::string tensor_str(const TensorBase& tensor, const PrintOptions& options);

// Of the process; any thread may set and read them. UserError for negative numbers.
void set_printoptions(const PrintOptions& options);
PrintOptions get_printoptions();

class PrintOptionsScope {  // sets the options, restores them
 public:
  explicit PrintOptionsScope(const PrintOptions& options) : before_(get_printoptions()) { set_printoptions(options); }
  ~PrintOptionsScope() { set_printoptions(before_); }
  PrintOptionsScope(const PrintOptionsScope&) = delete;
  PrintOptionsScope& operator=(const PrintOptionsScope&) = delete;

 private:
  PrintOptions before_;
};

}  // namespace calque

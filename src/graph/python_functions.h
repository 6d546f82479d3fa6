// The functions of Python that graphs call: operator.*, math.*, builtins and torch.sym_*, over numbers (symbolic or
// not), tensors and containers. Semantics are Python's.
#pragma once

#include <string_view>

#include "calque/graph/function.h"

namespace calque {

struct PythonFunction {
  std::string_view name;  // "operator.add"
  Value (*body)(const Values& args, const Kwargs& kwargs);
  bool is_impure = false;
};
const std::vector<PythonFunction>& python_functions();

// x[index], for tensors, lists, tuples, dicts and structures.
Value python_getitem(const Value& object, const Value& index);
Value python_getattr(const Value& object, std::string_view attribute);
SymBool python_truth(const Value& value);
int64_t python_len(const Value& value);

}  // namespace calque

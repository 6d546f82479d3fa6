#include "kernel/cpu/require.h"

#include <algorithm>
#include <string>

#include "calque/base/error.h"

namespace calque::kernel {

void refuse_sizes(const char* op, const char* argument, const TensorBase& found, const std::string& expected) {
  throw UserError(std::string(op) + ": expected " + argument + " with " + expected + ", found " +
                  (found.defined() ? "sizes " + str(found.sym_sizes()) : "none"));
}

void refuse_index(const char* op, const char* argument, int64_t found, int64_t size) {
  throw UserError(std::string(op) + ": expected " + argument + " from 0 to " + std::to_string(size - 1) + ", found " +
                  std::to_string(found));
}

void refuse_dtype(const char* op, const char* argument, const TensorBase& found, DType expected) {
  throw UserError(std::string(op) + ": expected " + argument + " of dtype " + std::string(name(expected)) + ", found " +
                  std::string(name(found.dtype())));
}

}  // namespace calque::kernel

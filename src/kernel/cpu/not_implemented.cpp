#include "kernel/cpu/not_implemented.h"

#include <string>

#include "calque/base/error.h"

namespace calque::kernel {

void not_implemented(std::string_view kernel, DType dtype) {
  throw UserError(ErrorKind::unsupported_operator,
                  "\"" + std::string(kernel) + "\" not implemented for '" + std::string(name(dtype)) + "'");
}

}  // namespace calque::kernel

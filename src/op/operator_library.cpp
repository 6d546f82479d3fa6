// Operators of a user's own, from a shared library. Compiled alone: the static program has a definition of its own.
#include "op/operator_library.h"

#ifndef CALQUE_STATIC
#include <dlfcn.h>
#endif

#include "calque/base/error.h"

namespace calque {

#ifdef CALQUE_STATIC  // what a static program loaded would bring a second C library

void load_operator_library(const std::string& path) {
  throw UserError(
      ErrorKind::unsupported_operator,
      "cannot load the operator library " + path +
          ": this program is linked statically and cannot load code; use one that is built without CALQUE_STATIC");
}

#else

void load_operator_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw UserError(ErrorKind::bad_file, "cannot load the operator library " + path + ": " + dlerror());
  using Entry = void (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, "calque_register_operators"));
  if (!entry) {
    dlclose(handle);
    throw UserError(ErrorKind::bad_file,
                    "the operator library " + path + " does not define extern \"C\" void calque_register_operators()");
  }
  entry();
}

#endif

}  // namespace calque

// Any text as sympy's srepr: an expression whose own text reads back to itself, or one UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "calque/base/error.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/srepr.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto env = ShapeEnv::make();
  try {
    const SymInt value = parse_srepr(*env, text);
    if (!value.is_symbolic()) return 0;
    const std::string once = srepr(value.expr());
    if (srepr(parse_srepr(*env, once).expr()) != once) std::abort();
  } catch (const UserError&) {
  }
  try {
    static_cast<void>(parse_srepr_bool(*env, text));
  } catch (const UserError&) {
  }
  try {
    static_cast<void>(parse_srepr_float(*env, text));
  } catch (const UserError&) {
  }
  return 0;
}

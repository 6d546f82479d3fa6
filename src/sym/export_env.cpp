#include "calque/sym/export_env.h"

#include "base/sha256.h"
#include "sym/env_impl.h"

namespace calque {

void name_symbols_by_source(ShapeEnv& env, std::unordered_map<std::string, std::string> called) {
  env.impl().names_by_source = true;
  env.impl().called = std::move(called);
}
void defer_guards(ShapeEnv& env) { env.impl().defers_guards = true; }

std::string ShapeEnv::Impl::name_after(const Source& source) {
  std::string name = source.name();
  const std::string input = source.is_property() ? source.base() : name;
  if (const auto other = called.find(input); other != called.end()) name.replace(0, input.size(), other->second);
  size_t number = 0;
  for (const uint8_t byte : sha256(name)) number = (number * 256 + byte) % 100;
  // Sizes and floats share the numbers.
  while (by_name.contains("s" + std::to_string(number)) || by_name.contains("zf" + std::to_string(number))) ++number;
  return "s" + std::to_string(number);
}

}  // namespace calque

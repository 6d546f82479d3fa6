// Namespace: unique Python identifiers by torch.fx's rules: illegal characters become underscores, a number is put
// behind a name that is taken, names of Python's builtins and keywords are avoided.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace calque {

// "mod.pascalCase" -> "mod.pascal_case"
std::string snake_case(std::string_view text);
// A keyword or a builtin of Python, or a name that FX's generated code uses for itself.
bool is_reserved_name(std::string_view name);

class Namespace {
 public:
  // With `allow_reserved` the name may be that of a builtin (it stands for that builtin itself).
  std::string create_name(std::string_view candidate, bool allow_reserved = false);
  void add(std::string_view name) { used_.emplace(name); }
  bool contains(std::string_view name) const { return used_.contains(std::string(name)); }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> base_count_;
};

}  // namespace calque

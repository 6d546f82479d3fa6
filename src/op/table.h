// The table behind find_operator. Filled with the built-in operators on first use by a call to
// register_builtin_operators, which the generator writes: nothing depends on static initialisers surviving the linker.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "calque/op/operator.h"

namespace calque {

class OperatorTable {
 public:
  static OperatorTable& instance();
  Operator& add(Schema schema);
  bool add(PythonAlias alias);  // false when the name is taken
  const Operator* find(const std::string& name) const;
  const PythonAlias* find_python_alias(const std::string& name) const;
  std::vector<const Operator*> all() const;
  std::vector<const Operator*> overloads(const std::string& name) const;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Operator>> operators_;
  std::unordered_map<std::string, Operator*> by_name_;
  std::map<std::string, std::vector<const Operator*>> overloads_;
  std::unordered_map<std::string, PythonAlias> python_aliases_;
};

// Generated: calls the register function of every stanza file in src/op/aten.
void register_builtin_operators();
void register_prims_operators();
void register_torch_nn_operators();

}  // namespace calque

// The private half of ShapeEnv, and how the operators of SymInt reach it.
#pragma once

#include <unordered_map>

#include "calque/sym/shape_env.h"
#include "sym/expr_pool.h"
#include "sym/knowledge.h"

namespace calque {

struct ShapeEnv::Impl {
  Impl(ShapeEnv* env, ShapeEnvOptions given) : options(given), pool(env), knowledge(pool) { pool.set_knowledge(&knowledge); }

  const Expr* expr(SymInt value);  // a node of this environment, symbols replaced
  const Expr* expr(SymBool value);
  const Expr* expr(SymFloat value);
  SymInt declare(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin, bool unbacked,
                 bool positive, bool keeps_zero_one);
  bool guard(const Expr* boolean, std::source_location where);
  bool guard_or(const Expr* boolean, bool otherwise, std::source_location where);
  bool expect_true(const Expr* boolean, std::source_location where);
  int64_t specialize(const Expr* integer, std::source_location where);
  double specialize_float(const Expr* real, std::source_location where);
  void record(const Expr* holds, std::source_location where);
  [[noreturn]] void throw_data_dependent(const Expr* e, std::source_location where);

  ShapeEnvOptions options;
  ExprPool pool;
  Knowledge knowledge;
  std::vector<Guard> guards;
  std::vector<SymBool> deferred_asserts;
  std::unordered_map<int64_t, size_t> by_example;  // duck shaping: example size to symbol
  std::unordered_map<std::string, size_t> by_name;
  size_t next_backed = 0;
  size_t next_unbacked = 0;
};

// The environment that the given values have in common; a UserError if they come from different ones.
ShapeEnv::Impl& common_env(std::initializer_list<const Expr*> exprs);

}  // namespace calque

#include "trace/decompositions/table.h"

#include <algorithm>
#include <mutex>

#include "calque/base/error.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/functional_form.h"

namespace calque {
namespace {

// In place and out=: the functional operator, and its results written to where they belong.
Decomposition written_form(const Operator& op, const Operator& functional) {
  return [&op, &functional](const Values& args) -> std::optional<Value> {
    const auto& schema = op.schema().arguments;
    Values targets;
    Kwargs given;
    for (size_t i = 0; i < args.size(); ++i) {
      if (schema[i].is_written()) targets.push_back(args[i]);
      if (!schema[i].is_written() || !schema[i].keyword_only) given.emplace_back(schema[i].name, args[i]);
    }
    const bool is_out = !op.schema().arguments.front().is_written();
    const Value out = call(functional, {}, std::move(given));
    const Values results = out.is_tensor() ? Values{out} : out.to_items();
    for (size_t i = 0; i < targets.size() && i < results.size(); ++i) {
      const Tensor& target = targets[i].to_tensor();
      const Tensor result = results[i].to_tensor_or_none();
      if (!result.defined()) continue;
      if (is_out && (target.dim() != result.dim() || !guard(sym_eq(target.sym_sizes(), result.sym_sizes()))))
        target.resize_(result.sym_sizes());
      target.copy_(result);
    }
    return targets.size() == 1 ? targets[0] : tuple(std::move(targets));
  };
}

DecompositionTable make_core() {
  DecompositionTable table;
  DecompositionBuilder builder(table);
  decompose_activations(builder);
  decompose_activations_backward(builder);
  decompose_copies(builder);
  decompose_factories(builder);
  decompose_indexing(builder);
  decompose_losses(builder);
  decompose_normalization(builder);
  decompose_pointwise(builder);
  decompose_reductions(builder);
  decompose_resampling(builder);
  decompose_shaping(builder);
  for (const Operator* op : all_operators()) {
    if (op->schema().name_space != "aten" || table.contains(op) || op->has_tag(Tag::left_whole)) continue;
    const Operator* functional = find_functional_form(*op);
    if (functional && (table.contains(functional) || op->has_tag(Tag::decomposes)))
      table.emplace(op, written_form(*op, *functional));
  }
  return table;
}

DecompositionTable make_default() {
  DecompositionTable table = core_aten_decompositions();
  DecompositionBuilder builder(table);
  decompose_interpolation(builder);
  decompose_recurrent(builder);
  return table;
}

// The default table knows every composite operator that is registered when it is asked for, a user's that came late too.
class DefaultTable {
 public:
  const DecompositionTable& table() {
    const std::lock_guard lock(mutex_);
    const std::vector<const Operator*> all = all_operators();
    for (; known_ < all.size(); ++known_) {
      const Operator* op = all[known_];
      if (can_stay_whole(*op) && !op->has_tag(Tag::core_composite))
        table_.emplace(op, [op](const Values& args) -> std::optional<Value> {
          const CompositeBodyScope body(&args);
          return op->run_eager(args);
        });
    }
    return table_;
  }

 private:
  std::mutex mutex_;
  DecompositionTable table_ = make_default();
  size_t known_ = 0;  // operators in order of registration
};

}  // namespace

bool can_stay_whole(const Operator& op) {
  if (!op.is_composite() || op.has_tag(Tag::not_whole) || op.has_tag(Tag::own_composite)) return false;
  const auto& arguments = op.schema().arguments;
  return std::none_of(arguments.begin(), arguments.end(), [](const SchemaArgument& a) { return !a.alias.empty(); });
}

std::optional<Value> CompositesByTable::expand(const Operator& op, const Values& args) const {
  const auto it = table_.find(&op);
  if (it == table_.end()) return std::nullopt;
  const CompositeBodyScope body(nullptr);
  return it->second(args);
}

const DecompositionTable& default_decompositions() {
  static DefaultTable decompositions;
  return decompositions.table();
}

Decomposition DecompositionBuilder::boxed(void (*body)(), Value (*call)(void (*)(), Arguments),
                                          const ArgumentList& arguments) {
  return [body, call, &arguments](const Values& args) -> std::optional<Value> {
    UnboxedArguments unboxed(arguments.count);
    for (size_t i = 0; i < arguments.count; ++i) unboxed.add(*arguments.types[i], args[i]);
    return call(body, unboxed.at());
  };
}

void DecompositionBuilder::put(std::string_view name, Decomposition body, size_t arity) {
  const Operator& op = get_operator(aten_name(name));
  if (arity != any_arity && arity != op.schema().arguments.size())
    throw InternalError(op.name() + ": the decomposition takes " + std::to_string(arity) + " arguments, the operator " +
                        std::to_string(op.schema().arguments.size()));
  if (!table_.emplace(&op, std::move(body)).second) throw InternalError(op.name() + ": is decomposed twice");
}

const DecompositionTable& core_aten_decompositions() {
  static const DecompositionTable table = make_core();
  return table;
}

}  // namespace calque

#include "calque/op/operator.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <stdexcept>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/library.h"
#include "calque/op/mode.h"
#include "op/table.h"
#include "op/well_known.h"

namespace calque {
namespace {

// Python spells a target "aten.relu.default"; the table's key is "aten::relu".
std::string canonical(std::string_view name) {
  std::string s(name);
  if (s.starts_with("torch.ops.")) s.erase(0, 10);
  if (s.find("::") == std::string::npos) {
    const size_t dot = s.find('.');
    if (dot != std::string::npos) s.replace(dot, 1, "::");
  }
  if (s.ends_with(".default")) s.resize(s.size() - 8);
  return s;
}

bool is_number(const Value& v) {
  return v.kind() == Value::Kind::integer || v.kind() == Value::Kind::floating || v.kind() == Value::Kind::boolean ||
         v.kind() == Value::Kind::complex;
}

bool has_number_for_tensor(const Schema& schema, const Values& positional,
                           const std::vector<std::pair<std::string, Value>>& keyword) {
  const auto clashes = [](const SchemaArgument& a, const Value& v) {
    return a.type.kind == SchemaType::Kind::tensor && !a.type.list && is_number(v);
  };
  for (size_t i = 0; i < positional.size(); ++i)
    if (clashes(schema.arguments[i], positional[i])) return true;
  for (const auto& [name, value] : keyword)
    if (clashes(schema.arguments[*schema.find_argument(name)], value)) return true;
  return false;
}

}  // namespace

OperatorTable& OperatorTable::instance() {
  static auto* table = new OperatorTable;  // operators live as long as the process
  static std::once_flag filled;
  thread_local bool filling = false;  // the stanzas being registered come back here
  if (!filling) {
    std::call_once(filled, [] {
      filling = true;
      register_builtin_operators();
      register_prims_operators();
      register_torch_nn_operators();
      check_well_known_operators();
      filling = false;
    });
  }
  return *table;
}

// torch.special.expit and its like are called special_expit in the modules they come from.
static std::string default_python_name(const Schema& schema) {
  if (schema.name_space != "aten") return "torch.ops." + schema.name_space + "." + schema.name;
  for (const std::string_view group : {"special", "fft", "linalg"})
    if (schema.name.starts_with(std::string(group) + "_")) return "torch._C._" + std::string(group) + "." + schema.name;
  return "torch." + schema.name;
}

Operator& OperatorTable::add(Schema schema) {
  const std::unique_lock lock(mutex_);
  auto op = std::make_unique<Operator>();
  op->name_ = schema.full_name();
  op->python_name_ = default_python_name(schema);
  op->schema_ = std::move(schema);
  const auto [it, fresh] = by_name_.emplace(op->name_, op.get());
  if (!fresh) throw UserError("operator " + op->name_ + " is registered already; choose another name or overload");
  overloads_[op->packet()].push_back(op.get());
  operators_.push_back(std::move(op));
  return *operators_.back();
}

const Operator* OperatorTable::find(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

bool OperatorTable::add(PythonAlias alias) {
  const std::unique_lock lock(mutex_);
  std::string name = alias.name;
  return python_aliases_.emplace(std::move(name), std::move(alias)).second;
}

const PythonAlias* OperatorTable::find_python_alias(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const auto it = python_aliases_.find(name);
  return it == python_aliases_.end() ? nullptr : &it->second;
}

std::vector<const Operator*> OperatorTable::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<const Operator*> out;
  for (const auto& op : operators_) out.push_back(op.get());
  return out;
}

std::vector<const Operator*> OperatorTable::overloads(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  const auto it = overloads_.find(name);
  return it == overloads_.end() ? std::vector<const Operator*>{} : it->second;
}

const Operator* find_operator(std::string_view name) { return OperatorTable::instance().find(canonical(name)); }

const Operator& get_operator(std::string_view name) {
  if (const Operator* op = find_operator(name)) return *op;
  const std::string key = canonical(name);
  std::string message = "no operator named " + std::string(name);
  const std::string base = key.substr(0, key.find('.', key.find("::") == std::string::npos ? 0 : key.find("::")));
  const std::string others = join(overloads_of(base), ", ", [](const Operator* op) { return op->name(); });
  if (!others.empty()) message += "; its overloads are " + others;
  throw UserError(ErrorKind::unsupported_operator, message);
}

std::string aten_name(std::string_view name) { return "aten::" + std::string(name); }

const PythonAlias* find_python_alias(std::string_view name) {
  return OperatorTable::instance().find_python_alias(std::string(name));
}

std::vector<const Operator*> all_operators() { return OperatorTable::instance().all(); }
std::vector<const Operator*> overloads_of(std::string_view name) {
  return OperatorTable::instance().overloads(canonical(name));
}

const Operator& resolve_overload(std::string_view name, const Values& positional,
                                 const std::vector<std::pair<std::string, Value>>& keyword) {
  auto candidates = overloads_of(name);
  if (candidates.empty()) return get_operator(name);
  // In ATen's order of registration, where these come after the overloads that they were to replace.
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const Operator* op) { return op->schema().overload != "correction"; });
  std::string reasons;
  for (const Operator* op : candidates) {
    try {
      bind_arguments(op->schema(), positional, keyword);
      if (op->has_tag(Tag::number_for_tensor) || !has_number_for_tensor(op->schema(), positional, keyword)) return *op;
      reasons += "\n  " + op->name() + ": takes tensors, not numbers";
    } catch (const UserError& e) {
      reasons += std::string("\n  ") + e.what();
    }
  }
  throw UserError(std::string(name) + ": no overload fits the arguments:" + reasons);
}

std::string Operator::packet() const { return schema_.name_space + "::" + schema_.name; }

Value Operator::run_eager(const Values& args) const {
  if (!alias_of_ && !has_kernel())
    throw UserError(ErrorKind::unsupported_operator, name_ + ": registered without an implementation");
  return run_boxed(args, false);
}

Value Operator::run_fake(const Values& args) const {
  if (!alias_of_ && !has_kernel())
    throw UserError(ErrorKind::unsupported_operator, name_ + ": registered without a shape rule");
  return run_boxed(args, true);
}

Value Operator::run_boxed(const Values& args, bool fake) const {
  try {
    if (alias_of_) return dispatch(*alias_of_, args);
    const ArgumentList& given = (base_ ? *base_ : *this).calls().arguments;
    const size_t count = base_ ? schema_.arguments.size() : given.count;
    UnboxedArguments unboxed(count);
    for (size_t i = 0; i < given.count; ++i) unboxed.add(*given.types[i], args[i]);
    for (size_t i = given.count; i < count; ++i) unboxed.add(Argument<const Tensor&>::type, args[i]);  // out=
    return write_ ? Value(write_(*this, unboxed.at(), fake)) : run_(*this, unboxed.at(), fake);
  } catch (UserError& e) {
    op_detail::explain(e, *this, args);
    throw;
  } catch (const std::bad_alloc&) {
    UserError e("out of memory: the call needs more than there is");
    op_detail::explain(e, *this, args);
    throw e;
  } catch (const std::length_error&) {
    UserError e("out of memory: the call needs a list longer than there can be");
    op_detail::explain(e, *this, args);
    throw e;
  }
}

}  // namespace calque

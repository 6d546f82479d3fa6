#include "calque/export/input_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/op/tree.h"
#include "calque/sym/expr.h"
#include "export/shapes/guard_text.h"
#include "export/shapes/shape_walk.h"
#include "sym/linear_text.h"

namespace calque {

namespace {

constexpr size_t no_symbol = SIZE_MAX;

// One size, or an integer input.
struct NumberCheck {
  enum class Kind : uint8_t {
    constant,    // is the number
    linear,      // is multiplier * symbol + offset; the first such size tells the symbol
    expression,  // of one symbol, checked where another size tells it
    anything,    // of several symbols: the program's own asserts check it
  };
  Kind kind = Kind::anything;
  int64_t number = 0;
  size_t symbol = no_symbol;  // a slot
  int64_t multiplier = 1;
  int64_t offset = 0;
  SymInt expression;
  std::string text = {};  // of the expression
  std::string symbol_text = {};
  std::optional<ValueRange> range = {};
};

struct LeafCheck {
  enum class Kind : uint8_t { tensor, integer, constant, nothing };
  Kind kind = Kind::nothing;
  std::string path;                  // "*args[0]['a']"
  std::vector<NumberCheck> numbers;  // a tensor's sizes; an integer
  DType dtype = DType::float32;
  std::string sizes = {};  // of a tensor, as text
  Value constant;
};

// A condition of guards_code, and where its variables are.
struct GuardCheck {
  GuardText guard;
  std::vector<size_t> leaves;
  std::string text;  // for the error
};

std::string place_of(const KeyPath& path) {
  if (path[0].key.to_int() == 0) return "*args" + keystr(KeyPath(path.begin() + 1, path.end()));
  return path[1].key.str() + keystr(KeyPath(path.begin() + 2, path.end()));
}

std::string plain_text(const Value& v) { return v.kind() == Value::Kind::string ? v.to_string() : v.str(); }

std::string size_text(SymIntList sizes) {
  const std::string out = join(sizes, ", ", [](const SymInt s) { return s.str(); });
  return "torch.Size([" + out + "])";
}

[[noreturn]] void refuse(const std::string& message) { throw UserError(ErrorKind::constraint_violation, message); }

// Equal up to the order of a dict's keys.
bool same_structure(const TreeSpec& a, const TreeSpec& b) {
  if (a.kind() != b.kind() || a.num_children() != b.num_children()) return false;
  if (a.kind() == TreeSpec::Kind::dict) {
    for (size_t i = 0; i < a.num_children(); ++i) {
      const auto at = std::ranges::find_if(b.dict_keys(), [&](const Value& k) { return k.equals(a.dict_keys()[i]); });
      if (at == b.dict_keys().end()) return false;
      if (!same_structure(a.children()[i], b.children()[static_cast<size_t>(at - b.dict_keys().begin())])) return false;
    }
    return true;
  }
  if (a.type() != b.type() || a.context() != b.context()) return false;
  for (size_t i = 0; i < a.num_children(); ++i)
    if (!same_structure(a.children()[i], b.children()[i])) return false;
  return true;
}

// What guards may call a leaf: "L['x'][0]"; for "*args" also "L['args'][0]" of an argument named args_0.
std::vector<std::string> sources_of(const KeyPath& path, size_t index, const std::vector<std::string>& names) {
  std::vector<std::string> out = {"L['flat_args'][" + std::to_string(index) + "]"};
  const auto position = static_cast<size_t>(path[0].key.to_int() == 0 ? path[1].key.to_int() : 0);
  const std::string rest = keystr(KeyPath(path.begin() + 2, path.end()));
  if (path[0].key.to_int() != 0) {
    out.push_back("L[" + path[1].key.str() + "]" + rest);
  } else if (position < names.size()) {
    const std::string& name = names[position];
    out.push_back("L['" + name + "']" + rest);
    const size_t bar = name.rfind('_');
    if (bar != std::string::npos && bar + 1 < name.size() &&
        std::ranges::all_of(name.substr(bar + 1), [](char c) { return c >= '0' && c <= '9'; }))
      out.push_back("L['" + name.substr(0, bar) + "'][" + name.substr(bar + 1) + "]" + rest);
  }
  return out;
}

}  // namespace

struct InputChecks::Impl {
  TreeSpec in_spec;
  std::shared_ptr<ShapeEnv> env;
  std::vector<LeafCheck> leaves;
  std::vector<std::string> symbols;  // by slot
  std::vector<GuardCheck> guards;
  InputCheckOptions options;

  Impl(const ExportedProgram& program, const InputCheckOptions& o) : in_spec(program.in_spec()), options(o) {
    env = program.graph().shape_env();
    const std::vector<Node*> placeholders = program.graph().placeholders();
    const std::vector<KeyPath> paths = in_spec.paths();
    for (size_t i = 0; i < placeholders.size(); ++i) {
      if (program.graph_signature().input_specs.at(i).kind != InputKind::user_input) continue;
      if (leaves.size() == paths.size()) throw UserError("the program has more user inputs than its in_spec has leaves");
      leaves.push_back(leaf(place_of(paths[leaves.size()]), placeholders[i]->meta.val, program.parts().range_constraints));
    }
    if (leaves.size() != paths.size()) throw UserError("the program has fewer user inputs than its in_spec has leaves");
    if (options.guards) add_guards(program, paths);
  }

  using Ranges = std::vector<std::pair<std::string, ValueRange>>;

  LeafCheck leaf(std::string path, const Value& val, const Ranges& ranges) {
    LeafCheck out;
    out.path = std::move(path);
    if (val.is_tensor()) {
      const Tensor& t = val.to_tensor();
      out.kind = LeafCheck::Kind::tensor;
      out.dtype = t.dtype();
      out.sizes = size_text(t.sym_sizes());
      if (!env) env = t.impl().env;
      for (const SymInt size : t.sym_sizes()) out.numbers.push_back(number(size, ranges));
    } else if (val.kind() == Value::Kind::integer && val.to_sym_int().is_symbolic()) {
      if (!env) env = env_of(val.to_sym_int());
      out.kind = LeafCheck::Kind::integer;
      out.numbers.push_back(number(val.to_sym_int(), ranges));
    } else if (val.kind() == Value::Kind::integer || val.kind() == Value::Kind::boolean ||
               val.kind() == Value::Kind::floating || val.kind() == Value::Kind::string) {
      out.kind = LeafCheck::Kind::constant;
      out.constant = val;
    }
    return out;  // nothing is promised of other values
  }

  size_t slot_of(const std::string& symbol) {
    const auto at = std::ranges::find(symbols, symbol);
    if (at != symbols.end()) return static_cast<size_t>(at - symbols.begin());
    symbols.push_back(symbol);
    return symbols.size() - 1;
  }

  NumberCheck number(SymInt value, const Ranges& ranges) {
    NumberCheck out;
    if (!value.is_symbolic()) {
      out.kind = NumberCheck::Kind::constant;
      out.number = value.as_int();
      return out;
    }
    out.text = value.str();
    std::vector<std::string> names;
    collect(value.expr(), names);
    if (names.size() != 1) return out;
    out.symbol = slot_of(names[0]);
    out.symbol_text = names[0];
    const auto range = std::ranges::find(ranges, out.text, &Ranges::value_type::first);
    if (range != ranges.end()) out.range = range->second;
    if (const std::optional<NamedDim::Derived> linear = parse_linear(out.text); linear && linear->multiplier != 0) {
      out.kind = NumberCheck::Kind::linear;
      out.multiplier = linear->multiplier;
      out.offset = linear->offset;
    } else {
      out.kind = NumberCheck::Kind::expression;
      out.expression = value;
    }
    return out;
  }

  void collect(const Expr* e, std::vector<std::string>& names) const {
    if (e->kind() == ExprKind::symbol) {
      const std::string& name = e->env()->symbols()[e->symbol_index()].name;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    for (const Expr* a : e->args()) collect(a, names);
  }

  void add_guards(const ExportedProgram& program, const std::vector<KeyPath>& paths) {
    std::vector<std::string> names;
    if (const auto& signature = program.parts().module_call_graph.at(0).signature; signature && signature->forward_arg_names)
      names = *signature->forward_arg_names;
    std::map<std::string, size_t> by_source;
    for (size_t i = 0; i < paths.size(); ++i)
      for (const std::string& source : sources_of(paths[i], i, names)) by_source.emplace(source, i);
    for (const std::string& code : program.parts().guards_code) {
      std::optional<GuardText> guard = GuardText::parse(code);
      if (!guard) continue;
      GuardCheck check{*guard, {}, ""};
      const bool known = std::ranges::all_of(guard->variables(), [&](const GuardText::Variable& v) {
        const auto at = by_source.find(v.source);
        if (at == by_source.end() || !fits(v, leaves[at->second])) return false;
        check.leaves.push_back(at->second);
        return true;
      });
      if (!known) continue;
      // L['x'][0] is x[0] to the reader.
      check.text = guard->str([](const std::string& source) {
        const size_t end = source.find("']");
        return source.substr(3, end - 3) + source.substr(end + 2);
      });
      guards.push_back(std::move(check));
    }
  }

  static bool fits(const GuardText::Variable& v, const LeafCheck& leaf) {
    using Property = GuardText::Variable::Property;
    if (v.property == Property::value)
      return leaf.kind == LeafCheck::Kind::integer || leaf.kind == LeafCheck::Kind::constant;
    return leaf.kind == LeafCheck::Kind::tensor &&
           (v.property == Property::storage_offset || v.dimension < leaf.numbers.size());
  }

  // ---- at the call --------------------------------------------------------------------------------------------------

  struct Known {
    std::vector<int64_t> values;
    std::vector<bool> bound;
  };

  void check_number(const NumberCheck& c, SymInt given, const auto& place, Known& known) const {
    if (given.is_symbolic()) return;
    const int64_t found = given.as_int();
    switch (c.kind) {
      case NumberCheck::Kind::constant:
        if (found != c.number)
          refuse("Expected input at " + place() + " to be equal to " + std::to_string(c.number) + ", but got " +
                 std::to_string(found) +
                 ". If you meant for this dimension to be dynamic, please re-export and specify dynamic_shapes (e.g. with "
                 "Dim.DYNAMIC)");
        return;
      case NumberCheck::Kind::anything: return;
      case NumberCheck::Kind::linear:
      case NumberCheck::Kind::expression: break;
    }
    if (known.bound[c.symbol]) {
      const int64_t root = known.values[c.symbol];
      const std::optional<int64_t> expected = c.kind == NumberCheck::Kind::linear
                                                  ? std::optional(root * c.multiplier + c.offset)
                                                  : env->evaluate(c.expression, {{c.symbol_text, root}});
      if (expected && *expected != found)
        refuse("Expected input at " + place() + " to be equal to " + std::to_string(*expected) + ", but got " +
               std::to_string(found));
    } else if (c.kind == NumberCheck::Kind::linear) {
      if ((found - c.offset) % c.multiplier != 0)
        refuse("Expected input " + place() + " = " + std::to_string(found) + " to be of the form " + c.text + ", where " +
               c.symbol_text + " is an integer");
      known.values[c.symbol] = (found - c.offset) / c.multiplier;
      known.bound[c.symbol] = true;
    }
    if (!c.range) return;
    // 0 and 1 are let pass where only tracing excluded them.
    if (c.range->lower > 2 && found < c.range->lower)
      refuse("Expected input at " + place() + " to be >= " + std::to_string(c.range->lower) + ", but got " +
             std::to_string(found));
    if (c.range->upper < ValueRange::unbounded_above - 1 && found > c.range->upper)
      refuse("Expected input at " + place() + " to be <= " + std::to_string(c.range->upper) + ", but got " +
             std::to_string(found));
  }

  void check_leaf(const LeafCheck& c, const Value& given, Known& known) const {
    switch (c.kind) {
      case LeafCheck::Kind::nothing: return;
      case LeafCheck::Kind::integer:
        if (given.kind() != Value::Kind::integer && given.kind() != Value::Kind::boolean)
          refuse("Expected input at " + c.path + " to be an integer, but got " + python_type_text(given));
        check_number(
            c.numbers[0], given.to_sym_int(), [&] { return c.path; }, known);
        return;
      case LeafCheck::Kind::constant: {
        const auto differs = [&] {
          if (given.kind() != c.constant.kind()) return true;
          if (given.kind() == Value::Kind::floating && !given.to_sym_float().is_symbolic()) {
            const double a = given.to_float(), b = c.constant.to_float();
            return !(a == b || (std::isnan(a) && std::isnan(b)));
          }
          return !given.equals(c.constant);
        };
        if (differs())
          refuse("Expected input at " + c.path + " to be equal to " + plain_text(c.constant) + ", but got " +
                 (given.is_tensor() ? python_type_text(given) : plain_text(given)));
        return;
      }
      case LeafCheck::Kind::tensor: break;
    }
    if (!given.is_tensor()) refuse("Expected input at " + c.path + " to be a tensor, but got " + python_type_text(given));
    const Tensor& t = given.to_tensor();
    const SymIntList sizes = t.sym_sizes();
    if (sizes.size() != c.numbers.size())
      refuse("Unexpected number of dimensions in input at " + c.path + ".shape (expected " + c.sizes + ", got " +
             size_text(sizes) + ")");
    if (options.dtypes && t.dtype() != c.dtype)
      refuse("Expected input at " + c.path + " to be of type torch." + std::string(name(c.dtype)) + ", but got torch." +
             std::string(name(t.dtype())));
    for (size_t i = 0; i < sizes.size(); ++i)
      check_number(
          c.numbers[i], sizes[i], [&] { return c.path + ".shape[" + std::to_string(i) + "]"; }, known);
  }

  void check_guard(const GuardCheck& c, const Values& given) const {
    std::vector<int64_t> values;
    for (size_t i = 0; i < c.leaves.size(); ++i) {
      const GuardText::Variable& v = c.guard.variables()[i];
      const Value& leaf = given[c.leaves[i]];
      SymInt value;
      using Property = GuardText::Variable::Property;
      switch (v.property) {
        case Property::value:
          if (leaf.kind() != Value::Kind::integer && leaf.kind() != Value::Kind::boolean) return;
          value = leaf.to_sym_int();
          break;
        case Property::size: value = leaf.to_tensor().sym_sizes()[v.dimension]; break;
        case Property::stride: value = leaf.to_tensor().sym_strides()[v.dimension]; break;
        case Property::storage_offset: value = leaf.to_tensor().sym_storage_offset(); break;
      }
      if (value.is_symbolic()) return;
      values.push_back(value.as_int());
    }
    const std::optional<bool> holds = c.guard.holds(values);
    if (holds && !*holds) refuse("Guard failed: " + c.text);
  }
};

InputChecks::InputChecks(const ExportedProgram& program, const InputCheckOptions& options)
    : impl_(std::make_unique<const Impl>(program, options)) {}
InputChecks::~InputChecks() = default;
InputChecks::InputChecks(InputChecks&&) noexcept = default;
InputChecks& InputChecks::operator=(InputChecks&&) noexcept = default;

Values InputChecks::flatten(const Values& args, const Kwargs& kwargs) const {
  const Values& keys = impl_->in_spec.children().at(1).dict_keys();
  std::vector<std::pair<Value, Value>> ordered;
  for (const Value& key : keys)
    for (const auto& [name, value] : kwargs)
      if (key.equals(name)) ordered.emplace_back(key, value);
  if (ordered.size() != keys.size() || kwargs.size() != keys.size()) {
    Values given;
    for (const auto& [name, value] : kwargs) given.emplace_back(name);
    throw UserError("Ran into a kwarg keyword mismatch: Got the following keywords " + list(given).str() + " but expected " +
                    list(keys).str());
  }
  const Value tree = tuple({tuple(args), dict(std::move(ordered))});
  const TreeSpec received = tree_structure(tree);
  if (!same_structure(received, impl_->in_spec))
    throw UserError("Trying to flatten user inputs with exported input tree spec: \n" + impl_->in_spec.str() +
                    "\nbut actually got inputs with tree spec of: \n" + received.str() +
                    ".\nPlease check that the inputs have the same number and type of args and kwargs as the ones you used "
                    "when tracing.");
  return impl_->in_spec.flatten_up_to(tree);
}

void InputChecks::check(const Values& leaves) const {
  if (leaves.size() != impl_->leaves.size())
    throw UserError("Unexpected number of inputs (expected " + std::to_string(impl_->leaves.size()) + ", got " +
                    std::to_string(leaves.size()) + ")");
  Impl::Known known{std::vector<int64_t>(impl_->symbols.size()), std::vector<bool>(impl_->symbols.size())};
  for (size_t i = 0; i < leaves.size(); ++i) impl_->check_leaf(impl_->leaves[i], leaves[i], known);
  for (const GuardCheck& guard : impl_->guards) impl_->check_guard(guard, leaves);
}

}  // namespace calque

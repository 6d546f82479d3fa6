#include "calque/graph/function.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/op/mode.h"
#include "graph/functionalized_calls.h"
#include "graph/higher_order_functions.h"
#include "graph/region_functions.h"
#include "library_functions.h"
#include "op/well_known.h"
#include "python_functions.h"

namespace calque {
namespace {

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Where torch keeps functions that are an operator's overloads under another name.
constexpr std::string_view packet_prefixes[] = {"torch.nn.functional.", "torch._C._nn.",     "torch.functional.",
                                                "torch.Tensor.",        "torch.ops.aten.",   "torch._C._special.",
                                                "torch._C._fft.",       "torch._C._linalg.", "torch."};

// The name that PyTorch prints for a function reached under this one.
std::string canonical_name(std::string_view name) {
  if (name.starts_with("_operator.")) return std::string(name.substr(1));
  if (const PythonAlias* alias = find_python_alias(name); alias && !alias->printed.empty()) return alias->printed;
  return std::string(name);
}

std::string packet_of(std::string_view name) {
  for (const std::string_view prefix : packet_prefixes)
    if (name.starts_with(prefix)) {
      const std::string_view rest = name.substr(prefix.size());
      if (rest.empty() || rest.find('.') != std::string_view::npos) continue;
      std::string packet = aten_name(rest);
      return overloads_of(packet).empty() ? std::string() : packet;
    }
  return {};
}

// The names that Python's functions and methods also take, and the schema's.
constexpr std::pair<std::string_view, std::string_view> python_keywords[] = {
    {"input", "self"}, {"x", "self"},   {"a", "self"},          {"x1", "self"},
    {"x2", "other"},   {"axis", "dim"}, {"keepdims", "keepdim"}};

// The schema's name for a keyword of Python's, unless an overload has the keyword itself.
std::string schema_keyword(const std::string& packet, const std::string& key) {
  for (const auto& [python, schema] : python_keywords) {
    if (python != key) continue;
    for (const Operator* op : overloads_of(packet))
      if (op->schema().find_argument(key)) return key;
    return std::string(schema);
  }
  return key;
}

// torch.nn.functional's own arguments that no operator has.
Value call_packet(const std::string& packet, const Values& args, const Kwargs& kwargs) {
  Kwargs kept;
  bool in_place = false;
  for (const auto& [key, v] : kwargs) {
    if (key == "inplace")
      in_place = v.to_bool();
    else if (key != "_stacklevel")
      kept.emplace_back(schema_keyword(packet, key), v);
  }
  const std::string name = in_place ? packet + "_" : packet;
  return call(resolve_overload(name, args, kept), args, kept);
}

}  // namespace

class FunctionTable {
 public:
  static FunctionTable& instance() {
    static FunctionTable table;
    return table;
  }

  FunctionRef add(std::string name, Function::Body body, bool is_impure) {
    auto f = std::make_shared<const Function>(name, std::move(body), is_impure);
    const std::lock_guard lock(mutex_);
    if (!by_name_.emplace(name, f).second)
      throw UserError("register_function: a function named " + name + " is registered already; choose another name");
    return f;
  }

  FunctionRef find(std::string_view name) {
    const std::string key = canonical_name(name);
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = by_name_.find(key); it != by_name_.end()) return it->second;
    }
    const std::string packet = packet_of(key);
    if (packet.empty()) return nullptr;
    auto f = std::make_shared<Function>(
        key, [packet](const Values& args, const Kwargs& kwargs) { return call_packet(packet, args, kwargs); });
    f->packet_ = packet;
    const std::lock_guard lock(mutex_);
    return by_name_.emplace(key, std::move(f)).first->second;  // another thread may have been first
  }

 private:
  FunctionTable() {
    for (const LibraryFunction& f : library_functions())
      by_name_.emplace(f.name, std::make_shared<const Function>(f.name, [&f](const Values& args, const Kwargs& kwargs) {
                         return f.body(f, f.bind(args, kwargs));
                       }));
    for (const PythonFunction& f : python_functions())
      by_name_.emplace(f.name, std::make_shared<const Function>(std::string(f.name), f.body, f.is_impure));
    for (const auto& [name, body] : region_functions())
      by_name_.emplace(name, std::make_shared<const Function>(std::string(name), body, true));
    for (const auto& [name, body] : functionalized_calls())
      by_name_.emplace(name, std::make_shared<const Function>(std::string(name), body, false));
    for (const auto& [name, body] : higher_order_functions())
      by_name_.emplace(name, std::make_shared<const Function>(std::string(name), body, false));
  }
  std::mutex mutex_;
  std::unordered_map<std::string, FunctionRef> by_name_;
};

Function::Function(std::string name, Body body, bool is_impure)
    : name_(std::move(name)), body_(std::move(body)), is_impure_(is_impure) {}

Value Function::operator()(const Values& args, const Kwargs& kwargs) const {
  // A trace that runs a graph records the function itself.
  if (modes_active())
    if (auto traced = offer_function(name_, args, kwargs)) return *std::move(traced);
  try {
    return body_(args, kwargs);
  } catch (const std::out_of_range&) {  // bodies read their arguments by at()
    throw UserError(name_ + ": " + std::to_string(args.size()) + " arguments are too few");
  }
}

std::string_view Function::short_name() const { return last_part(name_); }

FunctionRef register_function(std::string name, Function::Body body, bool is_impure) {
  return FunctionTable::instance().add(std::move(name), std::move(body), is_impure);
}
FunctionRef find_function(std::string_view name) { return FunctionTable::instance().find(name); }
FunctionRef get_function(std::string_view name) {
  FunctionRef f = find_function(name);
  if (!f) throw UserError(ErrorKind::unsupported_operator, "no function named " + std::string(name));
  return f;
}

// ---- methods ----------------------------------------------------------------------------------------------------------

namespace {

Value tensor_size(const Tensor& t, const Values& args) {
  if (args.size() > 1) return call(ops().sym_size, {args[0], args[1]});
  return python_getattr(t, "shape");
}

std::optional<DType> cast_method(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> casts[] = {
      {"float", DType::float32}, {"double", DType::float64}, {"half", DType::float16}, {"bfloat16", DType::bfloat16},
      {"int", DType::int32},     {"long", DType::int64},     {"short", DType::int16},  {"char", DType::int8},
      {"byte", DType::uint8},    {"bool", DType::bool_}};
  for (const auto& [n, d] : casts)
    if (n == name) return d;
  return std::nullopt;
}

// x.view(2, 3) for x.view([2, 3]), where an operator's last argument is a list of sizes.
std::optional<Values> gathered_sizes(const Values& args) {
  if (args.size() < 2) return std::nullopt;
  Values sizes;
  for (size_t i = 1; i < args.size(); ++i) {
    if (args[i].kind() != Value::Kind::integer) return std::nullopt;
    sizes.push_back(args[i]);
  }
  return Values{args[0], list(std::move(sizes))};
}

Value tensor_method(std::string_view name, const Values& args, const Kwargs& kwargs) {
  const Tensor& t = args[0].to_tensor();
  if (name == "size" && kwargs.empty()) return tensor_size(t, args);
  if (name == "stride" && args.size() == 2) return call(ops().sym_stride, {args[0], args[1]});
  if (name == "dim" || name == "ndimension") return t.dim();
  if (name == "numel" || name == "nelement") return call(ops().sym_numel, {args[0]});
  if (const std::optional<DType> d = cast_method(name); d && args.size() == 1) return call(ops().to_dtype, {args[0], *d});
  const std::string packet = aten_name(name);
  if (overloads_of(packet).empty()) {
    // __add__ and its like are the functions of Python's operator module.
    if (name.size() > 4 && name.starts_with("__") && name.ends_with("__"))
      if (const FunctionRef f = find_function("operator." + std::string(name.substr(2, name.size() - 4))))
        return (*f)(args, kwargs);
    throw UserError(ErrorKind::unsupported_operator, "Tensor has no method named " + std::string(name));
  }
  const std::optional<Values> with_sizes = gathered_sizes(args);
  try {
    return call_packet(packet, args, kwargs);
  } catch (const UserError&) {
    if (!with_sizes) throw;
  }
  return call_packet(packet, *with_sizes, kwargs);
}

Value dict_method(std::string_view name, const Values& args) {
  const DictValue& d = args[0].to_dict();
  Values out;
  if (name == "keys" || name == "values" || name == "items") {
    for (const auto& [k, v] : d.items) out.push_back(name == "keys" ? k : name == "values" ? v : tuple({k, v}));
    return list(std::move(out));
  }
  if (name == "get" && args.size() >= 2) {
    for (const auto& [k, v] : d.items)
      if (k.equals(args[1])) return v;
    return args.size() > 2 ? args[2] : Value();
  }
  throw UserError(ErrorKind::unsupported_operator, "dict has no method named " + std::string(name));
}

}  // namespace

Value call_method(std::string_view name, const Values& args, const Kwargs& kwargs) {
  if (args.empty())
    throw UserError("call_method: " + std::string(name) + " needs the object it is called on as its first argument");
  if (args[0].is_tensor()) {
    const CallSite site({}, CallForm::method);
    const CallSiteScope scope(site);
    return tensor_method(name, args, kwargs);
  }
  if (name == "__getitem__" && args.size() == 2) return python_getitem(args[0], args[1]);
  if (name == "__len__" && args.size() == 1) return python_len(args[0]);
  if (args[0].kind() == Value::Kind::dict) return dict_method(name, args);
  throw UserError(ErrorKind::unsupported_operator,
                  std::string(Value::kind_name(args[0].kind())) + " has no method named " + std::string(name));
}

// ---- Target -----------------------------------------------------------------------------------------------------------

Target Target::resolve(std::string_view text) {
  constexpr std::string_view ops = "torch.ops.";
  const std::string_view name = text.starts_with(ops) ? text.substr(ops.size()) : text;
  // torch.ops.aten.cat is all its overloads, aten.cat the one without a name.
  const bool all_overloads = name.size() != text.size() && std::count(name.begin(), name.end(), '.') == 1;
  if (const Operator* op = all_overloads ? nullptr : find_operator(name)) return *op;
  if (FunctionRef f = find_function(text)) return f;
  return text;
}

const std::string& Target::text() const {
  const auto* t = std::get_if<std::string>(&v_);
  if (!t) throw InternalError("the target " + str() + " is no text");
  return *t;
}

std::string Target::str() const {
  if (const Operator* o = op()) return o->schema().target_name();
  if (const Function* f = function()) return f->name();
  return text();
}

std::string Target::qualified_name() const { return op() ? "torch.ops." + op()->schema().target_name() : str(); }

std::string Target::python_name() const {
  if (const Operator* o = op()) return o->schema().target_name().substr(o->schema().name_space.size() + 1);
  if (const Function* f = function()) return std::string(f->short_name());
  return text();
}

size_t Target::hash() const {
  if (const Operator* o = op()) return std::hash<const void*>()(o);
  if (const Function* f = function()) return std::hash<const void*>()(f);
  return std::hash<std::string>()(text());
}

}  // namespace calque

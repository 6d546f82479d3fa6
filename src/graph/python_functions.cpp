#include "python_functions.h"

#include <algorithm>
#include <cmath>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/op/index.h"
#include "calque/op/mode.h"
#include "calque/sym/sym_math.h"
#include "op/well_known.h"

namespace calque {
namespace {

using Kind = Value::Kind;

[[noreturn]] void unsupported(std::string_view what, const Values& args) {
  const std::string kinds = join(args, ", ", [](const Value& a) { return std::string(Value::kind_name(a.kind())); });
  throw UserError(std::string(what) + ": not supported between " + kinds);
}

bool is_integral(const Value& v) { return v.kind() == Kind::integer || v.kind() == Kind::boolean; }
bool is_real(const Value& v) { return is_integral(v) || v.kind() == Kind::floating; }
bool is_number(const Value& v) { return is_real(v) || v.kind() == Kind::complex; }
bool is_list_or_tuple(const Value& v) { return v.kind() == Kind::list || v.kind() == Kind::tuple; }

SymInt as_int(const Value& v) { return v.kind() == Kind::boolean ? sym_int(v.to_sym_bool()) : v.to_sym_int(); }
SymFloat as_float(const Value& v) { return v.kind() == Kind::floating ? v.to_sym_float() : sym_float(as_int(v)); }

// The call of a tensor's operator, through the mode stack.
Value tensor_call(std::string_view packet, Values args) {
  const Operator& op = resolve_overload(packet, args);
  return call(op, std::move(args));
}

void need(std::string_view name, const Values& args, size_t count) {
  if (args.size() != count)
    throw UserError(std::string(name) + ": expected " + std::to_string(count) + " arguments, found " +
                    std::to_string(args.size()));
}

double plain_pow(double a, double b) {
  if (a == 0 && b < 0) throw UserError("operator.pow: 0.0 cannot be raised to a negative power");
  return std::pow(a, b);
}
double plain_floordiv(double a, double b) {
  if (b == 0) throw UserError("operator.floordiv: division by zero");
  return std::floor(a / b);
}
double plain_mod(double a, double b) {
  if (b == 0) throw UserError("operator.mod: division by zero");
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// ---- arithmetic -----------------------------------------------------------------------------------------------------

// Python's binary operators: ours, the function of Python's operator module, and the one that writes its first argument.
#define CALQUE_PYTHON_BINARY(X)        \
  X(add, "add", "iadd")                \
  X(sub, "sub", "isub")                \
  X(mul, "mul", "imul")                \
  X(truediv, "truediv", "itruediv")    \
  X(floordiv, "floordiv", "ifloordiv") \
  X(mod, "mod", "imod")                \
  X(pow, "pow", "ipow")                \
  X(lshift, "lshift", "ilshift")       \
  X(rshift, "rshift", "irshift")       \
  X(and_, "and_", "iand")              \
  X(or_, "or_", "ior")                 \
  X(xor_, "xor", "ixor")               \
  X(matmul, "matmul", "imatmul")
#define CALQUE_PYTHON_COMPARISON(X) \
  X(eq, "eq")                       \
  X(ne, "ne")                       \
  X(lt, "lt")                       \
  X(le, "le")                       \
  X(gt, "gt")                       \
  X(ge, "ge")

#define CALQUE_ENUMERATOR(name, ...) name,
enum class Binary { CALQUE_PYTHON_BINARY(CALQUE_ENUMERATOR) CALQUE_PYTHON_COMPARISON(CALQUE_ENUMERATOR) };
#undef CALQUE_ENUMERATOR

struct BinaryNames {
  std::string_view python;
  std::string tensor;    // the operator that answers for tensors, all its overloads
  std::string in_place;  // the one that writes a tensor; empty where there is none
};

// The overloads of the operator whose stanza says that this function of Python calls it.
std::string packet_behind(std::string_view python) {
  const PythonAlias* alias = find_python_alias(python);
  internal_assert(alias, "no stanza states python_alias for a function of Python's operator module");
  return alias->op->packet();
}

const BinaryNames& names_of(Binary op) {
  static const std::vector<BinaryNames> table = [] {
    const auto in_place = [](std::string_view python) {
      const PythonAlias* alias = find_python_alias(python);
      return alias ? alias->op->packet() : std::string();
    };
    return std::vector<BinaryNames>{
#define CALQUE_ROW(name, python, writing) \
  {"operator." python, packet_behind("operator." python), in_place("operator." writing)},
        CALQUE_PYTHON_BINARY(CALQUE_ROW)
#undef CALQUE_ROW
#define CALQUE_ROW(name, python) {"operator." python, packet_behind("operator." python), {}},
            CALQUE_PYTHON_COMPARISON(CALQUE_ROW)
#undef CALQUE_ROW
    };
  }();
  return table[static_cast<size_t>(op)];
}

Value on_integers(Binary op, const Value& va, const Value& vb) {
  const bool both_bools = va.kind() == Kind::boolean && vb.kind() == Kind::boolean;
  if (both_bools) {
    if (op == Binary::and_) return sym_and(va.to_sym_bool(), vb.to_sym_bool());
    if (op == Binary::or_) return sym_or(va.to_sym_bool(), vb.to_sym_bool());
    if (op == Binary::eq) return sym_equal(va.to_sym_bool(), vb.to_sym_bool());
    if (op == Binary::ne) return !sym_equal(va.to_sym_bool(), vb.to_sym_bool());
  }
  const SymInt a = as_int(va);
  const SymInt b = as_int(vb);
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::truediv: return sym_true_div(a, b);
    case Binary::floordiv: return floor_div(a, b);
    case Binary::mod: return a % b;
    case Binary::pow:
      if (!b.is_symbolic() && b.as_int() < 0) return sym_float_pow(sym_float(a), sym_float(b));
      return sym_pow(a, b);
    case Binary::eq: return a == b;
    case Binary::ne: return a != b;
    case Binary::lt: return a < b;
    case Binary::le: return a <= b;
    case Binary::gt: return a > b;
    case Binary::ge: return a >= b;
    case Binary::lshift: return sym_lshift(a, b);
    case Binary::rshift: return sym_rshift(a, b);
    case Binary::and_: return sym_bitwise_and(a, b);
    case Binary::or_: return sym_bitwise_or(a, b);
    case Binary::xor_: return both_bools ? Value(a != b) : Value(sym_bitwise_xor(a, b));
    case Binary::matmul: break;
  }
  unsupported(names_of(op).python, {va, vb});
}

Value on_floats(Binary op, SymFloat a, SymFloat b) {
  const bool plain = !a.is_symbolic() && !b.is_symbolic();
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::truediv: return a / b;
    case Binary::pow: return plain ? Value(plain_pow(a.as_float(), b.as_float())) : Value(sym_float_pow(a, b));
    case Binary::floordiv:
      return plain ? Value(plain_floordiv(a.as_float(), b.as_float())) : Value(sym_float_floor_div(a, b));
    case Binary::mod: return plain ? Value(plain_mod(a.as_float(), b.as_float())) : Value(a % b);
    case Binary::eq: return a == b;
    case Binary::ne: return a != b;
    case Binary::lt: return a < b;
    case Binary::le: return a <= b;
    case Binary::gt: return a > b;
    case Binary::ge: return a >= b;
    case Binary::lshift:
    case Binary::rshift:
    case Binary::and_:
    case Binary::or_:
    case Binary::xor_:
    case Binary::matmul: break;
  }
  unsupported(names_of(op).python, {a, b});
}

Value on_complex(Binary op, std::complex<double> a, std::complex<double> b) {
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::truediv: return a / b;
    case Binary::pow: return std::pow(a, b);
    case Binary::eq: return a == b;
    case Binary::ne: return a != b;
    case Binary::floordiv:
    case Binary::mod:
    case Binary::lshift:
    case Binary::rshift:
    case Binary::and_:
    case Binary::or_:
    case Binary::xor_:
    case Binary::matmul:
    case Binary::lt:
    case Binary::le:
    case Binary::gt:
    case Binary::ge: break;
  }
  unsupported(names_of(op).python, {a, b});
}

// A number on the left of a tensor: what Tensor's reflected methods do.
Value reflected(Binary op, const Value& number, const Value& tensor) {
  switch (op) {
    case Binary::add:
    case Binary::mul:
    case Binary::and_:
    case Binary::or_:
    case Binary::xor_:
    case Binary::eq:
    case Binary::ne: return tensor_call(names_of(op).tensor, {tensor, number});
    case Binary::sub: return tensor_call(ops().rsub.packet(), {tensor, number});
    case Binary::truediv: return tensor_call(ops().mul.packet(), {tensor_call(ops().reciprocal.packet(), {tensor}), number});
    case Binary::lt: return tensor_call(names_of(Binary::gt).tensor, {tensor, number});
    case Binary::le: return tensor_call(names_of(Binary::ge).tensor, {tensor, number});
    case Binary::gt: return tensor_call(names_of(Binary::lt).tensor, {tensor, number});
    case Binary::ge: return tensor_call(names_of(Binary::le).tensor, {tensor, number});
    case Binary::floordiv:
    case Binary::mod:
    case Binary::pow:
    case Binary::lshift:
    case Binary::rshift:
    case Binary::matmul: break;
  }
  return tensor_call(names_of(op).tensor, {number, tensor});
}

bool same_value(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) {
    if (is_integral(a) && is_integral(b)) return guard(as_int(a) == as_int(b));
    return a.to_complex() == b.to_complex();
  }
  if (is_list_or_tuple(a) && a.kind() == b.kind())
    return std::equal(a.to_items().begin(), a.to_items().end(), b.to_items().begin(), b.to_items().end(), same_value);
  return a.equals(b);
}

Value sequence_of(Kind kind, Values items) { return kind == Kind::list ? list(std::move(items)) : tuple(std::move(items)); }

Value repeat(const Value& sequence, const Value& times) {
  Values out;
  for (int64_t i = 0; i < times.to_int(); ++i) out.insert(out.end(), sequence.to_items().begin(), sequence.to_items().end());
  return sequence_of(sequence.kind(), std::move(out));
}

Value binary(Binary op, const Values& args) {
  need(names_of(op).python, args, 2);
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.is_tensor()) return tensor_call(names_of(op).tensor, args);
  if (b.is_tensor()) return reflected(op, a, b);
  if (is_integral(a) && is_integral(b)) return on_integers(op, a, b);
  if (is_real(a) && is_real(b)) return on_floats(op, as_float(a), as_float(b));
  if (is_number(a) && is_number(b)) return on_complex(op, a.to_complex(), b.to_complex());
  if (op == Binary::eq || op == Binary::ne) return same_value(a, b) == (op == Binary::eq);
  if (op == Binary::add && a.kind() == Kind::string && b.kind() == Kind::string) return a.to_string() + b.to_string();
  if (op == Binary::add && is_list_or_tuple(a) && a.kind() == b.kind()) {
    Values items = a.to_items();
    items.insert(items.end(), b.to_items().begin(), b.to_items().end());
    return sequence_of(a.kind(), std::move(items));
  }
  if (op == Binary::mul && is_list_or_tuple(a) && is_integral(b)) return repeat(a, b);
  if (op == Binary::mul && is_list_or_tuple(b) && is_integral(a)) return repeat(b, a);
  unsupported(names_of(op).python, args);
}

// a += b: tensors are written, everything else is as a + b.
Value in_place(Binary op, const Values& args) {
  need(names_of(op).python, args, 2);
  if (args[0].is_tensor() && !names_of(op).in_place.empty()) return tensor_call(names_of(op).in_place, args);
  return binary(op, args);
}

template <Binary op>
Value binary_body(const Values& args, const Kwargs&) {
  return binary(op, args);
}
template <Binary op>
Value in_place_body(const Values& args, const Kwargs&) {
  return in_place(op, args);
}

Value negated(const Values& args, const Kwargs&) {
  need("operator.neg", args, 1);
  if (args[0].is_tensor()) return tensor_call(packet_behind("operator.neg"), args);
  if (is_integral(args[0])) return -as_int(args[0]);
  if (args[0].kind() == Kind::floating) return -args[0].to_sym_float();
  if (args[0].kind() == Kind::complex) return -args[0].to_complex();
  unsupported("operator.neg", args);
}
Value positive(const Values& args, const Kwargs&) {
  need("operator.pos", args, 1);
  return args[0].kind() == Kind::boolean ? Value(as_int(args[0])) : args[0];
}
Value inverted(const Values& args, const Kwargs&) {
  need("operator.invert", args, 1);
  if (args[0].is_tensor()) return tensor_call(packet_behind("operator.invert"), args);
  if (is_integral(args[0])) return SymInt(-1) - as_int(args[0]);
  unsupported("operator.invert", args);
}
Value logical_not(const Values& args, const Kwargs&) {
  need("operator.not_", args, 1);
  return !python_truth(args[0]);
}
Value truth(const Values& args, const Kwargs&) {
  need("bool", args, 1);
  return python_truth(args[0]);
}
Value absolute(const Values& args, const Kwargs&) {
  need("abs", args, 1);
  const Value& v = args[0];
  if (v.is_tensor()) return tensor_call(packet_behind("operator.abs"), args);
  if (is_integral(v)) return sym_abs(as_int(v));
  if (v.kind() == Kind::floating) return sym_float_abs(v.to_sym_float());
  if (v.kind() == Kind::complex) return std::abs(v.to_complex());
  unsupported("abs", args);
}

// ---- subscripts -------------------------------------------------------------------------------------------------------

bool is_ellipsis(const Value& v) { return v.kind() == Kind::structure && v.to_struct().type == "builtins.Ellipsis"; }

std::optional<SymInt> bound(const Value& v) {
  if (v.is_none()) return std::nullopt;
  return v.is_tensor() ? call(ops().item, {v}).to_sym_int() : as_int(v);
}

Slice tensor_slice(const SliceValue& v) {
  Slice slice;
  slice.start = bound(v.start);
  slice.stop = bound(v.stop);
  slice.step = bound(v.step);
  return slice;
}

Index tensor_index(const Value& v) {
  if (v.is_none()) return none;
  if (v.kind() == Kind::boolean) return v.to_bool();
  if (v.kind() == Kind::integer) return v.to_sym_int();
  if (v.is_tensor()) return v.to_tensor();
  if (v.kind() == Kind::slice) return tensor_slice(v.to_slice());
  if (is_ellipsis(v)) return ellipsis;
  throw UserError("operator.getitem: a tensor cannot be indexed with " + std::string(Value::kind_name(v.kind())));
}

std::vector<Index> tensor_indices(const Value& index) {
  std::vector<Index> out;
  if (index.kind() == Kind::tuple)
    for (const Value& v : index.to_items()) out.push_back(tensor_index(v));
  else
    out.push_back(tensor_index(index));
  return out;
}

size_t position(int64_t i, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (i < -n || i >= n)
    throw UserError("operator.getitem: index " + std::to_string(i) + " is out of range for " + std::to_string(n) + " items");
  return static_cast<size_t>(i < 0 ? i + n : i);
}

Values sliced(const Values& items, const SliceValue& s) {
  const auto size = static_cast<int64_t>(items.size());
  const int64_t step = s.step.is_none() ? 1 : s.step.to_int();
  if (step == 0) throw UserError("operator.getitem: slice step cannot be zero");
  const auto clamp = [&](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    const int64_t i = v.to_int() < 0 ? v.to_int() + size : v.to_int();
    return step > 0 ? std::clamp<int64_t>(i, 0, size) : std::clamp<int64_t>(i, -1, size - 1);
  };
  const int64_t start = clamp(s.start, step > 0 ? 0 : size - 1);
  const int64_t stop = clamp(s.stop, step > 0 ? size : -1);
  Values out;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) out.push_back(items[static_cast<size_t>(i)]);
  return out;
}

Value getitem(const Values& args, const Kwargs&) {
  need("operator.getitem", args, 2);
  return python_getitem(args[0], args[1]);
}

Value setitem(const Values& args, const Kwargs&) {
  need("operator.setitem", args, 3);
  if (!args[0].is_tensor()) unsupported("operator.setitem", args);
  if (args[2].is_tensor())
    set_by(args[0].to_tensor(), tensor_indices(args[1]), args[2].to_tensor());
  else
    set_by(args[0].to_tensor(), tensor_indices(args[1]), args[2].to_scalar());
  return {};
}

Value contains(const Values& args, const Kwargs&) {
  need("operator.contains", args, 2);
  if (is_list_or_tuple(args[0]))
    return std::any_of(args[0].to_items().begin(), args[0].to_items().end(),
                       [&](const Value& v) { return same_value(v, args[1]); });
  if (args[0].kind() == Kind::dict)
    return std::any_of(args[0].to_dict().items.begin(), args[0].to_dict().items.end(),
                       [&](const auto& e) { return same_value(e.first, args[1]); });
  unsupported("operator.contains", args);
}

Value is_same(const Values& args, const Kwargs&) {
  need("operator.is_", args, 2);
  return args[0].equals(args[1]);
}
Value is_not_same(const Values& args, const Kwargs&) {
  need("operator.is_not", args, 2);
  return !args[0].equals(args[1]);
}

// ---- builtins ---------------------------------------------------------------------------------------------------------

Value get_attribute(const Values& args, const Kwargs&) {
  if (args.size() != 2 && args.size() != 3) need("getattr", args, 2);
  try {
    return python_getattr(args[0], args[1].to_string());
  } catch (const UserError&) {
    if (args.size() < 3) throw;
    return args[2];
  }
}
Value length(const Values& args, const Kwargs&) {
  need("len", args, 1);
  if (args[0].is_tensor()) {
    if (args[0].to_tensor().dim() == 0) throw UserError("len() of a 0-d tensor");
    return args[0].to_tensor().sym_sizes()[0];
  }
  return python_len(args[0]);
}

Value to_integer(const Values& args, const Kwargs&) {
  need("int", args, 1);
  const Value& v = args[0];
  if (v.is_tensor()) return to_integer({call(ops().item, {v})}, {});
  if (is_integral(v)) return as_int(v);
  if (v.kind() == Kind::floating) return trunc_to_int(v.to_sym_float());
  unsupported("int", args);
}
Value to_floating(const Values& args, const Kwargs&) {
  need("float", args, 1);
  const Value& v = args[0];
  if (v.is_tensor()) return to_floating({call(ops().item, {v})}, {});
  if (is_real(v)) return as_float(v);
  unsupported("float", args);
}

template <bool want_max>
Value extreme(const Values& args, const Kwargs&) {
  const Values& items = args.size() == 1 && is_list_or_tuple(args[0]) ? args[0].to_items() : args;
  if (items.empty()) throw UserError(want_max ? "max() of an empty sequence" : "min() of an empty sequence");
  Value best = items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    if (is_integral(best) && is_integral(items[i]))
      best = want_max ? sym_max(as_int(best), as_int(items[i])) : sym_min(as_int(best), as_int(items[i]));
    else if (is_real(best) && is_real(items[i])) {
      const SymFloat x = as_float(best);
      const SymFloat y = as_float(items[i]);
      // Of plain numbers Python gives the one it was given, and of equal ones the first.
      if (!x.is_symbolic() && !y.is_symbolic())
        best = (want_max ? y.as_float() > x.as_float() : y.as_float() < x.as_float()) ? items[i] : best;
      else
        best = want_max ? sym_float_max(x, y) : sym_float_min(x, y);
    } else
      unsupported(want_max ? "max" : "min", args);
  }
  return best;
}

Value summed(const Values& args, const Kwargs&) {
  if (args.empty() || !is_list_or_tuple(args[0])) unsupported("sum", args);
  Value total = args.size() > 1 ? args[1] : Value(0);
  for (const Value& v : args[0].to_items()) total = binary(Binary::add, {total, v});
  return total;
}

Value rounded(const Values& args, const Kwargs&) {
  const Value& v = args.at(0);
  if (is_integral(v)) return as_int(v);
  if (args.size() == 1 || args[1].is_none()) return round_to_int(v.to_sym_float());
  return sym_round(v.to_sym_float(), args[1].to_int());
}

Value make_tuple(const Values& args, const Kwargs&) { return args.empty() ? tuple({}) : tuple(args[0].to_items()); }
Value make_list(const Values& args, const Kwargs&) { return args.empty() ? list({}) : list(args[0].to_items()); }
Value make_slice(const Values& args, const Kwargs&) {
  if (args.size() == 1) return SliceValue{{}, args[0], {}};
  return SliceValue{args.at(0), args.at(1), args.size() > 2 ? args[2] : Value()};
}

// ---- math and torch.sym_* ---------------------------------------------------------------------------------------------

Value floor_of(const Values& args, const Kwargs&) {
  return is_integral(args.at(0)) ? Value(as_int(args[0])) : Value(floor_to_int(args[0].to_sym_float()));
}
Value ceil_of(const Values& args, const Kwargs&) {
  return is_integral(args.at(0)) ? Value(as_int(args[0])) : Value(ceil_to_int(args[0].to_sym_float()));
}
Value trunc_of(const Values& args, const Kwargs&) {
  return is_integral(args.at(0)) ? Value(as_int(args[0])) : Value(trunc_to_int(args[0].to_sym_float()));
}
Value power_of(const Values& args, const Kwargs&) {
  return on_floats(Binary::pow, as_float(args.at(0)), as_float(args.at(1)));
}

template <SymFloat (*f)(SymFloat)>
Value real_function(const Values& args, const Kwargs&) {
  return f(as_float(args.at(0)));
}
SymFloat square_root(SymFloat x) {
  if (!x.is_symbolic() && x.as_float() < 0) throw UserError("math.sqrt: math domain error for " + x.str());
  return sym_sqrt(x);
}
SymFloat logarithm_10(SymFloat x) { return std::log10(x.as_float()); }

Value choose(const Values& args, const Kwargs&) {
  need("torch.sym_ite", args, 3);
  const SymBool condition = python_truth(args[0]);
  if (!condition.is_symbolic()) return condition.plain() ? args[1] : args[2];
  if (args[1].kind() == Kind::boolean && args[2].kind() == Kind::boolean)
    return sym_bool_ite(condition, args[1].to_sym_bool(), args[2].to_sym_bool());
  if (is_integral(args[1]) && is_integral(args[2])) return sym_ite(condition, as_int(args[1]), as_int(args[2]));
  if (is_real(args[1]) && is_real(args[2])) return sym_float_ite(condition, as_float(args[1]), as_float(args[2]));
  return guard(condition) ? args[1] : args[2];
}

Value check_holds(const Values& args, const Kwargs&) {
  const Value& condition = args.at(0);
  const bool holds =
      condition.is_tensor() ? call(ops().item, {condition}).to_scalar().to_bool() : check(python_truth(condition));
  if (!holds)
    throw UserError(args.size() > 1 && args[1].kind() == Kind::string
                        ? args[1].to_string()
                        : std::string("an assertion of the graph does not hold"));
  return {};
}

Value check_is_none(const Values& args, const Kwargs&) {
  need("_assert_is_none", args, 2);
  if (!args[0].is_none()) throw UserError(args[1].to_string());
  return {};
}

}  // namespace

SymBool python_truth(const Value& v) {
  switch (v.kind()) {
    case Kind::none: return false;
    case Kind::boolean: return v.to_sym_bool();
    case Kind::integer: return v.to_sym_int() != SymInt(0);
    case Kind::floating: return v.to_sym_float() != SymFloat(0.0);
    case Kind::string: return !v.to_string().empty();
    case Kind::list:
    case Kind::tuple: return !v.to_items().empty();
    case Kind::dict: return !v.to_dict().items.empty();
    case Kind::tensor: return python_truth(call(ops().item, {v}));
    case Kind::complex:
    case Kind::slice:
    case Kind::dtype:
    case Kind::device:
    case Kind::layout:
    case Kind::memory_format:
    case Kind::generator:
    case Kind::node:
    case Kind::structure: break;
  }
  return true;
}

int64_t python_len(const Value& v) {
  if (v.kind() == Kind::string) return static_cast<int64_t>(v.to_string().size());
  if (v.is_sequence()) return static_cast<int64_t>(v.to_items().size());
  if (v.kind() == Kind::dict) return static_cast<int64_t>(v.to_dict().items.size());
  if (v.kind() == Kind::structure) return static_cast<int64_t>(v.to_struct().items.size());
  throw UserError("len: object of kind " + std::string(Value::kind_name(v.kind())) + " has no length");
}

Value python_getitem(const Value& object, const Value& index) {
  if (object.is_tensor()) return index_by(object.to_tensor(), tensor_indices(index));
  if (object.is_sequence()) {
    if (index.kind() == Kind::slice) return sequence_of(object.kind(), sliced(object.to_items(), index.to_slice()));
    return object.to_items()[position(index.to_int(), object.to_items().size())];
  }
  if (object.kind() == Kind::dict) {
    for (const auto& [key, value] : object.to_dict().items)
      if (same_value(key, index)) return value;
    throw UserError("operator.getitem: the dict has no key " + index.str());
  }
  if (object.kind() == Kind::structure) {
    const StructValue& s = object.to_struct();
    if (index.kind() != Kind::string) return s.items[position(index.to_int(), s.items.size())];
    return python_getattr(object, index.to_string());
  }
  throw UserError("operator.getitem: a " + std::string(Value::kind_name(object.kind())) + " cannot be indexed");
}

Value python_getattr(const Value& object, std::string_view attribute) {
  if (object.is_tensor()) {
    const Tensor& t = object.to_tensor();
    if (attribute == "shape") {
      Values sizes;
      for (const SymInt s : t.sym_sizes()) sizes.push_back(s);
      return tuple(std::move(sizes));
    }
    if (attribute == "dtype") return t.dtype();
    if (attribute == "device") return t.device();
    if (attribute == "ndim") return t.dim();
    if (attribute == "layout") return Layout::strided;
    if (attribute == "requires_grad") return t.requires_grad();
    if (attribute == "is_cuda") return t.device().type == DeviceType::cuda;
    if (attribute == "data") return tensor_call(ops().detach.packet(), {object});
    if (const PythonAlias* getter = find_python_alias("torch.Tensor." + std::string(attribute) + ".__get__"))
      return tensor_call(getter->op->packet(), {object});
  }
  if (object.kind() == Kind::structure) {
    const StructValue& s = object.to_struct();
    for (size_t i = 0; i < s.fields.size(); ++i)
      if (s.fields[i] == attribute) return s.items[i];
  }
  throw UserError("getattr: a " + std::string(Value::kind_name(object.kind())) + " has no attribute '" +
                  std::string(attribute) + "'");
}

const std::vector<PythonFunction>& python_functions() {
  static const std::vector<PythonFunction> table = {
#define CALQUE_ROW(name, python, writing) \
  {"operator." python, binary_body<Binary::name>}, {"operator." writing, in_place_body<Binary::name>},
      CALQUE_PYTHON_BINARY(CALQUE_ROW)
#undef CALQUE_ROW
#define CALQUE_ROW(name, python) {"operator." python, binary_body<Binary::name>},
          CALQUE_PYTHON_COMPARISON(CALQUE_ROW)
#undef CALQUE_ROW
              {"operator.neg", negated},
      {"operator.pos", positive},
      {"operator.invert", inverted},
      {"operator.not_", logical_not},
      {"operator.truth", truth},
      {"operator.abs", absolute},
      {"operator.getitem", getitem},
      {"operator.setitem", setitem, true},
      {"operator.contains", contains},
      {"operator.is_", is_same},
      {"operator.is_not", is_not_same},
      {"builtins.getattr", get_attribute},
      {"builtins.len", length},
      {"builtins.int", to_integer},
      {"builtins.float", to_floating},
      {"builtins.bool", truth},
      {"builtins.abs", absolute},
      {"builtins.max", extreme<true>},
      {"builtins.min", extreme<false>},
      {"builtins.sum", summed},
      {"builtins.round", rounded},
      {"builtins.pow", binary_body<Binary::pow>},
      {"builtins.tuple", make_tuple},
      {"builtins.list", make_list},
      {"builtins.slice", make_slice},
      {"math.floor", floor_of},
      {"math.ceil", ceil_of},
      {"math.trunc", trunc_of},
      {"math.pow", power_of},
      {"math.sqrt", real_function<square_root>},
      {"math.exp", real_function<sym_exp>},
      {"math.log", real_function<sym_log>},
      {"math.log2", real_function<sym_log2>},
      {"math.log10", real_function<logarithm_10>},
      {"math.sin", real_function<sym_sin>},
      {"math.cos", real_function<sym_cos>},
      {"math.tan", real_function<sym_tan>},
      {"math.sinh", real_function<sym_sinh>},
      {"math.cosh", real_function<sym_cosh>},
      {"math.tanh", real_function<sym_tanh>},
      {"math.asin", real_function<sym_asin>},
      {"math.acos", real_function<sym_acos>},
      {"math.atan", real_function<sym_atan>},
      {"math.asinh", real_function<sym_asinh>},
      {"torch.sym_max", extreme<true>},
      {"torch.sym_min", extreme<false>},
      {"torch.sym_int", to_integer},
      {"torch.sym_float", to_floating},
      {"torch.sym_not", logical_not},
      {"torch.sym_ite", choose},
      {"torch.sym_sum", summed},
      {"torch._sym_sqrt", real_function<square_root>},
      {"torch._sym_cos", real_function<sym_cos>},
      {"torch._sym_cosh", real_function<sym_cosh>},
      {"torch._sym_sin", real_function<sym_sin>},
      {"torch._sym_sinh", real_function<sym_sinh>},
      {"torch._sym_tan", real_function<sym_tan>},
      {"torch._sym_tanh", real_function<sym_tanh>},
      {"torch._sym_asin", real_function<sym_asin>},
      {"torch._sym_acos", real_function<sym_acos>},
      {"torch._sym_atan", real_function<sym_atan>},
      {"torch._sym_log2", real_function<sym_log2>},
      {"torch._assert", check_holds, true},
      {"torch._check", check_holds, true},
      {"torch.fx._symbolic_trace._assert_is_none", check_is_none, true},
      {"torch._check_is_size", check_holds, true},
  };
  return table;
}

}  // namespace calque

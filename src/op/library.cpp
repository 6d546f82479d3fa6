#include "calque/op/library.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/mode.h"
#include "calque/sym/shape_env.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/derived_schema.h"
#include "op/rule/geometry.h"
#include "op/run.h"
#include "op/table.h"

namespace calque {
namespace op_detail {

namespace {

std::string described(const Value& v) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (t.impl().opaque) return "a proxy";
    std::string text = std::string(name(t.dtype())) + str(t.sym_sizes());
    if (t.device() != Device()) text += " on " + t.device().str();
    return text;
  }
  if (!v.is_sequence()) return v.str();
  constexpr size_t most = 8;
  const Values& items = v.to_items();
  std::string text = "[";
  for (size_t i = 0; i < std::min(items.size(), most); ++i) text += (i ? ", " : "") + described(items[i]);
  return text + (items.size() > most ? ", ...]" : "]");
}

}  // namespace

void explain(UserError& e, const Operator& op, const Values& args) {
  if (op.alias_of()) explain(e, *op.alias_of(), args);
  // An assertion says what its user wrote, and nothing else.
  if (op.has_tag(Tag::side_effect)) return;
  const Schema& schema = op.schema();
  std::string_view bare = schema.name;
  while (bare.starts_with('_')) bare.remove_prefix(1);
  while (bare.ends_with('_')) bare.remove_suffix(1);
  if (e.reason().find(bare) == std::string_view::npos) e.prepend(schema.name + ": ");
  std::string call = op.name() + "(";
  for (size_t i = 0; i < args.size() && i < schema.arguments.size(); ++i)
    call += (i ? ", " : "") + schema.arguments[i].name + ": " + described(args[i]);
  call += ")";
  // Who traces wants to know which line it was.
  if (const GuardOrigin origin{.operator_name = {}, .module_path = {}, .where = call_site().where}; origin.where.line() != 0)
    call += ", " + origin.str();
  e.set_context(call);
}

Tensor allocate(const Meta& meta, bool fake) { return meta.undefined ? Tensor() : make_tensor(meta, fake); }

void check_writable(const Operator& op, const Tensor& self) {
  if (has_internal_overlap(self) && !(op.base() ? *op.base() : op).has_tag(Tag::overlap_ok))
    throw UserError(
        op.name() +
        ": unsupported operation: more than one element of the written-to tensor refers to a single memory location "
        "(sizes " +
        str(self.sym_sizes()) + ", strides " + str(self.sym_strides()) + "); clone() the tensor first");
}

namespace {

std::string bad_cast(const Operator& op, DType from, DType to) {
  return op.name() + ": result type " + std::string(name(from)) + " can't be cast to the desired output type " +
         std::string(name(to));
}

}  // namespace

void check_in_place(const Operator& op, const Meta& result, const Tensor& self) {
  if (!can_cast(result.dtype, self.dtype())) throw UserError(bad_cast(op, result.dtype, self.dtype()));
  if (!rule::equal_sizes(result.sizes, self.sym_sizes()))
    throw UserError(op.name() + ": output with shape " + str(self.sym_sizes()) + " doesn't match the broadcast shape " +
                    str(SymIntList(result.sizes)));
  check_writable(op, self);
}

namespace {

// The operator that says how out= behaves: the functional one, or an out= form that is written out itself.
bool has_base_tag(const Operator& op, Tag tag) { return (op.base() ? *op.base() : op).has_tag(tag); }

bool is_empty(SymIntList sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.is_symbolic() && s.as_int() == 0; });
}

void check_out_dtype(const Operator& op, DType result, DType out) {
  if (result == out || has_base_tag(op, Tag::any_out)) return;
  if (!has_base_tag(op, Tag::cast_out))
    throw UserError(op.name() + ": expected out= of dtype " + std::string(name(result)) + ", found " +
                    std::string(name(out)));
  if (!can_cast(result, out)) throw UserError(bad_cast(op, result, out));
}

void check_no_internal_overlap(const Operator& op, const Tensor& out) {
  // A generated out= form (dense_out) ends in a copy, which is no fill.
  if (has_internal_overlap(out) && !(has_base_tag(op, Tag::overlap_ok) && !has_base_tag(op, Tag::dense_out)))
    throw UserError(op.name() +
                    ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
                    "location; clone() out first");
}

}  // namespace

bool resizes(const Meta& result, const Tensor& out) { return !rule::equal_sizes(result.sizes, out.sym_sizes()); }

void prepare_out(const Operator& op, const Meta& result, const Tensor& out) {
  if (!out.defined()) throw UserError(op.name() + ": the out= argument is missing");
  check_out_dtype(op, result.dtype, out.dtype());
  if (!(result.device == out.device()))
    throw UserError(op.name() + ": expected out= on device " + result.device.str() + ", found " + out.device().str());
  if (out.requires_grad() && records_gradients())
    throw UserError(op.name() +
                    ": functions with out=... arguments don't support automatic differentiation, but out requires grad");
  const bool dense = has_base_tag(op, Tag::dense_out);
  // Elementwise operators look at out before they resize it.
  if ((has_base_tag(op, Tag::pointwise) && !dense) || has_base_tag(op, Tag::unshared_out))
    check_no_internal_overlap(op, out);
  const bool fits = rule::equal_sizes(result.sizes, out.sym_sizes());
  if (!fits && !guard(out.sym_numel() == 0))
    warn("An output with one or more elements was resized since it had shape " + str(out.sym_sizes()) +
         ", which does not match the required output shape " + str(SymIntList(result.sizes)) +
         ". This behavior is deprecated, and in a future release outputs will not be resized unless they have zero "
         "elements.");
  if (!fits || has_base_tag(op, Tag::restrides_out) ||
      (has_base_tag(op, Tag::restrides_image) && result.sizes.size() >= 4)) {
    TensorImpl& impl = out.impl();
    Meta fresh = result;
    if (dense || (has_base_tag(op, Tag::made_like_self) && is_empty(fresh.sizes)))
      fresh.strides = contiguous_strides(fresh.sizes);
    fresh.dtype = out.dtype();
    if (modes_active()) {  // an operator made of calls: whoever watches sees the resizing too
      dispatch(get_operator("aten::resize_"), {out, Argument<SymIntList>::box(fresh.sizes), Value()});
      const SymInts contiguous = contiguous_strides(fresh.sizes);
      if (!std::equal(contiguous.begin(), contiguous.end(), fresh.strides.begin(),
                      [](SymInt a, SymInt b) { return identical(a, b); }))
        dispatch(get_operator("aten::as_strided_"),
                 {out, Argument<SymIntList>::box(fresh.sizes), Argument<SymIntList>::box(fresh.strides), Value()});
      return check_no_internal_overlap(op, out);
    }
    set_geometry(out, fresh.sizes, fresh.strides, impl.offset, true);
  }
  check_no_internal_overlap(op, out);
}

void check_overlap(const Operator& op, const Tensor& written, const Tensor& input) {
  if (memory_overlap(written, input) == Overlap::partial)
    throw UserError(op.name() +
                    ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                    "memory location; "
                    "clone() one of them first");
}

void check_unshared(const Operator& op, const Tensor& written, const Tensor& input) {
  const Overlap overlap = memory_overlap(written, input);
  if (overlap == Overlap::partial || overlap == Overlap::full)
    throw UserError(op.name() +
                    ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                    "memory location; "
                    "clone() one of them first");
}

bool shares_memory(const Tensor& a, const Tensor& b) { return a.storage().get() == b.storage().get(); }

bool writes_directly(const Operator& base, const Meta& result, const Tensor& target, bool in_place) {
  // In place, self is at most as wide as the result: writing it is the one rounding. An out= argument may be wider.
  if (base.has_tag(Tag::pointwise) && in_place) return true;
  if (result.dtype != target.dtype()) return false;
  if (base.has_tag(Tag::pointwise)) return true;
  if (in_place) return base.has_tag(Tag::self_in_out);
  if (base.has_tag(Tag::strided_out)) return true;
  const SymIntList strides = target.sym_strides();
  return std::equal(strides.begin(), strides.end(), result.strides.begin(), result.strides.end(),
                    [](SymInt a, SymInt b) { return identical(a, b); });
}

void write_result(const Tensor& result, const Tensor& target) { kernel::copy(result, target); }

}  // namespace op_detail

void OpBuilder::set(Operator::Form form, Erased rule, Erased kernel, Erased eager, Operator::Run run,
                    const op_detail::Calls& calls) {
  const Schema& s = op_->schema();
  const ArgumentList& parameters = calls.arguments;
  if (parameters.count != s.arguments.size())
    throw UserError(op_->name() + ": the function takes " + std::to_string(parameters.count) +
                    " parameters, the schema has " + std::to_string(s.arguments.size()));
  for (size_t i = 0; i < parameters.count; ++i)
    if (s.arguments[i].type.cpp_type() != parameters.types[i]->name)
      throw UserError(op_->name() + ": parameter " + std::to_string(i) + " ('" + s.arguments[i].name + "') must be " +
                      s.arguments[i].type.cpp_type() + " for schema type " + s.arguments[i].type.str() + ", found " +
                      std::string(parameters.types[i]->name));
  op_->form_ = form;
  op_->rule_ = rule;
  op_->kernel_ = kernel;
  op_->eager_ = eager;
  op_->run_ = run;
  op_->calls_ = &calls;
}

OpBuilder& OpBuilder::add_tags(uint64_t tags) {
  op_->tags_ |= tags;
  return *this;
}

Operator& OpBuilder::add_derived(Operator::Form form, Schema schema) {
  const bool in_place = form == Operator::Form::in_place;
  const op_detail::Calls* calls = op_->calls_;
  const bool by_calls = op_->form_ == Operator::Form::composite || op_->form_ == Operator::Form::own;
  Operator::Write write = nullptr;
  Operator::Run run = nullptr;
  if (calls && op_->form_ == Operator::Form::compute) {
    if (calls->meta)
      write = in_place ? op_detail::write_in_place : op_detail::write_out;
    else if (!in_place && calls->outputs > 0)
      run = op_detail::run_outs;
  } else if (calls && by_calls && calls->gives_tensor) {
    write = in_place ? op_detail::write_result_in_place : op_detail::write_result_out;
  }
  if (in_place && (!calls || (calls->arguments.tensors & 1) == 0)) write = nullptr;
  if (!write && !run) throw UserError(op_->name() + ": this operator has no in-place or out= form to derive");
  Operator& d = OperatorTable::instance().add(std::move(schema));
  // The form derived from a composite one is composite itself: it is made of operator calls.
  d.form_ = by_calls ? Operator::Form::composite : form;
  d.base_ = op_;
  d.family_ = op_->family_;
  d.write_ = write;
  d.run_ = run;
  d.tags_ |= mask(in_place ? Tag::in_place : Tag::out);
  if (in_place) op_->in_place_ = &d;
  return d;
}

namespace {

// "native_layer_norm" -> "NativeLayerNorm", as PyTorch names nodes.
std::string camel_case(std::string_view name) {
  std::string out;
  bool start = true;
  for (const char c : name) {
    if (c != '_') out += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = c == '_';
  }
  return out;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// "result" and "result1", "result2", ...
std::optional<size_t> result_number(std::string_view name) {
  if (!name.starts_with("result")) return std::nullopt;
  return name.size() == 6 ? 0 : static_cast<size_t>(name[6] - '0');
}

}  // namespace

OpBuilder& OpBuilder::add_gradient(std::string_view of, std::string_view kept, Tensor (*one)(const Gradients&),
                                   TensorVector (*several)(const Gradients&)) {
  GradientFormula formula;
  formula.one = one;
  formula.several = several;
  const auto place = [&](const std::string& name) {
    if (const auto found = op_->schema().find_argument(name)) return *found;
    throw UserError(op_->name() + ": the gradient names '" + name + "', which is no argument of " + op_->schema().str());
  };
  for (const std::string& name : words(of)) formula.of.push_back(static_cast<uint8_t>(place(name)));
  for (const std::string& name : words(kept))
    if (const auto result = result_number(name))
      formula.kept_results |= uint64_t{1} << *result;
    else
      formula.kept_arguments |= uint64_t{1} << place(name);
  // By name, as PyTorch runs them: joint graphs have the same order.
  auto& formulas = made_gradient().formulas;
  const auto first_name = [&](const GradientFormula& f) -> const std::string& {
    return op_->schema().arguments[f.of[0]].name;
  };
  const auto at = std::find_if(formulas.begin(), formulas.end(),
                               [&](const GradientFormula& f) { return first_name(formula) < first_name(f); });
  formulas.insert(at, std::move(formula));
  return *this;
}

OpBuilder& OpBuilder::no_gradient(std::string_view results) {
  OperatorGradient& gradient = made_gradient();
  for (const std::string& name : words(results)) gradient.constant_results |= uint64_t{1} << result_number(name).value();
  return *this;
}

OperatorGradient& OpBuilder::made_gradient() {
  if (!op_->gradient_) {
    size_t earlier = 0;
    for (const Operator* other : OperatorTable::instance().overloads(op_->packet())) earlier += other->gradient_ ? 1 : 0;
    op_->gradient_ = std::make_shared<OperatorGradient>();
    op_->gradient_->node_name = camel_case(op_->schema().name) + "Backward" + std::to_string(earlier);
  }
  return *op_->gradient_;
}

OpBuilder& OpBuilder::wraps_numbers() { return add_tags(mask(Tag::wraps_numbers)); }

namespace {

// What PyTorch prints for an operator's function ends in the operator's name.
void check_printed(const Operator& op, std::string_view printed) {
  if (!printed.empty() && printed.substr(printed.rfind('.') + 1) != op.schema().name)
    throw UserError(op.name() + ": " + std::string(printed) + " is no name of " + op.schema().name);
}

}  // namespace

void OpBuilder::add_fact(Operator& op, Tag tag) { op.tags_ |= mask(tag); }

void OpBuilder::add_fact(Operator& op, PythonAlias alias) {
  check_printed(op, alias.printed);
  alias.op = &op;
  const std::string name = alias.name;
  if (!OperatorTable::instance().add(std::move(alias)))
    throw UserError(op.name() + ": the Python name " + name + " is taken by " + find_python_alias(name)->op->name());
}

OpBuilder& OpBuilder::python(std::string_view function, std::string_view printed) {
  check_printed(*op_, printed);
  op_->python_name_ = function;
  // Overloads share the function; the first one that states it is found by it.
  OperatorTable::instance().add({std::string(function), std::string(printed), op_});
  return *this;
}

OpBuilder& OpBuilder::python_alias(std::string_view name, std::string_view printed) {
  add_fact(*op_, {std::string(name), std::string(printed)});
  return *this;
}

Operator& OpBuilder::add_in_place(std::string_view name) {
  return add_derived(Operator::Form::in_place, derive_in_place(op_->schema(), name));
}

Operator& OpBuilder::add_out(std::string_view spec) {
  return add_derived(Operator::Form::out, derive_out(op_->schema(), spec));
}

OpBuilder Library::def(std::string_view schema) {
  Operator& op = OperatorTable::instance().add(parse_schema(schema, name_space_));
  op.family_ = family_;
  return OpBuilder(op);
}

void Library::alias(std::string_view name, std::string_view target) {
  const std::string packet = name_space_ + "::" + std::string(target);
  const std::vector<const Operator*> overloads = OperatorTable::instance().overloads(packet);
  if (overloads.empty())
    throw UserError("alias: " + std::string(name) + " is to be another name for " + packet +
                    ", which is no operator yet; register that one first");
  for (const Operator* op : overloads) {
    Schema schema = op->schema();
    schema.name = name;
    Operator& second = OperatorTable::instance().add(std::move(schema));
    second.family_ = family_;
    second.form_ = Operator::Form::composite;
    second.alias_of_ = op;
  }
}

}  // namespace calque

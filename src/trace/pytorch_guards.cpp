#include "trace/pytorch_guards.h"

#include <unordered_map>
#include <vector>

#include "calque/sym/expr.h"
#include "op/well_known.h"

namespace calque::pytorch_guards {

namespace {

// A question about sizes leaves a guard with its answer, which is why some are asked and the answer is not used. Where data decides,
// there is no guard: ask says no, ask_or_true says yes.
bool ask(SymBool question) { return guard_or(question, false); }
bool ask_or_true(SymBool question) { return guard_or(question, true); }

bool depends_on_data(SymIntList numbers) {
  for (const SymInt n : numbers)
    if (n.is_symbolic() && n.expr()->has_unbacked()) return true;
  return false;
}

// Both forms of a dense stride are tried: fresh tensors count an empty dimension as one element.
bool is_contiguous(SymIntList sizes, SymIntList strides) {
  if (ask(product(sizes) < 2)) return true;
  SymInt dense = 1, dense_or_one = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (ask(sizes[d] == 1)) continue;
    if (ask_or_true(strides[d] != dense) && ask_or_true(strides[d] != dense_or_one)) return false;
    dense = dense * sizes[d];
    dense_or_one = dense_or_one * sym_max(sizes[d], 1);
  }
  return true;
}

// Images and volumes, from the innermost dimension outwards.
std::vector<size_t> channels_last_order(size_t dims) {
  if (dims == 4) return {1, 3, 2, 0};
  if (dims == 5) return {1, 4, 3, 2, 0};
  return {};
}

bool is_channels_last(SymIntList sizes, SymIntList strides) {
  SymInt dense = 1;
  for (const size_t d : channels_last_order(sizes.size())) {
    if (ask(sizes[d] == 1)) continue;
    if (ask_or_true(strides[d] != dense)) return false;
    dense = dense * sizes[d];
  }
  return true;
}

}  // namespace

void ask_recorded(const Tensor& t) {
  if (!t.is_symbolic() || is_contiguous(t.sym_sizes(), t.sym_strides())) return;
  if (!channels_last_order(t.sym_sizes().size()).empty()) is_channels_last(t.sym_sizes(), t.sym_strides());
}

// Could the strides be those of a tensor whose channels are innermost?
void ask_result(const Tensor& t) {
  const SymIntList sizes = t.sym_sizes(), strides = t.sym_strides();
  const std::vector<size_t> order = channels_last_order(sizes.size());
  if (!t.is_symbolic() || order.empty() || ask_or_true(strides[1] == 0)) return;
  SymInt least = 0;
  for (const size_t d : order) {
    if (ask_or_true(sizes[d] == 0) || ask_or_true(strides[d] < least)) return;
    if (d == 0 && ask(least == strides[1])) return;
    least = strides[d] * sizes[d];
  }
}

namespace {

// A view takes the sizes of its result from left to right: each is a dimension as it is, or a part of it, or of several.
void ask_view(const Tensor& t, SymInts shape) {
  SymInts sizes(t.sym_sizes().begin(), t.sym_sizes().end());
  if (sizes.empty() || shape.empty() || depends_on_data(sizes) || depends_on_data(shape)) return;
  const SymInt numel = product(sizes);
  if (ask(numel == 0)) return;
  SymInt known = 1;
  SymInt* open = nullptr;
  for (SymInt& length : shape)
    if (ask(length == -1))
      open = &length;
    else
      known = known * length;
  if (open) *open = floor_div(numel, known);
  if (is_contiguous(sizes, t.sym_strides()) &&
      ((shape.size() == 1 && sizes.size() > 1) || (shape.size() == 2 && sizes.size() == 1)))
    return;
  size_t at = 0;
  for (const SymInt length : shape) {
    if (at >= sizes.size()) return;
    if (!ask(length == sizes[at])) {
      while (!ask(sizes[at] % length == 0)) {
        if (at + 1 == sizes.size()) return;  // the view is refused
        sizes[at] = sizes[at] * sizes[at + 1];
        sizes.erase(sizes.begin() + at + 1);
      }
      if (!ask(sizes[at] == length)) {
        sizes.insert(sizes.begin() + at + 1, floor_div(sizes[at], length));
        sizes[at] = length;
      }
    }
    ++at;
  }
  for (; at < sizes.size(); ++at) ask(sizes[at] == 1);
}

// The arguments of a call by the names that the schema gives them.
struct Arguments {
  const Schema& schema;
  const Values& values;
  const Value& operator[](std::string_view name) const { return values[schema.find_argument(name).value()]; }
};

void ask_view_arguments(const Arguments& args) {
  SymInts shape;
  for (const Value& length : args["size"].to_items()) shape.push_back(length.to_sym_int());
  ask_view(args["self"].to_tensor(), std::move(shape));
}

// Which library: oneDNN or the plain loops.
void ask_convolution(const Arguments& args) {
  const Tensor& input = args["input"].to_tensor();
  const Tensor& weight = args["weight"].to_tensor();
  if (input.dtype() != DType::float32 || depends_on_data(input.sym_sizes()) || depends_on_data(weight.sym_sizes())) return;
  const auto any_above_one = [](const Value& list) {
    for (const Value& n : list.to_items())
      if (!ask(n.to_sym_int() == 1)) return true;
    return false;
  };
  const SymInt width = weight.sym_size(-1);
  const SymInt height = weight.dim() == 3 ? SymInt(1) : weight.sym_size(-2);
  const SymInt batch = input.sym_size(0);
  if (!any_above_one(args["stride"]) && !any_above_one(args["dilation"]) && !ask(batch >= 16) && !ask(width != 1))
    ask(height != 1);
  if (ask(args["groups"].to_sym_int() > 1) || (ask(width > 3) && ask(height > 3)) || ask(batch > 1)) return;
  ask(product(input.sym_sizes()) > 20480);
}

// The groups become a dimension of their own, and the sums are spread over the rest.
void ask_group_norm(const Arguments& args) {
  const SymInt batch = args["N"].to_sym_int(), channels = args["C"].to_sym_int(), plane = args["HxW"].to_sym_int();
  const SymInt groups = args["group"].to_sym_int();
  const SymInt each = floor_div(channels, groups);
  ask_view(args["input"].to_tensor(), {batch, groups, each, plane});
  ask(each == 1);
}

// The result lies as the operands do.
void ask_pointwise(const Values& args) {
  bool contiguous = true, channels_last = true;
  for (const Value& v : args) {
    if (!v.is_tensor() || !v.to_tensor().defined()) continue;
    const Tensor& t = v.to_tensor();
    contiguous = contiguous && is_contiguous(t.sym_sizes(), t.sym_strides());
    channels_last = channels_last && t.dim() == 4 && is_channels_last(t.sym_sizes(), t.sym_strides());
  }
}

}  // namespace

void ask_arguments(const Operator& op, const Values& args) {
  using Question = void (*)(const Arguments&);
  static const std::unordered_map<const Operator*, Question> questions = {
      {&ops().view, ask_view_arguments},
      {&ops().unsafe_view, ask_view_arguments},
      {&ops().convolution, ask_convolution},
      {&ops().native_group_norm, ask_group_norm},
  };
  if (const auto it = questions.find(&op); it != questions.end())
    it->second({op.schema(), args});
  else if (op.has_tag(Tag::pointwise))
    ask_pointwise(args);
}

}  // namespace calque::pytorch_guards

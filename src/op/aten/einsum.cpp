// Products over chosen dimensions: einsum, tensordot, inner and outer products, chains of matrices, bilinear forms.
#include <algorithm>
#include <bitset>
#include <numeric>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using DimNumbers = SmallVector<int64_t, 8>;

bool is_one(SymInt size) { return guard_or(size == 1, false); }

// Sums a * b over `sum_dims` by one batched matrix product. Both have the same number of dimensions, those of size 1
// broadcast; summed dimensions are kept as size 1.
Tensor sum_product(const Tensor& a, const Tensor& b, const DimNumbers& sum_dims) {
  if (sum_dims.empty()) return mul(a, b);
  Tensor left = a, right = b;
  std::bitset<64> summed;
  for (const int64_t d : sum_dims) summed.set(static_cast<size_t>(d));
  DimNumbers both, left_only, right_only;
  SymInt both_size = 1, left_size = 1, right_size = 1, sum_size = 1;
  for (int64_t d = 0; d < a.dim(); ++d) {
    const bool in_left = !is_one(left.sym_size(d)), in_right = !is_one(right.sym_size(d));
    if (in_left && in_right && !check(left.sym_size(d) == right.sym_size(d)))
      throw UserError("einsum: non-broadcast dimensions must match, found " + left.sym_size(d).str() + " and " +
                      right.sym_size(d).str());
    if (summed[static_cast<size_t>(d)]) {
      if (in_left && in_right)
        sum_size *= left.sym_size(d);
      else if (in_left)
        left = sum(left, {d}, true);
      else if (in_right)
        right = sum(right, {d}, true);
    } else if (in_left && in_right) {
      both.push_back(d);
      both_size *= left.sym_size(d);
    } else if (in_left) {
      left_only.push_back(d);
      left_size *= left.sym_size(d);
    } else {
      right_only.push_back(d);
      right_size *= right.sym_size(d);
    }
  }
  // If the right operand's dimensions come first in the result, the swapped product lies in memory as the result should.
  if (!left_only.empty() && !right_only.empty() && right_only.back() < left_only.front()) {
    std::swap(left, right);
    std::swap(left_only, right_only);
    std::swap(left_size, right_size);
  }
  const auto joined = [](std::initializer_list<const DimNumbers*> lists) {
    DimNumbers all;
    for (const DimNumbers* list : lists)
      for (const int64_t d : *list) all.push_back(d);
    return all;
  };
  const DimNumbers order = joined({&both, &left_only, &sum_dims, &right_only});
  SymInts out_sizes;
  for (const int64_t d : both) out_sizes.push_back(left.sym_size(d));
  for (const int64_t d : left_only) out_sizes.push_back(left.sym_size(d));
  for (size_t i = 0; i < sum_dims.size(); ++i) out_sizes.push_back(1);
  for (const int64_t d : right_only) out_sizes.push_back(right.sym_size(d));
  DimNumbers back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  left = reshape(permute(left, order), {both_size, left_size, sum_size});
  right = reshape(permute(right, joined({&both, &sum_dims, &right_only, &left_only})), {both_size, sum_size, right_size});
  return permute(view(bmm(left, right), out_sizes), back);
}

// ---- einsum -------------------------------------------------------------------------------------------------------
constexpr int ellipsis = 52;
constexpr size_t label_total = 52;

[[noreturn]] void bad_equation(std::string_view equation, const std::string& why) {
  throw UserError("einsum: " + why + " (in the equation '" + std::string(equation) + "')");
}

// The labels of one operand (or of the output): letters as numbers in alphabetical order, capitals first.
std::vector<int> parse_labels(std::string_view equation, std::string_view part, const char* of) {
  std::vector<int> labels;
  bool found = false;
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (found) bad_equation(equation, std::string("found '.' for ") + of + " for which an ellipsis was already found");
      if (part.substr(i, 3) != "...")
        bad_equation(equation, std::string("found '.' for ") + of + " that is not part of any ellipsis");
      i += 2;
      found = true;
      labels.push_back(ellipsis);
    } else if (c >= 'A' && c <= 'Z') {
      labels.push_back(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      labels.push_back(c - 'a' + 26);
    } else {
      bad_equation(equation,
                   std::string("invalid subscript given for ") + of + ", subscripts must be in [a-zA-Z], found '" + c + "'");
    }
  }
  return labels;
}

// What an equation says of its operands: where each label goes. The output's dimensions come first, those to be summed after them.
struct Equation {
  std::string_view text;
  std::vector<std::vector<int>> labels;  // of each operand
  int64_t count[label_total] = {};       // how often each label appears
  int64_t place[label_total] = {};       // the dimension that each label becomes, -1 where it does not appear
  int64_t ellipsis_dims = 0, ellipsis_place = 0;
  int64_t out_dims = 0, dims = 0;
};

void parse_operands(Equation& e, std::string_view inputs) {
  for (size_t begin = 0;;) {
    const size_t comma = inputs.find(',', begin);
    e.labels.push_back(
        parse_labels(e.text, inputs.substr(begin, comma == std::string_view::npos ? comma : comma - begin), "an operand"));
    if (comma == std::string_view::npos) return;
    begin = comma + 1;
  }
}

void count_labels(Equation& e, TensorList operands) {
  if (e.labels.size() != operands.size())
    bad_equation(e.text, std::to_string(operands.size()) + " operands were provided, but the equation names " +
                             std::to_string(e.labels.size()));
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t named = 0;
    bool has_ellipsis = false;
    for (const int l : e.labels[i]) {
      if (l == ellipsis)
        has_ellipsis = true;
      else
        ++named, ++e.count[l];
    }
    const int64_t ndim = operands[i].dim();
    if (has_ellipsis) e.ellipsis_dims = std::max(e.ellipsis_dims, ndim - named);
    if (has_ellipsis ? named > ndim : named != ndim)
      bad_equation(e.text, "the number of subscripts (" + std::to_string(named) +
                               ") does not match the number of dimensions (" + std::to_string(ndim) + ") for operand " +
                               std::to_string(i));
  }
}

// `output`: what stands behind the arrow. Without an arrow, the labels that appear once, in alphabetical order.
void place_labels(Equation& e, std::optional<std::string_view> output) {
  std::fill(std::begin(e.place), std::end(e.place), -1);
  bool ellipsis_in_output = false;
  if (!output) {
    e.dims = e.ellipsis_dims;
    ellipsis_in_output = true;
    for (size_t l = 0; l < label_total; ++l)
      if (e.count[l] == 1) e.place[l] = e.dims++;
  } else {
    for (const int l : parse_labels(e.text, *output, "the output")) {
      if (l == ellipsis) {
        e.ellipsis_place = e.dims;
        e.dims += e.ellipsis_dims;
        ellipsis_in_output = true;
        continue;
      }
      if (e.place[l] != -1) bad_equation(e.text, "an output subscript appears more than once in the output");
      if (e.count[l] == 0) bad_equation(e.text, "an output subscript does not appear in the equation for any input operand");
      e.place[l] = e.dims++;
    }
  }
  e.out_dims = e.dims;
  if (!ellipsis_in_output) {
    e.ellipsis_place = e.dims;
    e.dims += e.ellipsis_dims;
  }
  for (size_t l = 0; l < label_total; ++l)
    if (e.count[l] > 0 && e.place[l] == -1) e.place[l] = e.dims++;
}

Equation read_equation(std::string_view text, TensorList operands) {
  Equation e;
  e.text = text;
  const size_t arrow = text.find("->");
  parse_operands(e, text.substr(0, arrow));
  count_labels(e, operands);
  place_labels(e, arrow == std::string_view::npos ? std::nullopt : std::optional(text.substr(arrow + 2)));
  return e;
}

// Every operand with all dimensions of the equation, in its order; those it lacks have size 1.
struct Aligned {
  std::vector<Tensor> operands;
  SymInts sizes;     // of each dimension
  DimNumbers users;  // how many operands have it
};

void align_operand(const Equation& e, size_t number, Tensor op, Aligned& out) {
  DimNumbers order(static_cast<size_t>(e.dims), -1);
  int64_t dim = 0;
  const auto use = [&](int64_t where) {
    const auto at = static_cast<size_t>(where);
    const SymInt size = op.sym_size(dim);
    if (!is_one(size)) {
      if (!is_one(out.sizes[at]) && !check(out.sizes[at] == size))
        bad_equation(e.text, "operands do not broadcast with remapped shapes: size " + size.str() + " of operand " +
                                 std::to_string(number) + " does not match the previously seen size " + out.sizes[at].str());
      out.sizes[at] = size;
      ++out.users[at];
    }
    order[at] = dim++;
  };
  const std::vector<int>& labels = e.labels[number];
  const int64_t covered_by_ellipsis = op.dim() - (static_cast<int64_t>(labels.size()) - 1);
  for (const int l : labels) {
    if (l == ellipsis) {
      for (int64_t j = e.ellipsis_dims - covered_by_ellipsis; j < e.ellipsis_dims; ++j) use(e.ellipsis_place + j);
    } else if (order[static_cast<size_t>(e.place[l])] == -1) {
      use(e.place[l]);
    } else {  // a repeated label is the diagonal
      const int64_t before = order[static_cast<size_t>(e.place[l])];
      if (!check(op.sym_size(dim) == op.sym_size(before)))
        bad_equation(e.text, "a subscript is repeated for operand " + std::to_string(number) +
                                 " but the sizes don't match, " + op.sym_size(dim).str() +
                                 " != " + op.sym_size(before).str());
      op = movedim(diagonal(op, 0, before, dim), -1, before);
    }
  }
  for (int64_t& d : order)
    if (d == -1) {
      op = unsqueeze(op, dim);
      d = dim++;
    }
  out.operands.push_back(permute(op, order));
}

// The product of two operands, summed over the dimensions that no other operand has any more.
Tensor contract(const Equation& e, Tensor a, Tensor b, DimNumbers& users) {
  DimNumbers a_sums, b_sums, sums;
  for (int64_t d = e.out_dims; d < e.dims; ++d) {
    int64_t& left = users[static_cast<size_t>(d)];
    const bool in_a = !is_one(a.sym_size(d)), in_b = !is_one(b.sym_size(d));
    if (in_a && in_b) {
      if (--left == 1) {
        sums.push_back(d);
        left = 0;
      }
    } else if (left == 1 && (in_a || in_b)) {
      (in_a ? a_sums : b_sums).push_back(d);
      left = 0;
    }
  }
  if (!a_sums.empty()) a = sum(a, IntList(a_sums), true);
  if (!b_sums.empty()) b = sum(b, IntList(b_sums), true);
  return sum_product(a, b, sums);
}

// Two operands at a time: from the left, or as `path` says, whose result goes to the end.
void contract_all(const Equation& e, Aligned& aligned, std::optional<IntList> path) {
  std::vector<Tensor>& ops = aligned.operands;
  if (path && path->size() != (ops.size() - 1) * 2)
    throw UserError("einsum: the contraction path must have " + std::to_string((ops.size() - 1) * 2) + " entries, found " +
                    std::to_string(path->size()));
  for (size_t step = 0; ops.size() > 1; step += 2) {
    size_t i = 0, j = 1;
    if (path) {
      const int64_t x = (*path)[step], y = (*path)[step + 1];
      if (std::min(x, y) < 0 || x == y || static_cast<size_t>(std::max(x, y)) >= ops.size())
        throw UserError("einsum: the contraction path names operands that do not exist");
      i = static_cast<size_t>(std::min(x, y));
      j = static_cast<size_t>(std::max(x, y));
    }
    const Tensor a = ops[i], b = ops[j];
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(j));
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
    const Tensor result = contract(e, a, b, aligned.users);
    ops.insert(path ? ops.end() : ops.begin(), result);
  }
}

Tensor einsum_body(std::string_view equation, TensorList operands, std::optional<IntList> path) {
  if (operands.empty()) throw UserError("einsum: must provide at least one operand");
  const Equation e = read_equation(equation, operands);
  Aligned aligned{{}, SymInts(static_cast<size_t>(e.dims), 1), DimNumbers(static_cast<size_t>(e.dims), 0)};
  for (size_t i = 0; i < operands.size(); ++i) align_operand(e, i, operands[i], aligned);
  contract_all(e, aligned, path);
  const Tensor& result = aligned.operands[0];
  if (e.dims == e.out_dims) return result;
  if (operands.size() > 1) return view(result, SymIntList(result.sym_sizes().data(), static_cast<size_t>(e.out_dims)));
  DimNumbers rest(static_cast<size_t>(e.dims - e.out_dims));
  std::iota(rest.begin(), rest.end(), e.out_dims);
  return sum(result, IntList(rest));
}

// ---- the others ---------------------------------------------------------------------------------------------------
Tensor tensordot_body(const Tensor& self, const Tensor& other, IntList dims_self, IntList dims_other) {
  if (dims_self.size() != dims_other.size())
    throw UserError("tensordot: both dimension lists should have same length, found " + str(dims_self) + " and " +
                    str(dims_other));
  if (self.dtype() != other.dtype())
    throw UserError("tensordot: both inputs should have same dtype, found " + std::string(name(self.dtype())) + " and " +
                    std::string(name(other.dtype())));
  Tensor a = self, b = other;
  SymInt contracted = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    const SymInt x = self.sym_size(dims_self[i]), y = other.sym_size(dims_other[i]);
    if (is_one(y)) {
      a = sum(a, {dims_self[i]}, true, a.dtype());
    } else if (is_one(x)) {
      b = sum(b, {dims_other[i]}, true, b.dtype());
    } else {
      if (!check(x == y))
        throw UserError("tensordot: contracted dimensions need to match, but first has size " + x.str() + " in dim " +
                        std::to_string(dims_self[i]) + " and second has size " + y.str() + " in dim " +
                        std::to_string(dims_other[i]));
      contracted *= x;
    }
  }
  const rule::DimSet a_set = rule::dim_set("tensordot", dims_self, a.dim()),
                     b_set = rule::dim_set("tensordot", dims_other, b.dim());
  DimNumbers a_order, b_order;
  SymInts result;
  SymInt rows = 1, columns = 1;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!(a_set >> d & 1)) {
      a_order.push_back(d);
      rows *= a.sym_size(d);
      result.push_back(a.sym_size(d));
    }
  for (const int64_t d : dims_self) a_order.push_back(d);
  for (const int64_t d : dims_other) b_order.push_back(d);
  for (int64_t d = 0; d < b.dim(); ++d)
    if (!(b_set >> d & 1)) {
      b_order.push_back(d);
      columns *= b.sym_size(d);
      result.push_back(b.sym_size(d));
    }
  const Tensor left = reshape(permute(a, a_order), {rows, contracted});
  const Tensor right = reshape(permute(b, b_order), {contracted, columns});
  return reshape(mm(left, right), result);
}

Tensor outer_body(const Tensor& self, const Tensor& vec2) {
  if (self.dim() != 1) throw UserError("outer: Expected 1-D argument self, but got " + std::to_string(self.dim()) + "-D");
  if (vec2.dim() != 1) throw UserError("outer: Expected 1-D argument vec2, but got " + std::to_string(vec2.dim()) + "-D");
  return mul(reshape(self, {self.sym_size(0), 1}), vec2);
}

Tensor inner_body(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return mul(self, other);
  if (!check(self.sym_size(-1) == other.sym_size(-1)))
    throw UserError("inner: the last dimension must match on both input tensors but got shapes " + str(self.sym_sizes()) +
                    " and " + str(other.sym_sizes()));
  return tensordot(self, other, {-1}, {-1});
}

// Only the product with a number may be cast on its way into out.
Tensor inner_out_body(const Tensor& self, const Tensor& other, const Tensor& out) {
  if (self.dim() == 0 || other.dim() == 0) return mul(self, other, Out(out));
  if (!check(self.sym_size(-1) == other.sym_size(-1)))
    throw UserError("inner: the last dimension must match on both input tensors but got shapes " + str(self.sym_sizes()) +
                    " and " + str(other.sym_sizes()));
  return tensordot(self, other, {-1}, {-1}, Out(out));
}

Tensor vecdot_body(const Tensor& x, const Tensor& y, int64_t dim) {
  if (!is_floating(x.dtype()) && !is_complex(x.dtype()))
    throw UserError("linalg.vecdot: Expected a floating point or complex tensor as input. Got " +
                    std::string(name(x.dtype())));
  if (x.dtype() != y.dtype())
    throw UserError("linalg.vecdot: Expected x and y to have the same dtype, found " + std::string(name(x.dtype())) +
                    " and " + std::string(name(y.dtype())));
  if (x.dim() == 1 && y.dim() == 1) return vdot(x, y);
  return sum(mul(x, y), {dim});
}

// kron is refused where the product's strides do not let it be viewed as a matrix; kron.out is not.
struct KronSizes {
  SymInts a, b, result;
};
KronSizes kron_sizes(const Tensor& self, const Tensor& other) {
  const int64_t ndim = std::max(self.dim(), other.dim());
  KronSizes k;
  auto& [a, b, result] = k;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t x = d - (ndim - self.dim()), y = d - (ndim - other.dim());
    a.push_back(x >= 0 ? self.sym_size(x) : SymInt(1));
    a.push_back(1);
    b.push_back(1);
    b.push_back(y >= 0 ? other.sym_size(y) : SymInt(1));
    result.push_back(a[a.size() - 2] * b.back());
  }
  return k;
}
Tensor kron_body(const Tensor& self, const Tensor& other) {
  const KronSizes k = kron_sizes(self, other);
  const Tensor left = _unsafe_view(self, k.a);
  return _unsafe_view(mul(left, _unsafe_view(other, k.b)), k.result);
}
Tensor kron_out_body(const Tensor& self, const Tensor& other, const Tensor& out) {
  const KronSizes k = kron_sizes(self, other);
  if (!rule::equal_sizes(out.sym_sizes(), k.result)) out.resize_(k.result);
  SymInts pairs;
  for (size_t d = 0; d < k.a.size(); ++d) pairs.push_back(k.a[d] * k.b[d]);
  mul(_unsafe_view(self, k.a), _unsafe_view(other, k.b), Out(_unsafe_view(out, pairs)));
  return out;
}

Tensor bilinear_body(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  const int64_t ndim = input1.dim();
  bool fits = ndim == input2.dim() && weight.dim() == 3 && ndim > 0;
  for (int64_t d = 0; d + 1 < ndim && fits; ++d) fits = check(input1.sym_size(d) == input2.sym_size(d));
  fits = fits && check(input1.sym_size(-1) == weight.sym_size(1)) && check(input2.sym_size(-1) == weight.sym_size(2));
  if (fits && bias.defined()) fits = check(bias.sym_size(0) == weight.sym_size(0));
  if (!fits)
    throw UserError("bilinear: input1 " + str(input1.sym_sizes()) + " and input2 " + str(input2.sym_sizes()) +
                    " do not fit a weight of sizes " + str(weight.sym_sizes()));
  SymInts sizes(input1.sym_sizes().begin(), input1.sym_sizes().end() - 1);
  sizes.push_back(weight.sym_size(0));
  const Tensor x = reshape(input1, {-1, input1.sym_size(-1)}), y = reshape(input2, {-1, input2.sym_size(-1)});
  const Tensor out = reshape(_trilinear(x, weight, y, {1, 3}, {0}, {1, 2}, {2, 3}), sizes);
  return bias.defined() ? add(out, bias) : out;
}

// ---- _trilinear ---------------------------------------------------------------------------------------------------
struct Trilinear {
  Tensor i1, i2, i3;
  SymInts sizes;  // summed dimensions as 1
  DimNumbers sums12, sums23;
  uint64_t expanded[3] = {};
  uint64_t summed = 0;
};
Trilinear prepare_trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntList expand1, IntList expand2,
                            IntList expand3, IntList sumdim, int64_t unroll) {
  const int64_t total = i1.dim() + static_cast<int64_t>(expand1.size());
  if (unroll < 0 || unroll >= total)
    throw UserError("_trilinear: unroll_dim must be in [0, " + std::to_string(total - 1) + "], found " +
                    std::to_string(unroll));
  for (const auto& [input, expand] : {std::pair(&i1, expand1), std::pair(&i2, expand2), std::pair(&i3, expand3)})
    if (input->dim() + static_cast<int64_t>(expand.size()) != total)
      throw UserError("_trilinear: the inputs must have the same number of dimensions once they are expanded, found sizes " +
                      str(i1.sym_sizes()) + ", " + str(i2.sym_sizes()) + " and " + str(i3.sym_sizes()));
  Trilinear t{i1, i2, i3, {}, {}, {}, {}, 0};
  t.expanded[0] = rule::dim_set("_trilinear", expand1, total);
  t.expanded[1] = rule::dim_set("_trilinear", expand2, total);
  t.expanded[2] = rule::dim_set("_trilinear", expand3, total);
  t.summed = rule::dim_set("_trilinear", sumdim, total);
  for (int64_t d = 0; d < total; ++d) {
    SymInt size = 0;
    Tensor* const inputs[] = {&t.i1, &t.i2, &t.i3};
    for (size_t i = 0; i < 3; ++i) {
      if (t.expanded[i] >> d & 1)
        *inputs[i] = unsqueeze(*inputs[i], d);
      else
        size = inputs[i]->sym_size(d);
    }
    const bool sums = t.summed >> d & 1;
    if (sums && d != unroll) (t.expanded[2] >> d & 1 ? t.sums12 : t.sums23).push_back(d);
    t.sizes.push_back(sums ? SymInt(1) : size);
  }
  return t;
}
Tensor trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntList expand1, IntList expand2, IntList expand3,
                 IntList sumdim, int64_t unroll) {
  const Trilinear t = prepare_trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll);
  Tensor out = zeros(t.sizes, i1.dtype());
  if (i1.numel() != 0 && i2.numel() != 0 && i3.numel() != 0) {
    const auto part = [&](const Tensor& x, size_t i, int64_t k) {
      return narrow(x, unroll, t.expanded[i] >> unroll & 1 ? 0 : k, 1);
    };
    int64_t steps = 1;
    for (const Tensor* x : {&t.i1, &t.i2, &t.i3}) steps = std::max(steps, x->size(unroll));
    const bool sums = t.summed >> unroll & 1;
    for (int64_t k = 0; k < steps; ++k) {
      const Tensor first = sum_product(part(t.i1, 0, k), part(t.i2, 1, k), t.sums12);
      add_(sums ? out : narrow(out, unroll, k, 1), sum_product(first, part(t.i3, 2, k), t.sums23));
    }
  }
  for (int64_t d = out.dim() - 1; d >= 0; --d)
    if (t.summed >> d & 1) out = squeeze(out, d);
  return out;
}
Tensor trilinear_rule(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntList expand1, IntList expand2,
                      IntList expand3, IntList sumdim, int64_t unroll) {
  const Trilinear t = prepare_trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll);
  SymInts sizes;
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (!(t.summed >> d & 1)) sizes.push_back(t.sizes[d]);
  return make_tensor(rule::contiguous_like(i1, sizes), true);
}

// The order of a chain's products that costs the fewest multiplications.
Tensor chain_product(TensorList matrices, const std::vector<std::vector<size_t>>& split, size_t i, size_t j) {
  if (i == j) return matrices[i];
  return mm(chain_product(matrices, split, i, split[i][j]), chain_product(matrices, split, split[i][j] + 1, j));
}
Tensor multi_dot_body(TensorList tensors) {
  const size_t n = tensors.size();
  if (n < 2) throw UserError("linalg.multi_dot: expected at least 2 tensors but got " + std::to_string(n));
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  SymInts result;
  if (matrices[0].dim() == 1)
    matrices[0] = unsqueeze(matrices[0], 0);
  else
    result.push_back(matrices[0].sym_size(0));
  if (matrices[n - 1].dim() == 1)
    matrices[n - 1] = unsqueeze(matrices[n - 1], -1);
  else
    result.push_back(matrices[n - 1].sym_size(1));
  for (size_t i = 0; i < n; ++i)
    if (matrices[i].dim() != 2)
      throw UserError("linalg.multi_dot: tensor " + std::to_string(i) + " must be 2D but got " +
                      std::to_string(matrices[i].dim()) + "D");
  if (n == 2) return view(mm(matrices[0], matrices[1]), result);
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  const auto p = [&](size_t i) {
    return static_cast<double>((i < n ? matrices[i].sym_size(0) : matrices[n - 1].sym_size(1)).guard_int());
  };
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] + p(i) * p(k + 1) * p(j + 1);
        if (k == i || c < cost[i][j]) {
          cost[i][j] = c;
          split[i][j] = k;
        }
      }
    }
  return view(chain_product(matrices, split, 0, n - 1), result);
}

}  // namespace

void register_einsum(Library& aten);
void register_einsum(Library& aten) {
  aten.def("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
      .python("torch.einsum", "torch.functional.einsum")
      .composite(einsum_body);
  aten.def("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor")
      .python("torch.tensordot", "torch.functional.tensordot")
      .composite(tensordot_body)
      .out("tensordot.out");
  aten.def("outer(Tensor self, Tensor vec2) -> Tensor").composite(outer_body).out("outer.out").tags(Tag::cast_out);
  aten.def("ger(Tensor self, Tensor vec2) -> Tensor")
      .composite([](const Tensor& a, const Tensor& b) { return outer(a, b); })
      .out("ger.out")
      .tags(Tag::cast_out);
  aten.def("inner(Tensor self, Tensor other) -> Tensor").composite(inner_body);
  aten.def("inner.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)").composite(inner_out_body);
  aten.def("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
      .tags(Tag::autocast_lower)
      .composite(vecdot_body)
      .out("linalg_vecdot.out");
  aten.def("kron(Tensor self, Tensor other) -> Tensor").composite(kron_body);
  aten.def("kron.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)").composite(kron_out_body);
  aten.def("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
      .python_alias("torch.nn.functional.bilinear", "torch.bilinear")
      .composite(bilinear_body);
  aten.def(
          "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int "
          "unroll_dim=1) -> Tensor")
      .own(trilinear_rule, trilinear)
      .gradient("i1", "i2 i3",
                [](const Gradients& g) {
                  return _trilinear(g.grad(), g["i2"], g["i3"], g.integers("sumdim"), g.integers("expand2"),
                                    g.integers("expand3"), g.integers("expand1"));
                })
      .gradient("i2", "i1 i3",
                [](const Gradients& g) {
                  return _trilinear(g["i1"], g.grad(), g["i3"], g.integers("expand1"), g.integers("sumdim"),
                                    g.integers("expand3"), g.integers("expand2"));
                })
      .gradient("i3", "i1 i2", [](const Gradients& g) {
        return _trilinear(g["i1"], g["i2"], g.grad(), g.integers("expand1"), g.integers("expand2"), g.integers("sumdim"),
                          g.integers("expand3"));
      });
  aten.def("linalg_multi_dot(Tensor[] tensors) -> Tensor").composite(multi_dot_body).out("linalg_multi_dot.out");
  aten.def("chain_matmul(Tensor[] matrices) -> Tensor")
      .composite(
          [](TensorList matrices) -> Tensor { return matrices.size() == 1 ? matrices[0] : linalg_multi_dot(matrices); })
      .out("chain_matmul.out");
}

}  // namespace calque

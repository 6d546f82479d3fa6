// Programs without state.
#include "calque/graph/higher_order.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/sym/sym_math.h"
#include "export/programs.h"

namespace calque::peers {

Tensor filled(std::vector<int64_t> sizes, int64_t seed, DType dtype, int64_t below) {
  const Tensor t = make_tensor(IntList(sizes), dtype);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (dtype == DType::int64)
      t.mutable_data_as<int64_t>()[at] = (i * 7 + seed * 3 + 2) % below;
    else if (dtype == DType::bool_)
      t.mutable_data_as<bool>()[at] = (i * 5 + seed) % 3 == 0;
    else
      t.mutable_data_as<float>()[at] = static_cast<float>((i * 37 + seed * 11) % 101 - 50) / 16;
  }
  return t;
}

namespace {

using DS = DynamicShapes;
const DimHint AUTO = Dim::AUTO;
const DimHint DYNAMIC = Dim::DYNAMIC;

DS dims(std::vector<std::pair<Value, DS>> entries) { return DS::dict(std::move(entries)); }

}  // namespace

void add_function_cases(std::vector<ExportCase>& cases) {
  const auto add = [&](const std::string& name, TraceableFunction f, Values args, ExportOptions options = {},
                       std::vector<Values> others = {}) {
    add_case(cases, name, std::make_shared<const TraceableFunction>(std::move(f)), args, options, others);
  };
  const Dim batch("batch"), length("length");

  add("pointwise",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            const Tensor a = x * y;
            const Tensor b = (a.sin() + 1).relu();
            return b - y / 2;
          },
          {"x", "y"}),
      {filled({3, 4}), filled({4}, 1)});
  add("dynamic_pointwise", traceable([](const Tensor& x, const Tensor& y) { return (x + y).exp(); }, {"x", "y"}),
      {filled({3, 4}), filled({3, 4}, 1)},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}, {"y", dims({{0, batch}})}})},
      {{filled({5, 4}), filled({5, 4}, 1)}});
  add("auto_equal", traceable([](const Tensor& x, const Tensor& y) { return x + y; }, {"x", "y"}),
      {filled({3, 4}), filled({3, 4}, 1)},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, AUTO}, {1, AUTO}})}, {"y", dims({{0, AUTO}, {1, AUTO}})}})},
      {{filled({5, 2}), filled({5, 2}, 1)}});
  add("sizes",
      traceable(
          [](const Tensor& x) -> Value {
            const SymInt n = x.sym_size(0);
            const Tensor a = x.reshape({n * x.sym_size(1)});
            return tuple({a, n, n * 2 + 1});
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}, {1, length}})}})}, {{filled({5, 6})}});
  add("views",
      traceable(
          [](const Tensor& x) -> Value {
            const Tensor t = x.transpose(0, 1);
            const Tensor u = t.unsqueeze(0);
            const Tensor v = u.expand({2, -1, -1});
            return tuple({v.contiguous().view({2, -1}), t.permute({1, 0}), x.flatten(), u.squeeze(0)});
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}})}, {{filled({5, 4})}});
  add("slicing",
      traceable(
          [](const Tensor& x) -> Value {
            const Tensor a = x.slice(0, 1, 3);
            const Tensor b = x.select(1, 2);
            const Tensor c = x.narrow(1, 0, 2);
            return tuple({a, b, c});
          },
          {"x"}),
      {filled({4, 5})});
  add("inplace",
      traceable(
          [](const Tensor& x) {
            const Tensor y = x.clone();
            y.add_(1);
            y.mul_(2);
            const Tensor v = y.view({-1});
            v.relu_();
            return y + 1;
          },
          {"x"}),
      {filled({3, 4})});
  add("mutated_input",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            x.add_(y);
            return x * 2;
          },
          {"x", "y"}),
      {filled({3, 4}), filled({3, 4}, 1)});
  add("view_mutation",
      traceable(
          [](const Tensor& x) {
            const Tensor row = x.select(0, 0);
            row.fill_(1);
            return x + 1;
          },
          {"x"}),
      {filled({3, 4})});
  add("matmuls",
      traceable(
          [](const Tensor& x, const Tensor& w, const Tensor& b) -> Value {
            const Tensor a = x.matmul(w);
            const Tensor c = addmm(b, x, w);
            const Tensor d = linear(x, w.t(), b);
            return tuple({a, c, d});
          },
          {"x", "w", "b"}),
      {filled({3, 4}), filled({4, 5}, 1), filled({5}, 2)},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}, {"w", None{}}, {"b", None{}}})},
      {{filled({7, 4}), filled({4, 5}, 1), filled({5}, 2)}});
  add("bmm",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            const Tensor a = x.bmm(y);
            return softmax(a, -1);
          },
          {"x", "y"}),
      {filled({2, 3, 4}), filled({2, 4, 3}, 1)}, {.dynamic_shapes = DS::tuple({dims({{0, AUTO}}), dims({{0, AUTO}})})},
      {{filled({4, 3, 4}), filled({4, 4, 3}, 1)}});
  add("reductions",
      traceable(
          [](const Tensor& x) -> Value {
            const Tensor a = x.sum();
            const Tensor b = x.mean(IntList{1});
            const Tensor c = x.amax(IntList{0});
            const Tensor d = x.argmax(1);
            const Tensor e = x.cumsum(1);
            return tuple({a, b, c, d, e});
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}})}, {{filled({6, 4})}});
  add("multi_output",
      traceable(
          [](const Tensor& x) -> Value {
            const auto [values, indices] = topk(x, 2);
            const auto [m, i] = x.max(1);
            const auto parts = x.split(2, 1);
            return tuple({values, indices, m, i, parts[0], parts[1]});
          },
          {"x"}),
      {filled({3, 4})});
  add("unused_outputs",
      traceable(
          [](const Tensor& x) {
            const auto [m, i] = x.max(1);
            return m + 1;
          },
          {"x"}),
      {filled({3, 4})});
  add("dead_code",
      traceable(
          [](const Tensor& x, const Tensor& unused) {
            const Tensor dead = x.sin();
            (void)dead;
            (void)unused;
            return x.cos();
          },
          {"x", "unused"}),
      {filled({3, 4}), filled({2})});
  add("cat_stack",
      traceable(
          [](const Tensor& x, const Tensor& y) -> Value {
            const Tensor a = cat({x, y}, 1);
            const Tensor b = stack({x, x}, 0);
            return tuple({a, b});
          },
          {"x", "y"}),
      {filled({3, 4}), filled({3, 2}, 1)},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}, {"y", dims({{0, batch}})}})},
      {{filled({5, 4}), filled({5, 2}, 1)}});
  add("factories",
      traceable(
          [](const Tensor& x) -> Value {
            const Tensor a = zeros({x.sym_size(0), 2});
            const Tensor b = ones_like(x);
            const Tensor c = arange(x.sym_size(0));
            const Tensor d = full({2, 2}, 3.5);
            return tuple({a, b, c, d});
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}})}, {{filled({5, 4})}});
  add("literals",
      traceable(
          [](const Tensor& x) {
            const Tensor a = x + tensor({1., 2., 3., 4.});
            return a * tensor(2.5);
          },
          {"x"}),
      {filled({3, 4})});
  add("casts",
      traceable(
          [](const Tensor& x) -> Value {
            const Tensor a = x.to(DType::float64);
            const Tensor b = x.to(DType::int64);
            const Tensor c = x.to(DType::float32);
            return tuple({a, b, c});
          },
          {"x"}),
      {filled({3, 4})});
  add("comparisons",
      traceable(
          [](const Tensor& x, const Tensor& y) -> Value {
            const Tensor a = x > y;
            const Tensor b = where(a, x, y);
            const Tensor c = masked_fill(x, a, 0.5);
            return tuple({a, b, c});
          },
          {"x", "y"}),
      {filled({3, 4}), filled({3, 4}, 5)});
  add("indexing",
      traceable(
          [](const Tensor& x, const Tensor& i) -> Value {
            const Tensor a = x.index_select(0, i);
            const Tensor b = x.gather(1, i.unsqueeze(1));
            const Tensor c = embedding(x, i);
            return tuple({a, b, c});
          },
          {"x", "i"}),
      {filled({4, 5}), filled({3}, 0, DType::int64, 4)});
  add("constants",
      traceable(
          [](const Tensor& x, int64_t n, double k, const std::string& how) -> Value {
            const Tensor a = x * n;
            const Tensor b = a + k;
            return tuple({b, n, how});
          },
          {"x", "n", "k", "how"}),
      {filled({3, 4}), 3, 2.5, "trunc"});
  add("nested",
      traceable(
          [](const Value& x, const std::vector<Tensor>& ys) -> Value {
            const Tensor& a = *[&] { return &x.to_dict().find("foo")->to_items()[0].to_tensor(); }();
            const Tensor& b = x.to_dict().find("bar")->to_tensor();
            const Tensor c = a + b;
            return dict({{"sum", c}, {"parts", list({ys[0] * 2, tuple({ys[1], 1})})}, {"none", None{}}});
          },
          {"x", "ys"}),
      {dict({{"foo", list({filled({3})})}, {"bar", filled({3}, 1)}}), list({filled({2}, 2), filled({4}, 3)})});
  add("item",
      traceable(
          [](const Tensor& x, const Tensor& n) -> Value {
            const SymInt k = Value(n.item()).to_sym_int();
            (void)check(k >= 2);
            (void)check(k <= 7);
            const Tensor a = zeros({k, 4});
            return tuple({a, x + 1});
          },
          {"x", "n"}),
      {filled({3, 4}), tensor(5)}, {}, {{filled({3, 4}), tensor(3)}});
  add("nonzero",
      traceable(
          [](const Tensor& x) {
            const Tensor nz = nonzero(x);
            return nz + 1;
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}})}, {{filled({5, 4})}});
  const auto number = [](const Tensor& n) { return Value(n.item()).to_sym_int(); };
  add("item_fixed_by_view",
      traceable(
          [=](const Tensor& n, const Tensor& x) {
            return x.view({number(n), 4});
          },
          {"n", "x"}),
      {tensor(6), filled({24})});
  add("item_fixed_by_check",
      traceable(
          [=](const Tensor& n, const Tensor& x) {
            const SymInt k = number(n);
            (void)check(k == 6);
            return x + k;
          },
          {"n", "x"}),
      {tensor(6), filled({24})});
  add("item_fixed_after_use",
      traceable(
          [=](const Tensor& n, const Tensor& x) -> Value {
            const SymInt k = number(n);
            (void)check(k >= 0);
            const Tensor a = zeros({k});
            const Tensor b = zeros({2 * k});
            return tuple({a + x, b});
          },
          {"n", "x"}),
      {tensor(6), filled({6})});
  add("two_equal_items",
      traceable(
          [=](const Tensor& n) {
            const SymInt a = number(n);
            const SymInt b = number(n * 1);
            (void)check(a == b);
            (void)check(a >= 0);
            const Tensor x = zeros({a});
            const Tensor y = zeros({b});
            return x + y;
          },
          {"n"}),
      {tensor(6)}, {}, {{tensor(3)}});
  add("item_after_another",
      traceable(
          [=](const Tensor& n) -> Value {
            const SymInt a = number(n);
            const SymInt b = number(n + 1);
            (void)check(a == b - 1);
            (void)check(a >= 0);
            const Tensor x = zeros({a});
            return tuple({x, zeros({b})});
          },
          {"n"}),
      {tensor(6)}, {}, {{tensor(3)}});
  add("nonzero_fixed_by_check",
      traceable(
          [](const Tensor& x) {
            const Tensor nz = nonzero(x);
            (void)check(nz.sym_size(0) == 3);
            return nz + ones({3, 1});
          },
          {"x"}),
      {tensor({1., 1., 1., 0.}).to(DType::float32)});
  add("nonzero_fixed_by_add",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            const Tensor nz = nonzero(x);
            return nz.reshape({-1}) + y;
          },
          {"x", "y"}),
      {tensor({1., 1., 1., 0.}).to(DType::float32), filled({3})});
  add("branch_on_size",
      traceable(
          [](const Tensor& x) -> Tensor {
            if (guard(x.sym_size(0) > 3)) return x + 1;
            return x - 1;
          },
          {"x"}),
      {filled({5, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, AUTO}})}})}, {{filled({7, 4})}});
  add("derived_dim", traceable([](const Tensor& x, const Tensor& y) { return x + y.slice(0, 1); }, {"x", "y"}),
      {filled({5}), filled({6}, 1)},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, length}})}, {"y", dims({{0, length + 1}})}})},
      {{filled({8}), filled({9}, 1)}});
  add("bounded_dim", traceable([](const Tensor& x) { return x * 2; }, {"x"}), {filled({5, 4})},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("b", 3, 16)}})}})}, {{filled({9, 4})}});
  add("deferred_assert", traceable([](const Tensor& x, const Tensor& y) { return x.reshape({-1}) + y; }, {"x", "y"}),
      {filled({3, 4}), filled({12}, 1)},
      {.dynamic_shapes = DS::dict({{"x", dims({{0, DYNAMIC}, {1, DYNAMIC}})}, {"y", dims({{0, DYNAMIC}})}}),
       .prefer_deferred_runtime_asserts_over_guards = true},
      {{filled({2, 5}), filled({10}, 1)}});
  add("dynamic_integer",
      traceable(
          [](const Tensor& x, SymInt n) -> Value {
            return tuple({x + n, n * 3});
          },
          {"x", "n"}),
      {filled({3, 4}), 5}, {.dynamic_shapes = DS::dict({{"x", dims({{0, AUTO}})}, {"n", DYNAMIC}})}, {{filled({4, 4}), 7}});
  add("attention",
      traceable([](const Tensor& q, const Tensor& k, const Tensor& v) { return scaled_dot_product_attention(q, k, v); },
                {"q", "k", "v"}),
      {filled({2, 2, 3, 4}), filled({2, 2, 3, 4}, 1), filled({2, 2, 3, 4}, 2)},
      {.dynamic_shapes = DS::tuple({dims({{2, AUTO}}), dims({{2, AUTO}}), dims({{2, AUTO}})})},
      {{filled({2, 2, 5, 4}), filled({2, 2, 5, 4}, 1), filled({2, 2, 5, 4}, 2)}});
  add("manual_attention",
      traceable(
          [](const Tensor& q, const Tensor& k, const Tensor& v) {
            const Tensor scores = q.matmul(k.transpose(-2, -1)) / 2;
            const Tensor p = scores.softmax(-1);
            return p.matmul(v);
          },
          {"q", "k", "v"}),
      {filled({2, 3, 4}), filled({2, 3, 4}, 1), filled({2, 3, 4}, 2)},
      {.dynamic_shapes = DS::tuple({dims({{1, AUTO}}), dims({{1, AUTO}}), dims({{1, AUTO}})})},
      {{filled({2, 5, 4}), filled({2, 5, 4}, 1), filled({2, 5, 4}, 2)}});
  add("cond",
      traceable(
          [](const Tensor& x) {
            return cond(
                       x.sum() > 0, [](const Values& in) -> Value { return in[0].to_tensor().sin(); },
                       [](const Values& in) -> Value { return in[0].to_tensor().cos(); }, {x})
                .to_tensor();
          },
          {"x"}),
      {filled({3, 4})});
  add("cond_on_size",
      traceable(
          [](const Tensor& x) {
            return cond(
                       x.sym_size(0) > 4, [](const Values& in) -> Value { return in[0].to_tensor() + 1; },
                       [](const Values& in) -> Value { return in[0].to_tensor() - 1; }, {x})
                .to_tensor();
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}})}, {{filled({6, 4})}});
  const auto any_above = [](const Tensor& x, int64_t limit) { return (x > limit).any().item(); };
  const auto all_above = [](const Tensor& x, int64_t limit) { return (x > limit).all().item(); };
  add("truth_returned",
      traceable(
          [=](const Tensor& x) -> Value {
            return tuple({any_above(x, 0), x});
          },
          {"x"}),
      {filled({3})});
  add("truth_fills", traceable([=](const Tensor& x) { return full({2}, any_above(x, 0)); }, {"x"}), {filled({3})});
  add("truth_checked",
      traceable(
          [](const Tensor& x) {
            (void)check((x < 100).any().item().sym_bool());
            return x + 1;
          },
          {"x"}),
      {filled({3})});
  add("truth_predicate",
      traceable(
          [=](const Tensor& x) {
            return cond(
                       any_above(x, 0), [](const Values& in) -> Value { return in[0].to_tensor().sin(); },
                       [](const Values& in) -> Value { return in[0].to_tensor().cos(); }, {x})
                .to_tensor();
          },
          {"x"}),
      {filled({3})}, {}, {{-filled({3})}});
  add("truth_factor", traceable([=](const Tensor& x) { return x * all_above(x, 0); }, {"x"}), {filled({3})});
  add("truth_chooses", traceable([=](const Tensor& x) -> Value { return sym_ite(all_above(x, 0).sym_bool(), 3, 4); }, {"x"}),
      {filled({3})});
  add("truth_negated",
      traceable(
          [=](const Tensor& x) -> Value {
            return tuple({!all_above(x, 0).sym_bool(), x});
          },
          {"x"}),
      {filled({3})});
  add("truths_either",
      traceable(
          [=](const Tensor& x) {
            const Scalar a = (x < 100).all().item();
            const Scalar b = any_above(x, 1);
            (void)check(sym_or(a.sym_bool(), b.sym_bool()));
            return x + 1;
          },
          {"x"}),
      {filled({3})});
  add("truth_refused", traceable([=](const Tensor& x) { return guard(all_above(x, 0).sym_bool()) ? x + 1 : x - 1; }, {"x"}),
      {filled({3})});
  add("map",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            return map([](const Values& in) -> Value { return in[0].to_tensor() + in[1].to_tensor(); }, x, {y}).to_tensor();
          },
          {"x", "y"}),
      {filled({3, 4}), filled({4}, 1)});
  add("input_returned",
      traceable(
          [](const Tensor& x, const Tensor& y) -> Value {
            return tuple({x, y + 1, x});
          },
          {"x", "y"}),
      {filled({2}), filled({2}, 1)});
  add("reserved_names",
      traceable([](const Tensor& input, const Tensor& max, const Tensor& mul) { return input * max + mul; },
                {"input", "max", "mul"}),
      {filled({3}), filled({3}, 1), filled({3}, 2)});
  add("no_outputs_used",
      traceable(
          [](const Tensor& x) -> Value {
            x.add_(1);
            return None{};
          },
          {"x"}),
      {filled({3})});
  add("pad_and_roll",
      traceable(
          [](const Tensor& x) -> Value {
            const Tensor a = constant_pad_nd(x, {1, 2}, 0.5);
            const Tensor b = roll(x, {1}, {0});
            const Tensor c = flip(x, {1});
            return tuple({a, b, c});
          },
          {"x"}),
      {filled({3, 4})});
  add("scatter",
      traceable(
          [](const Tensor& x, const Tensor& i) -> Value {
            const Tensor a = x.scatter(1, i, 2.0);
            const Tensor rows = i.select(1, 0);
            const Tensor b = x.index_add(0, rows, x.slice(0, 0, 2));
            return tuple({a, b});
          },
          {"x", "i"}),
      {filled({4, 5}), filled({2, 2}, 0, DType::int64, 4)});
  add("einsum",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            return einsum("bij,bjk->bik", {x, y});
          },
          {"x", "y"}),
      {filled({2, 3, 4}), filled({2, 4, 3}, 1)});
  add("chunk_gelu",
      traceable(
          [](const Tensor& x) {
            const auto parts = x.chunk(2, -1);
            return gelu(parts[0]) * parts[1];
          },
          {"x"}),
      {filled({3, 8})}, {.dynamic_shapes = DS::dict({{"x", dims({{0, batch}})}})}, {{filled({5, 8})}});
  add("rotary",
      traceable(
          [](const Tensor& x, const Tensor& cos, const Tensor& sin) {
            const Tensor a = x.slice(-1, {}, 2);
            const Tensor b = x.slice(-1, 2);
            const Tensor rotated = cat({-b, a}, -1);
            const Tensor direct = x * cos;
            return direct + rotated * sin;
          },
          {"x", "cos", "sin"}),
      {filled({2, 3, 4}), filled({3, 4}, 1), filled({3, 4}, 2)},
      {.dynamic_shapes = DS::tuple({dims({{1, AUTO}}), dims({{0, AUTO}}), dims({{0, AUTO}})})},
      {{filled({2, 6, 4}), filled({6, 4}, 1), filled({6, 4}, 2)}});
  add("causal_mask",
      traceable(
          [](const Tensor& x) {
            const SymInt n = x.sym_size(1);
            const Tensor mask = ones({n, n}).tril();
            return x.masked_fill(mask == 0, -1.0);
          },
          {"x"}),
      {filled({2, 3, 3})}, {.dynamic_shapes = DS::dict({{"x", dims({{1, length}, {2, length}})}})}, {{filled({2, 5, 5})}});
}

}  // namespace calque::peers

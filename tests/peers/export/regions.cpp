// Regions of another gradient mode or of autocast, and higher-order operators.
#include "calque/graph/higher_order.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/autocast.h"
#include "calque/op/literal.h"
#include "export/programs.h"

namespace calque::peers {
namespace {

using DS = DynamicShapes;

// A branch of tensors alone.
GraphFunction of(std::function<Value(const Tensor&)> f) {
  return [f](const Values& in) { return f(in[0].to_tensor()); };
}
GraphFunction of(std::function<Value(const Tensor&, const Tensor&)> f) {
  return [f](const Values& in) { return f(in[0].to_tensor(), in[1].to_tensor()); };
}

const DS& batched() {
  static const DS shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}});
  return shapes;
}

}  // namespace

void add_region_cases(std::vector<ExportCase>& cases) {
  const auto add = [&](const std::string& name, TraceableFunction f, const Values& args, const ExportOptions& options = {},
                       const std::vector<Values>& others = {}) {
    add_case(cases, name, std::make_shared<const TraceableFunction>(std::move(f)), args, options, others);
  };
  const Tensor x34 = filled({3, 4});
  add("no_grad_region",
      traceable(
          [](const Tensor& x) {
            const Tensor y = x + 1;
            Tensor z;
            {
              const GradModeScope no_grad(false);
              z = y.sin();
            }
            return z * 2;
          },
          {"x"}),
      {x34});
  add("no_grad_whole",
      traceable(
          [](const Tensor& x) {
            const GradModeScope no_grad(false);
            return (x + 1) * 2;
          },
          {"x"}),
      {x34});
  add("no_grad_nested",
      traceable(
          [](const Tensor& x) {
            Tensor c;
            {
              const GradModeScope no_grad(false);
              const Tensor a = x + 1;
              Tensor b;
              {
                const GradModeScope grad(true);
                b = a * 2;
              }
              c = b.sin();
            }
            return c + x;
          },
          {"x"}),
      {x34});
  add("no_grad_twice",
      traceable(
          [](const Tensor& x) {
            Tensor a, c;
            {
              const GradModeScope no_grad(false);
              a = x.sin();
            }
            const Tensor b = a + 1;
            {
              const GradModeScope no_grad(false);
              c = b.cos();
            }
            return c - x;
          },
          {"x"}),
      {x34});
  add("no_grad_results",
      traceable(
          [](const Tensor& x) -> Value {
            Tensor a, b;
            {
              const GradModeScope no_grad(false);
              a = x.sin();
              b = x.cos();
            }
            return tuple({a * b, a});
          },
          {"x"}),
      {x34});
  add("no_grad_dynamic",
      traceable(
          [](const Tensor& x) {
            const Tensor y = x + 1;
            Tensor z;
            {
              const GradModeScope no_grad(false);
              z = y.reshape({x.sym_size(0) * 4});
            }
            return z.sin();
          },
          {"x"}),
      {x34}, {.dynamic_shapes = batched()}, {{filled({5, 4})}});
  add("no_grad_write",
      traceable(
          [](const Tensor& x) {
            const Tensor y = x.clone();
            {
              const GradModeScope no_grad(false);
              y.add_(1);
            }
            return y * 2;
          },
          {"x"}),
      {x34});
  add("no_grad_split",
      traceable(
          [](const Tensor& x) {
            std::vector<Tensor> parts;
            {
              const GradModeScope no_grad(false);
              parts = x.split(2);
            }
            return parts[0] + parts[1];
          },
          {"x"}),
      {filled({4, 4})});
  add("grad_region",
      traceable(
          [](const Tensor& x) {
            Tensor y;
            {
              const GradModeScope grad(true);
              y = x.sin();
            }
            return y + 1;
          },
          {"x"}),
      {x34});
  add("autocast_region",
      traceable(
          [](const Tensor& x, const Tensor& w) {
            const Tensor y = x + 1;
            Tensor z;
            {
              const AutocastScope autocast(DeviceType::cpu, DType::bfloat16);
              z = matmul(y, w);
            }
            return z.to(DType::float32) * 2;
          },
          {"x", "w"}),
      {x34, filled({4, 2}, 1)});
  add("autocast_nested",
      traceable(
          [](const Tensor& x, const Tensor& w) -> Value {
            const AutocastScope autocast(DeviceType::cpu, DType::bfloat16);
            const Tensor a = matmul(x, w);
            Tensor b;
            {
              const AutocastScope off(DeviceType::cpu, {}, false);
              b = matmul(a.to(DType::float32), w);
            }
            const Tensor c = matmul(b, w);
            return tuple({a, b, c});
          },
          {"x", "w"}),
      {x34, filled({4, 4}, 1)});
  add("autocast_without_gradients",
      traceable(
          [](const Tensor& x, const Tensor& w) {
            const GradModeScope no_grad(false);
            const Tensor y = x.sin();
            const AutocastScope autocast(DeviceType::cpu, DType::bfloat16);
            return matmul(y, w);
          },
          {"x", "w"}),
      {x34, filled({4, 4}, 1)});
  add("autocast_dynamic",
      traceable(
          [](const Tensor& x, const Tensor& w) {
            Tensor z;
            {
              const AutocastScope autocast(DeviceType::cpu, DType::float16);
              z = matmul(x, w);
            }
            return z + 1;
          },
          {"x", "w"}),
      {x34, filled({4, 2}, 1)}, {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}, {"w", None{}}})},
      {{filled({5, 4}), filled({4, 2}, 1)}});

  add("cond_closure",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            const Tensor z = y * 2;
            return cond(x.sum() > 0, of([&](const Tensor& a) -> Value { return a + z; }),
                        of([&](const Tensor& a) -> Value { return a - y; }), {x})
                .to_tensor();
          },
          {"x", "y"}),
      {x34, filled({4}, 1)});
  add("cond_nested",
      traceable(
          [](const Tensor& x) {
            const auto inner = [](const Tensor& a) {
              return cond(a.mean() > 1, of([](const Tensor& b) -> Value { return b * 2; }),
                          of([](const Tensor& b) -> Value { return b * 3; }), {a});
            };
            return cond(x.sum() > 0, of(inner), of([](const Tensor& a) -> Value { return a.cos(); }), {x}).to_tensor();
          },
          {"x"}),
      {x34});
  add("cond_results",
      traceable(
          [](const Tensor& x, const Tensor& y) -> Value {
            const Values both = cond(x.sum() > 0, of([](const Tensor& p, const Tensor& q) -> Value {
                                       return tuple({p + q, p * q});
                                     }),
                                     of([](const Tensor& p, const Tensor& q) -> Value {
                                       return tuple({p - q, q.sin()});
                                     }),
                                     {x, y})
                                    .to_items();
            return tuple({both[0].to_tensor() * 2, both[1]});
          },
          {"x", "y"}),
      {x34, filled({3, 4}, 1)});
  add("cond_dynamic",
      traceable(
          [](const Tensor& x) {
            return cond(x.sum() > 0, of([](const Tensor& a) -> Value { return a.reshape({-1}).sin(); }),
                        of([](const Tensor& a) -> Value { return a.reshape({-1}) + 1; }), {x})
                .to_tensor();
          },
          {"x"}),
      {x34}, {.dynamic_shapes = batched()}, {{filled({5, 4})}});
  add("cond_region",
      traceable(
          [](const Tensor& x) {
            const auto quiet = [](const Tensor& a) -> Value {
              Tensor b;
              {
                const GradModeScope no_grad(false);
                b = a.sin();
              }
              return b + 1;
            };
            return cond(x.sum() > 0, of(quiet), of([](const Tensor& a) -> Value { return a.cos(); }), {x}).to_tensor();
          },
          {"x"}),
      {x34});
  add("cond_in_region",
      traceable(
          [](const Tensor& x) {
            Tensor y;
            {
              const GradModeScope no_grad(false);
              y = cond(x.sum() > 0, of([](const Tensor& a) -> Value { return a.sin(); }),
                       of([](const Tensor& a) -> Value { return a.cos(); }), {x})
                      .to_tensor();
            }
            return y + 1;
          },
          {"x"}),
      {x34});
  add("cond_item",
      traceable(
          [](const Tensor& x, const Tensor& i) {
            const auto first = [](const Tensor& a, const Tensor& n) -> Value {
              const SymInt k = Value(n.item()).to_sym_int();
              (void)check(k >= 0);
              (void)check(k <= 4);
              const Tensor counted = ones({k}).sum();
              return counted + a.sum();
            };
            return cond(x.sum() > 0, of(first), of([](const Tensor& a, const Tensor&) -> Value { return a.sum(); }), {x, i})
                .to_tensor();
          },
          {"x", "i"}),
      {filled({4}), tensor(2)});
  add("cond_constant",
      traceable(
          [](const Tensor& x) {
            return cond(x.sum() > 0, of([](const Tensor& a) -> Value {
                          return a + tensor({1., 2., 3.});
                        }),
                        of([](const Tensor& a) -> Value { return a * 2; }), {x})
                .to_tensor();
          },
          {"x"}),
      {filled({3})});
  add("while_loop",
      traceable(
          [](const Tensor& x) -> Value {
            return while_loop(of([](const Tensor& a) -> Value { return a.sum() < 10; }),
                              of([](const Tensor& a) -> Value { return tuple({a + 1}); }), {x});
          },
          {"x"}),
      {x34});
  add("while_loop_closure",
      traceable(
          [](const Tensor& i, const Tensor& x, const Tensor& y) -> Value {
            return while_loop(of([](const Tensor& n, const Tensor&) -> Value { return n < 3; }),
                              of([&](const Tensor& n, const Tensor& a) -> Value {
                                return tuple({n + 1, a + y});
                              }),
                              {i, x});
          },
          {"i", "x", "y"}),
      {tensor(0), filled({3}), filled({3}, 1)});
  add("map_closure",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            const Tensor z = y.sin();
            return map(of([&](const Tensor& a) -> Value { return a * z; }), x).to_tensor();
          },
          {"x", "y"}),
      {x34, filled({4}, 1)});
  add("map_tree",
      traceable(
          [](const Tensor& x, const Tensor& y) -> Value {
            return map(
                [](const Values& in) -> Value {
                  const Values& p = in[0].to_items();
                  return tuple({p[0].to_tensor().sin(), p[1].to_tensor() + 1});
                },
                tuple({x, y}));
          },
          {"x", "y"}),
      {x34, filled({3, 2}, 1)});
  add("map_dynamic",
      traceable(
          [](const Tensor& x, const Tensor& y) {
            return map(of([](const Tensor& a, const Tensor& b) -> Value { return a + b; }), x, {y}).to_tensor();
          },
          {"x", "y"}),
      {x34, filled({4}, 1)}, {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}, {"y", None{}}})},
      {{filled({5, 4}), filled({4}, 1)}});
  const auto scanned = [](bool reverse) {
    return traceable(
        [=](const Tensor& init, const Tensor& xs) -> Value {
          const auto [carry, ys] = scan(
              [=](const Value& c, const Value& x) -> std::pair<Value, Value> {
                const Tensor n = reverse ? c.to_tensor() * x.to_tensor() : c.to_tensor() + x.to_tensor();
                return {n, reverse ? n.sin() : n * 2};
              },
              init, xs, reverse);
          return tuple({carry, ys});
        },
        {"init", "xs"});
  };
  add("scan", scanned(false), {filled({4}), filled({3, 4}, 1)});
  add("scan_reverse", scanned(true), {filled({4}), filled({3, 4}, 1)});
}

void add_refused_cases(std::vector<ExportCase>& cases) {
  const auto add = [&](const std::string& name, TraceableFunction f, const Values& args, const ExportOptions& options = {}) {
    add_case(cases, name, std::make_shared<const TraceableFunction>(std::move(f)), args, options);
  };
  const auto plus_one = traceable([](const Tensor& x) { return x + 1; }, {"x"});
  add("refused_branch_on_data",
      traceable(
          [](const Tensor& x) -> Tensor {
            if ((x.sum() > 0).item().to_double() != 0) return x + 1;
            return x - 1;
          },
          {"x"}),
      {filled({3})});
  add("refused_fixed_dim",
      traceable(
          [](const Tensor& x) {
            return x.reshape({3, 4}) + 1;
          },
          {"x"}),
      {filled({3, 4})}, {.dynamic_shapes = batched()});
  add("refused_equal_dims", traceable([](const Tensor& x, const Tensor& y) { return x + y; }, {"x", "y"}),
      {filled({3}), filled({3}, 1)},
      {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}, {"y", DS::dict({{0, Dim("length")}})}})});
  add("refused_dim_below_range", plus_one, {filled({3})},
      {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("b", 5, 9)}})}})});
  add("refused_unknown_name", plus_one, {filled({3})}, {.dynamic_shapes = DS::dict({{"z", DS::dict({{0, Dim("batch")}})}})});
  add("refused_arguments", plus_one, {filled({3}), filled({3}), filled({3})});
  add("refused_missing_argument", traceable([](const Tensor& x, const Tensor& y) { return x + y; }, {"x", "y"}),
      {filled({3})});
  const auto branches = [](const GraphFunction& other) {
    return traceable(
        [=](const Tensor& x) {
          return cond(x.sum() > 0, of([](const Tensor& a) -> Value { return a + 1; }), other, {x}).to_tensor();
        },
        {"x"});
  };
  add("refused_cond_sizes", branches(of([](const Tensor& a) -> Value {
        return cat({a, a}).reshape({2, 3});
      })),
      {filled({3})});
  add("refused_cond_dtypes", branches(of([](const Tensor& a) -> Value { return a.to(DType::int64); })), {filled({3})});
  add("refused_while_loop",
      traceable(
          [](const Tensor& x) -> Value {
            return while_loop(of([](const Tensor& a) -> Value { return a.sum() < 10; }), of([](const Tensor& a) -> Value {
                                return tuple({cat({a, a})});
                              }),
                              {x});
          },
          {"x"}),
      {filled({3})});
  add("refused_size_from_data",
      traceable(
          [](const Tensor& x, const Tensor& n) -> Tensor {
            const SymInt k = Value(n.item()).to_sym_int();
            if (guard(k > 3)) return x + 1;
            return x;
          },
          {"x", "n"}),
      {filled({4}), tensor(2)});
}

}  // namespace calque::peers

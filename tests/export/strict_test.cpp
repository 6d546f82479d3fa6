// Strict export gives whole programs: module stacks from the root, regions, higher-order operators, kept signatures, asserts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/export/unflatten.h"
#include "calque/graph/higher_order.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/autocast.h"
#include "export/export_support.h"

namespace calque::strict_test {
namespace {

using ::testing::HasSubstr;

ExportedProgram export_strict(Module& module, const Values& args, ExportOptions options = {}) {
  options.strict = true;
  return export_program(module, args, {}, options);
}
ExportedProgram export_strict(const TraceableFunction& f, const Values& args, ExportOptions options = {}) {
  options.strict = true;
  return export_program(f, args, {}, options);
}

struct StrictBlock : Typed<StrictBlock> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> lin = child<Linear>("lin", 3, 3);
  Buffer count = register_buffer("count", zeros({1}));
  Tensor forward(const Tensor& x) {
    count->add_(1);
    return lin(x).relu() * *count;
  }
};

struct StrictNested : Typed<StrictNested> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<StrictBlock> block = child<StrictBlock>("block");
  Child<Linear> out = child<Linear>("out", 3, 2);
  Tensor forward(const Tensor& x) { return out(block(block(x) + 1)); }
};

TEST(StrictExport, unflatten_computes_what_the_module_does) {
  StrictNested m;
  const auto eager = deep_copy(m);
  const ExportedProgram p =
      export_strict(m, {rand({2, 3})}, {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}})});
  const auto unflattened = unflatten(p);
  for (const int64_t n : {2, 5}) {
    const Tensor x = rand({n, 3});
    EXPECT_TRUE(same(unflattened->call({x}), eager->call({x})));
  }
  EXPECT_NE(unflattened->find_submodule("block.lin"), nullptr);
}

TEST(StrictExport, module_stacks_begin_at_the_root) {
  StrictNested m;
  const ExportedProgram p = export_strict(m, {rand({2, 3})});
  std::string paths;
  for (const Node* n : p.graph().nodes()) {
    if (n->kind() != NodeKind::call_function) continue;
    ASSERT_NE(n->meta.nn_module_stack, nullptr) << n->name();
    EXPECT_EQ(n->meta.nn_module_stack->front().path, "");
    EXPECT_EQ(n->meta.nn_module_stack->front().key, "L__self__");
    if (n->op() == &get_operator("aten::linear"))
      for (const ModuleStackEntry& e : *n->meta.nn_module_stack) paths += e.path + ";";
  }
  EXPECT_EQ(paths, ";block;block.lin;;block;block.lin;;out;");
}

TEST(StrictExport, regions_without_gradients_are_kept) {
  const auto f = traceable(
      [](const Tensor& x) {
        Tensor y = x + 1;
        {
          const GradModeScope no_grad(false);
          y = y.sin();
        }
        return y * 2;
      },
      {"x"});
  const ExportedProgram p = export_strict(f, {rand({2})});
  EXPECT_EQ(count(p, "torch.ops.higher_order.wrap_with_set_grad_enabled"), 1U) << p.str();
  EXPECT_EQ(p.str(), export_program(f, {rand({2})}).str());
}

TEST(StrictExport, autocast_regions_are_kept_and_give_the_same_numbers) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& w) {
        const AutocastScope autocast(DeviceType::cpu, DType::bfloat16);
        return matmul(x, w);
      },
      {"x", "w"});
  const Values args{rand({3, 4}), rand({4, 2})};
  const ExportedProgram p = export_strict(f, args);
  EXPECT_EQ(count(p, "torch.ops.higher_order.wrap_with_autocast"), 1U) << p.str();
  EXPECT_EQ(p.call(args).to_tensor().dtype(), DType::bfloat16);
  EXPECT_TRUE(same(p.call(args), f.body(args)));
}

TEST(StrictExport, both_branches_of_cond_are_kept) {
  const auto f = traceable(
      [](const Tensor& x) {
        return cond(
                   x.sum() > 0, [](const Values& in) -> Value { return in[0].to_tensor().sin(); },
                   [](const Values& in) -> Value { return in[0].to_tensor().cos(); }, {x})
            .to_tensor();
      },
      {"x"});
  const ExportedProgram p = export_strict(f, {ones({2})});
  EXPECT_EQ(count(p, "torch.ops.higher_order.cond"), 1U);
  for (const double v : {1.0, -1.0}) EXPECT_TRUE(same(p.call({full({2}, v)}), f.body({full({2}, v)})));
}

TEST(StrictExport, while_loop_map_and_scan_are_kept) {
  const auto f = traceable(
      [](const Tensor& xs) -> Value {
        const Value counted = while_loop([](const Values& in) -> Value { return in[0].to_tensor().sum() < 10; },
                                         [](const Values& in) -> Value { return tuple({in[0].to_tensor() + 1}); }, {xs});
        const Value doubled = map([](const Values& in) -> Value { return in[0].to_tensor() * 2; }, xs);
        const auto [last, all] = scan(
            [](const Value& carry, const Value& x) -> std::pair<Value, Value> {
              const Tensor next = carry.to_tensor() + x.to_tensor();
              return {next, next * 2};
            },
            zeros({2}), xs);
        return tuple({counted, doubled, last, all});
      },
      {"xs"});
  const ExportedProgram p = export_strict(f, {ones({3, 2})});
  EXPECT_EQ(count(p, "torch.ops.higher_order.while_loop"), 1U);
  EXPECT_EQ(count(p, "torch.ops.higher_order.map_impl"), 1U);
  EXPECT_EQ(count(p, "torch.ops.higher_order.scan"), 1U);
  for (const double v : {0.5, 3.0}) EXPECT_TRUE(same(p.call({full({3, 2}, v)}), f.body({full({3, 2}, v)})));
}

TEST(StrictExport, a_branch_checks_what_it_computes) {
  const auto f = traceable(
      [](const Tensor& x, const Tensor& n) {
        return cond(
                   x.sum() > 0,
                   [](const Values& in) -> Value {
                     const SymInt k = Value(in[1].to_tensor().item()).to_sym_int();
                     (void)check(k >= 2);
                     (void)check(k <= 4);
                     return ones({k}).sum() + in[0].to_tensor().sum();
                   },
                   [](const Values& in) -> Value { return in[0].to_tensor().sum(); }, {x, n})
            .to_tensor();
      },
      {"x", "n"});
  for (const bool strict : {false, true}) {
    SCOPED_TRACE(strict);
    const ExportedProgram p = export_program(f, {ones({2}), tensor(3)}, {}, {.strict = strict});
    EXPECT_EQ(count(p, "aten._assert_scalar.default"), 0U);
    EXPECT_EQ(count(p, "aten._assert_scalar.default", true), 2U) << p.str();
    EXPECT_TRUE(same(p.call({ones({2}), tensor(4)}), f.body({ones({2}), tensor(4)})));
    EXPECT_THAT(error_of([&] { p.call({ones({2}), tensor(7)}); }), HasSubstr("u0 <= 4"));
    EXPECT_NO_THROW(p.call({-ones({2}), tensor(7)}));
  }
}

struct StrictTied : Typed<StrictTied> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> a = child<Linear>("a", 3, 3);
  Child<Linear> b = child<Linear>("b", 3, 3);
  Child<Linear> unused = child<Linear>("unused", 2, 2);
  StrictTied() { b->set_tensor("weight", a->get_parameter("weight")); }
  Tensor forward(const Tensor& x) { return b(a(x)); }
};

TEST(StrictExport, state_is_an_input_once_and_where_it_is_used) {
  StrictTied m;
  const ExportedProgram p = export_strict(m, {rand({2, 3})});
  EXPECT_EQ(inputs(p), "p_a_weight, p_a_bias, p_b_bias, x");
  EXPECT_EQ(inputs(export_program(m, {rand({2, 3})})),
            "p_a_weight, p_a_bias, p_b_weight, p_b_bias, p_unused_weight, p_unused_bias, x");
  EXPECT_NE(p.state_dict().find("b.weight"), nullptr) << "the state dict is whole";
  EXPECT_NE(p.state_dict().find("unused.weight"), nullptr);
  expect_equal_to_eager(m, p, {rand({2, 3})});
  EXPECT_TRUE(m.get_parameter("b.weight").is_same(m.get_parameter("a.weight")));
  EXPECT_TRUE(same(unflatten(p)->call({ones({2, 3})}), m.call({ones({2, 3})})));
}

TEST(StrictExport, kept_call_signatures_name_nodes) {
  StrictNested m;
  const ExportedProgram p = export_strict(m, {rand({2, 3})}, {.preserve_module_call_signature = {"out"}});
  for (const ModuleCallEntry& e : p.module_call_graph()) {
    if (e.fqn != "out") continue;
    ASSERT_TRUE(e.signature.has_value());
    EXPECT_EQ(e.signature->inputs.size(), 1U);
    EXPECT_EQ(e.signature->outputs.size(), 1U);
    return;
  }
  ADD_FAILURE() << "no call of out";
}

TEST(StrictExport, hooks_run_where_their_module_is_called) {
  StrictNested m;
  m.out->register_forward_hook([](Module&, const Values&, const Kwargs&, const Value& result) -> std::optional<Value> {
    return result.to_tensor().sin();
  });
  const ExportedProgram p = export_strict(m, {rand({2, 3})});
  EXPECT_EQ(count(p, "aten.sin.default"), 1U);
  const Node* sin = find(p.graph(), "aten.sin.default");
  EXPECT_EQ(sin->meta.nn_module_stack->back().path, "out");
}

TEST(StrictExport, a_strict_program_survives_its_file_unflattened) {
  StrictNested m;
  const auto eager = deep_copy(m);
  const std::string path = ::testing::TempDir() + "strict_nested.pt2";
  save_program(export_strict(m, {rand({2, 3})}), path);
  const Tensor x = rand({2, 3});
  EXPECT_TRUE(same(unflatten(*load_program(path))->call({x}), eager->call({x})));
}

struct StrictAssigning : Typed<StrictAssigning> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant scale = register_constant("scale", ones({2}));
  Tensor forward(const Tensor& x) {
    scale = x + 1;
    return x;
  }
};

TEST(StrictExport, an_assigned_constant_is_refused_by_name) {
  StrictAssigning m;
  EXPECT_THAT(error_of([&] { export_strict(m, {rand({2})}); }), HasSubstr("self.scale was assigned during export"));
}

}  // namespace
}  // namespace calque::strict_test

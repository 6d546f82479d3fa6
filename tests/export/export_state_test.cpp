// Exports: parameters, buffers, constants, writes, decompositions, subgraphs. Rows of area `export`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "calque/base/error.h"
#include "calque/export/unflatten.h"
#include "calque/graph/higher_order.h"
#include "calque/graph/passes.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/trace/decompositions.h"
#include "export/export_support.h"
#include "support/conformance.h"

namespace calque::export_state_test {
namespace {

using ::testing::HasSubstr;

DS dims(std::vector<std::pair<Value, DS>> entries) { return DS::dict(std::move(entries)); }

size_t constants_of(const ExportedProgram& p) { return p.graph_signature().lifted_tensor_constants().size(); }

// ---- constants --------------------------------------------------------------------------------------------------------

struct T307Model : Typed<T307Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant a = register_constant("a", ones({2}));
  Tensor forward(const Tensor& x) {
    const Tensor b = x + tensor({1., 2.});
    const Tensor c = b + tensor({3., 4.});
    return c + *a;
  }
};

TEST(ExportState, T307_literals_are_lifted) {
  const ExportedProgram one = export_program(traceable(
                                                 [](const Tensor& x) {
                                                   return x + tensor({1., 2.});
                                                 },
                                                 {"x"}),
                                             {rand({2})});
  EXPECT_EQ(one.graph_signature().input_specs.size(), 2U);
  EXPECT_EQ(one.constants().size(), 1U);
  T307Model m;
  const ExportedProgram three = export_program(m, {rand({2})});
  EXPECT_EQ(three.graph_signature().input_specs.size(), 4U);
  EXPECT_EQ(three.constants().size(), 3U);
  EXPECT_TRUE(three.state_dict().empty());
  expect_equal_to_eager(m, three, {rand({2})});
}

struct T308Model : Typed<T308Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant initializer = register_constant("initializer", ones({2}));
  Tensor loose = Tensor(ones({2}).set_requires_grad());  // of the class, but of no registry
  Tensor forward(const Tensor& x) {
    const Tensor a = x + *initializer;
    return a * loose;
  }
};

TEST(ExportState, T308_tensors_that_are_not_registered_are_constants) {
  T308Model m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_EQ(inputs(p), "c_initializer, c_lifted_tensor_0, x");
  EXPECT_TRUE(p.graph_signature().parameters().empty());
  EXPECT_EQ(p.graph_signature().lifted_tensor_constants(), (std::vector<std::string>{"initializer", "lifted_tensor_0"}));
  EXPECT_TRUE(same(p.module()->call({ones({2})}), m.call({ones({2})})));
}

struct T309Model : Typed<T309Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor shared = ones({2});
  Constant a = register_constant("a", shared);
  Constant b = register_constant("b", shared);
  Tensor forward(const Tensor& x) {
    const Tensor c = x + *a;
    return c * *b;
  }
};

TEST(ExportState, T309_one_constant_under_two_names) {
  T309Model m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_EQ(constants_of(p), 1U);
  ASSERT_EQ(p.constants().size(), 2U);
  EXPECT_EQ(p.constants()[0].first, "a");
  EXPECT_EQ(p.constants()[1].first, "b");
  EXPECT_NE(p.module()->find_tensor("b"), nullptr);
  expect_equal_to_eager(m, p, {rand({2})});
}

struct Buffered : Typed<Buffered> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer kept = register_buffer("kept", ones({2}));
  Buffer hidden = register_buffer("hidden", full({2}, 2.0), false);
  Tensor forward(const Tensor& x) { return x * *kept + *hidden; }
};

struct T311Outer : Typed<T311Outer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Buffered> inner = child<Buffered>("inner");
  Buffer own = register_buffer("own", ones({2}), false);
  Tensor forward(const Tensor& x) { return inner(x) + *own; }
};

TEST(ExportState, T311_buffers_that_are_not_persistent) {
  T311Outer m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_FALSE(p.state_dict().contains("own"));
  EXPECT_FALSE(p.state_dict().contains("inner.hidden"));
  EXPECT_TRUE(p.state_dict().contains("inner.kept"));
  EXPECT_EQ(p.graph_signature().non_persistent_buffers(), (std::vector<std::string>{"own", "inner.hidden"}));
  EXPECT_EQ(p.named_buffers().size(), 3U);
  EXPECT_EQ(p.constants().size(), 2U);
  const auto unlifted = p.module();
  EXPECT_EQ(unlifted->named_buffers().size(), 3U);
  EXPECT_EQ(unlifted->state_dict().size(), 1U);
  expect_equal_to_eager(m, p, {rand({2})});
}

struct T313Model : Typed<T313Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> a = child<Linear>("a", 2, 2);
  Child<Linear> b = child<Linear>("b", 2, 2);
  Child<Linear> unused = child<Linear>("unused", 2, 2);
  T313Model() {
    b->set_tensor("weight", a->get_parameter("weight"));
    unused->set_tensor("weight", a->get_parameter("weight"));
  }
  Tensor forward(const Tensor& x) { return b(a(x)); }
};

TEST(ExportState, T313_every_alias_stays_in_the_state_dict) {
  T313Model m;
  const ExportedProgram p = export_program(m, {rand({3, 2})});
  EXPECT_EQ(p.state_dict().size(), 6U);
  EXPECT_TRUE(p.state_dict().at("a.weight").is_same(p.state_dict().at("unused.weight")));
  EXPECT_EQ(p.module()->state_dict().size(), 6U);
  expect_equal_to_eager(m, p, {rand({3, 2})});
}

struct T314One : Typed<T314One> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> linear = child<Linear>("linear", 10, 1);
  Tensor forward(const Tensor& x) { return linear(x); }
};

struct T314Two : Typed<T314Two> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<BatchNorm2d> norm = child<BatchNorm2d>("norm", 3, RunningNormOptions{.affine = false});
  Tensor forward(const Tensor& x) { return norm(x); }
};

TEST(ExportState, T314_parameters_and_buffers_of_the_signature) {
  T314One m;
  const ExportedProgram p = export_program(m, {rand({5, 10})});
  ASSERT_EQ(p.named_parameters().size(), 2U);
  EXPECT_EQ(str(p.named_parameters()[0].second.sizes()), "[1, 10]");
  EXPECT_EQ(str(p.named_parameters()[1].second.sizes()), "[1]");
  EXPECT_EQ(p.graph_signature().inputs_to_parameters().at("p_linear_weight"), "linear.weight");
  T314Two n;
  const ExportedProgram q = export_program(n, {rand({2, 3, 4, 4})});
  EXPECT_EQ(q.named_buffers().size(), 3U);
  EXPECT_TRUE(q.named_parameters().empty());
  expect_equal_to_eager(n, q, {rand({2, 3, 4, 4})});  // in training: the statistics are written
}

// ---- writes -----------------------------------------------------------------------------------------------------------

struct Writer : Typed<Writer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer buffer = register_buffer("buffer", ones({2}));
  Tensor forward(const Tensor& x) {
    x.add_(5);
    buffer->add_(5);
    return x + *buffer;
  }
};

TEST(ExportState, T318_training_ir_keeps_writes) {
  Writer m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_EQ(calls(p.graph()), "aten.add_.Tensor aten.add_.Tensor aten.add.Tensor");
  EXPECT_EQ(p.graph().nodes().front()->name(), "b_buffer");
  expect_equal_to_eager(m, p, {rand({2})});
}

struct T319Model : Typed<T319Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer buffer = register_buffer("buffer", ones({1}));
  Child<Linear> linear = child<Linear>("linear", 2, 2);
  Tensor forward(const Tensor& x) {
    buffer->add_(5);
    const Tensor y = linear(x);
    return y + buffer->sum();
  }
};

TEST(ExportState, T319_writes_become_outputs) {
  T319Model m;
  const ExportedProgram p = export_program(m, {rand({3, 2})}).run_decompositions();
  EXPECT_EQ(calls(p.graph()),
            "aten.add.Tensor aten.permute.default aten.addmm.default aten.sum.dim_IntList aten.add.Tensor");
  EXPECT_EQ(p.graph_signature().output_specs[0].kind, OutputKind::buffer_mutation);
  EXPECT_EQ(p.graph_signature().output_specs[0].target, "buffer");
  EXPECT_EQ(p.graph_signature().output_specs[1].kind, OutputKind::user_output);
  EXPECT_EQ(p.dialect(), Dialect::aten);
}

TEST(ExportState, T322_functional_with_an_empty_table) {
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor v = x.clone().view({6});
        v.add_(1);
        return v.view({2, 3}) + x;
      },
      {"x"});
  const ExportedProgram p = export_program(f, {rand({2, 3})}).run_decompositions({});
  for (const Node* n : p.graph().nodes())
    if (n->op()) {
      EXPECT_FALSE(n->op()->schema().name.ends_with('_')) << n->name();
    }
  EXPECT_GE(count(p, "aten.view.default"), 2U);
  const Tensor x = rand({2, 3});
  EXPECT_TRUE(same(p.call({x}), f.body({x})));
}

TEST(ExportState, T323_buffer_writes_are_written_back) {
  CountingModel m;
  const ExportedProgram p = export_program(m, {zeros({1})});
  EXPECT_EQ(m.count->item().to_double(), 0);
  for (const auto& module : {p.module(), p.run_decompositions({}).module()}) {
    module->graph().eliminate_dead_code();
    const double before = module->get_buffer("count").item().to_double();
    module->call({zeros({1})});
    EXPECT_EQ(module->get_buffer("count").item().to_double(), before + 1);
    module->call({zeros({1})});
    EXPECT_EQ(module->get_buffer("count").item().to_double(), before + 2);
  }
}

TEST(ExportState, T325_inputs_and_buffers_written_in_one_program) {
  Writer m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_TRUE(same(*m.buffer, ones({2})));
  expect_equal_to_eager(m, p, {rand({2})});
  const ExportedProgram q = p.run_decompositions({});
  EXPECT_EQ(q.graph_signature().buffers_to_mutate().size(), 1U);
  EXPECT_EQ(q.graph_signature().user_inputs_to_mutate().begin()->second, "x");
}

struct T326Registered : Typed<T326Registered> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer state = register_buffer("state", zeros({2}));
  Tensor forward(const Tensor& x) {
    state = *state + x;
    return *state * 2;
  }
};

struct T326Plain : Typed<T326Plain> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant last = register_constant("last", zeros({2}));
  Tensor forward(const Tensor& x) {
    last = x + 1;
    return x;
  }
};

TEST(ExportState, T326_assigned_attributes) {
  T326Registered m;
  const ExportedProgram p = export_program(m, {ones({2})});
  EXPECT_EQ(count(p, "aten.copy_.default"), 1U);
  EXPECT_TRUE(same(*m.state, zeros({2})));
  const ExportedProgram q = p.run_decompositions({});
  EXPECT_EQ(q.graph_signature().buffers_to_mutate().size(), 1U);
  EXPECT_EQ(count(q, "aten.copy.default"), 0U);
  const auto module = p.module();
  module->call({ones({2})});
  EXPECT_TRUE(same(module->get_buffer("state"), ones({2})));
  T326Plain n;
  EXPECT_THAT(error_of([&] { export_program(n, {ones({2})}); }), HasSubstr("self.last"));
  EXPECT_FALSE(n.last->is_fake());
}

// ---- decompositions ---------------------------------------------------------------------------------------------------

TEST(ExportState, T328_to_core_aten) {
  LinearModel m;
  const ExportedProgram p =
      export_program(m, {rand({4, 3})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("b")}})}})});
  const ExportedProgram q = p.run_decompositions();
  EXPECT_EQ(count(q, "aten.t.default"), 0U);
  EXPECT_EQ(count(q, "aten.permute.default"), 1U);
  EXPECT_TRUE(q.state_dict().at("linear.weight").is_same(p.state_dict().at("linear.weight")));
  EXPECT_TRUE(q.graph().placeholders().back()->meta.val.to_tensor().sym_sizes()[0].is_symbolic());
  EXPECT_TRUE(same(q.call({ones({7, 3})}), m.call({ones({7, 3})})));
}

struct T329Model : Typed<T329Model> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Linear> linear = child<Linear>("linear", 20, 3);
  Child<Conv2d> conv = child<Conv2d>("conv", 2, 3, Sizes(3));
  Child<Conv1d> conv1d = child<Conv1d>("conv1d", 2, 3, Sizes(3));
  Value forward(const Tensor& x, const Tensor& y) {
    const Tensor a = conv(x);
    const Tensor b = conv1d(y);
    return tuple({a, b, linear(y)});
  }
};

TEST(ExportState, T329_what_the_table_lacks_stays) {
  T329Model m;
  const Values args{rand({2, 2, 5, 5}), rand({2, 2, 20})};
  const ExportedProgram p = export_program(m, args);
  DecompositionTable table = default_decompositions();
  for (const char* op : {"aten::linear", "aten::conv2d", "aten::conv1d"}) table.erase(&get_operator(op));
  const ExportedProgram kept = p.run_decompositions(table);
  EXPECT_EQ(calls(kept.graph()), "aten.conv2d.default aten.conv1d.default aten.linear.default");
  EXPECT_EQ(calls(p.run_decompositions({}).graph()), calls(kept.graph()));
  const ExportedProgram later = kept.run_decompositions();
  EXPECT_EQ(count(later, "aten.linear.default"), 0U);
  EXPECT_EQ(count(later, "aten.convolution.default"), 2U);
  EXPECT_TRUE(same(later.call(args), p.call(args)));
}

TEST(ExportState, T331_a_decomposition_of_the_users_own) {
  LinearModel m;
  const ExportedProgram p = export_program(m, {rand({4, 3})});
  DecompositionTable table = default_decompositions();
  table[&get_operator("aten::linear")] = [](const Values& args) -> std::optional<Value> {
    return args[0].to_tensor().sin() + args[2].to_tensor().sum();
  };
  const ExportedProgram q = p.run_decompositions(table);
  EXPECT_EQ(count(q, "aten.sin.default"), 1U);
  EXPECT_EQ(count(q, "aten.addmm.default"), 0U);
  EXPECT_EQ(inputs(q), "p_linear_weight, p_linear_bias, x");
}

// ---- subgraphs --------------------------------------------------------------------------------------------------------

struct T343Model : Typed<T343Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer buffer = register_buffer("buffer", ones({4}));
  Tensor forward(const Tensor& x) {
    const Tensor& b = *buffer;
    return cond(
               x.sym_size(0) > 4, [&](const Values& in) -> Value { return in[0].to_tensor().cos() + b.sum(); },
               [](const Values& in) -> Value { return in[0].to_tensor().sin(); }, {x})
        .to_tensor();
  }
};

TEST(ExportState, T343_cond_on_a_size) {
  T343Model m;
  const ExportedProgram p =
      export_program(m, {rand({3, 2})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("b")}})}})});
  EXPECT_EQ(count(p, "operator.gt"), 1U);
  EXPECT_EQ(p.graph().find_nodes(NodeKind::get_attr).size(), 2U);
  ASSERT_EQ(count(p, "torch.ops.higher_order.cond"), 1U) << p.str();
  EXPECT_EQ(count(p, "operator.getitem"), 1U);
  const Node* call = find(p.graph(), "torch.ops.higher_order.cond");
  EXPECT_EQ(call->args()[3].to_items().size(), 2U);
  for (const int64_t n : {3, 6}) EXPECT_TRUE(same(p.call({ones({n, 2})}), m.call({ones({n, 2})})));
}

struct T344Model : Typed<T344Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter weight = register_parameter("weight", rand({2}));
  Buffer buffer = register_buffer("buffer", ones({2}));
  Tensor forward(const Tensor& x) {
    return cond(
               x.sum() > 0, [&](const Values& in) -> Value { return in[0].to_tensor() + *weight + *buffer; },
               [&](const Values& in) -> Value { return in[0].to_tensor() - *weight - *buffer; }, {x})
        .to_tensor();
  }
};

TEST(ExportState, T344_branches_that_read_state) {
  T344Model m;
  const ExportedProgram p = export_program(m, {ones({2})});
  for (const double v : {1.0, -1.0}) expect_equal_to_eager(m, p, {full({2}, v)});
}

TEST(ExportState, T345_unbacked_sizes_in_cond) {
  const auto f = traceable(
      [](const Tensor& x) {
        const Tensor nz = nonzero(x);
        const Tensor y = ones({nz.sym_size(0)});
        return cond(
                   nz.sym_size(0) > 2, [](const Values& in) -> Value { return in[0].to_tensor() + 1; },
                   [](const Values& in) -> Value { return in[0].to_tensor() - 1; }, {y})
            .to_tensor();
      },
      {"x"});
  const ExportedProgram p = export_program(f, {tensor({1., 0., 2.})});
  EXPECT_TRUE(same(p.call({tensor({1., 0., 2.})}), zeros({2})));
  EXPECT_TRUE(same(p.call({tensor({1., 5., 2.})}), full({3}, 2.0)));
}

TEST(ExportState, T346_a_constant_predicate) {
  const auto f = traceable(
      [](const Tensor& x) {
        return cond(
                   true, [](const Values& in) -> Value { return in[0].to_tensor().sin(); },
                   [](const Values& in) -> Value { return in[0].to_tensor().cos(); }, {x})
            .to_tensor();
      },
      {"x"});
  const ExportedProgram p = export_program(f, {rand({2})});
  EXPECT_EQ(calls(p.graph()), "aten.sin.default");
}

TEST(ExportState, T347_map) {
  const auto f = traceable(
      [](const Tensor& xs, const Tensor& y) {
        return map([](const Values& in) -> Value { return in[0].to_tensor() + in[1].to_tensor(); }, xs, {y}).to_tensor();
      },
      {"xs", "y"});
  const Values args{rand({3, 2}), rand({2})};
  EXPECT_TRUE(same(export_program(f, args).call(args), f.body(args)));
}

struct T360Model : Typed<T360Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter weight = register_parameter("weight", rand({2}));
  Buffer buffer = register_buffer("buffer", ones({2}));
  Tensor forward(const Tensor& x) {
    const Tensor a = x * *weight;
    const Tensor b = a + *buffer;
    return b + tensor({1., 2.});
  }
};

TEST(ExportState, T360_constants_come_between_state_and_inputs) {
  T360Model m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_EQ(inputs(p), "p_weight, b_buffer, c_lifted_tensor_0, x");
  const InputSpec& spec = p.graph_signature().input_specs[2];
  EXPECT_EQ(spec.kind, InputKind::constant_tensor);
  EXPECT_EQ(spec.target, "lifted_tensor_0");
  EXPECT_TRUE(p.graph().find_nodes(NodeKind::get_attr).empty());
}

TEST(ExportState, T361_one_constant_read_twice) {
  const Tensor shared = ones({2});
  const Tensor other = full({2}, 3.0);
  const auto f = traceable(
      [=](const Tensor& x) {
        const Tensor a = x + shared;
        const Tensor b = a * shared;
        return b - other;
      },
      {"x"});
  const ExportedProgram p = export_program(f, {rand({2})});
  EXPECT_EQ(constants_of(p), 2U);
  EXPECT_EQ(inputs(p), "c_lifted_tensor_0, c_lifted_tensor_1, x");
}

struct PreservedSignaturesOuter : Typed<PreservedSignaturesOuter> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<LinearModel> inner = child<LinearModel>("inner");
  Tensor forward(const Tensor& x) { return inner(x.sin()).cos(); }
};

TEST(ExportState, preserved_signatures_name_nodes) {
  PreservedSignaturesOuter m;
  const ExportedProgram p = export_program(m, {rand({4, 3})}, {}, {.preserve_module_call_signature = {"inner"}});
  EXPECT_EQ(calls(p.graph()), "aten.sin.default aten.linear.default aten.cos.default");
  const auto signature_of = [](const ExportedProgram& program) {
    for (const ModuleCallEntry& e : program.module_call_graph())
      if (e.fqn == "inner") return e.signature.value();
    return ModuleCallSignature{};
  };
  EXPECT_EQ(signature_of(p).inputs.at(0).name, "sin");
  EXPECT_EQ(signature_of(p).outputs.at(0).name, "linear");
  const ExportedProgram q = p.run_decompositions();
  EXPECT_EQ(signature_of(q).inputs.at(0).name, "sin");
  EXPECT_EQ(signature_of(q).outputs.at(0).name, "addmm");
  EXPECT_THAT(error_of([&] {
                export_program(m, {rand({4, 3})}, {}, {.preserve_module_call_signature = {"nowhere"}});
              }),
              HasSubstr("nowhere"));
}

struct SharedPart : Typed<SharedPart> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> lin = child<Linear>("lin", 3, 3);
  Tensor forward(const Tensor& x) { return lin(x).relu(); }
};
struct UnderManyNames : Typed<UnderManyNames> {
  static constexpr const char* forward_arguments[] = {"x"};
  std::shared_ptr<SharedPart> one = std::make_shared<SharedPart>();
  Child<SharedPart> a = child_module("a", one);
  Child<SharedPart> b = child_module("b", one);
  Child<ModuleList> c = child<ModuleList>("c", std::vector<std::shared_ptr<Module>>{one, one});
  Child<Sequential> d = child<Sequential>("d", std::vector<std::shared_ptr<Module>>{one, one});
  Tensor forward(const Tensor& x) {
    Tensor y = b(a(b(x)));
    y = c->at<SharedPart>(1)(y);
    for (size_t i = 0; i < c->size(); ++i) y = c->at<SharedPart>(static_cast<int64_t>(i))(y);
    return (*d)(y);
  }
};

TEST(ExportState, a_module_with_several_names_has_its_tensors_back) {
  UnderManyNames m;
  const Tensor weight = m.get_parameter("b.lin.weight");
  const ExportedProgram p = export_program(m, {rand({2, 3})});
  EXPECT_TRUE(m.get_parameter("a.lin.weight").is_same(weight));
  EXPECT_EQ(p.graph_signature().input_specs.at(0).target, "a.lin.weight");
  expect_equal_to_eager(m, p, {rand({2, 3})});
  EXPECT_TRUE(same(unflatten(p)->call({ones({2, 3})}), m.call({ones({2, 3})})));
}

TEST(ExportState, a_module_with_several_names_is_called_by_one_of_them) {
  UnderManyNames m;
  const ExportedProgram p = export_program(m, {rand({2, 3})});
  std::string paths;
  for (const Node* n : p.graph().nodes())
    if (n->op() && n->op()->schema().name == "relu") {
      const ModuleStackEntry& innermost = n->meta.nn_module_stack->back();
      paths += innermost.path + (innermost.key.ends_with("@1") ? "@1 " : " ");
    }
  EXPECT_EQ(paths, "b a b@1 c.1 c.0 c.1@1 d.0 d.1 ");
}

struct Remembering : Typed<Remembering> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer last = register_buffer("last", zeros({3}));
  Tensor forward(const Tensor& x) {
    const Tensor y = x + *last;
    last = y.sin();
    return y;
  }
};
struct HoldsRemembering : Typed<HoldsRemembering> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Remembering> memory = child<Remembering>("memory");
  Tensor forward(const Tensor& x) { return memory(x) * 2; }
};

// The write is the program's: in the child it would be a second call of it.
TEST(ExportState, a_buffer_that_a_child_assigns_is_written_by_the_program) {
  HoldsRemembering m;
  const ExportedProgram p = export_program(m, {ones({3})}, {}, {.strict = true});
  const Node* copy = nullptr;
  for (const Node* n : p.graph().nodes())
    if (n->target().str() == "aten.copy_.default") copy = n;
  ASSERT_NE(copy, nullptr) << p.str();
  ASSERT_TRUE(copy->meta.nn_module_stack);
  ASSERT_EQ(copy->meta.nn_module_stack->size(), 1U);
  EXPECT_EQ(copy->meta.nn_module_stack->front().path, "");
  const auto whole = unflatten(p);
  const Tensor once = ones({3}).sin();
  EXPECT_TRUE(equal(whole->call({ones({3})}).to_tensor(), full({3}, 2.0)));
  EXPECT_TRUE(equal(*whole->find_tensor("memory.last"), once));
}

// ---- several threads --------------------------------------------------------------------------------------------------

struct CountingInARegion : Typed<CountingInARegion> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer count = register_buffer("count", zeros({1}));
  Tensor forward(const Tensor& x) {
    {
      const GradModeScope off(false);
      count->add_(1);
    }
    return x + *count;
  }
};

// The calls' results are the numbers from 1 on, each once, whichever thread got which. Every second thread calls the module
// that the program gives, whose state is the program's.
void expect_calls_to_take_turns(const ExportedProgram& program) {
  const std::shared_ptr<GraphModule> module = program.module();
  constexpr int threads = 4, calls = 50;
  std::vector<std::vector<double>> seen(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i)
        seen[static_cast<size_t>(t)].push_back(
            (t % 2 ? module->call({zeros({1})}) : program.call({zeros({1})})).to_tensor().item().to<double>());
    });
  for (std::thread& thread : running) thread.join();
  std::vector<double> all;
  for (const auto& some : seen) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<double>(i + 1));
}

TEST(ExportState, calls_of_a_program_that_counts_take_turns) {
  CountingModel m;
  expect_calls_to_take_turns(export_program(m, {zeros({1})}));
  CountingModel n;
  expect_calls_to_take_turns(export_program(n, {zeros({1})}).run_decompositions());
}

TEST(ExportState, calls_that_count_in_a_graph_of_their_own_take_turns) {
  CountingInARegion m;
  expect_calls_to_take_turns(export_program(m, {zeros({1})}));
}

}  // namespace
}  // namespace calque::export_state_test

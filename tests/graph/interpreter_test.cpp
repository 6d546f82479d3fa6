// Running graphs: Interpreter, Transformer and the functions of Python and torch that nodes call.
#include "calque/graph/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/sym/shape_env.h"
#include "support/error_support.h"

namespace calque::interpreter_test {
namespace {

using ::testing::HasSubstr;

Tensor numbers() { return arange(6, DType::float32).view({2, 3}) - 2; }
using test::error_of;
Value run_function(std::string_view name, const Values& args, const Kwargs& kwargs = {}) {
  return (*get_function(name))(args, kwargs);
}

// x + 1, relu, neg
Graph chain() {
  Graph g;
  Node* x = g.placeholder("x");
  Node* add = g.call_function("operator.add", {x, 1});
  Node* relu = g.call_method("relu", {add});
  g.output(g.call_function("torch.neg", {relu}));
  return g;
}

TEST(Interpreter, T041_an_overridden_run_node_sees_every_node) {
  struct Recording : Interpreter {
    using Interpreter::Interpreter;
    std::map<std::string, Value> seen;
    Value run_node(const Node& n) override { return seen[n.name()] = Interpreter::run_node(n); }
  };
  const Graph g = chain();
  Recording run(g);
  run.run({numbers()});
  EXPECT_EQ(run.seen.size(), 5U);
  EXPECT_TRUE(equal(run.seen.at("output").to_tensor(), (numbers() + 1).relu().neg()));
}

TEST(Interpreter, T043_an_initial_environment_skips_nodes) {
  const Graph g = chain();
  const Node* add = g.find_node("add");
  const Tensor given = full({2, 3}, 5.0);
  EXPECT_TRUE(equal(Interpreter(g).run({numbers()}, {{add, given}}).to_tensor(), given.neg()));
}

TEST(Interpreter, T044_after_run_only_the_output_is_kept) {
  const Graph g = chain();
  Interpreter run(g);
  run.run({numbers()});
  EXPECT_EQ(run.num_values(), 1U);
  EXPECT_NE(run.find_value(*g.output_node()), nullptr);
  Interpreter keeping(g, nullptr, false);
  keeping.run({numbers()});
  EXPECT_EQ(keeping.num_values(), 5U);
}

TEST(Interpreter, T045_placeholders_have_defaults) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y", 3.5);
  g.output(g.call_function("operator.add", {x, y}));
  EXPECT_EQ(Interpreter(g).run({1.0}).to_float(), 4.5);
  EXPECT_EQ(Interpreter(g).run({1.0, 2.0}).to_float(), 3.0);
  EXPECT_THAT(error_of([&] { Interpreter(g).run({}); }),
              HasSubstr("Expected positional argument for parameter x, but one was not passed in!"));
  EXPECT_THAT(error_of([&] { Interpreter(g).run({1, 2, 3}); }), HasSubstr("takes 2 inputs, found 3"));
}

TEST(Interpreter, starred_placeholders_take_the_rest) {
  Graph g;
  g.placeholder("x");
  g.output(g.placeholder("*args"));
  EXPECT_EQ(Interpreter(g).run({1, 2, 3}).str(), "[2, 3]");
}

TEST(Interpreter, an_error_shows_the_node) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* bad = g.call_function("aten.mm.default", {x, x});
  bad->meta.location = std::source_location::current();
  g.output(bad);
  const std::string text = error_of([&] { Interpreter(g).run({numbers()}); });
  EXPECT_THAT(text, HasSubstr("while executing %mm_default = aten.mm.default(%x, %x) ("));
  EXPECT_THAT(text, HasSubstr("interpreter_test.cpp:"));
}

TEST(Interpreter, unknown_functions_are_listed_together) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_function("mine.first", {x});
  g.output(g.call_function("torch.ops.mine.second.default", {a}));
  EXPECT_EQ(a->str(), "%first = mine.first(%x)");
  const std::string text = error_of([&] { Interpreter(g).run({1}); });
  EXPECT_THAT(text, HasSubstr("mine.first"));
  EXPECT_THAT(text, HasSubstr("mine.second.default"));
}

TEST(Interpreter, an_empty_graph_gives_none) {
  const Graph g;
  EXPECT_TRUE(Interpreter(g).run().is_none());
}

TEST(Interpreter, functions_of_the_users_own) {
  int calls = 0;
  const auto twice = std::make_shared<const Function>("mine.twice", [&](const Values& args, const Kwargs&) -> Value {
    ++calls;
    return args.at(0).to_tensor() * 2;
  });
  Graph g;
  Node* n = g.call_function(twice, {g.placeholder("x")});
  g.output(n);
  EXPECT_EQ(n->name(), "twice");
  EXPECT_TRUE(equal(Interpreter(g).run({numbers()}).to_tensor(), numbers() * 2));
  EXPECT_EQ(calls, 1);
  register_function("mine.registered_once", [](const Values& args, const Kwargs&) { return args.at(0); });
  EXPECT_NE(find_function("mine.registered_once"), nullptr);
  EXPECT_THROW(register_function("mine.registered_once", [](const Values& args, const Kwargs&) { return args.at(0); }),
               UserError);
}

TEST(Transformer, T047_without_overrides_the_program_is_the_same) {
  Graph g = chain();
  g.find_node("add")->meta.stack_trace = std::make_shared<const std::string>("File \"user.py\", line 3");
  const Graph out = Transformer(g).transform();
  out.lint();
  EXPECT_TRUE(same_graph(g, out));
  EXPECT_TRUE(equal(Interpreter(out).run({numbers()}).to_tensor(), Interpreter(g).run({numbers()}).to_tensor()));
  EXPECT_EQ(*out.find_node("add")->meta.stack_trace, "File \"user.py\", line 3");
}

TEST(Transformer, stack_traces_are_kept) {
  Graph g = chain();
  const auto trace = std::make_shared<const std::string>("File \"user.py\", line 3, in forward\n  return x");
  for (Node* n : g.nodes()) n->meta.stack_trace = trace;
  const Graph transformed = Transformer(g).transform();
  const Graph copied = g.copy();
  for (const Graph* out : {&transformed, &copied})
    for (const Node* n : out->nodes()) EXPECT_EQ(n->meta.stack_trace, trace) << n->name();
}

TEST(Transformer, T048_overrides_swap_operators) {
  struct Swap : Transformer {
    using Transformer::Transformer;
    Value call_function(const Target& target, const Values& args, const Kwargs& kwargs) override {
      return Transformer::call_function(target.str() == "torch.sigmoid" ? Target::resolve("torch.neg") : target, args,
                                        kwargs);
    }
    Value call_method(const Target& target, const Values& args, const Kwargs& kwargs) override {
      return Transformer::call_method(target.text() == "neg" ? Target("sigmoid") : target, args, kwargs);
    }
  };
  Graph g;
  Node* x = g.placeholder("x");
  g.output(g.call_method("neg", {g.call_function("torch.sigmoid", {x})}));
  const Graph out = Swap(g).transform();
  EXPECT_TRUE(equal(Interpreter(out).run({numbers()}).to_tensor(), numbers().neg().sigmoid()));
}

TEST(PythonFunctions, work_on_plain_numbers_as_python_does) {
  EXPECT_EQ(run_function("operator.floordiv", {-7, 2}).to_int(), -4);
  EXPECT_EQ(run_function("operator.mod", {-7, 2}).to_int(), 1);
  EXPECT_EQ(run_function("operator.truediv", {7, 2}).to_float(), 3.5);
  EXPECT_EQ(run_function("operator.mod", {-7.5, 2}).to_float(), 0.5);
  EXPECT_EQ(run_function("operator.pow", {2, 10}).to_int(), 1024);
  EXPECT_EQ(run_function("operator.pow", {2, -1}).to_float(), 0.5);
  EXPECT_EQ(run_function("operator.lshift", {3, 4}).to_int(), 48);
  EXPECT_EQ(run_function("operator.and_", {6, 3}).to_int(), 2);
  EXPECT_EQ(run_function("operator.and_", {true, false}).to_bool(), false);
  EXPECT_EQ(run_function("operator.invert", {5}).to_int(), -6);
  EXPECT_EQ(run_function("operator.add", {list({1}), list({2})}).str(), "[1, 2]");
  EXPECT_EQ(run_function("operator.mul", {2, tuple({1})}).str(), "(1, 1)");
  EXPECT_EQ(run_function("operator.eq", {1, 1.0}).to_bool(), true);
  EXPECT_EQ(run_function("operator.not_", {list({})}).to_bool(), true);
  EXPECT_EQ(run_function("operator.contains", {list({1, 2}), 2}).to_bool(), true);
  EXPECT_EQ(run_function("operator.getitem", {tuple({1, 2, 3}), SliceValue{{}, {}, -1}}).str(), "(3, 2, 1)");
  EXPECT_EQ(run_function("builtins.max", {3, 1, 2}).to_int(), 3);
  EXPECT_EQ(run_function("builtins.round", {2.5}).to_int(), 2);
  EXPECT_EQ(run_function("builtins.int", {-2.7}).to_int(), -2);
  EXPECT_EQ(run_function("math.floor", {-2.5}).to_int(), -3);
  EXPECT_EQ(run_function("math.sqrt", {9}).to_float(), 3.0);
  EXPECT_EQ(run_function("torch.sym_ite", {true, 1, 2}).to_int(), 1);
  EXPECT_EQ(run_function("_operator.add", {1, 2}).to_int(), 3);
  EXPECT_THAT(error_of([] {
                run_function("operator.add", {1, "a"});
              }),
              HasSubstr("operator.add: not supported between int, str"));
  EXPECT_THAT(error_of([] {
                run_function("operator.getitem", {tuple({1}), 4});
              }),
              HasSubstr("index 4 is out of range for 1 items"));
  EXPECT_THAT(error_of([] { run_function("math.floor", {}); }), HasSubstr("math.floor: 0 arguments are too few"));
}

TEST(PythonFunctions, work_on_symbolic_numbers) {
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(6, "x, dimension 0");
  EXPECT_EQ(run_function("operator.mul", {s, 2}).str(), "2*s0");
  EXPECT_EQ(run_function("operator.floordiv", {s, 2}).str(), "(s0//2)");
  EXPECT_EQ(run_function("torch.sym_max", {s, 3}).str(), "Max(3, s0)");
  EXPECT_EQ(run_function("operator.ge", {s, 3}).str(), "s0 >= 3");
  EXPECT_EQ(run_function("operator.truediv", {s, 2}).str(), "IntTrueDiv(s0, 2)");
  EXPECT_EQ(run_function("operator.mul", {run_function("torch.sym_float", {s}), 0.5}).str(), "0.5*ToFloat(s0)");
}

TEST(PythonFunctions, work_on_symbolic_floats) {
  const auto env = ShapeEnv::make();
  const Value f = run_function("torch.sym_float", {env->create_size(6, "x, dimension 0")});
  EXPECT_EQ(run_function("operator.add", {f, 0.5}).str(), "ToFloat(s0) + 0.5");
  EXPECT_EQ(run_function("operator.gt", {f, 2.0}).kind(), Value::Kind::boolean);
  EXPECT_EQ(run_function("math.sqrt", {f}).str(), "OpaqueUnaryFn_sqrt(ToFloat(s0))");
  EXPECT_EQ(run_function("math.floor", {run_function("operator.truediv", {f, 2.5})}).str(),
            "FloorToInt(FloatTrueDiv(ToFloat(s0), 2.5))");
  EXPECT_EQ(run_function("builtins.max", {1, 1.0}).kind(), Value::Kind::integer);
}

TEST(PythonFunctions, work_on_tensors) {
  const Tensor x = numbers();
  const auto tensor = [&](std::string_view name, const Values& args) { return run_function(name, args).to_tensor(); };
  EXPECT_TRUE(equal(tensor("operator.sub", {2, x}), 2 - x));
  EXPECT_TRUE(equal(tensor("operator.truediv", {1, x}), x.reciprocal()));
  EXPECT_TRUE(equal(tensor("operator.lt", {0, x}), x > 0));
  EXPECT_TRUE(equal(tensor("operator.pow", {2.0, x}), pow(2.0, x)));
  EXPECT_TRUE(equal(tensor("operator.getitem", {x, tuple({SliceValue{{}, 1, {}}, -1})}), x.index_by({Slice(none, 1), -1})));
  EXPECT_TRUE(equal(tensor("torch.nn.functional.relu", {x}), x.relu()));
  EXPECT_TRUE(
      equal(run_function("torch.nn.functional.softmax", {x}, {{"dim", -1}, {"_stacklevel", 3}, {"dtype", {}}}).to_tensor(),
            x.softmax(-1)));
  EXPECT_EQ(run_function("builtins.getattr", {x, "shape"}).str(), "(2, 3)");
  EXPECT_EQ(run_function("builtins.len", {x}).to_int(), 2);
  const Tensor y = x.clone();
  EXPECT_TRUE(run_function("operator.iadd", {y, 1}).to_tensor().is_same(y));
  run_function("operator.setitem", {y, 0, 7});
  EXPECT_EQ(y.index_by({0, 2}).item().to_double(), 7);
}

TEST(Methods, of_tensors_and_dicts) {
  const Tensor x = numbers();
  EXPECT_EQ(call_method("size", {x}).str(), "(2, 3)");
  EXPECT_EQ(call_method("size", {x, -1}).to_int(), 3);
  EXPECT_EQ(call_method("dim", {x}).to_int(), 2);
  EXPECT_EQ(call_method("long", {x}).to_tensor().dtype(), DType::int64);
  EXPECT_EQ(str(call_method("view", {x, 3, 2}).to_tensor().sizes()), "[3, 2]");
  EXPECT_EQ(str(call_method("permute", {x, 1, 0}).to_tensor().sizes()), "[3, 2]");
  EXPECT_TRUE(equal(call_method("__add__", {x, x}).to_tensor(), x + x));
  EXPECT_EQ(call_method("keys", {dict({{"a", 1}})}).str(), "['a']");
  EXPECT_THAT(error_of([&] { call_method("no_such_method", {x}); }), HasSubstr("no method named no_such_method"));
}

}  // namespace
}  // namespace calque::interpreter_test

// Plans: what they give, what they keep, and that they see what changes.
#include "calque/run/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/export/executor.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/operator.h"
#include "calque/run/check.h"
#include "calque/run/passes.h"
#include "calque/trace/fake.h"
#include "export/export_support.h"
#include "support/error_support.h"

namespace calque::plan_test {
namespace {

using test::error_of;
using ::testing::HasSubstr;

Tensor numbers(int64_t rows, int64_t columns) {
  return (arange(rows * columns, DType::float32) * 0.25 - 1).view({rows, columns});
}

std::shared_ptr<GraphModule> module_of(std::string_view text, const Attributes& attributes = {}) {
  return std::make_shared<GraphModule>(attributes, parse_graph(text));
}

constexpr const char* chain = R"(
  %x = placeholder
  %y = placeholder
  %add = aten.add.Tensor(%x, %y, alpha=2)
  %size = aten.sym_size.int(%add, 0)
  %double = operator.mul(%size, 2)
  %view = aten.view.default(%add, [%double, -1])
  %relu = aten.relu.default(%view)
  %cat = aten.cat.default([%relu, %view], 1)
  return (%cat, %double))";

TEST(Plan, gives_what_the_interpreter_gives_at_every_size) {
  const auto module = module_of(chain);
  const auto plan = Plan::make(*module);
  for (const int64_t rows : {2, 5, 1, 2}) {
    const Values inputs{numbers(rows, 6), numbers(rows, 6)};
    EXPECT_TRUE(same(plan->run(inputs), Interpreter(module->graph()).run(inputs))) << rows;
  }
}

TEST(Plan, calls_functions_methods_and_modules) {
  const auto linear = std::make_shared<Linear>(6, 3);
  const auto module = module_of(R"(
    %x = placeholder
    %y = placeholder
    %add = operator.add(%x, %y)
    %relu = call_method[relu](%add)
    %linear = call_module[linear](%relu)
    %split = torch.split(%linear, 2, dim=1)
    %item = operator.getitem(%split, 1)
    %last = operator.getitem(%split, -1)
    return {'a': %item, 'b': [%last, %x]})",
                                {{"linear", Attribute(linear)}});
  const Values inputs{numbers(2, 6), 1.5};
  EXPECT_TRUE(same(Plan::make(*module)->run(inputs), Interpreter(module->graph(), &module->as_owner()).run(inputs)));
}

TEST(Plan, numbers_and_none_stand_where_tensors_may) {
  const auto module = module_of(R"(
    %x = placeholder
    %y = placeholder
    %bias = placeholder
    %add = aten.add.Tensor(%x, %y)
    %linear = aten.linear.default(%add, %x, %bias)
    return %linear)");
  const auto plan = Plan::make(*module);
  for (const Values& inputs :
       {Values{numbers(3, 3), 2, Value()}, Values{numbers(3, 3), numbers(3, 3), numbers(1, 3).view({3})}})
    EXPECT_TRUE(same(plan->run(inputs), Interpreter(module->graph()).run(inputs)));
}

TEST(Plan, placeholders_have_defaults_and_too_many_inputs_are_refused) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y", 3.5);
  g.output(g.call_function("operator.add", {x, y}));
  const auto plan = Plan::make(GraphModule(std::move(g)));
  EXPECT_EQ(plan->run({1.0}).to_float(), 4.5);
  EXPECT_EQ(plan->run({1.0, 2.0}).to_float(), 3.0);
  EXPECT_THAT(error_of([&] { plan->run({}); }),
              HasSubstr("Expected positional argument for parameter x, but one was not passed in!"));
  EXPECT_THAT(error_of([&] { plan->run({1, 2, 3}); }), HasSubstr("takes 2 inputs, found 3"));
}

TEST(Plan, errors_say_what_the_interpreter_says) {
  const auto module = module_of(chain);
  const auto plan = Plan::make(*module);
  for (const Values& inputs : {Values{numbers(2, 6), numbers(3, 6)}, Values{numbers(2, 6), "text"}, Values{Value(), 1}}) {
    const std::string expected = error_of([&] { Interpreter(module->graph()).run(inputs); });
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(error_of([&] { plan->run(inputs); }), expected);
  }
  EXPECT_TRUE(same(plan->run({numbers(2, 6), 1}), Interpreter(module->graph()).run({numbers(2, 6), 1})));
}

TEST(Plan, unknown_operators_are_named_when_it_runs) {
  const auto module = module_of(R"(
    %x = placeholder
    %y = torch.ops.mylib.send.default(%x)
    %z = torch.ops.mylib.take.default(%y)
    return %z)");
  const auto plan = Plan::make(*module);
  const std::string refused = error_of([&] { plan->run({1}); });
  EXPECT_THAT(refused, HasSubstr("operators that Calque does not have:\n  %y: torch.ops.mylib.send.default\n  %z: "));
  EXPECT_EQ(refused, error_of([&] { Interpreter(module->graph()).run({1}); }));
}

TEST(Plan, values_go_after_their_last_use) {
  const auto module = module_of(R"(
    %x = placeholder
    %unused = placeholder
    %neg = aten.neg.default(%x)
    %dead = aten.relu.default(%x)
    %last = aten.abs.default(%neg)
    return %last)");
  PlanOptions plain;
  plain.optimize = false;
  const auto plan = Plan::make(*module, plain);
  std::map<std::string, Tensor> seen;
  size_t alive_before_the_last = 0;
  plan->run_watched({numbers(2, 2), 1}, [&](const Node& n, const Value& v) {
    if (n.name() == "last") alive_before_the_last = seen.at("neg").use_count() + seen.at("dead").use_count();
    seen[n.name()] = v.to_tensor();
  });
  EXPECT_EQ(alive_before_the_last, 3U);  // neg is still read, dead is not
  EXPECT_EQ(seen.at("neg").use_count(), 1U);
  EXPECT_THAT(plan->describe(), HasSubstr("#3 %dead = aten.relu.default(%x)  - "));
}

TEST(Plan, writes_what_the_graph_writes) {
  const auto module = module_of(R"(
    %x = placeholder
    %row = aten.select.int(%x, 0, 0)
    %fill = aten.fill_.Scalar(%row, 7.0)
    %sum = aten.sum.default(%x)
    return (%sum, %row))");
  const auto plan = Plan::make(*module);
  const Tensor x = numbers(2, 3), y = numbers(2, 3);
  EXPECT_TRUE(same(plan->run({x}), Interpreter(module->graph()).run({y})));
  EXPECT_TRUE(equal(x, y));
}

TEST(Plan, any_number_of_threads_call_one_plan) {
  const auto module = module_of(chain);
  const auto plan = Plan::make(*module);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 50; ++i) {
        const Values inputs{numbers(t + 1, 4), numbers(t + 1, 4)};
        right += same(plan->run(inputs), Interpreter(module->graph()).run(inputs));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 400);
}

TEST(Plan, runs_on_tensors_without_data_and_under_modes) {
  const auto plan = Plan::make(*module_of(chain));
  const auto fake = FakeMode::make();
  const Tensor x = fake->from_tensor(numbers(4, 6));
  EXPECT_EQ(plan->call({x, x}).at(0).to_tensor().sizes(), IntList({8, 6}));
  const ModeScope scope(*fake);
  EXPECT_TRUE(plan->call({x, x}).at(0).to_tensor().is_fake());
}

// ---- memory -----------------------------------------------------------------------------------------------------------

// The addresses of the tensors that the steps give, by name.
std::map<std::string, const void*> addresses(const GraphModule& module, const Values& inputs) {
  std::map<std::string, const void*> out;
  PlanOptions plain;
  plain.optimize = false;
  Plan::make(module, plain)->run_watched(inputs, [&](const Node& n, const Value& v) {
    out[n.name()] = v.to_tensor().data();
  });
  return out;
}

TEST(PlanMemory, a_result_takes_the_place_of_an_operand_that_nobody_needs) {
  const auto at = addresses(*module_of(R"(
    %x = placeholder
    %neg = aten.neg.default(%x)
    %exp = aten.exp.default(%neg)
    %add = aten.add.Tensor(%exp, %x)
    return %add)"),
                            {numbers(3, 4)});
  EXPECT_EQ(at.at("exp"), at.at("neg"));
  EXPECT_EQ(at.at("add"), at.at("exp"));
}

TEST(PlanMemory, what_is_held_elsewhere_is_not_written_over) {
  const Tensor x = numbers(3, 4);
  const Tensor before = x.clone();
  const auto module = module_of(R"(
    %x = placeholder
    %w = get_attr[w]
    %of_input = aten.neg.default(%x)
    %of_state = aten.neg.default(%w)
    %sum = aten.add.Tensor(%of_input, %of_state)
    %view = aten.view.default(%sum, [-1])
    %kept = aten.neg.default(%sum)
    %wide = aten.eq.Tensor(%kept, 1.0)
    %row = aten.select.int(%of_input, 0, 0)
    %grown = aten.add.Tensor(%row, %kept)
    return (%view, %wide, %grown))",
                                {{"w", Attribute(numbers(3, 4))}});
  const Value expected = Interpreter(module->graph(), &module->as_owner()).run({before});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(Plan::make(*module)->run({x}), expected));
  EXPECT_TRUE(equal(x, before));
}

TEST(PlanMemory, a_result_of_another_geometry_gets_its_own) {
  const auto at = addresses(*module_of(R"(
    %x = placeholder
    %rows = aten.neg.default(%x)
    %turned = aten.t.default(%rows)
    %total = aten.add.Tensor(%turned, %turned)
    %bits = aten.gt.Scalar(%total, 0.0)
    return %bits)"),
                            {numbers(3, 4)});
  EXPECT_NE(at.at("bits"), at.at("total"));
}

constexpr const char* rounds = R"(
  %x : f32[s0, 6] = placeholder
  %a : f32[s0, 6] = aten.cumsum.default(%x, 1)
  %b : f32[s0, 6] = aten.cumsum.default(%a, 1)
  %c : f32[s0, 6] = aten.cumsum.default(%b, 1)
  %v : f32[6, s0] = aten.t.default(%c)
  %d : f32[s0, 6] = aten.cumsum.default(%x, 0)
  %e : f32[s0, 6] = aten.neg.default(%d)
  %f : f32[s0, 6] = aten.cumsum.default(%e, 1)
  %g : f32[6, s0] = aten.cumsum.default(%v, 1)
  return (%f, %g))";

TEST(PlanMemory, results_that_are_not_needed_at_one_time_share_slots_over_symbolic_sizes) {
  const auto module = module_of(rounds);
  const auto plan = Plan::make(*module);
  std::vector<std::string> bytes;
  for (const SymInt& b : plan->slot_bytes()) bytes.push_back(b.str());
  EXPECT_THAT(bytes, testing::ElementsAre("24*s0", "24*s0")) << plan->describe();
  for (const int64_t rows : {3, 5, 1, 0, 3})
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(same(plan->run({numbers(rows, 6)}), Interpreter(module->graph()).run({numbers(rows, 6)}))) << rows;
}

TEST(PlanMemory, sizes_that_a_graph_states_wrongly_are_not_believed) {
  const auto module = module_of(R"(
    %x : f32[2, 2] = placeholder
    %a : f32[2, 2] = aten.cumsum.default(%x, 1)
    %b : f32[2, 2] = aten.cumsum.default(%a, 1)
    %t : f32[2, 2] = aten.t.default(%b)
    %c : f32[2, 2] = aten.sum.dim_IntList(%t, [0], True)
    %d : i64[2, 2] = aten.argsort.default(%c)
    %e : f32[2, 2] = aten.cumsum.default(%d, 0)
    %f : f32[2, 2] = aten.neg.default(%e)
    return %f)");
  const auto plan = Plan::make(*module);
  EXPECT_FALSE(plan->slot_bytes().empty());
  for (const int64_t rows : {2, 300, 1, 0, 300})
    EXPECT_TRUE(same(plan->run({numbers(rows, 7)}), Interpreter(module->graph()).run({numbers(rows, 7)}))) << rows;
}

TEST(PlanMemory, a_slot_that_somebody_still_holds_is_left_to_them) {
  const auto plan = Plan::make(*module_of(rounds));
  std::vector<Tensor> held;
  std::vector<Tensor> copies;
  for (int i = 0; i < 2; ++i)
    plan->run_watched({numbers(3, 6)}, [&](const Node&, const Value& v) {
      held.push_back(v.to_tensor());
      copies.push_back(v.to_tensor().clone());
    });
  for (size_t i = 0; i < held.size(); ++i) EXPECT_TRUE(equal(held[i], copies[i])) << i;
}

TEST(PlanMemory, calls_after_the_first_make_nothing_but_what_they_give) {
  const auto plan = Plan::make(*module_of(rounds));
  const Tensor x = numbers(20000, 6);
  plan->run({x});
  clear_block_cache();
  set_block_cache_limit(0);
  const size_t before = memory_in_use();
  const Value given = plan->run({x});
  EXPECT_LT(memory_in_use() - before, 3U * 20000 * 24);  // two results, rounded up
  set_block_cache_limit(size_t{512} << 20);
}

// ---- packed weights ---------------------------------------------------------------------------------------------------

constexpr const char* products = R"(
  %x = placeholder
  %w = get_attr[w]
  %v = get_attr[v]
  %b = get_attr[b]
  %linear = aten.linear.default(%x, %w, %b)
  %again = aten.linear.default(%linear, %w)
  %addmm = aten.addmm.default(%b, %again, %v)
  %mm = aten.mm.default(%addmm, %v)
  return %mm)";

std::shared_ptr<GraphModule> products_module() {
  const Tensor w = numbers(96, 96) / 4000, v = numbers(96, 96) / 3000;
  return module_of(products, {{"w", Attribute(w)}, {"v", Attribute(v)}, {"b", Attribute(numbers(1, 96).view({96}))}});
}

TEST(PlanPacking, products_with_packed_weights_give_what_the_interpreter_gives) {
  const auto module = products_module();
  const auto plan = Plan::make(*module);
  EXPECT_EQ(plan->packed_bytes(), 2U * 96 * 96 * 4);  // each matrix once; 96 columns fill panels of any machine
  for (const int64_t rows : {1, 2, 16, 24, 25, 130, 0}) {
    const Values inputs{numbers(rows, 96) / 100};
    const Value expected = Interpreter(module->graph(), &module->as_owner()).run(inputs);
    EXPECT_TRUE(allclose(plan->run(inputs).to_tensor(), expected.to_tensor(), 1e-4, 1e-5)) << rows;
    const Values wide{numbers(rows, 192).narrow(1, 0, 96) / 100};
    EXPECT_TRUE(allclose(plan->run(wide).to_tensor(),
                         Interpreter(module->graph(), &module->as_owner()).run(wide).to_tensor(), 1e-4, 1e-5));
  }
  EXPECT_TRUE(check_plan(*module, {numbers(40, 96) / 100}).passed());
}

TEST(PlanPacking, sees_its_weights_written) {
  const auto module = products_module();
  const auto plan = Plan::make(*module);
  EXPECT_TRUE(plan->is_current());
  module->find_tensor("v")->mul_(2.0);
  EXPECT_FALSE(plan->is_current());
}

TEST(PlanPacking, is_left_out_where_eagers_bits_are_asked_for_or_the_graph_writes) {
  PlanOptions exact;
  exact.exact = true;
  EXPECT_EQ(Plan::make(*products_module(), exact)->packed_bytes(), 0U);
  const auto module = module_of(R"(
    %x = placeholder
    %w = get_attr[w]
    %linear = aten.linear.default(%x, %w)
    %write = aten.mul_.Scalar(%w, 2.0)
    return %linear)",
                                {{"w", Attribute(numbers(96, 96))}});
  const auto plan = Plan::make(*module);
  EXPECT_EQ(plan->packed_bytes(), 0U);
}

TEST(PlanPacking, calls_that_do_not_fit_are_the_operators_own) {
  const auto module = products_module();
  const auto plan = Plan::make(*module);
  for (const Value& x : {Value(numbers(3, 95)), Value(numbers(3, 96).to(DType::float64)),
                         Value(numbers(3, 96).view({96, 3}).t()), Value(numbers(1, 96).view({96})), Value(2.5)}) {
    Value expected, found;
    const std::string refused = error_of([&] { expected = Interpreter(module->graph(), &module->as_owner()).run({x}); });
    EXPECT_EQ(error_of([&] { found = plan->run({x}); }), refused);
    if (refused.empty()) {
      EXPECT_TRUE(allclose(found.to_tensor(), expected.to_tensor(), 1e-4, 1e-5));
    }
  }
}

// ---- checking ---------------------------------------------------------------------------------------------------------

TEST(PlanCheck, compares_every_step_with_the_interpreter) {
  const PlanCheck check = check_plan(*module_of(chain), {numbers(2, 6), numbers(2, 6)});
  EXPECT_TRUE(check.passed());
  EXPECT_EQ(check.compared, check.equal_bits);
  EXPECT_GE(check.compared, 4U);
  EXPECT_EQ(check.results.size(), 2U);
}

TEST(PlanCheck, leaves_inputs_state_and_random_numbers_as_they_are) {
  const auto module = module_of(R"(
    %x = placeholder
    %w = get_attr[w]
    %noise = aten.rand_like.default(%x)
    %add_ = aten.add_.Tensor(%x, %noise)
    %write = aten.mul_.Tensor(%w, %add_)
    %sum = aten.sum.default(%write)
    return %sum)",
                                {{"w", Attribute(numbers(2, 3))}});
  const Tensor x = numbers(2, 3);
  EXPECT_TRUE(check_plan(*module, {x}).passed());
  EXPECT_TRUE(equal(x, numbers(2, 3)));
  EXPECT_TRUE(equal(*module->find_tensor("w"), numbers(2, 3)));
}

TEST(PlanCheck, names_the_step_that_differs) {
  PlanOptions spoiled;
  spoiled.without = {"fuse_pointwise"};
  const auto module = module_of("%x = placeholder\n%a = aten.neg.default(%x)\n%b = aten.abs.default(%a)\nreturn %b");
  spoiled.after_pass = [](const std::string& name, const GraphModule& m) {
    if (name == "fold_state") const_cast<GraphModule&>(m).graph().find_node("a")->set_target(get_operator("aten::exp"));
  };
  const PlanCheck check = check_plan(*module, {numbers(2, 3)}, spoiled);
  ASSERT_EQ(check.differences.size(), 2U);
  EXPECT_THAT(check.differences[0].node, HasSubstr("%a"));
  EXPECT_THAT(check.differences[0].what, HasSubstr("of 6 numbers differ, by "));
}

// ---- state ------------------------------------------------------------------------------------------------------------

TEST(PlanState, what_depends_on_the_state_alone_is_computed_once) {
  const Tensor weight = numbers(2, 3);
  const auto module = module_of(R"(
    %x = placeholder
    %w = get_attr[weight]
    %exp = aten.exp.default(%w)
    %t = aten.t.default(%exp)
    %y = aten.mm.default(%x, %t)
    return %y)",
                                {{"weight", Attribute(weight)}});
  const auto plan = Plan::make(*module);
  EXPECT_EQ(plan->num_steps(), 1U);
  EXPECT_EQ(plan->packed_bytes(), 24U);
  EXPECT_TRUE(plan->is_current());
  weight.fill_(1.0);
  EXPECT_FALSE(plan->is_current());
}

TEST(PlanState, what_is_computed_of_computed_state_is_computed_once_too) {
  const Tensor weight = numbers(2, 3);
  const auto module = module_of(R"(
    %x = placeholder
    %w = get_attr[weight]
    %exp = aten.exp.default(%w)
    %neg = aten.neg.default(%exp)
    %cos = aten.cos.default(%neg)
    %first = aten.mul.Tensor(%x, %exp)
    %second = aten.mul.Tensor(%first, %neg)
    %third = aten.mul.Tensor(%second, %cos)
    return %third)",
                                {{"weight", Attribute(weight)}});
  const auto plan = Plan::make(*module);
  EXPECT_EQ(plan->num_steps(), 1U);
  EXPECT_EQ(plan->packed_bytes(), 72U);
  EXPECT_TRUE(same(plan->run({numbers(2, 3)}), Interpreter(module->graph(), &module->as_owner()).run({numbers(2, 3)})));
  weight.fill_(1.0);
  EXPECT_FALSE(plan->is_current());
}

TEST(PlanState, computed_state_wants_a_gradient_where_the_interpreters_does) {
  const Tensor weight = numbers(2, 3).set_requires_grad();
  const auto module =
      module_of("%x = placeholder\n%w = get_attr[w]\n%e = aten.exp.default(%w)\n%y = aten.mul.Tensor(%x, %e)\nreturn %y",
                {{"w", Attribute(weight, true)}});
  const auto plan = Plan::make(*module);
  EXPECT_EQ(plan->num_steps(), 1U);
  for (const bool asked : {true, false, true}) {
    const GradModeScope mode(asked);
    EXPECT_EQ(plan->run({numbers(2, 3)}).to_tensor().requires_grad(), asked);
  }
}

TEST(PlanState, views_of_the_state_stay_right_when_it_is_written) {
  const Tensor weight = numbers(2, 3);
  const auto module =
      module_of("%x = placeholder\n%w = get_attr[w]\n%t = aten.t.default(%w)\n%y = aten.mm.default(%x, %t)\nreturn %y",
                {{"w", Attribute(weight)}});
  const auto plan = Plan::make(*module);
  weight.fill_(1.0);
  EXPECT_TRUE(plan->is_current());
  EXPECT_TRUE(same(plan->run({numbers(1, 3)}), Interpreter(module->graph(), &module->as_owner()).run({numbers(1, 3)})));
}

TEST(PlanState, what_is_returned_or_written_is_made_anew_by_each_call) {
  const auto module = module_of(R"(
    %x = placeholder
    %w = get_attr[w]
    %given = aten.exp.default(%w)
    %part = aten.t.default(%given)
    %written = aten.neg.default(%w)
    %add = aten.add_.Tensor(%written, %x)
    return (%part, %add))",
                                {{"w", Attribute(numbers(2, 2))}});
  const auto plan = Plan::make(*module);
  const Value expected = Interpreter(module->graph(), &module->as_owner()).run({numbers(2, 2)});
  plan->call({numbers(2, 2)}).at(0).to_tensor().fill_(9.0);
  EXPECT_TRUE(same(plan->run({numbers(2, 2)}), expected));
}

TEST(PlanState, programs_see_their_parameters_change) {
  LinearModel model;
  const ExportedProgram program = export_program(model, {numbers(2, 3)}).run_decompositions();
  const Tensor before = program.call({numbers(2, 3)}).to_tensor();
  {
    const NoGradGuard no_grad;
    program.named_parameters()[0].second.mul_(2.0);
  }
  const Tensor after = program.call({numbers(2, 3)}).to_tensor();
  EXPECT_FALSE(equal(before, after));
  EXPECT_TRUE(same(after, model(numbers(2, 3))));
}

TEST(PlanState, buffers_count_calls) {
  CountingModel model;
  ExportedProgram program = export_program(model, {numbers(2, 3)});
  for (const ExportedProgram& p : {program, program.run_decompositions()}) {
    const Tensor first = p.call({zeros({2, 3})}).to_tensor();
    EXPECT_TRUE(equal(p.call({zeros({2, 3})}).to_tensor(), first + 1));
  }
}

TEST(PlanState, programs_see_their_graph_change) {
  LinearModel model;
  ExportedProgram program = export_program(model, {numbers(2, 3)});
  const Tensor before = program.call({numbers(2, 3)}).to_tensor();
  Node* output = program.graph().output_node();
  Node* result = output->args()[0].to_items()[0].to_node();
  const auto scope = program.graph().inserting_before(output);
  output->set_args({tuple({program.graph().call_function("aten.neg.default", {result})})});
  EXPECT_TRUE(equal(program.call({numbers(2, 3)}).to_tensor(), before.neg()));
}

// ---- programs ---------------------------------------------------------------------------------------------------------

size_t executors_made = 0;

TEST(Executors, are_made_once_and_can_be_left_to_the_interpreter) {
  LinearModel model;
  const ExportedProgram program = export_program(model, {numbers(2, 3)});
  const ExecutorFactory before = executor_factory();
  executors_made = 0;
  set_executor_factory([](const ExportedProgram& p) {
    ++executors_made;
    return make_plan_executor(p);
  });
  const Tensor planned = program.call({numbers(2, 3)}).to_tensor();
  program.call({numbers(2, 3)});
  EXPECT_EQ(executors_made, 1U);
  set_executor_factory(nullptr);
  const Tensor interpreted = program.call({numbers(2, 3)}).to_tensor();
  set_executor_factory(before);
  EXPECT_EQ(executors_made, 1U);
  EXPECT_TRUE(equal(planned, interpreted));
}

// ---- passes -----------------------------------------------------------------------------------------------------------

TEST(Passes, can_be_left_out_by_name) {
  const auto module = module_of("%x = placeholder\n%a = aten.neg.default(%x)\nreturn %x");
  EXPECT_EQ(Plan::make(*module)->num_steps(), 0U);
  PlanOptions without;
  without.without = {"remove_unused", "fold_state", "share_equal_calls"};
  std::vector<std::string> names;
  without.after_pass = [&](const std::string& name, const GraphModule&) { names.push_back(name); };
  EXPECT_GE(Plan::make(*module, without)->num_steps(), 1U);
  EXPECT_EQ(names.front(), "");
  without.without = {"remove_unusde"};
  EXPECT_THAT(error_of([&] { Plan::make(*module, without); }),
              HasSubstr("no pass is called 'remove_unusde'; the passes are remove_unused, "));
}

}  // namespace
}  // namespace calque::plan_test

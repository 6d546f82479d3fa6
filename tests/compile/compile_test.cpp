// compile(): what is captured again and when, graph breaks, limits, reports. Rows of area `compile` are in the tests' names.
#include "calque/compile/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "calque/base/counters.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/warning.h"
#include "calque/compile/metrics.h"
#include "calque/compile/same.h"
#include "calque/nn/nn.h"
#include "calque/op/autocast.h"
#include "calque/op/make.h"
#include "calque/op/ops.h"
#include "calque/tensor/default_dtype.h"
#include "calque/tensor/generator.h"

namespace calque {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Counts what it is asked to make, and runs it node by node.
struct CountingBackend {
  std::shared_ptr<int> graphs = std::make_shared<int>(0);
  CompiledGraph operator()(std::shared_ptr<GraphModule> graph, const Values& examples) const {
    ++*graphs;
    return lookup_backend("eager")(std::move(graph), examples);
  }
};

struct Compile : ::testing::Test {
  void SetUp() override {
    reset_compile();
    clear_compilation_metrics();
    reset_warnings();
    warnings.clear();
    before = set_warning_sink([this](std::string_view text) { warnings.emplace_back(text); });
  }
  void TearDown() override {
    set_warning_sink(before);
    set_compilation_metrics_limit(64);
    set_stance(Stance::standard);
  }
  CompileOptions counting() {
    CompileOptions o;
    o.with = backend;
    o.name = "f";
    return o;
  }
  CountingBackend backend;
  std::vector<std::string> warnings;
  WarningSink before;
};

template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

void expect_equal(const Value& a, const Value& b) {
  const SameResult r = same(a, b);
  EXPECT_TRUE(r.same) << r.path << ": " << r.reason;
}

TEST_F(Compile, a_function_gives_eagers_result_and_is_captured_once) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return (x.sin() + y).relu() * 2; });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({3, 4}), y = randn({4});
    expect_equal(f(x, y), (x.sin() + y).relu() * 2);
  }
  EXPECT_EQ(f.cache_size(), 1u);
}

TEST_F(Compile, every_backend_gives_the_same) {
  for (const char* name : {"calque", "eager", "aot_eager"}) {
    SCOPED_TRACE(name);
    CompileOptions o;
    o.backend = name;
    const auto f = compile(
        [](const Tensor& x) {
          Tensor y = x.mul(2);
          y.add_(1);
          x.mul_(3);
          return tuple({y, x.view({-1}), list({y.sum(), 3, "text"})});
        },
        o);
    Tensor a = tensor({1.0, 2.0}), b = a.clone();
    const Value got = f(a);
    expect_equal(got, tuple({tensor({3.0, 5.0}), tensor({3.0, 6.0}), list({tensor(8.0), 3, "text"})}));
    expect_equal(a, tensor({3.0, 6.0}));  // the write reached the argument
    EXPECT_EQ(got.to_items()[1].to_tensor().storage().get(), a.storage().get());
  }
  EXPECT_THAT(list_backends(), ::testing::IsSupersetOf({"aot_eager", "calque", "eager"}));
  EXPECT_THAT(error_of<UserError>([] { lookup_backend("inductor"); }),
              HasSubstr("expected a backend among aot_eager, calque, eager"));
}

TEST_F(Compile, T425_a_bool_flip_costs_one_capture_and_a_size_change_one_more) {
  const auto f = compile([](const Tensor& x, bool flag) { return flag ? x + 1 : x - 1; }, counting());
  const auto call = [&](int64_t n, bool flag) { expect_equal(f(ones({n, 4}), flag), full({n, 4}, flag ? 2.0 : 0.0)); };
  call(3, true);
  call(3, false);
  call(4, true);
  call(5, true);
  call(6, true);
  EXPECT_EQ(*backend.graphs, 3);
}

TEST_F(Compile, T426_the_aliasing_of_inputs_is_guarded) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x.add(1).mul(y); }, counting());
  const Tensor a = ones({3}), b = ones({3}), c = ones({3});
  f(a, b);
  f(a, c);
  f(c, b);
  EXPECT_EQ(*backend.graphs, 1);
  f(a, a);
  EXPECT_EQ(*backend.graphs, 2);
  f(c, c);
  f(b, c);
  EXPECT_EQ(*backend.graphs, 2);
  EXPECT_THAT(f.recompile_reasons(), ElementsAre(HasSubstr("Duplicate tensors found: L['arg1'] is L['arg0']")));
}

struct Dropping : Typed<Dropping> {
  Child<Linear> layer = child<Linear>("layer", 4, 4);
  Child<Dropout> dropout = child<Dropout>("dropout", 0.5);
  Tensor forward(const Tensor& x) { return dropout(layer(x)); }
};

TEST_F(Compile, T427_train_and_eval_have_an_entry_each) {
  const auto model = std::make_shared<Dropping>();
  const Compiled f = compile(model, counting());
  for (int i = 0; i < 20; ++i) {
    model->train(i % 2 == 0);
    f.call({ones({2, 4})});
  }
  EXPECT_EQ(*backend.graphs, 2);
  EXPECT_EQ(f.cache_size(), 2u);
  model->eval();
  expect_equal(f.call({ones({2, 4})}), (*model)(ones({2, 4})));
}

TEST_F(Compile, T429_behind_the_limit_what_is_kept_is_used_and_the_rest_runs_eagerly) {
  CompileOptions o = counting();
  o.recompile_limit = 2;
  o.dynamic = false;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 2; n < 7; ++n) expect_equal(f(zeros({n})), ones({n}));
  EXPECT_EQ(*backend.graphs, 2);
  EXPECT_EQ(f.cache_size(), 2u);
}

TEST_F(Compile, T430_the_limit_is_warned_of_once_and_named) {
  CompileOptions o = counting();
  o.recompile_limit = 2;
  o.dynamic = false;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  for (int64_t n = 2; n < 8; ++n) f(zeros({n}));
  EXPECT_EQ(*backend.graphs, 2);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], AllOf(HasSubstr("compile hit recompile_limit (2) with function f (compile_test.cpp:"),
                                 HasSubstr("tensor 'L['arg0']' size at index 0 mismatch. expected 2, actual 4")));
}

TEST_F(Compile, T431_failing_on_the_limit_is_an_error) {
  CompileOptions o = counting();
  o.recompile_limit = 1;
  o.fail_on_recompile_limit_hit = true;
  o.dynamic = false;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  f(zeros({2}));
  EXPECT_THAT(error_of<RecompileLimitError>([&] { f(zeros({3})); }), HasSubstr("recompile_limit (1)"));
}

TEST_F(Compile, T432_a_recompilation_may_be_an_error) {
  CompileOptions o = counting();
  o.error_on_recompile = true;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  f(zeros({2}));
  EXPECT_THAT(error_of<RecompileError>([&] { f(zeros({3})); }),
              AllOf(HasSubstr("Recompiling function f"), HasSubstr("expected 2, actual 3")));
  expect_equal(f(zeros({2})), ones({2}));
}

TEST_F(Compile, T434_the_reasons_list_each_entrys_guard) {
  CompileOptions o = counting();
  o.dynamic = false;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  for (int64_t n = 8; n < 12; ++n) f(zeros({n}));
  const std::vector<std::string> reasons = f.guard_failures({zeros({12})});
  ASSERT_THAT(reasons, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) EXPECT_THAT(reasons[i], HasSubstr("expected " + std::to_string(8 + i) + ", actual 12"));
}

TEST_F(Compile, T435_a_callback_is_told_why_a_guard_failed) {
  std::vector<std::string> told;
  CompileOptions o = counting();
  o.guard_fail = [&](const std::string& reason) { told.push_back(reason); };
  o.dynamic = false;
  const auto fixed = compile([](const Tensor& x) { return x + 1; }, o);
  fixed(zeros({2, 2}));
  fixed(zeros({5, 2}));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], HasSubstr("size at index 0 mismatch. expected 2, actual 5"));
  told.clear();
  o.dynamic = true;
  const auto symbolic = compile([](const Tensor& x) { return guard(x.sym_size(0) < 4) ? x + 1 : x - 1; }, o);
  symbolic(zeros({2, 2}));
  expect_equal(symbolic(zeros({5, 5})), full({5, 5}, -1.0));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], HasSubstr("L['arg0'].size()[0]"));
}

TEST_F(Compile, T436_a_marked_dimension_that_is_specialised_is_an_error) {
  const Tensor x = ones({3, 4});
  mark_dynamic(x, 0);
  const auto equal = compile([](const Tensor& t) { return guard(t.sym_size(0) == 3) ? t.sin() : t.cos(); }, counting());
  EXPECT_THAT(error_of<UserError>([&] { equal(x); }),
              HasSubstr("You marked L['arg0'].size()[0] as dynamic but your code specialized"));
  const auto between = compile(
      [](const Tensor& t) { return guard(t.sym_size(0) > 2) && guard(t.sym_size(0) < 4) ? t.sin() : t.cos(); }, counting());
  EXPECT_THAT(error_of<UserError>([&] { between(x); }), HasSubstr("specialized"));
}

TEST_F(Compile, T437_a_marked_range_must_hold_the_example) {
  const auto f = compile([](const Tensor& t) { return guard(t.sym_size(0) > 3) ? t.sin() : t.cos(); }, counting());
  const Tensor x = ones({8, 2});
  mark_dynamic(x, 0, 2, 5);
  EXPECT_THAT(error_of<UserError>([&] { f(x); }), HasSubstr("8 not in range [2, 5]"));
  const Tensor y = ones({8, 2});
  mark_dynamic(y, 0);
  expect_equal(f(y), y.sin());
}

TEST_F(Compile, T438_marks_decide_what_serves) {
  const auto f = compile([](const Tensor& t) { return t.sin(); }, counting());
  const auto run = [&](std::vector<int64_t> marks) {
    const Tensor x = ones({3, 4, 5});
    for (const int64_t d : marks) mark_dynamic(x, d);
    f(x);
    return *backend.graphs;
  };
  EXPECT_EQ(run({0}), 1);
  EXPECT_EQ(run({}), 1);
  EXPECT_EQ(run({1}), 2);
  f.reset();
  *backend.graphs = 0;
  EXPECT_EQ(run({1}), 1);
  EXPECT_EQ(run({0}), 2);
  EXPECT_EQ(run({0, 1, 2}), 3);
}

TEST_F(Compile, T439_the_threads_switches_are_guarded) {
  const auto f = compile([](const Tensor& x) { return x.matmul(x) + 1; }, counting());
  const Tensor x = ones({3, 3});
  for (int round = 0; round < 3; ++round) {
    f(x);
    {
      const NoGradGuard off;
      f(x);
    }
    {
      const DefaultDTypeScope scope(DType::float64);
      f(x);
    }
    {
      const AutocastScope narrow;
      EXPECT_EQ(f(x).dtype(), DType::bfloat16);
    }
    EXPECT_EQ(*backend.graphs, 4) << round;
  }
}

TEST_F(Compile, T440_backends_have_caches_of_their_own) {
  const auto body = [](const Tensor& x) { return x + 1; };
  CountingBackend other;
  CompileOptions o = counting();
  const auto f = compile(body, o);
  o.with = other;
  const auto g = compile(body, o);
  for (int i = 0; i < 2; ++i) {
    f(ones({2}));
    g(ones({2}));
  }
  EXPECT_EQ(*backend.graphs, 1);
  EXPECT_EQ(*other.graphs, 1);
}

TEST_F(Compile, T441_a_reset_empties_every_cache) {
  const auto f = compile([](const Tensor& x) { return x + 1; }, counting());
  f(ones({2}));
  EXPECT_EQ(f.cache_size(), 1u);
  reset_compile();
  EXPECT_EQ(f.cache_size(), 0u);
  expect_equal(f(ones({2})), full({2}, 2.0));
  EXPECT_EQ(*backend.graphs, 2);
}

// Two questions about data.
Tensor twice_branching(const Tensor& x) {
  Tensor y = x + 1;
  if (y.sum().gt(0).item<bool>()) y = y.sin();
  y = y * 2;
  if (y.max().lt(5).item<bool>()) y = y.cos();
  return y - x;
}

TEST_F(Compile, T442_each_capture_that_ends_at_a_break_names_it_in_its_metrics) {
  const auto f = compile(twice_branching, counting());
  const Tensor x = ones({4});
  expect_equal(f(x), twice_branching(x));
  const std::vector<CompilationMetrics> records = get_compilation_metrics();
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(records[0].restart_reasons, ElementsAre(HasSubstr("a branch on data")));
  EXPECT_THAT(records[1].restart_reasons, ElementsAre(HasSubstr("a branch on data")));
  EXPECT_THAT(records[2].restart_reasons, SizeIs(0));
  EXPECT_EQ(*backend.graphs, 3);
}

TEST_F(Compile, a_branch_on_data_takes_the_part_of_each_answer) {
  const auto f = compile(twice_branching, counting());
  for (int round = 0; round < 3; ++round)
    for (const double value : {1.0, -3.0, 30.0, -30.0, 0.5}) {
      const Tensor x = full({4}, value) + randn({4}) * 0.01;
      expect_equal(f(x), twice_branching(x));
    }
  const int made = *backend.graphs;
  for (const double value : {1.0, -3.0, 30.0, -30.0}) f(full({4}, value));
  EXPECT_EQ(*backend.graphs, made);  // every answer is known by now
  EXPECT_EQ(f.cache_size(), 1u);
  EXPECT_THAT(f.graph_breaks()[0].file, HasSubstr("compile_test.cpp"));
}

TEST_F(Compile, writes_before_a_break_happen_once) {
  const auto body = [](const Tensor& x, const Tensor& count) {
    count.add_(1);
    if (x.sum().gt(0).item<bool>()) return x.mul_(2) + count;
    return x.sub_(1) + count;
  };
  const auto f = compile(body, counting());
  Tensor a = ones({3}), count = zeros({});
  Tensor a2 = ones({3}), count2 = zeros({});
  for (const double shift : {0.0, -100.0, 0.0, 200.0, -300.0}) {
    a.add_(shift);
    a2.add_(shift);
    expect_equal(f(a, count), body(a2, count2));
    expect_equal(a, a2);
    expect_equal(count, count2);
  }
  EXPECT_EQ(count.item<float>(), 5.0f);
}

TEST_F(Compile, random_numbers_around_a_break_are_eagers) {
  const auto body = [](const Tensor& x) {
    const Tensor noise = rand({4});
    if (noise.sum().gt(2).item<bool>()) return x + noise;
    return x - noise + rand({4});
  };
  const auto f = compile(body, counting());
  for (int seed = 0; seed < 12; ++seed) {
    manual_seed(static_cast<uint64_t>(seed));
    const Tensor expected = body(ones({4}));
    const Tensor next = rand({2});
    manual_seed(static_cast<uint64_t>(seed));
    expect_equal(f(ones({4})), expected);
    expect_equal(rand({2}), next);
  }
}

TEST_F(Compile, numbers_out_of_tensors_break_up_to_the_limit) {
  CompileOptions o = counting();
  o.recompile_limit = 3;
  const auto body = [](const Tensor& x, const Tensor& n) {
    Tensor y = x + 1;
    for (int64_t i = 0; i < n.item<int64_t>(); ++i) y = y * 2;
    return y;
  };
  const auto f = compile(body, o);
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 0; n < 6; ++n) expect_equal(f(ones({2}), tensor(n)), body(ones({2}), tensor(n)));
  EXPECT_THAT(warnings, SizeIs(1));
}

TEST_F(Compile, T443_a_backend_that_throws_may_be_survived) {
  CompileOptions o;
  o.with = [](std::shared_ptr<GraphModule>, const Values&) -> CompiledGraph { throw std::runtime_error("no such machine"); };
  o.name = "f";
  const auto strict = compile([](const Tensor& x) { return x + 1; }, o);
  EXPECT_THAT(error_of<BackendCompilerError>([&] { strict(ones({2})); }), HasSubstr("no such machine"));
  o.suppress_errors = true;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  clear_compilation_metrics();
  expect_equal(f(ones({2})), full({2}, 2.0));
  ASSERT_THAT(get_compilation_metrics(), SizeIs(1));
  EXPECT_THAT(get_compilation_metrics()[0].fail_reason.value_or(""), HasSubstr("no such machine"));
}

TEST_F(Compile, T444_the_record_of_metrics_is_bounded) {
  set_compilation_metrics_limit(3);
  CompileOptions o = counting();
  o.dynamic = false;
  const auto f = compile([](const Tensor& x) { return x + 1; }, o);
  for (int64_t n = 2; n < 6; ++n) f(ones({n}));
  EXPECT_THAT(get_compilation_metrics(), SizeIs(3));
  EXPECT_EQ(get_compilation_metrics()[0].cache_size, 1);
  clear_compilation_metrics();
  EXPECT_THAT(get_compilation_metrics(), SizeIs(0));
}

TEST_F(Compile, T445_a_metrics_record_holds_counts_sizes_and_times) {
  CompileOptions o = counting();
  o.dynamic = true;
  const auto f = compile([](const Tensor& x, const Tensor& y) { return guard(x.sym_size(0) < 9) ? (x + y).sin() : x; }, o);
  f(ones({3, 4}), ones({4}));
  ASSERT_THAT(get_compilation_metrics(), SizeIs(1));
  const CompilationMetrics m = get_compilation_metrics()[0];
  EXPECT_EQ(m.graph_op_count, 2);
  EXPECT_EQ(m.graph_node_count, 5);
  EXPECT_EQ(m.graph_input_count, 2);
  EXPECT_GT(m.guard_count.value_or(0), 4);
  EXPECT_GE(m.guard_latency_us.value_or(-1), 0);
  EXPECT_GT(m.shape_env_guard_count.value_or(0), 0);
  EXPECT_EQ(m.cache_size, 0);
  EXPECT_THAT(m.compile_id, ::testing::EndsWith("/0"));
  EXPECT_GT(m.entire_frame_compile_time_s.value_or(0), 0);
  EXPECT_GT(m.backend_compile_time_s.value_or(0), 0);
  EXPECT_LE(m.backend_compile_time_s.value_or(0), m.entire_frame_compile_time_s.value_or(0));
  EXPECT_EQ(m.co_name, "f");
  EXPECT_THAT(m.co_filename, HasSubstr("compile_test.cpp"));
  EXPECT_TRUE(m.has_guarded_code);
  EXPECT_EQ(counters().get("frames", "ok"), 1u);
  EXPECT_EQ(counters().get("stats", "calls_captured"), 2u);
}

TEST_F(Compile, T447_a_full_graph_refuses_a_break_with_its_line) {
  CompileOptions o = counting();
  o.fullgraph = true;
  const auto f = compile(twice_branching, o);
  EXPECT_THAT(error_of<UnsupportedError>([&] { f(ones({4})); }),
              AllOf(HasSubstr("a branch on data"), HasSubstr("compile_test.cpp:"), HasSubstr("fullgraph")));
  ASSERT_THAT(get_compilation_metrics(), SizeIs(1));
  EXPECT_EQ(get_compilation_metrics()[0].fail_type, "Unsupported");
}

TEST_F(Compile, T450_explain_counts_graphs_breaks_and_operators) {
  const Tensor x = ones({4});
  const Explanation e = explain(twice_branching, x);
  EXPECT_EQ(e.graph_count, 3u);
  EXPECT_EQ(e.graph_break_count, 2u);
  EXPECT_THAT(e.break_reasons, SizeIs(2));
  EXPECT_THAT(e.break_reasons[0].reason, HasSubstr("a branch on data"));
  size_t ops = 0;
  for (const auto& list : e.ops_per_graph) ops += list.size();
  EXPECT_EQ(e.op_count, ops);
  EXPECT_GT(ops, 8u);
  expect_equal(e.output, twice_branching(x));
  EXPECT_THAT(e.str(), HasSubstr("Graph Count: 3\nGraph Break Count: 2\n"));
}

TEST_F(Compile, a_size_that_changes_becomes_a_symbol) {
  const auto f = compile([](const Tensor& x, SymInt n) { return x.sum(0) * n; }, counting());
  for (int64_t n = 3; n < 12; ++n) expect_equal(f(ones({n, n + 1}), n), full({n + 1}, static_cast<double>(n * n)));
  EXPECT_EQ(*backend.graphs, 2);
  EXPECT_THAT(f.graph_breaks(), SizeIs(0)) << f.graph_breaks()[0].reason;
}

TEST_F(Compile, a_function_of_plain_numbers_is_captured_for_each) {
  const auto f = compile([](const Tensor& x, int64_t n, double by) { return x * n * by; }, counting());
  for (int64_t n = 3; n < 6; ++n) expect_equal(f(ones({2}), n, 0.5), full({2}, static_cast<double>(n) * 0.5));
  EXPECT_EQ(*backend.graphs, 3);
  EXPECT_THAT(f.graph_breaks(), SizeIs(0));
}

TEST_F(Compile, replaced_parameters_children_and_hooks_are_seen) {
  const auto model = std::make_shared<Dropping>();
  model->eval();
  const Compiled f = compile(model, counting());
  const Tensor x = ones({2, 4});
  const auto check = [&](int graphs) {
    expect_equal(f.call({x}), (*model)(x));
    EXPECT_EQ(*backend.graphs, graphs);
  };
  check(1);
  model->get_parameter("layer.weight").detach().mul_(2);  // in place: the same tensor
  check(1);
  model->set_tensor("layer.bias", ones({4}));
  check(2);
  HookHandle hook = model->register_forward_hook(
      [](Module&, const Values&, const Kwargs&, const Value& y) -> std::optional<Value> { return y.to_tensor() + 10; });
  check(3);
  hook.remove();
  check(3);
  model->set_submodule("dropout", std::make_shared<Identity>());
  check(4);
  model->requires_grad_(false);
  check(5);
}

TEST_F(Compile, a_stance_decides_what_may_run) {
  const auto f = compile([](const Tensor& x) { return x + 1; }, counting());
  {
    const StanceScope eager(Stance::force_eager);
    expect_equal(f(ones({2})), full({2}, 2.0));
    EXPECT_EQ(*backend.graphs, 0);
  }
  f(ones({2}));
  {
    const StanceScope scope(Stance::eager_on_recompile);
    expect_equal(f(ones({2, 2})), full({2, 2}, 2.0));
    EXPECT_EQ(*backend.graphs, 1);
  }
  const StanceScope scope(Stance::fail_on_recompile);
  f(ones({2}));
  EXPECT_THAT(error_of<RecompileError>([&] { f(ones({2, 2})); }), HasSubstr("rank mismatch. expected 1, actual 2"));
}

TEST_F(Compile, guard_on_says_what_cannot_be_seen_and_verify_finds_it) {
  double factor = 2;
  const auto body = [&factor](const Tensor& x) { return x * factor; };
  CompileOptions o = counting();
  o.verify = true;
  const auto blind = compile(body, o);
  blind(ones({2}));
  factor = 3;
  EXPECT_THAT(error_of<UserError>([&] { blind(ones({2})); }),
              HasSubstr("depends on something that cannot be seen (guard_on() says it)"));
  const auto f = compile(body, o);
  f.guard_on("factor", [&] { return Value(factor); });
  expect_equal(f(ones({2})), full({2}, 3.0));
  factor = 5;
  expect_equal(f(ones({2})), full({2}, 5.0));
  expect_equal(f(ones({2})), full({2}, 5.0));
  EXPECT_EQ(f.cache_size(), 2u);
  EXPECT_THAT(f.recompile_reasons(), ElementsAre(HasSubstr("guard_on(factor) == 3.0. actual 5.0")));
}

TEST_F(Compile, an_error_of_the_program_is_the_programs) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x.matmul(y); }, counting());
  EXPECT_THAT(error_of<UserError>([&] { f(ones({2, 3}), ones({2, 3})); }), HasSubstr("matmul"));
  expect_equal(f(ones({2, 3}), ones({3, 2})), full({2, 2}, 3.0));
}

TEST_F(Compile, what_reads_whole_tensors_runs_eagerly_and_says_so) {
  const auto f = compile([](const Tensor& x) { return x + x.data_ptr<float>()[0]; }, counting());
  expect_equal(f(full({2}, 4.0)), full({2}, 8.0));
  expect_equal(f(full({2}, 5.0)), full({2}, 10.0));
  ASSERT_THAT(f.graph_breaks(), SizeIs(1));
  EXPECT_THAT(f.graph_breaks()[0].reason, HasSubstr("not captured: "));
}

TEST_F(Compile, many_threads_call_one_function) {
  const auto f = compile(twice_branching);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const Tensor x = full({2 + (i + t) % 3, 4}, i % 2 ? 1.0 : -30.0);
        EXPECT_TRUE(same(f(x), twice_branching(x)));
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(Compile, a_reset_beside_calls_of_other_threads) {
  CompileOptions o;
  o.dynamic = false;
  const auto f = compile(twice_branching, o);
  std::thread caller([&] {
    for (int i = 0; i < 60; ++i) {
      const Tensor x = full({2 + i % 7, 4}, 1.0);
      EXPECT_TRUE(same(f(x), twice_branching(x)));
    }
  });
  for (int i = 0; i < 30; ++i) reset_compile();
  caller.join();
}

TEST_F(Compile, logs_tell_guards_recompilations_and_breaks) {
  std::vector<std::string> lines;
  set_log_sink(
      [&](Log log, std::string_view text) { lines.push_back(std::string(log_name(log)) + ": " + std::string(text)); });
  set_logs("guards,recompiles,graph_breaks");
  const auto f = compile(twice_branching, counting());
  f(ones({4}));
  f(ones({5}));
  set_logs("");
  set_log_sink(nullptr);
  EXPECT_THAT(lines, ::testing::Contains(
                         AllOf(HasSubstr("guards: GUARDS of f"), HasSubstr("check_tensor(L['arg0'], float32, cpu"))));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("recompiles: Recompiling function f")));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("graph_breaks: Graph break in f at ")));
}

TEST_F(Compile, marks_belong_to_one_tensor_and_are_checked) {
  const Tensor x = ones({2, 3});
  mark_dynamic(x, -1, 2, 9);
  ASSERT_NE(marks_of(x), nullptr);
  EXPECT_EQ(marks_of(x)->dynamic.at(1).max, 9);
  EXPECT_EQ(marks_of(x + 1), nullptr);
  EXPECT_THAT(error_of<UserError>([&] { mark_static(x, 1); }), HasSubstr("is marked dynamic"));
  EXPECT_THAT(error_of<UserError>([&] { mark_dynamic(x, 2); }), HasSubstr("Dimension out of range"));
  EXPECT_EQ(tensor_always_has_static_shape(3, false), TensorStaticReason::not_tensor);
  EXPECT_EQ(tensor_always_has_static_shape(x, true), TensorStaticReason::parameter);
  EXPECT_EQ(tensor_always_has_static_shape(x, false), std::nullopt);
  EXPECT_EQ(tensor_static_reason_to_user_message(TensorStaticReason::parameter),
            "mark_dynamic on parameter, parameters are always static today.");
  clear_marks(x);
  mark_static(x);
  EXPECT_EQ(tensor_always_has_static_shape(x, false), TensorStaticReason::marked);
}

}  // namespace
}  // namespace calque

// What a capture switches on, in which order, and that nothing of it is left when it is over.
#include "trace/capture_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/graph/higher_order.h"
#include "calque/nn/linear.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"
#include "calque/trace/decompositions.h"
#include "calque/trace/fake.h"
#include "calque/trace/functional.h"
#include "calque/trace/make_fx.h"
#include "calque/trace/tracer.h"
#include "support/thread_state.h"
#include "trace/recorder.h"

namespace calque::capture_scope_test {
namespace {

using test::ThreadState;
using testing::ElementsAre;

class Everything : public Mode, public CompositePolicy {
 public:
  ModeSlot slot() const override { return ModeSlot::function; }
  Value call(const Operator& op, const Values& args) override { return call_next(op, args); }
  bool keeps_whole(const Operator&) const override { return false; }
  std::optional<Value> expand(const Operator&, const Values&) const override { return std::nullopt; }
};

struct CaptureScopeTest : testing::Test {
  GraphModule module{Graph()};
  MakeFxOptions options;
  Recorder recorder{module, options};
  std::shared_ptr<FakeMode> fake = FakeMode::make();
  Everything other;
  ThreadState before;
};

TEST_F(CaptureScopeTest, an_empty_one_changes_nothing) {
  const CaptureScope scope({});
  EXPECT_EQ(ThreadState(), before);
}

TEST_F(CaptureScopeTest, opens_what_it_is_asked_for_and_closes_it) {
  {
    const CaptureScope scope({.exporting = true,
                              .composites = &other,
                              .python_bodies = true,
                              .fake = fake.get(),
                              .recorder = &recorder,
                              .symbolic = &other,
                              .modules = &recorder,
                              .every_cast = true});
    const ThreadContext& now = thread_context();
    EXPECT_EQ(now.exports, 1);
    EXPECT_TRUE(now.symbolic_literals);
    EXPECT_FALSE(now.cudnn_enabled);
    EXPECT_EQ(now.composite_policy, &other);
    EXPECT_TRUE(now.python_bodies);
    EXPECT_EQ(now.recorder, &recorder);
    EXPECT_EQ(now.higher_order_tracer, &recorder);
    EXPECT_EQ(now.sym_observer, &recorder);
    EXPECT_EQ(now.region_observer, &recorder);
    EXPECT_EQ(now.symbolic_traces, 1);
    EXPECT_FALSE(now.autocast_cache_enabled);
    EXPECT_THAT(ThreadState().observers, ElementsAre(&recorder));
    EXPECT_THAT(ThreadState().modes, ElementsAre(&other, &recorder, fake.get()));
  }
  EXPECT_EQ(ThreadState(), before);
}

TEST_F(CaptureScopeTest, null_switches_the_policy_of_composites_off_and_none_leaves_it) {
  const CaptureScope outer({.composites = &other});
  {
    const CaptureScope inner({.python_bodies = true});
    EXPECT_EQ(thread_context().composite_policy, &other);
  }
  const CaptureScope inner({.composites = nullptr});
  EXPECT_EQ(thread_context().composite_policy, nullptr);
}

TEST_F(CaptureScopeTest, inside_another_one_its_recorder_alone_records) {
  GraphModule called{Graph()};
  Recorder branch{called, options, &recorder};
  const CaptureScope outer({.fake = fake.get(), .recorder = &recorder, .modules = &recorder});
  const ThreadState in_outer;
  {
    const CaptureScope inner({.recorder = &branch});
    EXPECT_EQ(thread_context().recorder, &branch);
    EXPECT_THAT(ThreadState().modes, ElementsAre(&branch, &recorder, fake.get()));
    EXPECT_THAT(ThreadState().observers, ElementsAre(&recorder));
    ones({2}).sin();
  }
  EXPECT_EQ(ThreadState(), in_outer);
  EXPECT_EQ(called.graph().nodes().size(), 2U);
  EXPECT_EQ(module.graph().nodes().size(), 0U);
}

// ---- what captures leave behind ---------------------------------------------------------------------------------------

struct Failure {};

struct Failing : Typed<Failing> {
  Child<Linear> linear = child<Linear>("linear", 3, 3);
  Tensor forward(const Tensor& x) {
    const Tensor y = linear(x);
    if (fails) throw Failure();
    return y;
  }
  bool fails = true;
};

// Runs the capture with a program that comes to its end and with one that throws, with nothing around it and within a fake mode.
void expect_nothing_left(const std::function<void(const std::function<Tensor(const Tensor&)>& program)>& capture) {
  Failing model, failing;
  model.fails = false;
  const auto check = [&] {
    const ThreadState before;
    bool ran = false;
    const auto program = [&](const Tensor& x) {
      EXPECT_NE(ThreadState(), before);
      ran = true;
      return model(x).cos();
    };
    capture(program);
    EXPECT_EQ(ThreadState(), before);
    EXPECT_TRUE(std::exchange(ran, false));
    EXPECT_THROW(capture([&](const Tensor& x) -> Tensor {
                   program(x);
                   const GradModeScope no_grad(false);
                   const AutocastScope narrow;
                   failing(x.matmul(x));
                   return x;
                 }),
                 Failure);
    EXPECT_EQ(ThreadState(), before);
    EXPECT_TRUE(ran);
  };
  check();
  const auto around = FakeMode::make({.env = ShapeEnv::make(), .allow_non_fake_inputs = true});
  const ModeScope scope(*around);
  const GradModeScope no_grad(false);
  check();
}

TEST(Captures, make_fx_leaves_nothing_behind_in_any_mode) {
  for (const TracingMode mode : {TracingMode::real, TracingMode::fake, TracingMode::symbolic})
    for (const bool pre_dispatch : {false, true})
      expect_nothing_left([&](const auto& program) {
        make_fx(program,
                {.mode = mode, .pre_dispatch = pre_dispatch, .record_module_stack = true, .allow_non_fake_inputs = true})(
            ones({3, 3}));
      });
}

TEST(Captures, a_branch_leaves_nothing_behind) {
  expect_nothing_left([](const auto& program) {
    make_fx(
        [&](const Tensor& x) {
          const auto branch = [&](const Values& v) -> Value { return program(v[0].to_tensor()); };
          return cond(x.sum().gt(0), branch, branch, {x}).to_tensor();
        },
        {.mode = TracingMode::symbolic, .allow_non_fake_inputs = true})(ones({3, 3}));
  });
}

TEST(Captures, functionalize_leaves_nothing_behind) {
  expect_nothing_left([](const auto& program) {
    functionalize([&](const Values& v) -> Value { return program(v[0].to_tensor()); })({ones({3, 3})});
  });
}

TEST(Captures, the_symbolic_tracer_leaves_nothing_behind) {
  const ThreadState before;
  Failing model;
  EXPECT_THROW(symbolic_trace(model), Failure);
  EXPECT_EQ(ThreadState(), before);
  model.fails = false;
  symbolic_trace(model);
  EXPECT_EQ(ThreadState(), before);
}

TEST(Captures, decompositions_leave_nothing_behind) {
  const TracedGraph traced = make_fx([](const Tensor& x) { return x.tanh(); }, {.mode = TracingMode::symbolic})(ones({2}));
  const ThreadState before;
  DecompositionTable table;
  table[&get_operator("aten::tanh")] = [](const Values&) -> std::optional<Value> { throw Failure(); };
  DecompositionInterpreter interpreter(traced, table, {.composites_by_table = true, .python_bodies = true});
  EXPECT_THROW(interpreter.decompose(), Failure);
  EXPECT_EQ(ThreadState(), before);
}

TEST(Captures, a_graph_that_fails_inside_an_autocast_region_leaves_it) {
  const TracedGraph traced = make_fx(
      [](const Tensor& x) {
        const AutocastScope narrow;
        return x.view({2, 3}).matmul(x.view({3, 2}));
      },
      {.pre_dispatch = true})(ones({6}));
  const ThreadState before;
  EXPECT_THROW(traced(ones({7})), UserError);
  EXPECT_EQ(ThreadState(), before);
  traced(ones({6}));
  EXPECT_EQ(ThreadState(), before);
}

}  // namespace
}  // namespace calque::capture_scope_test

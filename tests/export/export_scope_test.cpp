// Nothing of an export is left on its thread, whether it succeeds or fails.
#include <gtest/gtest.h>

#include "calque/nn/backends.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/zeros.h"
#include "calque/trace/decompositions.h"
#include "export/export_support.h"
#include "support/thread_state.h"

namespace calque::export_scope_test {
namespace {

using test::ThreadState;

struct Failure {};

struct Watching : Typed<Watching> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<LinearModel> inner = child<LinearModel>("inner");
  Tensor forward(const Tensor& x) {
    EXPECT_TRUE(is_exporting());
    EXPECT_FALSE(cudnn_enabled());
    const GradModeScope no_grad(false);
    const Tensor y = inner(x);
    if (fails) throw Failure();
    return y;
  }
  bool fails = false;
};

TEST(ExportScope, an_export_leaves_nothing_behind) {
  for (const bool strict : {false, true}) {
    const ThreadState before;
    Watching model;
    export_program(model, {ones({4, 3})}, {}, {.strict = strict});
    EXPECT_EQ(ThreadState(), before);
    model.fails = true;
    EXPECT_THROW(export_program(model, {ones({4, 3})}, {}, {.strict = strict}), Failure);
    EXPECT_EQ(ThreadState(), before);
    EXPECT_FALSE(is_exporting());
  }
}

TEST(ExportScope, run_decompositions_leaves_nothing_behind) {
  LinearModel model;
  const ExportedProgram program = export_program(model, {ones({4, 3})});
  const ThreadState before;
  program.run_decompositions();
  EXPECT_EQ(ThreadState(), before);
  DecompositionTable table;
  table[&get_operator("aten::linear")] = [](const Values&) -> std::optional<Value> {
    EXPECT_TRUE(thread_context().python_bodies);
    throw Failure();
  };
  EXPECT_THROW(program.run_decompositions(table), Failure);
  EXPECT_EQ(ThreadState(), before);
}

}  // namespace
}  // namespace calque::export_scope_test

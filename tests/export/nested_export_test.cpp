// Exports while something is being traced.
#include <gtest/gtest.h>

#include "calque/op/aten/random.h"
#include "calque/trace/make_fx.h"
#include "export/export_support.h"

namespace calque::nested_export_test {
namespace {

TEST(NestedExport, leaves_nothing_in_a_trace_that_is_going_on) {
  for (const TracingMode outer : {TracingMode::real, TracingMode::fake, TracingMode::symbolic}) {
    LinearModel model;
    const TracedGraph g = make_fx(
        [&](const Tensor& x) {
          const ExportedProgram p = export_program(model, {x});
          EXPECT_EQ(calls(p.graph()), "aten.linear.default");
          return x.cos();
        },
        {.mode = outer})(rand({4, 3}));
    EXPECT_EQ(calls(g.graph()), "aten.cos.default") << static_cast<int>(outer);
  }
}

}  // namespace
}  // namespace calque::nested_export_test

// What the tests of exports share: modules, ways to look at programs, and comparing values.
#pragma once

#include <string>
#include <vector>

#include "calque/export/export.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "support/error_support.h"

namespace calque {

using DS = DynamicShapes;

using test::error_of;

// Calls of a target ("aten.add.Tensor"), subgraphs included where asked for.
size_t count(const ExportedProgram& program, const std::string& target, bool subgraphs = false);
size_t count(const Graph& graph, const std::string& target);
// The targets of all calls, in order.
std::string calls(const Graph& graph);
// The names of the inputs, by comma.
std::string inputs(const ExportedProgram& program);
const Node* find(const Graph& graph, const std::string& target);

// Equal structure, numbers and tensors (values up to rounding).
bool same(const Value& a, const Value& b);
// A copy with tensors of its own, so that a program that writes its inputs leaves this one alone.
Value copied(const Value& v);
Values copied(const Values& v);

// The module and what was exported from it agree on these inputs, called both ways, decomposed too.
void expect_equal_to_eager(Module& module, const ExportedProgram& program, const Values& args, const Kwargs& kwargs = {});

struct LinearModel : Typed<LinearModel> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> linear = child<Linear>("linear", 3, 2);
  Tensor forward(const Tensor& x) { return linear(x); }
};

// Counts its calls.
struct CountingModel : Typed<CountingModel> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer count = register_buffer("count", zeros({1}));
  Tensor forward(const Tensor& x) {
    count->add_(1);
    return x + *count;
  }
};

}  // namespace calque

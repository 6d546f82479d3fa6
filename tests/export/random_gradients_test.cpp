// Random programs with their gradients: what an eager pass gives the traced graph gives, to the last bit, also at other sizes, and so do
// the functionalised graph and the program with its backward pass. CALQUE_RANDOM_GRADIENTS=100000 goes on until that many nodes were made.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "calque/export/export.h"
#include "calque/grad/autograd.h"
#include "calque/graph/interpreter.h"
#include "calque/op/aten/zeros.h"
#include "calque/trace/functional.h"
#include "calque/trace/make_fx.h"
#include "export/export_support.h"
#include "trace/random_programs_support.h"

namespace calque::random_gradients_test {
namespace {

// A number of what a program gives. Its inputs are copies, which it may write; each has a part of its own in the loss.
Tensor loss_of(const RandomProgram& program, const Values& inputs) {
  Values copies;
  Tensor loss = zeros({}, DType::float64);
  for (const Value& v : inputs) {
    copies.emplace_back(v.to_tensor().clone());
    if (is_floating(v.to_tensor().dtype())) loss = loss + v.to_tensor().to(DType::float64).sum() / 8;
  }
  const Value results = program(copies);
  for (const Value& v : results.to_items())
    if (is_floating(v.to_tensor().dtype())) loss = loss + v.to_tensor().to(DType::float64).tanh().sum();
  return loss;
}

TensorVector floating(const Values& inputs) {
  TensorVector out;
  for (const Value& v : inputs)
    if (is_floating(v.to_tensor().dtype())) out.push_back(v.to_tensor());
  return out;
}

// The loss, and its gradient for each floating input.
Value gradients(const RandomProgram& program, const Values& inputs) {
  Values leaves;
  for (const Value& v : inputs) {
    const Tensor t = v.to_tensor().detach();
    leaves.emplace_back(is_floating(t.dtype()) ? t.set_requires_grad() : t);
  }
  const Tensor loss = loss_of(program, leaves);
  Values out{loss.detach()};
  for (const Tensor& g : grad({loss}, floating(leaves))) out.emplace_back(g);
  return tuple(std::move(out));
}

Values doubled(Values inputs) {
  for (Value& v : inputs)
    if (is_floating(v.to_tensor().dtype())) v = v.to_tensor().to(DType::float64);
  return inputs;
}

// Not exact: what decompositions round otherwise, where a program casts to float32.
std::string difference(const Values& found, const Values& expected, bool exact) {
  if (found.size() != expected.size()) return "another number of results";
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor x = found[i].to_tensor(), y = expected[i].to_tensor();
    if (x.dtype() != y.dtype() || str(x.sizes()) != str(y.sizes()) ||
        !(exact ? equal(x.nan_to_num(0), y.nan_to_num(0)) : allclose(x, y, 1e-4, 1e-5, true)))
      return "result " + std::to_string(i) + ":\n" + x.str() + "\nexpected\n" + y.str();
  }
  return "";
}

struct Counts {
  size_t nodes = 0, runs = 0, refused = 0;
};

void check_traced(const RandomProgram& program, bool functional, Counts& counts) {
  const auto function = [&](const Values& in) { return gradients(program, in); };
  const TracedGraph traced =
      make_fx_values(functional ? functionalize(function) : function, program.inputs(0), {.mode = TracingMode::symbolic});
  counts.nodes += traced.graph().size();
  const ProducedGuards guards = traced.guards();
  for (size_t set = 0; set < RandomProgram::size_sets; ++set) {
    std::vector<ProducedGuards::RealInput> real;
    const Values inputs = program.inputs(set);
    for (const Value& v : inputs) {
      const Tensor& t = v.to_tensor();
      real.emplace_back(
          ProducedGuards::RealTensor{{t.sizes().begin(), t.sizes().end()}, {t.strides().begin(), t.strides().end()}, 0});
    }
    if (set != 0 && !guards.accepts(real)) continue;
    ++counts.runs;
    ASSERT_EQ(difference(traced.run(inputs).to_items(), gradients(program, inputs).to_items(), true), "")
        << (functional ? "functionalised" : "traced") << ", sizes " << set << "\n"
        << traced.graph().str();
  }
}

void check_joint(const RandomProgram& program, Counts& counts) {
  Values inputs = doubled(program.inputs(0));
  Values expected;
  try {
    expected = gradients(program, inputs).to_items();
  } catch (const UserError&) {
    return;  // a cast to float64 gives its argument now, which is written
  }
  for (const Tensor& t : floating(inputs)) t.set_requires_grad();
  const auto function = [&](const Tensor& x, const Tensor& y, const Tensor& z) { return loss_of(program, {x, y, z}); };
  const ExportedProgram joint = export_program(traceable(function, {"x", "y", "z"}), inputs).forward_backward();
  counts.nodes += joint.graph().size();
  ++counts.runs;
  const std::map<std::string, Value> constants(joint.constants().begin(), joint.constants().end());
  Values flat;
  size_t next = 0;
  for (const InputSpec& spec : joint.graph_signature().input_specs)
    flat.emplace_back(spec.kind == InputKind::user_input ? Value(inputs[next++].to_tensor().detach())
                                                         : constants.at(spec.target));
  ASSERT_EQ(difference(Interpreter(joint.graph()).run(flat).to_items(), expected, false), "") << "joint\n"
                                                                                              << joint.graph().str();
}

TEST(RandomGradients, eager_traced_functionalised_and_joint_passes_give_the_same) {
  const char* asked = std::getenv("CALQUE_RANDOM_GRADIENTS");
  const size_t wanted = asked ? std::strtoull(asked, nullptr, 10) : 60000;
  Counts counts;
  for (uint64_t seed = 1; counts.nodes < wanted; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomProgram program(seed, 5 + seed % 25);
    try {
      gradients(program, program.inputs(0));
    } catch (const UserError& e) {  // a program that wrote what its gradient needs: the other ways say so, too
      ++counts.refused;
      const auto again = [&](const Values& in) { return gradients(program, in); };
      EXPECT_THROW(make_fx_values(again, program.inputs(0), {.mode = TracingMode::symbolic}), UserError) << e.what();
      continue;
    }
    for (const bool functional : {false, true}) check_traced(program, functional, counts);
    if (!HasFatalFailure()) check_joint(program, counts);
    if (HasFatalFailure()) return;
  }
  RecordProperty("runs", static_cast<int>(counts.runs));
  EXPECT_LT(counts.refused * 3, counts.runs);
}

}  // namespace
}  // namespace calque::random_gradients_test

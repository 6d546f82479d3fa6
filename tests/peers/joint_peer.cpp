// joint PROGRAM.pt2 INPUTS.safetensors OUT.json: the entry points of joint graphs on a program's module, for joint.py. Its inputs are
// the tensors "0", "1", ... with those named in "wants" as leaves that want a gradient.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/export/aot.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"
#include "calque/graph/interpreter.h"
#include "calque/nn/functional_call.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/reductions.h"
#include "calque/tensor/generator.h"
#include "calque/trace/partition.h"

namespace {

using namespace calque;
using nlohmann::json;

template <class F>
void attempt(json& out, const char* key, F&& f) {
  try {
    out[key] = f();
  } catch (const std::exception& e) {
    out[key] = std::string("error: ") + e.what();
  }
}

// The module as a function of (its parameters and buffers, its arguments).
struct Flat {
  explicit Flat(const ExportedProgram& program) : module(program.module(false)) {
    for (const auto& [name, tensor] : module->named_parameters()) add(name, tensor);
    for (const auto& [name, tensor] : module->named_buffers()) add(name, tensor);
  }
  void add(const std::string& name, const Tensor& tensor) {
    names.push_back(name);
    primals.emplace_back(tensor);
  }
  Value operator()(const Values& given) const {
    StateDict state;
    for (size_t i = 0; i < names.size(); ++i) state.set(names[i], given[i].to_tensor());
    const Value out =
        functional_call(*module, state, Values(given.begin() + static_cast<std::ptrdiff_t>(names.size()), given.end()), {},
                        {.tie_weights = false});
    return tuple(tree_leaves(out));
  }
  std::shared_ptr<GraphModule> module;
  std::vector<std::string> names;
  Values primals;
};

// Of the gradients by a partition's two passes from those of an eager one, with the outputs themselves for tangents.
double largest_difference(const Partition& p, const JointGraph& joint, const Flat& flat, const Values& primals) {
  Values plain;
  TensorVector leaves;
  for (const Value& v : primals) {
    plain.emplace_back(v.to_tensor().detach());
    if (v.to_tensor().requires_grad()) leaves.push_back(v.to_tensor());
  }
  manual_seed(1);
  const Values all = Interpreter(std::as_const(*p.forward).graph()).run(plain).to_items();
  manual_seed(1);
  const Values eager = flat(primals).to_items();
  Values given(all.begin() + static_cast<std::ptrdiff_t>(joint.num_forward), all.end());
  TensorVector outputs, tangents;
  for (const size_t i : joint.tangents) {
    outputs.push_back(eager.at(i).to_tensor());
    tangents.push_back(eager.at(i).to_tensor().detach());
    given.emplace_back(tangents.back());
  }
  const TensorVector expected = grad(outputs, leaves, {.grad_outputs = tangents, .allow_unused = true});
  double out = 0;
  const auto compare = [&](const Tensor& a, const Tensor& b) {
    if (a.numel() == 0) return;
    const double scale = std::max(1.0, b.abs().max().item<double>());
    out = std::max(out, (a - b).abs().max().item<double>() / scale);
  };
  for (size_t i = 0; i < eager.size(); ++i)
    if (is_floating(eager[i].to_tensor().dtype())) compare(all[i].to_tensor(), eager[i].to_tensor().detach());
  size_t next = 0;
  const Values results = Interpreter(std::as_const(*p.backward).graph()).run(given).to_items();
  for (size_t i = 0; i < results.size(); ++i) {
    if (!primals[i].to_tensor().requires_grad()) continue;
    const Tensor& e = expected.at(next++);
    if (e.defined() != results[i].is_tensor()) return 1e9;
    if (e.defined()) compare(results[i].to_tensor(), e);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: joint PROGRAM.pt2 INPUTS.safetensors OUT.json\n";
    return 2;
  }
  try {
    const auto program = load_program(argv[1]);
    const SafetensorsFile file = SafetensorsFile::open(argv[2]);
    Values inputs;
    for (size_t i = 0; file.find(std::to_string(i)); ++i) {
      Tensor t = file.tensor(std::to_string(i)).clone();
      if (file.find("wants." + std::to_string(i))) t.set_requires_grad();
      inputs.emplace_back(t);
    }
    json out;
    attempt(out, "module", [&] {
      const auto module = program->module(false);
      const AotModule made = aot_export_module(*module, inputs, {.trace_joint = true, .output_loss_index = 0});
      return json{made.graph_module->code(), made.signature.str()};
    });
    attempt(out, "inference", [&] {
      const auto module = program->module(false);
      const AotModule made = aot_export_module(*module, inputs);
      return json{made.graph_module->code(), made.signature.str()};
    });
    attempt(out, "simple", [&] {
      const Flat flat(*program);
      Values primals = flat.primals;
      primals.insert(primals.end(), inputs.begin(), inputs.end());
      return json(aot_export_joint_simple(std::ref(flat), primals)->code());
    });
    attempt(out, "partition", [&] {
      const Flat flat(*program);
      Values primals = flat.primals;
      primals.insert(primals.end(), inputs.begin(), inputs.end());
      const JointGraph joint = trace_joint(std::ref(flat), primals);
      if (!joint.written.empty()) return json();
      json result;
      for (const bool least : {false, true}) {
        const Partition p = least ? min_cut_rematerialization_partition(*joint.module, joint.num_forward)
                                  : default_partition(*joint.module, joint.num_forward);
        result.push_back({p.saved_bytes, largest_difference(p, joint, flat, primals)});
      }
      return result;
    });
    std::ofstream(argv[3]) << out.dump();
  } catch (const std::exception& e) {
    std::cerr << "joint: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

// joint PROGRAM.pt2 INPUTS.safetensors OUT.json: the entry points of joint graphs on a program's module, for joint.py. Its inputs are
// the tensors "0", "1", ... with those named in "wants" as leaves that want a gradient.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/export/aot.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/nn/functional_call.h"

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
    std::ofstream(argv[3]) << out.dump();
  } catch (const std::exception& e) {
    std::cerr << "joint: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

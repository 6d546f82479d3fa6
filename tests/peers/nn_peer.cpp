// nn_peer CASES.jsonl INPUTS.safetensors OUT.jsonl OUT.safetensors: runs the cases of tests/peers/nn.py.
#include <fstream>
#include <iostream>

#include "nn/layers_support.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: nn_peer CASES.jsonl INPUTS.safetensors OUT.jsonl OUT.safetensors\n";
    return 2;
  }
  try {
    std::ifstream cases(argv[1]);
    const calque::SafetensorsFile inputs = calque::SafetensorsFile::open(argv[2]);
    std::ofstream out(argv[3]);
    calque::NamedTensors tensors;
    for (std::string line; std::getline(cases, line);) {
      const nlohmann::json layer_case = nlohmann::json::parse(line);
      calque::LayerResult result = calque::run_layer_case(layer_case, inputs);
      out << nlohmann::json{{"id", layer_case.at("id")},
                            {"repr", result.repr},
                            {"type", result.type_name},
                            {"state", result.state_names},
                            {"error", result.error}}
                 .dump()
          << '\n';
      for (auto& named : result.tensors) tensors.push_back(std::move(named));
    }
    calque::save_safetensors(argv[4], tensors, std::nullopt, true, calque::SharedTensors::written_each);
  } catch (const std::exception& e) {
    std::cerr << "nn_peer: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

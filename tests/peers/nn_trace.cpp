// nn_trace CASES.jsonl INPUTS.safetensors MODE OUT.jsonl: traces every layer of tests/peers/nn_trace.py by make_fx, in
// training and in evaluation, its parameters being inputs, and writes the operators it recorded. Then it runs the graph
// and says whether the results are those of the layer itself.
#include <fstream>
#include <iostream>
#include <unordered_map>

#include "calque/nn/functional_call.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/ternary.h"
#include "calque/tensor/generator.h"
#include "calque/trace/make_fx.h"
#include "nn/layers_support.h"

namespace {

using namespace calque;
using nlohmann::json;

std::string text(const Value& value, const std::unordered_map<const Node*, size_t>& numbers) {
  if (value.is_node()) return "%" + std::to_string(numbers.at(value.to_node()));
  if (!value.is_sequence()) return value.str();
  std::string out = "[";
  for (const Value& item : value.to_items()) out += (out.size() > 1 ? ", " : "") + text(item, numbers);
  return out + "]";
}

json recorded(const Graph& graph) {
  json lines = json::array();
  std::unordered_map<const Node*, size_t> numbers;
  for (const Node* at : graph.nodes()) {
    const Node& node = *at;
    const size_t number = numbers.size();
    numbers[&node] = number;
    if (node.kind() == NodeKind::placeholder) continue;
    std::string line =
        "%" + std::to_string(number) + " = " + (node.kind() == NodeKind::output ? "output" : node.target().str()) + "(";
    bool first = true;
    const auto add = [&](const std::string& part) {
      line += (first ? "" : ", ") + part;
      first = false;
    };
    for (const Value& arg : node.args()) add(text(arg, numbers));
    for (const auto& [name, arg] : node.kwargs()) add(name + "=" + text(arg, numbers));
    lines.push_back(line + ")");
  }
  return lines;
}

Value argument(const json& value, const SafetensorsFile& inputs) {
  if (value.is_object()) return inputs.tensor(value.at("tensor").get<std::string>()).clone();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_array()) {
    Values items;
    for (const json& item : value) items.push_back(argument(item, inputs));
    return list(std::move(items));
  }
  return Value();
}

bool same(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) return allclose(a.to_tensor(), b.to_tensor(), 1e-5, 1e-6, true);
  if (!a.is_container()) return a.is_none() && b.is_none();
  const Values &x = a.to_items(), &y = b.to_items();
  bool equal = x.size() == y.size();
  for (size_t i = 0; equal && i < x.size(); ++i) equal = same(x[i], y[i]);
  return equal;
}

json run(const json& layer_case, const SafetensorsFile& inputs, TracingMode mode, bool training) {
  manual_seed(layer_case.at("seed").get<uint64_t>());
  const std::shared_ptr<Module> module =
      make_layer(layer_case.at("layer").get<std::string>(), layer_case.at("args"), inputs);
  module->train(training);
  Values args;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module->state_dict()) {
    names.push_back(name);
    args.push_back(tensor.detach().clone());
  }
  for (const json& value : layer_case.at("inputs")) args.push_back(argument(value, inputs));
  Kwargs kwargs;
  const json given = layer_case.value("kwargs", json::object());
  std::vector<std::string> keys;
  for (const auto& [name, value] : given.items()) {
    const Value converted = argument(value, inputs);
    if (converted.is_tensor()) {
      keys.push_back(name);
      args.push_back(converted);
    } else {
      kwargs.emplace_back(name, converted);
    }
  }
  const auto call = [&](const Values& values) {
    StateDict state;
    for (size_t i = 0; i < names.size(); ++i) state.set(names[i], values[i].to_tensor());
    const size_t last = values.size() - keys.size();
    Kwargs all = kwargs;
    for (size_t i = 0; i < keys.size(); ++i) all.emplace_back(keys[i], values[last + i]);
    return functional_call(
        *module, state,
        Values(values.begin() + static_cast<ptrdiff_t>(names.size()), values.begin() + static_cast<ptrdiff_t>(last)), all);
  };
  const TracedGraph traced = make_fx_values(call, args, {.mode = mode});
  json result{{"nodes", recorded(traced.graph())}};
  const auto fresh = [&] {
    Values copies;
    for (const Value& value : args) copies.push_back(value.is_tensor() ? Value(value.to_tensor().clone()) : value);
    return copies;
  };
  manual_seed(1);
  const Value want = call(fresh());
  manual_seed(1);
  result["same"] = same(want, traced.run(fresh()));
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: nn_trace CASES.jsonl INPUTS.safetensors real|fake|symbolic OUT.jsonl\n";
    return 2;
  }
  try {
    const std::string mode = argv[3];
    std::ifstream cases(argv[1]);
    const SafetensorsFile inputs = SafetensorsFile::open(argv[2]);
    std::ofstream out(argv[4]);
    for (std::string line; std::getline(cases, line);) {
      const json layer_case = json::parse(line);
      for (const bool training : {true, false}) {
        json result;
        try {
          result = run(layer_case, inputs,
                       mode == "real"   ? TracingMode::real
                       : mode == "fake" ? TracingMode::fake
                                        : TracingMode::symbolic,
                       training);
        } catch (const std::exception& e) {
          result["error"] = e.what();
        }
        result["id"] = layer_case.at("id");
        result["training"] = training;
        out << result.dump() << '\n';
      }
    }
  } catch (const std::exception& e) {
    std::cerr << "nn_trace: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

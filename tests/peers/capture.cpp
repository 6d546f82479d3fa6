// capture REQUESTS ANSWERS: traces the functions of tests/peers/capture as a JSON file asks for, and writes the graphs,
// guards and results as JSON. tests/peers/capture.py drives it and compares with PyTorch.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "capture/programs.h"
#include "support/graph_json_support.h"

namespace calque::capture {
namespace {

using Json = nlohmann::ordered_json;

// Element i of every argument is the same small exact number on both sides.
Tensor filled(const Json& spec, int64_t seed) {
  std::vector<int64_t> sizes = spec["sizes"].get<std::vector<int64_t>>();
  const std::string dtype = spec["dtype"];
  const Tensor t = make_tensor(IntList(sizes), dtype == "int64"     ? DType::int64
                                               : dtype == "bool"    ? DType::bool_
                                               : dtype == "float64" ? DType::float64
                                                                    : DType::float32);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (dtype == "int64")
      t.mutable_data_as<int64_t>()[at] = (i * 7 + seed * 3 + 2) % spec["below"].get<int64_t>();
    else if (dtype == "bool")
      t.mutable_data_as<bool>()[at] = (i * 5 + seed) % 3 == 0;
    else {
      const double v = static_cast<double>((i * 37 + seed * 11) % 101 - 50) / 16;
      if (dtype == "float64")
        t.mutable_data_as<double>()[at] = v;
      else
        t.mutable_data_as<float>()[at] = static_cast<float>(v);
    }
  }
  return dtype == "bfloat16" ? t.to(DType::bfloat16) : t;
}

Value argument(const Json& spec, int64_t& seed) {
  if (spec.is_number_integer()) return spec.get<int64_t>();
  if (spec.is_array()) {
    Values items;
    for (const Json& item : spec) items.push_back(argument(item, seed));
    return list(std::move(items));
  }
  if (spec.contains("dtype")) return filled(spec, seed++);
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key, item] : spec.items()) items.emplace_back(Value(key), argument(item, seed));
  return dict(std::move(items));
}

Values arguments(const Json& specs) {
  Values out;
  int64_t seed = 0;
  for (const Json& spec : specs) out.push_back(argument(spec, seed));
  return out;
}

Json answer(const Programs& programs, const Json& request) {
  Json out = Json::object();
  const Program& program = programs.at(request["name"]);
  const std::string mode = request["mode"];
  try {
    const Values args = arguments(request["args"]);
    const TracedGraph g = make_fx_values(program, args,
                                         {.mode = mode == "real"                                   ? TracingMode::real
                                                  : mode == "symbolic" || mode == "pytorch_guards" ? TracingMode::symbolic
                                                                                                   : TracingMode::fake,
                                          .pre_dispatch = mode == "pre_dispatch",
                                          .allow_non_fake_inputs = request.value("allow_non_fake_inputs", false),
                                          .pytorch_guards = mode == "pytorch_guards"});
    out["graph"] = graph_json(g);
    out["results"] = Json::array();
    for (const Json& other : request["run"]) {
      try {
        out["results"].push_back({{"result", value_json(g.run(arguments(other)), true)}});
      } catch (const Error& e) {
        out["results"].push_back({{"error", e.what()}});
      }
    }
  } catch (const Error& e) {
    out["error"] = e.what();
  }
  return out;
}

}  // namespace
}  // namespace calque::capture

int main(int argc, char** argv) {
  using namespace calque::capture;
  if (argc != 3) {
    std::cerr << "usage: capture REQUESTS ANSWERS\n";
    return 2;
  }
  try {
    Programs programs;
    add_pointwise(programs);
    add_layout(programs);
    add_indexing(programs);
    add_reductions(programs);
    add_sizes(programs);
    add_layers(programs);
    add_data_dependent(programs);
    add_modules(programs);
    add_regions(programs);
    std::ifstream in(argv[1]);
    const Json requests = Json::parse(in);
    Json answers = Json::array();
    for (const Json& request : requests) answers.push_back(answer(programs, request));
    std::ofstream(argv[2]) << answers.dump();
  } catch (const std::exception& e) {
    std::cerr << "capture: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

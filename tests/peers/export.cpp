// export CASES.jsonl INPUTS.safetensors OUT.jsonl: exports the programs and layers that tests/peers/export.py asks for, and writes
// each program as printed: as exported, functional (no decompositions), in core ATen.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/tensor/generator.h"
#include "export/programs.h"
#include "nn/layers_support.h"

namespace {

using namespace calque;
using nlohmann::json;

Value argument(const json& value, const SafetensorsFile& inputs) {
  if (value.is_object()) return inputs.tensor(value.at("tensor").get<std::string>()).clone();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return {};
  Values items;
  for (const json& item : value) items.push_back(argument(item, inputs));
  return tuple(std::move(items));
}

ExportedProgram export_layer(const json& c, const SafetensorsFile& inputs) {
  manual_seed(c.at("seed").get<uint64_t>());
  const std::shared_ptr<Module> module = make_layer(c.at("layer").get<std::string>(), c.at("args"), inputs);
  module->train(c.at("training").get<bool>());
  Values args;
  for (const json& value : c.at("inputs")) args.push_back(argument(value, inputs));
  Kwargs kwargs;
  const json given = c.value("kwargs", json::object());
  for (const auto& [name, value] : given.items()) kwargs.emplace_back(name, argument(value, inputs));
  return export_program(*module, args, kwargs);
}

template <class F>
void attempt(json& out, const char* key, F&& f) {
  try {
    out[key] = f();
  } catch (const std::exception& e) {
    out[key] = std::string("error: ") + e.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: export CASES.jsonl INPUTS.safetensors OUT.jsonl\n";
    return 2;
  }
  try {
    std::ifstream cases(argv[1]);
    const SafetensorsFile inputs = SafetensorsFile::open(argv[2]);
    std::ofstream out(argv[3]);
    const std::vector<peers::ExportCase> programs = peers::export_cases();
    for (std::string line; std::getline(cases, line);) {
      const json c = json::parse(line);
      json result{{"id", c.at("id")}};
      try {
        const ExportedProgram program = [&] {
          if (c.contains("layer")) return export_layer(c, inputs);
          for (const peers::ExportCase& p : programs)
            if (p.name == c.at("id").get<std::string>()) return p.make();
          throw UserError("no such program here");
        }();
        result["training"] = program.str();
        attempt(result, "functional", [&] { return program.run_decompositions({}).str(); });
        attempt(result, "core", [&] { return program.run_decompositions().str(); });
        attempt(result, "module", [&] { return program.module()->code(); });
        json calls = json::array();
        for (const ModuleCallEntry& e : program.module_call_graph()) {
          json entry{{"fqn", e.fqn}};
          if (e.signature) {
            for (const char* key : {"inputs", "outputs"}) {
              entry[key] = json::array();
              for (const ArgumentSpec& a : std::string(key) == "inputs" ? e.signature->inputs : e.signature->outputs) entry[key].push_back(a.kind == ArgumentKind::constant ? a.value.str() : a.name);
            }
            entry["in_spec"] = e.signature->in_spec.str();
            entry["out_spec"] = e.signature->out_spec.str();
          }
          calls.push_back(std::move(entry));
        }
        result["calls"] = std::move(calls);
      } catch (const std::exception& e) {
        result["training"] = std::string("error: ") + e.what();
      }
      out << result.dump() << '\n';
    }
  } catch (const std::exception& e) {
    std::cerr << "export: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

// program_peer MANIFEST.json ANSWER.jsonl: runs programs from .pt2 files on inputs from safetensors files and writes their
// results. An answer is [id, error or null]. "threads": so many at once must give the same bits as one alone.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "calque/export/program.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/tensor/generator.h"

using nlohmann::json;

namespace calque {
namespace {

Values inputs_of(const ExportedProgram& program, const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  Values inputs;
  for (const InputSpec& spec : program.graph_signature().input_specs) {
    if (spec.kind != InputKind::user_input) continue;
    if (spec.arg.kind == ArgumentKind::constant)
      inputs.push_back(spec.arg.value);
    else
      inputs.push_back(file.tensor(spec.arg.name).clone());  // a program may write its inputs
  }
  return inputs;
}

// Numbers as tensors without dimensions, complex128, which safetensors cannot hold, as its two parts.
NamedTensors tensors_of(const Values& results) {
  NamedTensors out;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& v = results[i];
    const std::string name = std::to_string(i);
    if (v.is_tensor()) {
      const Tensor t = v.to_tensor().contiguous();
      out.emplace_back(name, t.dtype() == DType::complex128 ? view_as_real(t) : t);
    }
    if (v.kind() == Value::Kind::boolean) out.emplace_back(name, scalar_tensor(v.to_bool(), DType::bool_));
    if (v.kind() == Value::Kind::integer) out.emplace_back(name, scalar_tensor(v.to_int(), DType::int64));
    if (v.kind() == Value::Kind::floating) out.emplace_back(name, scalar_tensor(v.to_float(), DType::float64));
  }
  return out;
}

std::string run_one(const ExportedProgram& program, const json& run) {
  manual_seed(run.at("seed").get<uint64_t>());
  const NamedTensors results = tensors_of(program.run_flat(inputs_of(program, run.at("inputs"))));
  save_safetensors(run.at("outputs").get<std::string>(), results, std::nullopt, true, SharedTensors::written_each);
  const int threads = run.value("threads", 0);
  std::vector<std::string> wrong(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (size_t i = 0; i < wrong.size(); ++i)
    running.emplace_back([&, i] {
      try {
        const NamedTensors mine = tensors_of(program.run_flat(inputs_of(program, run.at("inputs"))));
        for (size_t k = 0; k < mine.size(); ++k)
          if (!equal(mine[k].second, results.at(k).second))
            wrong[i] = "result " + mine[k].first + " differs with " + std::to_string(threads) + " threads";
      } catch (const std::exception& e) {
        wrong[i] = e.what();
      }
    });
  for (std::thread& t : running) t.join();
  for (const std::string& w : wrong)
    if (!w.empty()) return w;
  return {};
}

json guarded(const std::function<std::string()>& fn) {
  try {
    const std::string wrong = fn();
    return wrong.empty() ? json() : json(wrong);
  } catch (const std::exception& e) {
    return json(e.what());
  }
}

void run_all(const json& manifest, std::ostream& out) {
  for (const json& entry : manifest) {
    const std::string id = entry.at("id");
    std::shared_ptr<const ExportedProgram> program;
    const json loaded = guarded([&] {
      program = load_program(entry.at("program").get<std::string>());
      return std::string();
    });
    int number = 0;
    for (const json& run : entry.at("runs")) {
      const json answer = program ? guarded([&] { return run_one(*program, run); }) : loaded;
      out << json::array({id + "#" + std::to_string(number++), answer}).dump() << std::endl;
    }
    if (entry.contains("save"))
      out << json::array({id + "#save", program ? guarded([&] {
                            save_program(*program, entry["save"].get<std::string>());
                            return std::string();
                          })
                                                : loaded})
                 .dump()
          << std::endl;
  }
}

}  // namespace
}  // namespace calque

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: program_peer MANIFEST.json ANSWER.jsonl\n";
    return 2;
  }
  try {
    std::ifstream in(argv[1]);
    std::ofstream out(argv[2]);
    calque::run_all(json::parse(in), out);
  } catch (const std::exception& e) {
    std::cerr << "program_peer: " << e.what() << '\n';
    return 1;
  }
  return 0;
}

// pt2_peer MANIFEST.json ANSWER.jsonl: for each program loads the file, runs it on its inputs, saves it again (twice: the
// bytes are the same), loads what it saved and compares the graphs; compiles it into a file, and runs what that holds. An answer is [id, error or null].
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/aten/zeros.h"
#include "calque/run/compiled_file.h"

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
      inputs.push_back(file.tensor(spec.arg.name).clone());
  }
  return inputs;
}

void run(const ExportedProgram& program, const json& entry, const char* outputs = "outputs") {
  const Values results = program.run_flat(inputs_of(program, entry.at("inputs")));
  NamedTensors out;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_tensor())
      out.emplace_back(std::to_string(i), results[i].to_tensor().contiguous());
    else if (results[i].kind() == Value::Kind::integer)
      out.emplace_back(std::to_string(i), full({}, results[i].to_int(), DType::int64));
  }
  save_safetensors(entry.at(outputs).get<std::string>(), out, std::nullopt, true, SharedTensors::written_each);
}

void save(const ExportedProgram& program, const std::string& path) {
  SaveProgramOptions options;
  options.sync = false;
  save_program(program, path, options);
  if (serialize_program(program) != serialize_program(program)) throw UserError("saving twice gives different bytes");
  const auto again = load_program(path);
  if (again->graph_module().print_readable() != program.graph_module().print_readable())
    throw UserError("the graph prints differently after saving and loading");
  if (serialize_program(*again) != serialize_program(program))
    throw UserError("saving, loading and saving gives different bytes");
}

json guarded(const std::function<void()>& body) {
  try {
    body();
    return nullptr;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace
}  // namespace calque

int main(int argc, char** argv) {
  using namespace calque;
  if (argc != 3) return 2;
  std::ifstream in(argv[1]);
  const json manifest = json::parse(in);
  std::ofstream out(argv[2]);
  for (const json& entry : manifest) {
    const std::string id = entry.at("id");
    std::shared_ptr<const ExportedProgram> program;
    const auto answer = [&](const std::string& what, const std::function<void()>& body) {
      out << json::array({id + "#" + what, guarded(body)}).dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
    };
    answer("load", [&] { program = load_program(entry.at("program").get<std::string>()); });
    if (!program) continue;
    answer("save", [&] { save(*program, entry.at("saved")); });
    answer("run", [&] { run(*program, entry); });
    answer("compile", [&] {
      SaveProgramOptions options;
      options.sync = false;
      save_compiled_program(*load_program(entry.at("program").get<std::string>()), entry.at("compiled"), options);
    });
    answer("run compiled", [&] { run(*load_program(entry.at("compiled").get<std::string>()), entry, "compiled_outputs"); });
    answer("print",
           [&] { std::ofstream(entry.at("printed").get<std::string>()) << program->graph_module().print_readable(); });
  }
}

// calque run P.pt2: one call of a program, tensors in and out as safetensors files.
#include <fmt/format.h>

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/export/input_checks.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/ops.h"
#include "cli/program.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

Value input(const InputSpec& spec, const SafetensorsFile& file) {
  if (spec.arg.kind == ArgumentKind::constant) return spec.arg.value;
  const std::vector<std::string> names = file.names();
  if (std::find(names.begin(), names.end(), spec.arg.name) == names.end()) {
    const std::string known = join(names, ", ");
    throw UserError("run: the program takes '" + spec.arg.name + "', which " + file.path() + " does not hold; it holds " +
                    (known.empty() ? "nothing" : known));
  }
  const Tensor t = file.tensor(spec.arg.name);
  switch (spec.arg.kind) {
    case ArgumentKind::sym_int: return t.item_as<int64_t>();
    case ArgumentKind::sym_float: return t.item_as<double>();
    case ArgumentKind::sym_bool: return t.item_as<bool>();
    case ArgumentKind::tensor:
    case ArgumentKind::constant:
    case ArgumentKind::custom_object:
    case ArgumentKind::token: break;
  }
  return t.clone();  // the program may write its inputs
}

std::optional<Tensor> tensor_of_result(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::tensor: return v.to_tensor().contiguous();
    case Value::Kind::integer: return full({}, v.to_int(), DType::int64);
    case Value::Kind::floating: return full({}, v.to_float(), DType::float64);
    case Value::Kind::boolean: return full({}, v.to_bool(), DType::bool_);
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> output_names(const ExportedProgram& program) {
  std::vector<std::string> out;
  for (const KeyPath& path : program.out_spec().paths()) {
    const std::string name = join(path, ".", [](const TreeKey& key) {
      return (key.key.kind() == Value::Kind::string ? key.key.to_string() : key.key.str());
    });
    out.push_back(name.empty() ? "0" : name);
  }
  return out;
}

void run_program(const RunOptions& options) {
  const Pt2Archive archive = Pt2Archive::open(options.path);
  const auto program = options.model.empty() ? archive.load() : archive.load(options.model);
  Values inputs;
  std::vector<std::string> used;
  if (options.inputs.empty()) {
    for (const InputSpec& spec : program->graph_signature().input_specs)
      if (spec.kind == InputKind::user_input && spec.arg.kind != ArgumentKind::constant)
        throw UserError("run: the program takes '" + spec.arg.name + "'; give a file with --inputs");
    for (const InputSpec& spec : program->graph_signature().input_specs)
      if (spec.kind == InputKind::user_input) inputs.push_back(spec.arg.value);
  } else {
    const SafetensorsFile file = SafetensorsFile::open(options.inputs);
    for (const InputSpec& spec : program->graph_signature().input_specs) {
      if (spec.kind != InputKind::user_input) continue;
      inputs.push_back(about_file(options.inputs, [&] { return input(spec, file); }));
      used.push_back(spec.arg.name);
    }
    for (const std::string& name : file.names())
      if (std::find(used.begin(), used.end(), name) == used.end())
        throw UserError("run: " + options.inputs + " holds '" + name + "', which is no input of the program");
  }
  if (!options.unchecked) about_file(options.inputs, [&] { InputChecks(*program).check(inputs); });
  const Values results = program->run_flat(inputs);
  const std::vector<std::string> names = output_names(*program);
  NamedTensors out;
  SafetensorsMetadata others;  // what is no tensor and no number
  Table table({{"output"}, {"dtype"}, {"shape"}});
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = i < names.size() ? names[i] : std::to_string(i);
    if (const std::optional<Tensor> t = tensor_of_result(results[i])) {
      out.emplace_back(name, *t);
      table.add({printable(name), std::string(calque::name(t->dtype())), str(t->sizes())});
    } else {
      others[name] = results[i].str();
      table.add({printable(name), results[i].str(), ""});
    }
  }
  if (!options.outputs.empty())
    save_safetensors(options.outputs, out, others.empty() ? std::nullopt : std::optional(others), true,
                     SharedTensors::written_each);
  fmt::print("{}", table.str());
}

}  // namespace calque::cli

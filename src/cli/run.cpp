// calque run P.pt2: one call of a program, tensors in and out as safetensors files.
#include <fmt/format.h>

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/export/executor.h"
#include "calque/export/input_checks.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/aten/zeros.h"
#include "calque/run/check.h"
#include "cli/json_text.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/tensor_file.h"
#include "hub/near_names.h"

namespace calque::cli {
namespace {

Value input(const std::string& command, const InputSpec& spec, const TensorFile& file) {
  if (spec.arg.kind == ArgumentKind::constant) return spec.arg.value;
  const Tensor t = input_tensor(command, "the program", file, spec.arg.name);
  switch (spec.arg.kind) {
    case ArgumentKind::sym_int: return t.item_as<int64_t>();
    case ArgumentKind::sym_float: return t.item_as<double>();
    case ArgumentKind::sym_bool: return t.item_as<bool>();
    case ArgumentKind::tensor:
    case ArgumentKind::constant:
    case ArgumentKind::custom_object:
    case ArgumentKind::token: break;
  }
  return t;
}

std::optional<Tensor> tensor_of_result(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().contiguous();
  if (v.kind() == Value::Kind::integer) return full({}, v.to_int(), DType::int64);
  if (v.kind() == Value::Kind::floating) return full({}, v.to_float(), DType::float64);
  if (v.kind() == Value::Kind::boolean) return full({}, v.to_bool(), DType::bool_);
  return std::nullopt;
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

Values program_inputs(const std::string& command, const ExportedProgram& program, const std::string& path) {
  Values inputs;
  const std::vector<InputSpec>& specs = program.graph_signature().input_specs;
  if (path.empty()) {
    std::vector<std::string> wanted;
    for (const InputSpec& spec : specs) {
      if (spec.kind != InputKind::user_input) continue;
      if (spec.arg.kind != ArgumentKind::constant) wanted.push_back("'" + spec.arg.name + "'");
      inputs.push_back(spec.arg.value);
    }
    if (!wanted.empty())
      throw UserError(command + ": the program takes " + join(wanted, ", ") +
                      "; give a file with --inputs (`calque info` shows dtypes and sizes)");
    return inputs;
  }
  const TensorFile file = TensorFile::open(path);
  std::vector<std::string> used;
  for (const InputSpec& spec : specs) {
    if (spec.kind != InputKind::user_input) continue;
    inputs.push_back(about_file(path, [&] { return input(command, spec, file); }));
    used.push_back(spec.arg.name);
  }
  for (const std::string& name : file.names())
    if (std::find(used.begin(), used.end(), name) == used.end())
      throw UserError(command + ": " + path + " holds '" + name + "', which is no input of the program; it takes " +
                      (used.empty() ? "nothing" : join(used, ", ")) + did_you_mean(name, used));
  return inputs;
}

namespace {

Values user_outputs(const ExportedProgram& program, const Values& results) {
  const std::vector<OutputSpec>& specs = program.graph_signature().output_specs;
  Values out;
  for (size_t i = 0; i < results.size(); ++i)
    if (specs.at(i).kind == OutputKind::user_output) out.push_back(results[i]);
  return out;
}

std::string check_text(const PlanCheck& check) {
  std::string out = fmt::format(
      "check: {} steps beside the interpreter, {} equal to the last bit, {} up to rounding, {} different\n", check.compared,
      check.equal_bits, check.compared - check.equal_bits - check.differences.size(), check.differences.size());
  for (const PlanDifference& d : check.differences) out += fmt::format("  {}\n    {}\n", printable(d.node), d.what);
  return out;
}

OrderedJson check_json(const PlanCheck& check) {
  OrderedJson differences = OrderedJson::array();
  for (const PlanDifference& d : check.differences) differences.push_back({{"step", d.node}, {"difference", d.what}});
  return {{"compared", check.compared}, {"equal_bits", check.equal_bits}, {"differences", differences}};
}

}  // namespace

void run_program(const RunOptions& options) {
  require_ending(options.outputs, "run: --outputs", tensor_file_endings());
  if (names_model(options.path))
    throw UserError("run: " + options.path + " is a model, expected a .pt2 program; `calque forward " + options.path +
                    "` runs it, `calque export " + options.path + " -o model.pt2` makes a program of it");
  std::shared_ptr<const ExportedProgram> program;
  {
    const Progress progress("loading " + options.path);
    const Pt2Archive archive = Pt2Archive::open(options.path);
    program = options.model.empty() ? archive.load() : archive.load(options.model);
  }
  const Values inputs = program_inputs("run", *program, options.inputs);
  if (!options.unchecked) about_file(options.inputs, [&] { InputChecks(*program).check(inputs); });
  Values results;
  const GradModeScope no_grad(false);
  std::optional<PlanCheck> checked;
  {
    const Progress progress("running " + options.path);
    if (options.check)
      checked = check_plan(*program, inputs);
    else if (options.eager)
      set_executor_factory(nullptr);
    results = checked ? user_outputs(*program, checked->results) : program->run_flat(inputs);
  }
  const std::vector<std::string> names = output_names(*program);
  NamedTensors out;
  SafetensorsMetadata others;  // what is no tensor and no number
  Table table({{"output"}, {"dtype"}, {"shape"}});
  OrderedJson json = OrderedJson::object();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = i < names.size() ? names[i] : std::to_string(i);
    if (const std::optional<Tensor> t = tensor_of_result(results[i])) {
      out.emplace_back(name, *t);
      table.add({printable(name), std::string(calque::name(t->dtype())), str(t->sizes())});
      if (options.json) json[name] = results[i].is_tensor() ? tensor_json(*t) : to_json(results[i]);
    } else {
      others[name] = results[i].str();
      table.add({printable(name), results[i].str(), ""});
      if (options.json) json[name] = to_json(results[i]);
    }
  }
  if (!options.outputs.empty()) save_tensors(options.outputs, out, others.empty() ? std::nullopt : std::optional(others));
  if (options.json) {
    OrderedJson all{{"program", options.path}, {"outputs", json}};
    if (checked) all["check"] = check_json(*checked);
    print_json(all);
  } else {
    if (!is_quiet() || options.outputs.empty()) fmt::print("{}", table.str());
    if (options.outputs.empty())
      for (const auto& [name, tensor] : out) fmt::print("\n{} =\n{}\n", printable(name), tensor.str());
    if (checked) fmt::print("{}", check_text(*checked));
  }
  if (checked && !checked->passed()) throw ExitStatus{1};
}

}  // namespace calque::cli

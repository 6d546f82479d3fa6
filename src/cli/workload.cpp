#include "cli/workload.h"

#include <filesystem>

#include "calque/base/error.h"
#include "calque/export/input_checks.h"
#include "calque/export/pt2.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tree.h"
#include "cli/examples.h"
#include "cli/models.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/tensor_file.h"

namespace calque::cli {
namespace {

Workload model_workload(const std::string& command, const WorkloadOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.path, o.model_class, o.dtype, o.attention});
  without_cache(*model);
  const ModelInputs inputs =
      o.inputs.empty() ? made_up_inputs(model_folder(o.path), *model) : read_model_inputs(command, o.inputs, *model);
  return {model, nullptr, inputs.to_kwargs(model->arguments())};
}

Workload example_workload(const std::string& command, const WorkloadOptions& o) {
  const Example& example = find_example(o.path);
  Workload out{example.make(), nullptr, {}};
  const std::vector<std::string> names = out.module->argument_names();
  const Values made = example.inputs();
  for (size_t i = 0; i < made.size(); ++i) out.inputs.emplace_back(names.at(i), made[i]);
  if (o.inputs.empty()) return out;
  const TensorFile file = TensorFile::open(o.inputs);
  for (auto& [name, value] : out.inputs) value = input_tensor(command, "the model", file, name);
  return out;
}

Values example_leaves(const ExampleInputs& inputs) {
  Values out;
  const auto add = [&](const Value& value) {
    for (const Value& leaf : tree_leaves(value)) out.push_back(leaf);
  };
  for (const Value& value : inputs.args) add(value);
  for (const auto& [name, value] : inputs.kwargs) add(value);
  return out;
}

Workload program_workload(const std::string& command, const WorkloadOptions& o) {
  Workload out;
  {
    const Progress progress("loading " + o.path);
    const Pt2Archive archive = Pt2Archive::open(o.path);
    out.program = o.program.empty() ? archive.load() : archive.load(o.program);
  }
  const bool examples = o.inputs.empty() && out.program->example_inputs();
  const Values values =
      examples ? example_leaves(*out.program->example_inputs()) : program_inputs(command, *out.program, o.inputs);
  about_file(examples ? o.path : o.inputs, [&] { InputChecks(*out.program).check(values); });
  for (const InputSpec& spec : out.program->graph_signature().input_specs)
    if (spec.kind == InputKind::user_input) out.inputs.emplace_back(spec.arg.name, values.at(out.inputs.size()));
  return out;
}

}  // namespace

Values Workload::input_values() const {
  Values out;
  for (const auto& [name, value] : inputs) out.push_back(value);
  return out;
}

Workload load_workload(const std::string& command, const WorkloadOptions& o) {
  const bool is_model = names_model(o.path);
  if (!is_model) refuse_model_options(command, {o.path, o.model_class, o.dtype, o.attention});
  const bool is_program = !is_model && (o.path.ends_with(".pt2") || std::filesystem::is_regular_file(o.path));
  if (!is_program && !o.program.empty())
    throw UserError(command + ": --model is for .pt2 files with several programs, and " + o.path + " is none; leave it out");
  if (is_model) return model_workload(command, o);
  return is_program ? program_workload(command, o) : example_workload(command, o);
}

std::string inputs_table(const Kwargs& inputs) {
  Table table({{"input"}, {"dtype"}, {"shape"}});
  for (const auto& [name, value] : inputs)
    for (const auto& [path, leaf] : tree_flatten_with_path(value).leaves) {
      const std::string full = printable(name + keystr(path));
      if (leaf.is_tensor())
        table.add({full, std::string(calque::name(leaf.to_tensor().dtype())), str(leaf.to_tensor().sizes())});
      else
        table.add({full, printable(leaf.str()), ""});
    }
  return table.str();
}

OrderedJson inputs_json(const Kwargs& inputs) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [name, value] : inputs)
    for (const auto& [path, leaf] : tree_flatten_with_path(value).leaves) {
      OrderedJson& said = out[name + keystr(path)];
      said = leaf.is_tensor() ? tensor_json(leaf.to_tensor(), 0) : to_json(leaf);
      if (leaf.is_tensor()) said.erase("values");
    }
  return out;
}

}  // namespace calque::cli

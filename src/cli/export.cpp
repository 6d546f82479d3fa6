// calque export MODEL -o P.pt2: a program of a model folder, a built-in example or another program, with sizes that may differ.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/hub/pretrained_model.h"
#include "cli/examples.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/program.h"

namespace calque::cli {
namespace {

struct Source {
  std::shared_ptr<Module> module;
  std::vector<std::string> names;  // of the arguments
  ExampleInputs inputs;
};

Tensor tensor_named(const SafetensorsFile& file, const std::string& name) {
  if (!file.find(name)) {
    const std::string known = join(file.names(), ", ");
    throw UserError("export: the model takes '" + name + "', which " + file.path() + " does not hold; it holds " +
                    (known.empty() ? "nothing" : known));
  }
  return file.tensor(name).clone();
}

Source example_source(const ExportCommandOptions& o) {
  const Example& example = find_example(o.model);
  Source out{example.make(), {}, {example.inputs(), {}}};
  out.names = out.module->argument_names();
  if (o.inputs.empty()) return out;
  const SafetensorsFile file = SafetensorsFile::open(o.inputs);
  for (size_t i = 0; i < out.inputs.args.size(); ++i) out.inputs.args[i] = tensor_named(file, out.names.at(i));
  return out;
}

Source model_source(const ExportCommandOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, o.dtype, o.attention});
  if (!o.cache) without_cache(*model);
  const ModelInputs inputs = o.inputs.empty() ? model->example_inputs() : read_model_inputs("export", o.inputs, *model);
  Source out{model, {}, {}};
  out.inputs.kwargs = inputs.to_kwargs(model->arguments());
  for (const auto& [name, value] : out.inputs.kwargs) out.names.push_back(name);
  return out;
}

Source program_source(const ExportedProgram& program, const ExportCommandOptions& o) {
  Source out{program.module(), {}, {}};
  out.names = out.module->argument_names();
  if (o.inputs.empty()) {
    if (!program.example_inputs())
      throw UserError("export: " + o.model + " has no example inputs; give a file with --inputs");
    out.inputs = *program.example_inputs();
    return out;
  }
  const SafetensorsFile file = SafetensorsFile::open(o.inputs);
  Values leaves;
  for (const InputSpec& spec : program.graph_signature().input_specs)
    if (spec.kind == InputKind::user_input)
      leaves.push_back(spec.arg.kind == ArgumentKind::constant ? spec.arg.value : Value(tensor_named(file, spec.arg.name)));
  const Values both = program.in_spec().unflatten(leaves).to_items();
  out.inputs.args = both.at(0).to_items();
  for (const auto& [key, value] : both.at(1).to_dict().items) out.inputs.kwargs.emplace_back(key.to_string(), value);
  return out;
}

ExportedProgram export_source(const Source& source, const ExportCommandOptions& o) {
  ExportOptions options;
  options.strict = o.strict;
  options.dynamic_shapes = parse_dynamic_shapes(o.dynamic, source.names);
  constexpr int tries = 8;  // one fix may lead to the next
  for (int i = 0;; ++i) {
    try {
      return export_program(*source.module, source.inputs.args, source.inputs.kwargs, options);
    } catch (const UserError& e) {
      if (!o.apply_fixes || e.kind() != ErrorKind::constraint_violation || i == tries || suggested_fixes(e.what()).empty())
        throw;
      options.dynamic_shapes = refine_dynamic_shapes_from_suggested_fixes(e.what(), options.dynamic_shapes);
      // A bound is what a model has; a size that it fixes surprises.
      const std::vector<SuggestedFix> fixes = suggested_fixes(e.what());
      if (std::ranges::any_of(fixes, [](const SuggestedFix& fix) { return fix.value.has_value(); })) say(e.what());
      say("fixes applied: " + options.dynamic_shapes.str());
    }
  }
}

ExportedProgram exported(const ExportCommandOptions& o) {
  const GradModeScope no_grad(false);
  if (names_model(o.model)) {
    const Source source = model_source(o);
    ExportCommandOptions chosen = o;
    if (o.dynamic.empty() && !o.static_sizes) {
      chosen.dynamic = usual_dynamic_sizes(source.inputs.kwargs);
      chosen.apply_fixes = true;  // a model may have a longest length
    }
    return export_source(source, chosen);
  }
  if (!o.model.ends_with(".pt2") && !std::filesystem::is_regular_file(o.model)) return export_source(example_source(o), o);
  const auto program = load_program(o.model);
  // Without a word about sizes a program keeps those that it has.
  if (o.dynamic.empty() && o.inputs.empty() && !o.strict) return *program;
  return export_source(program_source(*program, o), o);
}

// A name that promises another format is refused before the work.
void check_output_name(const std::string& name) {
  const std::string ending = std::filesystem::path(name).extension().string();
  const auto others = {".onnx", ".png", ".pdf", ".svg", ".html", ".dot", ".json", ".txt", ".py", ".safetensors", ".gguf"};
  if (std::ranges::find(others, ending) != others.end())
    throw UserError("export: " + name +
                    ": what export writes is a PyTorch program; expected a name that ends in .pt2, found " + ending +
                    " (calque trace -o writes .svg, .html, .dot, .json, .txt and .py)");
}

}  // namespace

void run_export(const ExportCommandOptions& o) {
  check_output_name(o.output);
  ExportedProgram program = exported(o);
  if (o.decompose) program = program.run_decompositions();
  if (o.output == "-") {  // the program itself goes to standard output, and nothing else
    const std::string bytes = serialize_program(program);
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return;
  }
  save_program(program, o.output);
  if (o.print)
    fmt::print("{}\n", program.str());
  else
    fmt::print("{}: {} nodes, {} tensors, {} bytes\n", o.output, program.graph().size(),
               program.state_dict().size() + program.constants().size(), std::filesystem::file_size(o.output));
}

}  // namespace calque::cli

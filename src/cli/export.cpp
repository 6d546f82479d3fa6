// calque export MODEL -o P.pt2: a program of a model folder, a built-in example or another program, with sizes that may differ.
// calque compile MODEL -o P.pt2: the same with packed weights beside it.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/hub/pretrained_model.h"
#include "calque/run/compiled_file.h"
#include "cli/examples.h"
#include "cli/json_text.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/tensor_file.h"

namespace calque::cli {
namespace {

struct Source {
  std::shared_ptr<Module> module;
  std::vector<std::string> names;  // of the arguments
  ExampleInputs inputs;
};

Source example_source(const ExportCommandOptions& o) {
  const Example& example = find_example(o.model);
  Source out{example.make(), {}, {example.inputs(), {}}};
  out.names = out.module->argument_names();
  if (o.inputs.empty()) return out;
  const TensorFile file = TensorFile::open(o.inputs);
  for (size_t i = 0; i < out.inputs.args.size(); ++i)
    out.inputs.args[i] = input_tensor("export", "the model", file, out.names.at(i));
  return out;
}

Source model_source(const ExportCommandOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, o.dtype, o.attention});
  if (!o.cache) without_cache(*model);
  const ModelInputs inputs =
      o.inputs.empty() ? made_up_inputs(model_folder(o.model), *model) : read_model_inputs("export", o.inputs, *model);
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
  const TensorFile file = TensorFile::open(o.inputs);
  Values leaves;
  for (const InputSpec& spec : program.graph_signature().input_specs)
    if (spec.kind == InputKind::user_input)
      leaves.push_back(spec.arg.kind == ArgumentKind::constant
                           ? spec.arg.value
                           : Value(input_tensor("export", "the model", file, spec.arg.name)));
  const Values both = program.in_spec().unflatten(leaves).to_items();
  out.inputs.args = both.at(0).to_items();
  for (const auto& [key, value] : both.at(1).to_dict().items) out.inputs.kwargs.emplace_back(key.to_string(), value);
  return out;
}

// What Ctrl-C leaves.
std::string stays(const ExportCommandOptions& o) { return o.output == "-" ? "" : o.output + " is as it was"; }

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
      // Bounds are expected of a model. That it works for one size alone is not, so the error's text is shown.
      const std::vector<SuggestedFix> fixes = suggested_fixes(e.what());
      if (std::ranges::any_of(fixes, [](const SuggestedFix& fix) { return fix.value.has_value(); })) note(e.what());
      note("fixes applied: " + options.dynamic_shapes.str());
    }
  }
}

// What is said of input_ids' sizes holds for the inputs that have the same ones: its mask, its token types.
std::vector<std::string> with_companions(std::vector<std::string> dynamic, const Kwargs& inputs) {
  const std::string ids = "input_ids=";
  const auto said = std::ranges::find_if(dynamic, [&](const std::string& text) { return text.starts_with(ids); });
  const auto tensor = [&](const std::string& name) -> const Tensor* {
    for (const auto& [key, value] : inputs)
      if (key == name && value.is_tensor()) return &value.to_tensor();
    return nullptr;
  };
  const Tensor* leader = tensor("input_ids");
  if (said == dynamic.end() || !leader) return dynamic;
  std::string entries;  // bounds are given once
  bool bounds = false;
  for (const char c : said->substr(ids.size())) {
    bounds = c == ':' || (bounds && c != ',');
    if (!bounds) entries += c;
  }
  for (const auto& [name, value] : inputs) {
    const bool spoken_of =
        std::ranges::any_of(dynamic, [&, &name = name](const std::string& text) { return text.starts_with(name + "="); });
    if (!spoken_of && value.is_tensor() && std::ranges::equal(value.to_tensor().sizes(), leader->sizes()))
      dynamic.push_back(name + "=" + entries);
  }
  return dynamic;
}

// A program, and what was asked about its sizes.
struct Exported {
  ExportedProgram program;
  std::vector<std::string> dynamic;
};

Exported exported(const ExportCommandOptions& o, const std::string& which = "") {
  const GradModeScope no_grad(false);
  if (names_model(o.model)) {
    const Source source = model_source(o);
    ExportCommandOptions chosen = o;
    if (!o.dynamic.empty()) {
      chosen.dynamic = with_companions(o.dynamic, source.inputs.kwargs);
    } else if (!o.static_sizes) {
      chosen.dynamic = usual_dynamic_sizes(source.inputs.kwargs);
      chosen.apply_fixes = true;  // a model may have a longest length
    }
    const Progress progress("exporting " + o.model, stays(o));
    return {export_source(source, chosen), chosen.dynamic};
  }
  refuse_model_options("export", {o.model, o.model_class, o.dtype, o.attention});
  if (!o.model.ends_with(".pt2") && !std::filesystem::is_regular_file(o.model))
    return {export_source(example_source(o), o), o.dynamic};
  const Pt2Archive archive = Pt2Archive::open(o.model);
  const auto program = which.empty() ? archive.load() : archive.load(which);
  // Without a word about sizes a program keeps those that it has.
  if (o.dynamic.empty() && o.inputs.empty() && !o.strict) return {*program, {}};
  const Progress progress("exporting " + o.model, stays(o));
  return {export_source(program_source(*program, o), o), o.dynamic};
}

// What --dynamic calls a dimension of an input; empty where it gives no name.
std::string dimension_name(const std::vector<std::string>& dynamic, const std::string& input, size_t dimension) {
  for (const std::string& text : dynamic) {
    if (!text.starts_with(input + "=")) continue;
    std::string_view rest = std::string_view(text).substr(input.size() + 1);
    for (size_t i = 0; i < dimension; ++i) rest.remove_prefix(std::min(rest.find(',') + 1, rest.size()));
    const std::string entry(rest.substr(0, std::min(rest.find_first_of(",:"), rest.size())));
    const bool is_name = !entry.empty() && ((entry[0] >= 'a' && entry[0] <= 'z') || (entry[0] >= 'A' && entry[0] <= 'Z'));
    return is_name ? entry : "";
  }
  return "";
}

struct VariableSize {
  std::string name;  // "batch", or "x dimension 1"
  ValueRange range;
};

// Each symbol once, under the first name that it has.
std::vector<VariableSize> variable_sizes(const Exported& e) {
  std::vector<VariableSize> out;
  std::set<std::string> seen;
  const std::vector<Node*> placeholders = e.program.graph().placeholders();
  const std::vector<InputSpec>& specs = e.program.graph_signature().input_specs;
  for (size_t i = 0; i < std::min(specs.size(), placeholders.size()); ++i) {
    const Value& val = placeholders[i]->meta.val;
    if (specs[i].kind != InputKind::user_input || !val.is_tensor()) continue;
    const auto sizes = val.to_tensor().sym_sizes();
    for (size_t d = 0; d < sizes.size(); ++d)
      for (const auto& [symbol, range] : e.program.range_constraints()) {
        if (symbol != sizes[d].str() || !seen.insert(symbol).second) continue;
        const std::string name = dimension_name(e.dynamic, placeholders[i]->name(), d);
        out.push_back({name.empty() ? fmt::format("{} dimension {}", placeholders[i]->name(), d) : name, range});
      }
  }
  return out;
}

// "batch (any), seq (1 to 512)".
std::string in_words(const std::vector<VariableSize>& sizes) {
  std::string out;
  for (const VariableSize& one : sizes) {
    const bool open = one.range.upper == ValueRange::unbounded_above, any = one.range.lower <= 1;
    out += (out.empty() ? "" : ", ") + one.name +
           (open && any ? " (any)"
            : open      ? fmt::format(" (at least {})", one.range.lower)
                        : fmt::format(" ({} to {})", std::max<int64_t>(one.range.lower, any ? 1 : 0), one.range.upper));
  }
  return out.empty() ? "none; --dynamic NAME=... lets them" : out;
}

void write(const Exported& e, const std::string& path, const std::string& unchanged) {
  const Progress progress("writing " + path, unchanged);
  if (path != "-") return save_program(e.program, path);
  if (::isatty(STDOUT_FILENO) != 0)
    throw UserError("export: -o - writes a program to standard output, which is a terminal; send it to a file or a command");
  const std::string bytes = serialize_program(e.program);
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  flush_output();
}

OrderedJson summary_json(const Exported& e, const std::string& path) {
  OrderedJson out;
  out["path"] = path;
  out["nodes"] = e.program.graph().size();
  out["tensors"] = e.program.state_dict().size() + e.program.constants().size();
  out["bytes"] = std::filesystem::file_size(path);
  out["inputs"] = OrderedJson::array();
  for (const InputSpec& spec : e.program.graph_signature().input_specs)
    if (spec.kind == InputKind::user_input) out["inputs"].push_back(spec.arg.name);
  out["outputs"] = output_names(e.program);
  out["sizes_that_vary"] = OrderedJson::array();
  for (const VariableSize& one : variable_sizes(e))
    out["sizes_that_vary"].push_back(
        {{"name", one.name},
         {"min", one.range.lower},
         {"max", one.range.upper == ValueRange::unbounded_above ? OrderedJson(nullptr) : OrderedJson(one.range.upper)}});
  return out;
}

}  // namespace

void run_export(const ExportCommandOptions& o) {
  require_ending(o.output, "export: --output", {".pt2", "-"});
  if (o.output == "-" && (o.json || o.print))
    throw UserError("export: -o - writes the program to standard output; leave --json and --print out, or name a file");
  Exported e = exported(o);
  if (o.loss) e.program = e.program.forward_backward(*o.loss);
  if (o.decompose && !o.loss) e.program = e.program.run_decompositions();
  write(e, o.output, stays(o));
  if (o.output == "-") return;
  if (o.json) return print_json(summary_json(e, o.output));
  if (o.print) fmt::print("{}\n", e.program.str());
  if (o.print || is_quiet()) return;
  fmt::print("{}: {} nodes, {} tensors, {} bytes\nsizes that may vary: {}\n", o.output, e.program.graph().size(),
             e.program.state_dict().size() + e.program.constants().size(), std::filesystem::file_size(o.output),
             in_words(variable_sizes(e)));
}

void run_compile(const CompileCommandOptions& o) {
  require_ending(o.output, "compile: --output", {".pt2"});
  const Exported e = exported(o, o.program);
  CompiledFile made;
  {
    const Progress progress("writing " + o.output, stays(o));
    made = save_compiled_program(e.program, o.output);
  }
  if (o.json) {
    OrderedJson summary = summary_json(e, o.output);
    summary["packed_weights"] = made.packed;
    summary["packed_bytes"] = made.packed_bytes;
    return print_json(summary);
  }
  if (is_quiet()) return;
  fmt::print("{}: {} nodes, {} tensors, {} packed weights, {}\nsizes that may vary: {}\n", o.output,
             e.program.graph().size(), e.program.state_dict().size() + e.program.constants().size(), made.packed,
             human_bytes(std::filesystem::file_size(o.output)), in_words(variable_sizes(e)));
}

}  // namespace calque::cli

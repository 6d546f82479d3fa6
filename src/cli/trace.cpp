// calque trace MODEL: the graph of a model folder, a program or a built-in example, in a form for people or tools.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/export/pt2.h"
#include "calque/file/file_writer.h"
#include "calque/graph/code.h"
#include "calque/graph/draw.h"
#include "calque/graph/text.h"
#include "calque/hub/hf_tracer.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/trace_check.h"
#include "calque/trace/make_fx.h"
#include "calque/trace/tracer.h"
#include "cli/command.h"
#include "cli/examples.h"
#include "cli/json_text.h"
#include "cli/models.h"

namespace calque::cli {
namespace {

struct Format {
  const char* name;
  std::vector<std::string_view> endings;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"text", {".txt"}},       {"table", {}},     {"code", {".py"}},          {"json", {".json"}},
      {"dot", {".dot", ".gv"}}, {"svg", {".svg"}}, {"html", {".html", ".htm"}}};
  return all;
}

// The name of the output decides, unless --format does; a name that promises something else is refused.
std::string format_of(const TraceOptions& o) {
  if (o.output.empty() || o.output == "-") return o.format.empty() ? "text" : o.format;
  std::string ending = std::filesystem::path(o.output).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending.empty()) return o.format.empty() ? "text" : o.format;
  std::string possible;
  for (const Format& f : formats()) {
    if (std::ranges::find(f.endings, ending) != f.endings.end()) {
      if (o.format.empty() || o.format == f.name || (o.format == "table" && ending == ".txt"))
        return o.format.empty() ? f.name : o.format;
      throw UserError("trace: " + o.output + " is a name for " + f.name + ", but --format says " + o.format +
                      "; leave one of them out");
    }
    for (const std::string_view e : f.endings) possible += (possible.empty() ? "" : ", ") + std::string(e);
  }
  throw UserError("trace: " + o.output + ": a graph cannot be written as " + ending +
                  "; expected a name that ends in one of " + possible + " (.svg is a picture, .html a page to move in)" +
                  (ending == ".pt2" ? "; calque export writes .pt2 programs" : ""));
}

std::string drawn(const Graph& graph, const std::string& format, const DrawOptions& draw) {
  if (format == "table") return tabular(graph) + "\n";
  if (format == "code") return python_code(graph);
  if (format == "json") return to_json(graph, 1) + "\n";
  if (format == "dot") return to_dot(graph, draw);
  if (format == "svg") return to_svg(graph, draw);
  if (format == "html") return to_html(graph, draw);
  return text_with_symbols(graph);
}

void put(const std::string& text, const std::string& path) {
  if (path.empty() || path == "-") {
    fmt::print("{}", text);
    return;
  }
  FileWriter file(path);
  file.write(text.data(), text.size());
  file.commit();
}

std::string explanation(const TracedGraph& traced) {
  if (!traced.env) return "Traced without symbols: every size is the example's.\n";
  std::string text = traced.env->explain();
  GuardsRequest request;
  request.ignore_static = false;  // sizes that became plain numbers count
  const std::vector<std::string> guards = traced.guards(request).exprs();
  text += "\nThe graph holds for inputs with\n";
  for (const std::string& g : guards) text += "  " + g + "\n";
  if (guards.empty()) text += "  any sizes\n";
  return text;
}

// What to trace.
struct TraceSource {
  std::shared_ptr<Module> module;
  std::vector<std::string> names;  // of the inputs
  Values inputs;
  std::function<Value(const Values&)> call;
  TraceInputs fx;  // level fx
};

TraceSource traced_example(const TraceOptions& o) {
  const Example& example = find_example(o.model);
  const std::shared_ptr<Module> module = example.make();
  return {module, module->argument_names(), example.inputs(), [module](const Values& in) { return module->call(in); }, {}};
}

TraceSource traced_model(const TraceOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, o.dtype, o.attention});
  without_cache(*model);
  const ModelInputs inputs = o.inputs.empty() ? model->example_inputs() : read_model_inputs("trace", o.inputs, *model);
  TraceSource out{model, {}, {}, {}, {}};
  for (const auto& [name, value] : inputs.to_kwargs(model->arguments())) {
    out.names.push_back(name);
    out.inputs.push_back(value);
  }
  out.call = [model, names = out.names](const Values& in) {
    Kwargs kwargs;
    for (size_t i = 0; i < names.size(); ++i) kwargs.emplace_back(names[i], in[i]);
    return model->call({}, kwargs);
  };
  return out;
}

std::vector<std::string> listed_names(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      throw UserError("trace: --input-names " + text +
                      " has an empty name; expected names with a comma between them, as input_ids,attention_mask");
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// The graph of a model folder as its author wrote it, checked and written as the options say.
std::shared_ptr<TracedModel> symbolic_graph(const TraceOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, o.dtype, o.attention});
  SymbolicTraceOptions options;
  std::vector<std::string> names;
  if (!o.inputs.empty() && !o.input_names.empty())
    throw UserError("trace: --inputs names the inputs by what its file holds; leave --input-names or --inputs out");
  if (!o.input_names.empty()) {
    names = listed_names(o.input_names);
  } else {
    const ModelInputs inputs = o.inputs.empty() ? model->example_inputs() : read_model_inputs("trace", o.inputs, *model);
    for (const auto& [name, value] : inputs.to_kwargs(model->arguments())) {
      names.push_back(name);
      if (!o.inputs.empty()) options.dummy_inputs.emplace_back(name, value);
    }
  }
  if (std::ranges::find(names, "past_key_values") == names.end()) without_cache(*model);
  std::shared_ptr<TracedModel> traced = symbolic_trace(*model, names, options);
  if (!o.to_folder.empty()) save_traced_model(*traced, o.to_folder);
  if (!o.check) return traced;
  const ExampleSizes sizes{.batch = 3, .length = 9, .decoder_length = 6, .choices = 4};
  const TraceCheck check = check_trace(*model, *traced, sample_inputs(*model, names, sizes));
  fmt::print(stderr, "{} output{} of graph and model beside each other, batch {}, length {}: ", check.outputs.size(),
             check.outputs.size() == 1 ? "" : "s", sizes.batch, sizes.length);
  fmt::print(stderr, "{}\n", check.differences.empty() ? "equal" : "different");
  for (const std::string& difference : check.differences) fmt::print(stderr, "  {}\n", difference);
  if (!check.differences.empty()) throw ExitStatus{1};
  return traced;
}

// A graph with what keeps it, and how to draw it.
struct DrawnGraph {
  std::shared_ptr<const void> keeper;
  const Graph* graph = nullptr;
  DrawOptions draw;
  std::optional<TracedGraph> traced;  // of a model or an example, at level aten
};

DrawOptions draw_options(const TraceOptions& o) {
  DrawOptions draw;
  draw.name = o.model;
  draw.depth = o.depth;
  return draw;
}

DrawnGraph program_graph(const TraceOptions& o) {
  if (o.level == "fx" || o.explain || !o.inputs.empty())
    throw UserError("trace: " + o.model +
                    " is a program, which was traced when it was exported; --level fx, --explain and "
                    "--inputs are for models (calque export takes a program with other inputs)");
  const std::shared_ptr<const ExportedProgram> program = load_program(o.model);
  DrawnGraph out{program, &program->graph(), draw_options(o), {}};
  for (const InputSpec& spec : program->graph_signature().input_specs)
    if (spec.kind == InputKind::parameter || spec.kind == InputKind::buffer || spec.kind == InputKind::constant_tensor)
      out.draw.weights[spec.arg.name] = spec.target;
  return out;
}

// What a trace closed over has names of the trace; a tensor of the model has one of the model.
std::map<std::string, std::string, std::less<>> weight_names(const Module& model, const GraphModule& traced) {
  std::unordered_map<const TensorImpl*, std::string> paths;
  for (const NamedTensors& tensors : {model.named_parameters(), model.named_buffers()})
    for (const auto& [path, tensor] : tensors) paths.emplace(&tensor.impl(), path);
  std::map<std::string, std::string, std::less<>> out;
  for (const Node* n : traced.graph().nodes()) {
    if (n->kind() != NodeKind::get_attr || !traced.as_owner().has_attr(n->target().text())) continue;
    const Value value = traced.as_owner().attr(n->target().text());
    if (!value.is_tensor()) continue;
    if (const auto path = paths.find(&value.to_tensor().impl()); path != paths.end()) out[n->name()] = path->second;
  }
  return out;
}

DrawnGraph graph_of(const TraceOptions& o) {
  const bool is_model = names_model(o.model);
  if (!is_model) refuse_model_options("trace", {o.model, o.model_class, o.dtype, o.attention});
  if (!is_model && (o.model.ends_with(".pt2") || std::filesystem::is_regular_file(o.model))) return program_graph(o);
  if (is_model && o.level == "fx") {
    const std::shared_ptr<TracedModel> traced = symbolic_graph(o);
    return {traced, &traced->graph(), draw_options(o), {}};
  }
  const TraceSource source = is_model ? traced_model(o) : traced_example(o);
  const GradModeScope no_grad(false);
  DrawnGraph out{{}, nullptr, draw_options(o), {}};
  if (o.level == "fx") {
    const std::shared_ptr<GraphModule> traced = symbolic_trace(*source.module, source.fx);
    out.graph = &traced->graph();
    out.keeper = traced;
    return out;
  }
  MakeFxOptions options;
  options.mode = o.mode == "real" ? TracingMode::real : o.mode == "fake" ? TracingMode::fake : TracingMode::symbolic;
  options.names = source.names;
  options.allow_non_fake_inputs = true;
  options.record_module_stack = true;
  options.pytorch_guards = o.pytorch_guards;
  out.traced = make_fx_values(source.call, source.inputs, options);
  out.graph = &out.traced->graph();
  out.draw.weights = weight_names(*source.module, *out.traced->module);
  return out;
}

}  // namespace

void run_trace(const TraceOptions& o) {
  if (o.list || o.model.empty()) {
    if (!o.list) throw UserError("trace: give an example's name, or --list");
    if (o.format == "json") {
      OrderedJson list = OrderedJson::array();
      for (const Example& e : examples()) list.push_back({{"name", e.name}, {"shows", e.shows}});
      return print_json(list);
    }
    for (const Example& e : examples()) fmt::print("{:<12}{}\n", e.name, e.shows);
    return;
  }
  if (o.level == "fx" && o.explain)
    throw UserError("trace: --explain speaks of guards, which level aten has; leave --level fx out");
  const bool of_model = o.level == "fx" && names_model(o.model);
  for (const auto& [option, given] : {std::pair("--input-names", !o.input_names.empty()), std::pair("--check", o.check),
                                      std::pair("--to-folder", !o.to_folder.empty())})
    if (given && !of_model) throw UserError(std::string("trace: ") + option + " is for a model folder with --level fx");
  const std::string format = format_of(o);  // before the work
  const DrawnGraph found = graph_of(o);
  put(drawn(*found.graph, format, found.draw), o.output);
  if (o.explain) fmt::print("{}{}", o.output.empty() || o.output == "-" ? "\n" : "", explanation(*found.traced));
}

void draw_diff(const DiffOptions& o) {
  TraceOptions options;
  options.output = o.output;
  options.model_class = o.model_class;
  options.dtype = o.dtype;
  if (format_of(options) != "html")
    throw UserError("diff: " + o.output + ": the differences of two graphs are a page; expected a name that ends in .html");
  options.model = o.a;
  const DrawnGraph graph_a = graph_of(options);
  options.model = o.b;
  const DrawnGraph graph_b = graph_of(options);
  put(to_html(*graph_a.graph, graph_a.draw, *graph_b.graph, graph_b.draw), o.output);
}

}  // namespace calque::cli

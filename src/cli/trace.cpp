// calque trace MODEL: the graph of a model folder or a built-in example, in a form for people or tools.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/graph/code.h"
#include "calque/graph/draw.h"
#include "calque/graph/text.h"
#include "calque/hub/pretrained_model.h"
#include "calque/trace/make_fx.h"
#include "calque/trace/tracer.h"
#include "cli/command.h"
#include "cli/examples.h"
#include "cli/models.h"

namespace calque::cli {
namespace {

std::string format_of(const TraceOptions& o) {
  if (!o.format.empty()) return o.format;
  for (const char* known : {"json", "dot", "html"})
    if (o.output.ends_with(std::string(".") + known)) return known;
  return o.output.ends_with(".py") ? "code" : "text";
}

std::string drawn(const Graph& graph, const std::string& format, const std::string& name) {
  DrawOptions draw;
  draw.name = name;
  if (format == "table") return tabular(graph);
  if (format == "code") return python_code(graph);
  if (format == "json") return to_json(graph, 1) + "\n";
  if (format == "dot") return to_dot(graph, draw);
  if (format == "html") return to_html(graph, draw);
  return text_with_symbols(graph);
}

void put(const std::string& text, const std::string& path) {
  if (path.empty()) {
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
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, "", o.attention});
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
  for (const std::string& name : model->argument_names())
    if (std::find(out.names.begin(), out.names.end(), name) == out.names.end())
      out.fx.concrete_args.emplace_back(name, Value());
  for (size_t i = 0; i < out.names.size(); ++i) out.fx.examples.emplace_back(out.names[i], out.inputs[i]);
  out.fx.symbolic = true;
  return out;
}

}  // namespace

void run_trace(const TraceOptions& o) {
  if (o.list || o.model.empty()) {
    if (!o.list) throw UserError("trace: give an example's name, or --list");
    for (const Example& e : examples()) fmt::print("{:<12}{}\n", e.name, e.shows);
    return;
  }
  const TraceSource source = names_model(o.model) ? traced_model(o) : traced_example(o);
  const GradModeScope no_grad(false);
  if (o.level == "fx") {
    if (o.explain) throw UserError("trace: --explain speaks of guards, which level aten has; leave --level fx out");
    const auto traced = symbolic_trace(*source.module, source.fx);
    put(drawn(traced->graph(), format_of(o), o.model), o.output);
    return;
  }
  MakeFxOptions options;
  options.mode = o.mode == "real" ? TracingMode::real : o.mode == "fake" ? TracingMode::fake : TracingMode::symbolic;
  options.names = source.names;
  options.allow_non_fake_inputs = true;
  options.record_module_stack = true;
  options.pytorch_guards = o.pytorch_guards;
  const TracedGraph traced = make_fx_values(source.call, source.inputs, options);
  put(drawn(traced.graph(), format_of(o), o.model), o.output);
  if (o.explain) fmt::print("{}{}", o.output.empty() ? "\n" : "", explanation(traced));
}

}  // namespace calque::cli

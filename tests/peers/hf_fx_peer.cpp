// Symbolic traces of model folders, for tests/peers/hf_fx.py: a list of jobs from standard input, a list of results to standard
// output. A job names a folder, a class and the inputs; its result has the graph's nodes, and how the graph's values at other sizes
// differ from the model's.
#include <cmath>
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/hf_tracer.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/traced_model.h"

using namespace calque;

namespace {

void flatten(const std::string& name, const Value& value, NamedTensors& out) {
  if (value.is_tensor()) {
    out.emplace_back(name, value.to_tensor().contiguous().clone());  // some outputs are one tensor
  } else if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list) {
    for (size_t i = 0; i < value.to_items().size(); ++i) flatten(name + "." + std::to_string(i), value.to_items()[i], out);
  } else if (value.kind() == Value::Kind::dict) {
    for (const auto& [key, item] : value.to_dict().items)
      flatten(name.empty() ? key.to_string() : name + "." + key.to_string(), item, out);
  }
}

NamedTensors flat(const Value& value) {
  NamedTensors out;
  flatten("", value, out);
  return out;
}

// "past_key_values.0.1" is an item of an item.
Value tree_of(const SafetensorsFile& file, const std::string& name) {
  const std::vector<std::string> names = file.names();
  if (std::ranges::find(names, name) != names.end()) return file.tensor(name).clone();
  Values items;
  for (size_t i = 0;; ++i) {
    const std::string item = name + "." + std::to_string(i);
    if (std::ranges::none_of(names, [&](const std::string& n) { return n == item || n.starts_with(item + "."); })) break;
    items.push_back(tree_of(file, item));
  }
  if (items.empty()) throw UserError("no tensor " + name + " in the file");
  return tuple(std::move(items));
}

double difference(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return INFINITY;
  double worst = 0;
  const Tensor x = a.to(DType::float64).contiguous(), y = b.to(DType::float64).contiguous();
  const auto* p = x.data_ptr<const double>();
  const auto* q = y.data_ptr<const double>();
  for (int64_t i = 0; i < x.numel(); ++i)
    worst = std::max(worst, p[i] == q[i] || (std::isnan(p[i]) && std::isnan(q[i])) ? 0 : std::abs(p[i] - q[i]));
  return worst;
}

nlohmann::json compared(const NamedTensors& expected, const NamedTensors& found) {
  nlohmann::json out = {{"keys", nlohmann::json::array()}, {"worst", 0.0}};
  std::map<std::string, Tensor> by_name(found.begin(), found.end());
  for (const auto& [name, tensor] : expected) {
    out["keys"].push_back(name);
    const auto at = by_name.find(name);
    const double d = at == by_name.end() ? INFINITY : difference(tensor, at->second);
    if (!(d <= out["worst"].get<double>())) out["worst"] = std::isinf(d) ? 1e30 : d;
  }
  if (expected.size() != found.size()) out["worst"] = 1e30;
  return out;
}

nlohmann::json listed(const Graph& graph) {
  nlohmann::json out = nlohmann::json::array();
  for (const Node* n : graph.nodes()) out.push_back({name(n->kind()), n->target().str()});
  return out;
}

nlohmann::json traced(const nlohmann::json& job) {
  nlohmann::json result;
  LoadOptions load;
  load.model_class = job.at("class");
  load.attention = job.value("attention", "eager");
  const std::shared_ptr<PretrainedModel> model = from_pretrained(job.at("folder").get<std::string>(), load);
  if (job.contains("problem_type")) model->config().set("problem_type", job.at("problem_type").get<std::string>());
  const std::vector<std::string> names = job.at("names");
  if (std::ranges::find(names, "past_key_values") != names.end())
    for (Module* module : model->modules())
      if (auto* part = dynamic_cast<PretrainedModel*>(module)) part->config().set("use_cache", true);
  const std::shared_ptr<TracedModel> graph = symbolic_trace(*model, names);
  graph->graph().lint();
  result["nodes"] = listed(graph->graph());
  const GradModeScope no_grad(false);
  std::shared_ptr<TracedModel> restored;
  if (job.contains("save")) {
    try {
      save_traced_model(*graph, job.at("save").get<std::string>());
      restored = load_traced_model(job.at("save").get<std::string>());
    } catch (const UserError& error) {
      result["save_error"] = error.what();
    }
  }
  result["runs"] = nlohmann::json::array();
  for (const auto& run : job.at("runs")) {
    const SafetensorsFile file = SafetensorsFile::open(run.at("inputs").get<std::string>());
    Kwargs inputs;
    for (const std::string& name : model->argument_names())
      if (std::ranges::find(names, name) != names.end()) inputs.emplace_back(name, tree_of(file, name));
    const NamedTensors eager = flat(model->call({}, inputs));
    const NamedTensors from_graph = flat(graph->call({}, inputs));
    nlohmann::json one = compared(eager, from_graph);
    if (restored) one["restored"] = compared(from_graph, flat(restored->call({}, inputs)))["worst"];
    if (run.contains("outputs")) save_safetensors(run.at("outputs").get<std::string>(), from_graph);
    result["runs"].push_back(std::move(one));
  }
  return result;
}

}  // namespace

int main() {
  const nlohmann::json jobs = nlohmann::json::parse(std::cin);
  for (const auto& job : jobs) {
    nlohmann::json result;
    try {
      result = traced(job);
    } catch (const std::exception& e) {
      result = {{"error", e.what()}};
    }
    fmt::print("{}\n", result.dump());
    std::fflush(stdout);
  }
  return 0;
}

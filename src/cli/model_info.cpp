// calque info FOLDER, calque diff FOLDER FOLDER: what a model is.
#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/operator.h"
#include "calque/trace/make_fx.h"
#include "cli/json_text.h"
#include "cli/models.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

// Of a fake tensor without symbols.
const Tensor& value_of(const Value& argument) { return argument.to_node()->meta.val.to_tensor(); }
double product(IntList sizes) {
  double out = 1;
  for (const int64_t size : sizes) out *= static_cast<double>(size);
  return out;
}
const Tensor& result_of(const Node& node) {
  const Value& val = node.meta.val;
  return val.is_tensor() ? val.to_tensor() : val.to_items().at(0).to_tensor();
}

// Of a product of matrices: `matrix` is the argument whose last dimension is summed over.
template <size_t matrix>
double product_flops(const Node& node) {
  return 2 * product(result_of(node).sizes()) * static_cast<double>(value_of(node.args().at(matrix)).sizes().back());
}
double attention_flops(const Node& node) {
  const Tensor& query = value_of(node.args().at(0));
  const Tensor& key = value_of(node.args().at(1));
  const Tensor& value = value_of(node.args().at(2));
  const double pairs =
      product(query.sizes()) / static_cast<double>(query.sizes().back()) * static_cast<double>(key.size(-2));
  return 2 * pairs * static_cast<double>(query.sizes().back() + value.sizes().back());
}
double convolution_flops(const Node& node) {
  const Tensor& weight = value_of(node.args().at(1));
  return 2 * product(result_of(node).sizes()) * product(weight.sizes()) / static_cast<double>(weight.size(0));
}

using FlopRule = double (*)(const Node&);

// get_operator throws for a name that no operator has: a misspelt rule fails the first model that is looked at.
std::unordered_map<const Operator*, FlopRule> make_flop_rules() {
  static constexpr std::pair<const char*, FlopRule> rules[] = {
      {"mm", product_flops<0>},
      {"bmm", product_flops<0>},
      {"addmm", product_flops<1>},
      {"baddbmm", product_flops<1>},
      {"_scaled_dot_product_attention_math", attention_flops},
      {"_scaled_dot_product_flash_attention_for_cpu", attention_flops},
      {"convolution", convolution_flops},
  };
  std::unordered_map<const Operator*, FlopRule> out;
  for (const auto& [name, rule] : rules) out.emplace(&get_operator(aten_name(name)), rule);
  return out;
}

double flops_of(const Node& node) {
  static const std::unordered_map<const Operator*, FlopRule> rules = make_flop_rules();
  const auto found = rules.find(node.op());
  return found == rules.end() ? 0 : found->second(node);
}

struct DTypeTotal {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

struct Summary {
  std::map<std::string, DTypeTotal> dtypes;
  DTypeTotal all;
  std::vector<std::pair<std::string, uint64_t>> files;  // of weights, with their bytes
};

bool is_weights(const std::string& name) {
  return name.ends_with(".safetensors") || (name.ends_with(".bin") && name.starts_with("pytorch_model"));
}

Summary summary_of(PretrainedModel& model, const std::string& folder) {
  Summary out;
  const auto add = [](DTypeTotal& to, const Tensor& t) {
    ++to.tensors;
    to.elements += static_cast<uint64_t>(t.numel());
    to.bytes += static_cast<uint64_t>(t.numel()) * item_size(t.dtype());
  };
  for (const Tensor& t : model.parameters()) {
    add(out.dtypes[std::string(name(t.dtype()))], t);
    add(out.all, t);
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_weights(entry.path().filename().string()))
      out.files.emplace_back(entry.path().filename().string(), entry.file_size());
  std::sort(out.files.begin(), out.files.end());
  return out;
}

// What a reader wants to know of a configuration first; each under the architecture's own name for it.
std::vector<std::pair<std::string, Value>> main_settings(const Config& config) {
  std::vector<std::pair<std::string, Value>> out;
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "encoder_layers", "decoder_layers", "num_attention_heads", "num_key_value_heads",
        "intermediate_size", "hidden_act", "max_position_embeddings", "vocab_size", "tie_word_embeddings"})
    if (config.has(key)) out.emplace_back(key, *config.find(key));
  return out;
}

struct AdapterLine {
  std::string name, type, targets;
  uint64_t parameters = 0;
};

std::vector<AdapterLine> adapter_lines(PretrainedModel& model) {
  std::vector<AdapterLine> out;
  for (const std::string& name : adapter_names(model)) {
    const AdapterConfig& config = adapter_config(model, name);
    AdapterLine& line = out.emplace_back(AdapterLine{name, std::string(peft_type(config.type())), "", 0});
    if (config.type() == AdapterType::lora) line.type += " r=" + config["r"].str();
    const AdapterConfig::Names targets =
        config.is_prompt_learning() ? AdapterConfig::Names{} : config.names("target_modules");
    line.targets = targets.pattern.value_or(join(targets.list, ", "));
    for (const auto& [key, tensor] : adapter_state_dict(model, name))
      line.parameters += static_cast<uint64_t>(tensor.numel());
  }
  return out;
}

std::string human_count(double value) {
  for (const auto& [size, suffix] : {std::pair(1e12, "T"), {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= size) return fmt::format("{:.1f} {}", value / size, suffix);
  return fmt::format("{:.0f} ", value);
}

bool takes_tokens(const PretrainedModel& model) { return model.main_input_name() == arg::input_ids.name; }

void print_json(const InfoOptions& options, PretrainedModel& model, const Summary& s, double flops) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["path"] = options.path;
  out["format"] = "model";
  out["class"] = model.class_name();
  out["model_type"] = model.config().model_type();
  out["parameters"] = s.all.elements;
  out["parameter_bytes"] = s.all.bytes;
  out[takes_tokens(model) ? "flops_per_token" : "flops_per_sample"] = flops;
  out["settings"] = Json::object();
  for (const auto& [key, value] : main_settings(model.config())) out["settings"][key] = to_json(value);
  for (const AdapterLine& one : adapter_lines(model))
    out["adapters"].push_back(
        {{"name", one.name}, {"type", one.type}, {"targets", one.targets}, {"parameters", one.parameters}});
  out["dtypes"] = Json::object();
  for (const auto& [dtype, t] : s.dtypes)
    out["dtypes"][dtype] = {{"tensors", t.tensors}, {"parameters", t.elements}, {"bytes", t.bytes}};
  out["files"] = Json::array();
  for (const auto& [name, bytes] : s.files) out["files"].push_back({{"name", name}, {"bytes", bytes}});
  out["arguments"] = model.argument_names();
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_text(const InfoOptions& options, PretrainedModel& model, const Summary& s, double flops) {
  using Align = Table::Align;
  fmt::print("{}: {} ({}), {} parameters, {}, {}FLOPs a {}\n", options.path, model.class_name(), model.config().model_type(),
             with_thousands(s.all.elements), human_bytes(s.all.bytes), human_count(flops),
             takes_tokens(model) ? "token" : "sample");
  Table settings({{"setting"}, {"value", Align::right}});
  for (const auto& [key, value] : main_settings(model.config())) settings.add({key, value.str()});
  fmt::print("\n{}", settings.str());
  Table adapters({{"adapter"}, {"type"}, {"targets"}, {"parameters", Align::right}});
  for (const AdapterLine& one : adapter_lines(model))
    adapters.add({printable(one.name), one.type, printable(one.targets), with_thousands(one.parameters)});
  if (model.adapters) fmt::print("\n{}", adapters.str());
  Table dtypes({{"dtype"}, {"tensors", Align::right}, {"parameters", Align::right}, {"bytes", Align::right}});
  for (const auto& [dtype, t] : s.dtypes)
    dtypes.add({dtype, with_thousands(t.tensors), with_thousands(t.elements), with_thousands(t.bytes)});
  fmt::print("\n{}", dtypes.str());
  Table files({{"weights"}, {"bytes", Align::right}});
  for (const auto& [name, bytes] : s.files) files.add({printable(name), with_thousands(bytes)});
  fmt::print("\n{}", files.str());
  const std::string arguments = join(model.argument_names(), ", ");
  fmt::print("\nforward takes {}\n", arguments);
}

NamedTensors state_of(PretrainedModel& model) {
  NamedTensors out;
  for (const auto& [name, t] : model.state_dict()) out.emplace_back(name, t);
  std::sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  return out;
}

// Keys that say how a file came to be, not what the model is.
bool is_origin(const std::string& key) {
  return key == "transformers_version" || key == "_name_or_path" || key == "dtype" || key == "torch_dtype";
}

std::string config_difference(const Config& a, const Config& b) {
  std::string out;
  const auto text = [](const Value* value) { return value ? value->str() : std::string("absent"); };
  const auto add = [&](const std::string& key) {
    if (is_origin(key) || text(a.find(key)) == text(b.find(key))) return;
    out += (out.empty() ? "" : ", ") + key + " " + text(a.find(key)) + " and " + text(b.find(key));
  };
  for (const auto& [key, value] : a.items()) add(key);
  for (const auto& [key, value] : b.items())
    if (!a.find(key)) add(key);
  return out;
}

}  // namespace

double forward_flops(PretrainedModel& model, const ModelInputs& inputs) {
  const GradModeScope no_grad(false);
  std::vector<std::string> names;
  Values values;
  for (auto& [name, value] : inputs.to_kwargs(model.arguments())) {
    names.push_back(name);
    values.push_back(value);
  }
  MakeFxOptions options;
  options.mode = TracingMode::fake;
  options.allow_non_fake_inputs = true;
  const TracedGraph traced = make_fx_values(
      [&](const Values& in) {
        Kwargs kwargs;
        for (size_t i = 0; i < names.size(); ++i) kwargs.emplace_back(names[i], in[i]);
        return model.call({}, kwargs);
      },
      values, options);
  double out = 0;
  for (const Node* node : traced.graph().nodes()) out += flops_of(*node);
  return out;
}

void run_model_info(const InfoOptions& options) {
  // Of the weights only the headers: what is said here follows from sizes.
  const Progress progress("looking at " + options.path);
  const std::string folder = model_folder(options.path);
  LoadOptions load{.variant = current_read_variant(), .values = false};
  if (!options.dtype.empty()) load.dtype = dtype_option(options.dtype);
  const std::shared_ptr<PretrainedModel> model = from_pretrained(folder, load);
  const ModelInputs inputs = model->example_inputs();
  const Tensor main = inputs.tensor(model->main_input_name());
  const int64_t count = takes_tokens(*model) ? main.numel() : main.size(0);
  const double flops = forward_flops(*model, inputs) / static_cast<double>(count);
  const Summary s = summary_of(*model, folder);
  options.json ? print_json(options, *model, s, flops) : print_text(options, *model, s, flops);
}

void run_model_diff(const DiffOptions& options) {
  const std::shared_ptr<PretrainedModel> a = load_model({options.a, options.model_class, options.dtype, ""});
  const std::shared_ptr<PretrainedModel> b = load_model({options.b, options.model_class, options.dtype, ""});
  FileComparison c = compare_states(state_of(*a), state_of(*b), options.same);
  std::string why;
  if (a->class_name() != b->class_name()) why = "classes differ: " + a->class_name() + " and " + b->class_name();
  if (const std::string text = config_difference(a->config(), b->config()); !text.empty())
    why += (why.empty() ? "" : "; ") + ("configurations differ: " + text);
  c.same &= why.empty();
  print_diff(options, c, why.empty() ? "the same configuration" : why);
  if (!c.same) throw ExitStatus{1};
}

}  // namespace calque::cli

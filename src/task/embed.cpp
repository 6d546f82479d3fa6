#include "calque/task/embed.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/hub/registry.h"
#include "calque/nn/activation.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/norms.h"
#include "calque/op/operators.h"
#include "task/files.h"
#include "task/text_case.h"

namespace calque {

namespace fs = std::filesystem;

namespace {

// What comes behind the pooling: each makes other vectors of the vectors.
using VectorStep = std::function<Tensor(const Tensor&)>;

// The folder's own words for one pooling or several, in the order in which they are put side by side.
std::vector<Pooling> read_pooling(const Json& json) {
  static constexpr std::pair<std::string_view, Pooling> flags[] = {
      {"pooling_mode_cls_token", Pooling::cls},
      {"pooling_mode_max_tokens", Pooling::max},
      {"pooling_mode_mean_tokens", Pooling::mean},
      {"pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
      {"pooling_mode_weightedmean_tokens", Pooling::weighted_mean},
      {"pooling_mode_lasttoken", Pooling::last}};
  std::vector<Pooling> out;
  if (const Json* mode = member_or_null(json, "pooling_mode")) {
    if (mode->is_string()) return {pooling_from_name(mode->to_string())};
    for (const Json& one : mode->items()) out.push_back(pooling_from_name(one.to_string()));
    return out;
  }
  bool named = false;
  for (const auto& [key, pooling] : flags)
    if (const Json* flag = member_or_null(json, key)) {
      named = true;
      if (flag->to_bool()) out.push_back(pooling);
    }
  if (!named) return {Pooling::mean};
  if (out.empty()) json.fail("no pooling is on");
  return out;
}

VectorStep activation_step(const Json* json, const Json& root) {
  if (!json) return [](const Tensor& x) { return x.tanh(); };
  const std::string_view name = json->to_string().substr(json->to_string().rfind('.') + 1);
  if (name == "Identity") return [](const Tensor& x) { return x; };
  if (name == "Tanh") return [](const Tensor& x) { return x.tanh(); };
  if (name == "ReLU") return [](const Tensor& x) { return x.relu(); };
  if (name == "GELU") return [](const Tensor& x) { return gelu(x); };
  if (name == "Sigmoid") return [](const Tensor& x) { return x.sigmoid(); };
  if (name == "SiLU") return [](const Tensor& x) { return silu(x); };
  root.fail(fmt::format("activation_function is '{}'; expected Identity, Tanh, ReLU, GELU, Sigmoid or SiLU", name));
}

// Weights of a module of a few tensors, by name.
NamedTensors module_weights(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"})
    if (is_file(folder / name)) return Checkpoint::open(checkpoint_at(folder / name)).tensors();
  throw UserError(ErrorKind::bad_file, folder.string() + ": neither model.safetensors nor pytorch_model.bin is here");
}

Tensor named_weight(const NamedTensors& weights, std::string_view name, const fs::path& folder, bool needed) {
  for (const auto& [key, tensor] : weights)
    if (key == name) return tensor.to(DType::float32);
  if (!needed) return {};
  throw UserError(ErrorKind::bad_file, fmt::format("{}: its weights lack '{}'", folder.string(), name));
}

VectorStep dense_step(const fs::path& folder) {
  const NamedTensors weights = module_weights(folder);
  const Tensor weight = named_weight(weights, "linear.weight", folder, true);
  const Tensor bias = named_weight(weights, "linear.bias", folder, false);
  VectorStep activation;
  read_json_file(folder / "config.json",
                 [&](const Json& json) { activation = activation_step(member_or_null(json, "activation_function"), json); });
  if (weight.dim() != 2)
    throw UserError(ErrorKind::bad_file, fmt::format("{}: linear.weight has to have two dimensions, found {}",
                                                     folder.string(), str(weight.sizes())));
  return [weight, bias, activation, name = folder.string()](const Tensor& x) {
    if (x.size(1) != weight.size(1))
      throw UserError(ErrorKind::bad_file, fmt::format("{}: its layer takes vectors of {}, but those before it have {}",
                                                       name, weight.size(1), x.size(1)));
    return activation(linear(x, weight, bias));
  };
}

VectorStep norm_step(const fs::path& folder) {
  const NamedTensors weights = module_weights(folder);
  const Tensor weight = named_weight(weights, "norm.weight", folder, true);
  const Tensor bias = named_weight(weights, "norm.bias", folder, true);
  return [weight, bias](const Tensor& x) { return layer_norm(x, {x.size(1)}, weight, bias); };
}

Tensor of_length_one(const Tensor& x) { return x / linalg_vector_norm(x, 2, {1}, true).clamp_min(1e-12); }

}  // namespace

struct SentenceEncoder::Impl {
  std::shared_ptr<PretrainedModel> model;
  std::optional<Tokenizer> tokenizer;
  std::vector<Pooling> pooling = {Pooling::mean};
  std::vector<VectorStep> steps;
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string default_prompt;  // its name; empty: none
  std::optional<size_t> max_length;
  bool lower = false;
  bool include_prompt = true;  // the prompt's tokens count in the pooling

  void read_modules(const fs::path& folder);
  void read_module(const fs::path& folder, const Json& json, const std::string& file);
  void read_transformer(const fs::path& folder);
  void read_prompts(const fs::path& file);
  std::string prompt_of(const EmbedOptions& options) const;
  ModelOutput run(const ModelInputs& inputs) const;
  Tensor vectors_of(const TextInputs& made, size_t prompt_tokens) const;

  // A capture costs as much as a few short texts, and most who embed one text embed no other: the first batch runs eagerly.
  std::optional<Compiled> compiled;
  mutable std::atomic<bool> has_run = false;
  fs::path transformer;  // the folder of the model and its tokenizer
  bool has_pooling = false;
};

// How long a text may be, and in which case: the file has the name of the class that wrote it.
void SentenceEncoder::Impl::read_transformer(const fs::path& folder) {
  transformer = folder;
  for (const char* kind : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const fs::path file = folder / fmt::format("sentence_{}_config.json", kind);
    if (!is_file(file)) continue;
    read_json_file(file, [&](const Json& json) {
      if (const Json* length = member_or_null(json, "max_seq_length")) {
        if (length->to_int() < 1) length->fail("max_seq_length has to be at least 1");
        max_length = static_cast<size_t>(length->to_int());
      }
      if (const Json* flag = member_or_null(json, "do_lower_case")) lower = flag->to_bool();
    });
    return;
  }
}

void SentenceEncoder::Impl::read_module(const fs::path& folder, const Json& json, const std::string& file) {
  const std::string_view type = json.at("type").to_string();
  const std::string_view kind = type.substr(type.rfind('.') + 1);
  const fs::path path = path_inside(folder, std::string(json.at("path").to_string()), file);
  if (kind == "Transformer") return read_transformer(path);
  if (kind == "Pooling") {
    has_pooling = true;
    return read_json_file(path / "config.json", [&](const Json& config) {
      pooling = read_pooling(config);
      if (const Json* flag = member_or_null(config, "include_prompt")) include_prompt = flag->to_bool();
    });
  }
  if (kind == "Normalize") return steps.push_back(of_length_one);
  if (kind == "Dense") return steps.push_back(dense_step(path));
  if (kind == "LayerNorm") return steps.push_back(norm_step(path));
  if (kind == "Dropout") return;  // does nothing outside training
  json.fail(fmt::format(
      "the module '{}' is not supported; Transformer, Pooling, Dense, LayerNorm, Dropout and Normalize are", type));
}

void SentenceEncoder::Impl::read_modules(const fs::path& folder) {
  const fs::path file = folder / "modules.json";
  if (!is_file(file)) return read_transformer(folder);
  read_json_file(file, [&](const Json& json) {
    for (const Json& module : json.items()) read_module(folder, module, file.string());
  });
  if (transformer.empty()) throw UserError(ErrorKind::bad_file, file.string() + ": it names no Transformer");
  if (!has_pooling)
    throw UserError(ErrorKind::bad_file, file.string() + ": it names no Pooling, which makes one vector of a text");
}

void SentenceEncoder::Impl::read_prompts(const fs::path& file) {
  if (!is_file(file)) return;
  read_json_file(file, [&](const Json& json) {
    if (const Json* found = member_or_null(json, "prompts"))
      for (const JsonMember& one : found->members())
        if (!one.value.is_null()) prompts.emplace_back(one.key, one.value.to_string());
    if (const Json* found = member_or_null(json, "default_prompt_name")) default_prompt = found->to_string();
  });
}

std::string SentenceEncoder::Impl::prompt_of(const EmbedOptions& options) const {
  if (options.prompt) return *options.prompt;
  const std::string& name = options.prompt_name ? *options.prompt_name : default_prompt;
  if (name.empty()) return "";
  const auto found = std::ranges::find(prompts, name, &std::pair<std::string, std::string>::first);
  if (found != prompts.end()) return found->second;
  throw UserError(fmt::format("there is no prompt '{}'; the model has {}", name,
                              prompts.empty() ? "none" : join(prompts, ", ", [](const auto& one) { return one.first; })));
}

ModelOutput SentenceEncoder::Impl::run(const ModelInputs& inputs) const {
  if (!has_run.exchange(true)) return (*model)(inputs);
  return ModelOutput::from_value(compiled->call({}, inputs.to_kwargs(model->arguments())));
}

Tensor SentenceEncoder::Impl::vectors_of(const TextInputs& made, size_t prompt_tokens) const {
  const auto& rows = made.batch.rows;
  std::vector<int64_t> counted;
  for (const Encoding& row : rows) {
    const auto first = std::ranges::find(row.attention_mask, 1);
    const auto begin = static_cast<size_t>(first - row.attention_mask.begin());
    for (size_t i = 0; i < row.size(); ++i) counted.push_back(row.attention_mask[i] && i >= begin + prompt_tokens);
  }
  const Tensor mask = tensor_of<int64_t>(counted, {std::ssize(rows), std::ssize(rows.front().ids)});
  Tensor out = pooled(run(made.inputs)["last_hidden_state"], mask, pooling);
  for (const VectorStep& step : steps) out = step(out);
  return out;
}

SentenceEncoder::SentenceEncoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SentenceEncoder::SentenceEncoder(SentenceEncoder&&) noexcept = default;
SentenceEncoder& SentenceEncoder::operator=(SentenceEncoder&&) noexcept = default;
SentenceEncoder::~SentenceEncoder() = default;

SentenceEncoder SentenceEncoder::from_folder(const fs::path& given, const SentenceEncoderOptions& options) {
  const fs::path folder = ModelFiles(given.string()).folder();
  auto impl = std::make_unique<Impl>();
  impl->read_modules(folder);
  impl->read_prompts(folder / "config_sentence_transformers.json");
  if (options.pooling) impl->pooling = {*options.pooling};
  if (options.normalize) impl->steps.push_back(of_length_one);
  LoadOptions load = options.load;
  if (load.model_class.empty()) {
    // The encoder alone where the architecture can be one.
    const std::string type = config_from_pretrained(impl->transformer).model_type();
    load.task = model_registry().find_task(type, "text-encoding") ? "text-encoding" : "default";
  }
  impl->model = from_pretrained(impl->transformer, load);
  impl->model->config().set("use_cache", false);
  CompileOptions any_size;
  any_size.dynamic = true;
  impl->compiled = compile(impl->model, any_size);
  impl->tokenizer = Tokenizer::from_file(impl->transformer);
  if (!impl->max_length) impl->max_length = longest_input(*impl->model, *impl->tokenizer);
  return SentenceEncoder(std::move(impl));
}

Tensor SentenceEncoder::embed(std::span<const std::string> texts, const EmbedOptions& options) const {
  if (texts.empty()) throw UserError("embed: there is no text; give at least one");
  const GradModeScope no_grad(false);
  const std::string prompt = impl_->prompt_of(options);
  // Of the prompt's own tokens those count as the prompt's that a text behind it follows: all but what ends it.
  size_t prompt_tokens = 0;
  if (!prompt.empty() && !impl_->include_prompt) {
    prompt_tokens = impl_->tokenizer->encode_ids(prompt).size();
    const std::vector<int64_t> ids = impl_->tokenizer->encode_ids(prompt);
    if (!ids.empty() && impl_->tokenizer->is_special(ids.back())) --prompt_tokens;
  }
  std::vector<TextInput> inputs;
  inputs.reserve(texts.size());
  for (const std::string& text : texts) {
    std::string whole = stripped(prompt + text);
    inputs.emplace_back(impl_->lower ? lower_text(whole) : std::move(whole));
  }
  Tensor out;
  TextInputOptions cut;
  cut.max_length = impl_->max_length;
  const auto take = [&](const TextInputs& made, std::span<const size_t> places) {
    const Tensor vectors = impl_->vectors_of(made, prompt_tokens).contiguous();
    const auto size = static_cast<size_t>(vectors.size(1));
    if (!out.defined()) out = make_tensor({std::ssize(texts), vectors.size(1)}, DType::float32);
    for (size_t i = 0; i < places.size(); ++i)
      std::memcpy(out.mutable_data_as<float>() + places[i] * size, vectors.data_as<float>() + i * size,
                  size * sizeof(float));
  };
  in_batches(*impl_->model, *impl_->tokenizer, inputs, cut, options.batch_size, options.progress, take);
  return out;
}

const std::vector<std::pair<std::string, std::string>>& SentenceEncoder::prompts() const { return impl_->prompts; }
std::optional<size_t> SentenceEncoder::max_length() const { return impl_->max_length; }
const Tokenizer& SentenceEncoder::tokenizer() const { return *impl_->tokenizer; }
PretrainedModel& SentenceEncoder::model() const { return *impl_->model; }

}  // namespace calque

#include "hub/adapter/prompt.h"

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/hub_cache.h"
#include "calque/hub/resize.h"
#include "calque/hub/text_part.h"
#include "calque/nn/activation.h"
#include "calque/nn/container.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/make.h"
#include "calque/text/tokenizer.h"

namespace calque {
namespace adapter {
namespace {

constexpr const char* child_name = "prompt_encoder";

// What an adapter says of the positions that it puts before a text.
struct PromptForm {
  AdapterType type = AdapterType::prompt_tuning;
  int64_t tokens = 0, layers = 0, heads = 0, width = 0;
  bool both_sides = false;  // of an encoder-decoder: PEFT lays keys and values out twice
  bool classifies = false;  // token types go on, with zeros in front
};

class PromptEncoder : public Module {
 public:
  PromptEncoder(const PromptForm& form, std::shared_ptr<Module> embedding, std::shared_ptr<Module> transform)
      : form(form), embedding_(child_module<Module>("embedding", std::move(embedding))) {
    if (transform) register_module("transform", std::move(transform));
  }
  std::string type_name() const override {
    return form.type == AdapterType::prompt_tuning ? "peft.tuners.prompt_tuning.model.PromptEmbedding"
                                                   : "peft.tuners.prefix_tuning.model.PrefixEncoder";
  }
  // [1, positions, width of all that a position has]
  Tensor prompt() const {
    const int64_t rows =
        form.type == AdapterType::prompt_tuning ? embedding_.module()->get_parameter("weight").size(0) : form.tokens;
    const Value found = nn_detail::reach(*module_slots()[0]).call({arange(rows).unsqueeze(0)});
    if (module_slots().size() == 1) return found.to_tensor();
    return nn_detail::reach(*module_slots()[1]).call({found}).to_tensor();
  }
  const Tensor& table() const { return embedding_.module()->get_parameter("weight"); }
  bool is_projected() const { return module_slots().size() > 1; }

  const PromptForm form;

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new PromptEncoder(*this)); }
  Child<Module> embedding_;
};

// All of a model, with the one that counts.
class PromptEncoders final : public ModuleDict {
 public:
  std::string type_name() const override { return "torch.nn.modules.container.ModuleDict"; }
  const PromptEncoder* now() const {
    return enabled && !active.empty() ? dynamic_cast<const PromptEncoder*>(find_submodule(active)) : nullptr;
  }
  std::string active;
  bool enabled = true;
  HookHandle hook;

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new PromptEncoders(*this)); }
};

PromptEncoders* encoders_of(const Module& model) { return dynamic_cast<PromptEncoders*>(model.find_submodule(child_name)); }

// ---- inputs with a prompt -------------------------------------------------------------------------------------------------

KeyValueCache prefix_cache(const PromptEncoder& encoder, const SymInt& rows, DType dtype) {
  const PromptForm& form = encoder.form;
  Tensor all = encoder.prompt().to(dtype).view({1, form.tokens, form.layers * 2, form.heads, form.width / form.heads});
  if (form.both_sides) all = cat({all, all}, 2);
  const Tensor parts = all.permute({2, 0, 3, 1, 4});
  const int64_t step = form.both_sides ? 4 : 2;
  KeyValueCache cache;
  const auto part = [&](int64_t i) {
    const Tensor one = parts.select(0, i);
    SymInts sizes(one.sym_sizes().begin(), one.sym_sizes().end());
    sizes[0] = rows;
    return one.expand(sizes);
  };
  for (int64_t layer = 0; layer < form.layers; ++layer) {
    LayerCache& made = cache.layers.emplace_back();
    made.key = part(layer * step);
    made.value = part(layer * step + 1);
  }
  return cache;
}

// Ones, or zeros, before what is given.
Tensor lengthened(const Tensor& given, int64_t tokens, double value) {
  return cat({full({given.sym_sizes()[0], tokens}, Scalar(value), given.dtype()), given}, 1);
}

void put_before(PretrainedModel& model, const PromptEncoder& encoder, ModelInputs& in) {
  const PromptForm& form = encoder.form;
  const bool encodes = model.is_encoder_decoder(), prefix = form.type == AdapterType::prefix_tuning;
  const Tensor ids = in[arg::input_ids], embeds = in[arg::inputs_embeds];
  const bool goes_on = !in[arg::past_key_values].empty();
  if (encodes && prefix) {
    if (const Tensor mask = in[arg::decoder_attention_mask]; mask.defined())
      in.set(arg::decoder_attention_mask, lengthened(mask, form.tokens, 1));
    const Tensor text = ids.defined() ? ids : embeds;
    if (goes_on) return;
    const Tensor written = in[arg::decoder_input_ids];
    const Tensor& rows_of = written.defined() ? written : text;
    if (rows_of.defined())
      in.set(arg::past_key_values, prefix_cache(encoder, rows_of.sym_sizes()[0], parameter_dtype(model)));
    return;
  }
  if (!ids.defined() && !embeds.defined()) return;
  const SymInt rows = (embeds.defined() ? embeds : ids).sym_sizes()[0];
  if (const Tensor mask = in[arg::attention_mask]; mask.defined() && mask.dim() == 2)
    in.set(arg::attention_mask, lengthened(mask, form.tokens, 1));
  if (const Tensor positions = in[arg::position_ids]; positions.defined()) {
    if (!prefix) warn("Position ids are not supported for parameter efficient tuning. Ignoring position ids.");
    in.set(arg::position_ids, prefix ? positions + Scalar(form.tokens) : Tensor());
  }
  if (const Tensor types = in[arg::token_type_ids]; types.defined() && !encodes) {
    if (!form.classifies) warn("Token type ids are not supported for parameter efficient tuning. Ignoring token type ids");
    if (!form.classifies)
      in.set(arg::token_type_ids, Tensor());
    else if (!prefix)
      in.set(arg::token_type_ids, lengthened(types, form.tokens, 0));
  }
  if (goes_on) return;
  if (prefix) return in.set(arg::past_key_values, prefix_cache(encoder, rows, parameter_dtype(model)));
  const Tensor text = embeds.defined() ? embeds
                                       : (model.input_embeddings() ? *model.input_embeddings()
                                                                   : *model.base_model().input_embeddings())(ids);
  Tensor prompt = encoder.prompt().to(text.dtype());
  if (encodes) prompt = prompt.narrow(1, 0, form.tokens);
  if (const Tensor labels = in[arg::labels]; !encodes && labels.defined() && labels.dim() == 2 && !form.classifies)
    in.set(arg::labels, lengthened(labels, form.tokens, -100));
  in.set(arg::input_ids, Tensor());
  in.set(arg::inputs_embeds, cat({prompt.repeat({rows, 1, 1}), text}, 1));
}

std::optional<Module::Call> call_with_prompt(Module& module, const Values& args, const Kwargs& kwargs) {
  auto& model = dynamic_cast<PretrainedModel&>(module);
  const PromptEncoders* encoders = encoders_of(model);
  const PromptEncoder* encoder = encoders ? encoders->now() : nullptr;
  if (!encoder) return std::nullopt;
  ModelInputs in;
  for (size_t i = 0; i < args.size() && i < model.arguments().size(); ++i) in.set({model.arguments()[i], args[i]});
  for (const auto& [name, value] : kwargs)
    if (const ModelArgument* argument = find_argument(model.arguments(), name)) in.set({*argument, value});
  put_before(model, *encoder, in);
  return Module::Call{{}, in.to_kwargs(model.arguments())};
}

// ---- new prompts ------------------------------------------------------------------------------------------------------------

AdapterConfig completed_prompt(PretrainedModel& model, AdapterConfig config) {
  const Config text = text_part(model.config());
  const auto fill = [&](const char* name, int64_t value) {
    if (!config.has(name)) config.set(name, value);
  };
  if (!config.has("num_virtual_tokens"))
    throw UserError(config.where() + ": \"num_virtual_tokens\" is missing: how many positions does the prompt have?");
  if (!config.has("task_type")) {
    const std::string task = peft_task(model);
    config.set("task_type", task.empty() ? "FEATURE_EXTRACTION" : task);
  }
  fill("num_layers", text.integer("num_hidden_layers"));
  fill("token_dim", text.integer("hidden_size"));
  fill("num_attention_heads", text.integer("num_attention_heads"));
  if (config.type() == AdapterType::prefix_tuning) {
    if (text.has("num_key_value_heads")) {
      const int64_t heads = text.integer("num_key_value_heads");
      const int64_t size =
          text.optional_integer("head_dim").value_or(config["token_dim"].to_int() / config["num_attention_heads"].to_int());
      config.set("token_dim", heads * size);
      config.set("num_attention_heads", heads);
    }
    fill("encoder_hidden_size", config["token_dim"].to_int());
  }
  fill("num_transformer_submodules", config.text("task_type") == "SEQ_2_SEQ_LM" ? 2 : 1);
  return config;
}

// Products of numbers of a file are checked before memory is asked for.
void check_size(const AdapterConfig& config, std::initializer_list<int64_t> sizes) {
  constexpr int64_t most = int64_t{1} << 32;
  int64_t all = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(all, size, &all) || all > most)
      throw UserError(ErrorKind::bad_file, config.where() + ": the prompt would have more than " + std::to_string(most) +
                                               " numbers; look at num_virtual_tokens, num_layers and token_dim");
}

void start_from_words(PretrainedModel& model, const AdapterConfig& config, Embedding& table) {
  const std::string init = config.text("prompt_tuning_init");
  if (init == "RANDOM") return;
  const Embedding& words = get_input_embeddings(model);
  Tensor ids;
  if (init == "SAMPLE_VOCAB") {
    ids = randint(0, words.num_embeddings, {table.num_embeddings}, DType::int64);
  } else {
    if (!config.has("tokenizer_name_or_path") || !config.has("prompt_tuning_init_text"))
      throw UserError(config.where() +
                      ": \"prompt_tuning_init\" is \"TEXT\", which needs \"prompt_tuning_init_text\" and "
                      "\"tokenizer_name_or_path\"");
    const Tokenizer tokenizer = Tokenizer::from_file(ModelFiles(config.text("tokenizer_name_or_path")).folder());
    const auto encoded = tokenizer.encode(config.text("prompt_tuning_init_text")).ids;
    if (encoded.empty()) throw UserError(config.where() + ": \"prompt_tuning_init_text\" has no tokens");
    std::vector<int64_t> repeated;
    for (int64_t i = 0; i < table.num_embeddings; ++i)
      repeated.push_back(static_cast<int64_t>(encoded[static_cast<size_t>(i) % encoded.size()]));
    ids = tensor(repeated);
  }
  table.weight = words.weight->detach().index_select(0, ids).to(DType::float32);
}

std::shared_ptr<PromptEncoder> new_encoder(PretrainedModel& model, const AdapterConfig& config) {
  PromptForm form;
  form.type = config.type();
  form.tokens = config["num_virtual_tokens"].to_int();
  form.layers = config["num_layers"].to_int();
  form.heads = config["num_attention_heads"].to_int();
  form.width = config["token_dim"].to_int();
  form.both_sides = config["num_transformer_submodules"].to_int() == 2;
  const std::string task = config.text("task_type");
  form.classifies = task == "SEQ_CLS" || task == "TOKEN_CLS" || task == "QUESTION_ANS";
  if (config.type() == AdapterType::prompt_tuning) {
    const int64_t rows = form.tokens * config["num_transformer_submodules"].to_int();
    check_size(config, {rows, form.width});
    if (!config.flag("inference_mode") && form.width != get_input_embeddings(model).embedding_dim)
      throw UserError(config.where() + ": \"token_dim\" is " + std::to_string(form.width) +
                      ", but the model's embeddings have " + std::to_string(get_input_embeddings(model).embedding_dim) +
                      " numbers");
    auto table = std::make_shared<Embedding>(rows, form.width);
    if (!config.flag("inference_mode")) start_from_words(model, config, *table);
    return std::make_shared<PromptEncoder>(form, table, nullptr);
  }
  if (!model.takes(arg::past_key_values))
    throw UserError(config.where() + ": prefix tuning puts keys and values into a cache, and " + model.class_name() +
                    " does not take past_key_values; prompt tuning works for it");
  if (model.is_gradient_checkpointing()) throw UserError("PREFIX_TUNING does not work with gradient checkpointing.");
  if (form.width % form.heads != 0)
    throw UserError(config.where() + ": \"token_dim\" (" + std::to_string(form.width) +
                    ") has to be a multiple of "
                    "\"num_attention_heads\" (" +
                    std::to_string(form.heads) + ")");
  const bool zero = config.text("init_weights") == "zero";
  check_size(config, {form.tokens, form.layers, 2, form.width});
  const int64_t all = form.layers * 2 * form.width;
  if (!config.flag("prefix_projection") || config.flag("inference_mode")) {
    auto table = std::make_shared<Embedding>(form.tokens, all);
    if (zero) init::zeros_(table->weight);
    return std::make_shared<PromptEncoder>(form, table, nullptr);
  }
  const int64_t hidden = config["encoder_hidden_size"].to_int();
  check_size(config, {hidden, all});
  auto table = std::make_shared<Embedding>(form.tokens, form.width);
  auto first = std::make_shared<Linear>(form.width, hidden);
  auto last = std::make_shared<Linear>(hidden, all);
  if (zero) init::zeros_(last->weight), init::zeros_(last->bias);
  const std::vector<std::shared_ptr<Module>> parts{first, std::make_shared<Tanh>(), last};
  return std::make_shared<PromptEncoder>(form, table, std::make_shared<Sequential>(parts));
}

}  // namespace

AdapterConfig add_prompt(PretrainedModel& model, AdapterConfig config, const std::string& name, const Tensor* saved) {
  config = completed_prompt(model, std::move(config));
  const bool tuning = config.type() == AdapterType::prompt_tuning;
  const int64_t rows = config["num_virtual_tokens"].to_int();
  if (saved && (saved->dim() != 2 || saved->size(0) < rows || saved->size(0) > 2 * rows ||
                (tuning && saved->size(1) != config["token_dim"].to_int())))
    throw UserError(ErrorKind::bad_file, config.where() + ": \"num_virtual_tokens\" is " + std::to_string(rows) +
                                             " and \"token_dim\" " + config["token_dim"].str() +
                                             ", but prompt_embeddings have sizes " + str(saved->sizes()));
  const std::shared_ptr<PromptEncoder> made = new_encoder(model, config);
  PromptEncoders* encoders = encoders_of(model);
  if (!encoders) {
    auto all = std::make_shared<PromptEncoders>();
    encoders = all.get();
    model.register_module(child_name, all);
    encoders->hook = model.register_forward_pre_hook(call_with_prompt);
  }
  encoders->set(name, made);
  return config;
}

void delete_prompt(PretrainedModel& model, const std::string& name) {
  PromptEncoders* encoders = encoders_of(model);
  if (!encoders || !encoders->find_submodule(name)) return;
  encoders->delete_attribute(name);
  if (encoders->active == name) encoders->active.clear();
  if (encoders->size() > 0) return;
  encoders->hook.remove();
  model.delete_attribute(child_name);
}

void set_active_prompt(PretrainedModel& model, const std::vector<std::string>& names, bool trains) {
  PromptEncoders* encoders = encoders_of(model);
  if (!encoders) return;
  encoders->active.clear();
  for (const std::string& name : names) {
    if (!encoders->find_submodule(name)) continue;
    if (!encoders->active.empty())
      throw UserError("only one prompt can be active, found " + encoders->active + " and " + name);
    encoders->active = name;
  }
  for (const auto& slot : encoders->module_slots()) slot->module->requires_grad_(trains && slot->name == encoders->active);
}

void enable_prompt(PretrainedModel& model, bool enabled) {
  if (PromptEncoders* encoders = encoders_of(model)) encoders->enabled = enabled;
}

std::string active_prompt(const PretrainedModel& model) {
  const PromptEncoders* encoders = encoders_of(model);
  return encoders ? encoders->active : "";
}

Tensor prompt_to_save(PretrainedModel& model, const std::string& name) {
  const GradModeScope no_grad(false);
  const auto& encoder = dynamic_cast<const PromptEncoder&>(encoders_of(model)->get_submodule(name));
  return encoder.prompt().select(0, 0).detach();
}

void load_prompt(PretrainedModel& model, const std::string& name, const Tensor* saved, const std::string& where) {
  const auto& encoder = dynamic_cast<const PromptEncoder&>(encoders_of(model)->get_submodule(name));
  if (!saved)
    throw UserError(ErrorKind::bad_file, where + ": there is no tensor prompt_embeddings, which the adapter is made of");
  if (encoder.is_projected())
    throw UserError(
        where +
        ": the file holds what the projection gave, so that an adapter with prefix_projection cannot be trained on; "
        "load it to be used (trains=false)");
  if (!std::ranges::equal(saved->sizes(), encoder.table().sizes()))
    throw UserError(ErrorKind::bad_file, where + ": prompt_embeddings have sizes " + str(saved->sizes()) + ", expected " +
                                             str(encoder.table().sizes()) + " of adapter_config.json and the model");
  const GradModeScope no_grad(false);
  encoder.table().detach().copy_(*saved);
}

}  // namespace adapter

std::string peft_task(const PretrainedModel& model) {
  const std::string name = model.class_name();
  if (name.ends_with("ForSequenceClassification")) return "SEQ_CLS";
  if (name.ends_with("ForTokenClassification")) return "TOKEN_CLS";
  if (name.ends_with("ForQuestionAnswering")) return "QUESTION_ANS";
  if (model.is_encoder_decoder() && model.can_generate()) return "SEQ_2_SEQ_LM";
  return model.can_generate() ? "CAUSAL_LM" : "";
}

int64_t virtual_tokens(const PretrainedModel& model) {
  const adapter::PromptEncoders* encoders = adapter::encoders_of(model);
  const adapter::PromptEncoder* encoder = encoders ? encoders->now() : nullptr;
  if (!encoder || (model.is_encoder_decoder() && encoder->form.type == AdapterType::prompt_tuning)) return 0;
  return encoder->form.tokens;
}

ModelInputs with_encoder_prompt(PretrainedModel& model, const ModelInputs& inputs) {
  const adapter::PromptEncoders* encoders = adapter::encoders_of(model);
  const adapter::PromptEncoder* encoder = encoders ? encoders->now() : nullptr;
  if (!encoder || !model.is_encoder_decoder() || encoder->form.type != AdapterType::prompt_tuning) return inputs;
  ModelInputs out = inputs;
  adapter::put_before(model, *encoder, out);
  return out;
}

}  // namespace calque

#include "calque/generate/model_generate.h"

#include <algorithm>
#include <limits>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/file/mapped_file.h"
#include "calque/generate/assisted.h"
#include "calque/hub/adapters.h"
#include "calque/hub/best_logit.h"
#include "calque/hub/next_word.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/hub/resize.h"
#include "calque/hub/text_part.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "calque/op/tree.h"
#include "generate/compiled_steps.h"

namespace calque {
namespace {

constexpr ArgumentName<Tensor> decoder_positions{"decoder_position_ids"};

bool all_ones(const Tensor& mask) { return mask.ne(0).all().item_as<bool>(); }

// Classes of the same architecture that can.
std::string classes_with_a_head(const PretrainedModel& model) {
  std::string out;
  if (const Architecture* architecture = model_registry().find(model.config().model_type()))
    for (const ModelClass& one : architecture->classes)
      for (const std::string& task : one.tasks)
        if (task == "causal-lm" || task == "seq2seq-lm") out += (out.empty() ? "" : ", ") + one.name;
  return out;
}

void check_class(const PretrainedModel& model) {
  if (model.can_generate()) return;
  const std::string others = classes_with_a_head(model);
  throw UserError("generate: " + model.class_name() + " has no language modelling head" +
                  (others.empty() ? "" : "; of this architecture there is " + others));
}

// Ids or, of a model that hears, features; undefined where something else was given.
Tensor source_of(const PretrainedModel& model, const ModelInputs& inputs) { return inputs.tensor(model.main_input_name()); }

Tensor repeated(const Tensor& tensor, int64_t rows) {
  return tensor.defined() && tensor.size(0) != rows ? tensor.repeat_interleave(rows / tensor.size(0), 0) : tensor;
}

KeyValueCache with_rows(const KeyValueCache& cache, const Tensor& rows) {
  KeyValueCache out;
  out.keeps_all = cache.keeps_all;
  const auto chosen = [&](const Tensor& tensor) { return tensor.defined() ? tensor.index_select(0, rows) : tensor; };
  for (const LayerCache& layer : cache.layers) {
    LayerCache& made = out.layers.emplace_back();
    made.key = chosen(layer.key);
    made.value = chosen(layer.value);
    made.cross_key = chosen(layer.cross_key);
    made.cross_value = chosen(layer.cross_value);
    made.first = layer.first;
  }
  return out;
}

// The model as the loop's callback.
class Steps {
 public:
  Steps(PretrainedModel& model, const ModelInputs& inputs, int64_t prompt_length, const GenerationConfig& config,
        bool goes_back, std::optional<int64_t> compile_after, ModelGenerateOutput& out)
      : model_(model),
        inputs_(inputs),
        prompt_length_(prompt_length),
        config_(config),
        goes_back_(goes_back),
        out_(out),
        before_text_(virtual_tokens(model)),
        best_logit_model_(dynamic_cast<BestLogitModel*>(&model)),
        next_word_model_(dynamic_cast<NextWordModel*>(&model)),
        encoder_decoder_(model.is_encoder_decoder()),
        compile_after_(compile_after.value_or(config.cache_implementation == "static" ? 1 : -1)) {}

  Tensor operator()(const GenerationStep& step) {
    if (next_word_model_) return next_word(step);
    if (std::optional<Tensor> logits = by_plan(step)) return *logits;
    const int64_t rows = step.input_ids.size(0);
    if (step.rows.defined()) cache_ = with_rows(cache_, step.rows);
    if (step.cache_position == 0)
      cache_ = {};
    else if (cache_.empty())
      cache_ = inputs_[arg::past_key_values];
    cache_ = cache_.first_tokens(step.cache_position > 0 ? step.cache_position + before_text_ : 0);
    cache_.keeps_all = goes_back_;

    ModelInputs in;
    const auto set_if_taken = [&](const auto& argument, const auto& value) {
      if (model_.takes(argument)) in.set(argument, value);
    };
    const bool use_cache = config_.use_cache.value_or(true) && model_.takes(arg::use_cache);
    set_if_taken(arg::use_cache, use_cache);
    set_if_taken(arg::output_attentions, wants(config_.output_attentions));
    set_if_taken(arg::output_hidden_states, wants(config_.output_hidden_states));
    set_if_taken(arg::logits_to_keep, step.logits_to_keep);
    in.set(arg::past_key_values, cache_);
    // Without padding there is nothing that the model would not do by itself, and does faster.
    const bool padded = !all_ones(step.attention_mask);
    if (encoder_decoder_) {
      in.set(arg::decoder_input_ids, step.input_ids);
      if (padded) in.set(arg::decoder_attention_mask, step.attention_mask);
      if (padded && model_.takes(decoder_positions)) in.set(decoder_positions, positions(step, rows));
      in.set(arg::attention_mask, repeated(inputs_[arg::attention_mask], rows));
      in.set(arg::encoder_outputs, encoded(rows));
    } else {
      if (step.cache_position < embedded())
        in.set(arg::inputs_embeds,
               repeated(inputs_[arg::inputs_embeds], rows).narrow(1, step.cache_position, new_positions(step)));
      else
        in.set(arg::input_ids, step.input_ids);
      in.set(arg::encoder_hidden_states, repeated(inputs_[arg::encoder_hidden_states], rows));
      in.set(arg::encoder_attention_mask, repeated(inputs_[arg::encoder_attention_mask], rows));
      // A cache that goes through a hook as a Value does not say how long the text is: the mask does.
      if (padded || model_.is_watched()) in.set(arg::attention_mask, step.attention_mask);
      if (inputs_[arg::position_ids].defined())
        in.set(arg::position_ids, positions(step, rows));
      else if (padded && model_.takes(arg::position_ids))
        in.set(arg::position_ids, step.position_ids.defined() ? step.position_ids : positions(step, rows));
      if (inputs_[arg::token_type_ids].defined()) in.set(arg::token_type_ids, given_types(step, rows));
    }
    const ModelOutput result = called(in, step.best_alone);
    if (use_cache) {
      cache_ = result.past_key_values();
      if (!encoder_decoder_) cache_.ends_at(step.attention_mask.size(1) + before_text_);
    }
    if (config_.return_dict_in_generate.value_or(false)) keep(result, step);
    return result["logits"];
  }

  // What was kept of tokens that are not in the text of this length is forgotten.
  void forget_beyond(int64_t length) {
    const auto count = static_cast<size_t>(std::max<int64_t>(0, length - prompt_length_));
    for (auto* states : {&out_.hidden_states, &out_.attentions, &out_.cross_attentions})
      if (states->size() > count) states->resize(count);
    out_.past_key_values = out_.past_key_values.first_tokens(length - 1 + before_text_);
  }

 private:
  // The loop gives all ids in each step; what of the step before helps is the model's to say.
  Tensor next_word(const GenerationStep& step) {
    ModelInputs in = next_word_model_->next_word_inputs(step.input_ids, before_, step.rows);
    for (const ModelInputs::Item& given : inputs_.items())
      if (given.name != arg::input_ids.name && given.name != arg::attention_mask.name && !in.has(given.name)) in.set(given);
    if (model_.takes(arg::output_attentions)) in.set(arg::output_attentions, wants(config_.output_attentions));
    if (model_.takes(arg::output_hidden_states)) in.set(arg::output_hidden_states, wants(config_.output_hidden_states));
    before_ = model_(in);
    if (wants(config_.output_hidden_states)) out_.hidden_states.push_back(layers(before_, "hidden_states"));
    if (wants(config_.output_attentions)) out_.attentions.push_back(layers(before_, "attentions"));
    return before_["logits"];
  }

  // Those of two streams one after the other.
  static std::vector<Tensor> layers(const ModelOutput& result, std::string_view name) {
    std::vector<Tensor> out;
    if (const Value* states = result.find(name))
      for (const Value& one : tree_flatten(*states).leaves) out.push_back(one.to_tensor());
    return out;
  }

  // Hooks and observers see the call that everybody makes.
  ModelOutput called(const ModelInputs& in, bool best_alone) {
    return model_.is_watched() ? model_(in) : answered(in, best_alone);
  }
  ModelOutput answered(const ModelInputs& in, bool best_alone) {
    return best_alone && best_logit_model_ ? best_logit_model_->forward_best(in, best_logit_) : model_(in);
  }

  // One more token of every row, and nothing else to look at.
  bool is_plain_step(const GenerationStep& step) const {
    if (encoder_decoder_ || goes_back_ || step.rows.defined() || step.logits_to_keep != 1 || step.input_ids.size(1) != 1 ||
        step.cache_position == 0 || config_.return_dict_in_generate.value_or(false) || !config_.use_cache.value_or(true) ||
        !model_.takes(arg::use_cache) || model_.is_watched())
      return false;
    for (const ModelInputs::Item& given : inputs_.items())
      if (given.name != arg::input_ids.name && given.name != arg::attention_mask.name) return false;
    return all_ones(step.attention_mask);
  }

  // None where the model itself is to take the step.
  std::optional<Tensor> by_plan(const GenerationStep& step) {
    const bool plain = is_plain_step(step);
    if (!compiled_) {
      if (!plain || compile_after_ < 0 || compile_after_-- > 0) return std::nullopt;
      if (cache_.length().as_int() != step.cache_position || !CompiledSteps::can(model_, cache_)) return std::nullopt;
      compiled_.emplace(model_, cache_);
      cache_ = {};
    }
    if (plain && compiled_->length() == step.cache_position) {
      ModelInputs in;
      in.set(arg::input_ids, step.input_ids);
      in.set(arg::use_cache, true);
      if (model_.takes(arg::logits_to_keep)) in.set(arg::logits_to_keep, 1);
      const CompiledSteps::Scope scope(*compiled_);
      const ModelOutput result = answered(in, step.best_alone);
      if (scope.answered()) return result["logits"];
    }
    cache_ = compiled_->cache();
    cache_.ends_at(compiled_->length());
    compiled_.reset();
    compile_after_ = -1;
    return std::nullopt;
  }

  int64_t embedded() const {
    const Tensor embeds = inputs_[arg::inputs_embeds];
    return embeds.defined() ? embeds.size(1) : 0;
  }
  static int64_t new_positions(const GenerationStep& step) { return step.attention_mask.size(1) - step.cache_position; }
  bool wants(const std::optional<bool>& what) const {
    return what.value_or(false) && config_.return_dict_in_generate.value_or(false);
  }

  // What was given for the prompt, or which of its tokens that are no padding each one is; then each position is one more
  // than the last.
  Tensor positions(const GenerationStep& step, int64_t rows) const {
    Tensor given = repeated(inputs_[arg::position_ids], rows);
    if (!given.defined()) {
      const Tensor mask = step.attention_mask.narrow(1, 0, prompt_length_);
      given = (mask.cumsum(-1) - 1).masked_fill(mask.eq(0), 0);
    }
    const int64_t known = given.size(1), count = new_positions(step), end = step.cache_position + count;
    Tensor all = given;
    if (end > known) all = cat({given, given.narrow(1, known - 1, 1) + arange(1, end - known + 1)}, 1);
    return all.narrow(1, step.cache_position, count);
  }
  // New tokens are of the last one's type.
  Tensor given_types(const GenerationStep& step, int64_t rows) const {
    const Tensor given = repeated(inputs_[arg::token_type_ids], rows);
    const int64_t known = given.size(1), count = new_positions(step), end = step.cache_position + count;
    Tensor all = given;
    if (end > known) all = cat({given, given.narrow(1, known - 1, 1).expand({rows, end - known})}, 1);
    return all.narrow(1, step.cache_position, count);
  }

  Value encoded(int64_t rows) {
    if (encoder_rows_ == rows) return encoder_outputs_;
    ModelOutput once;
    if (const Value given = inputs_[arg::encoder_outputs]; !given.is_none()) {
      once = given.kind() == Value::Kind::dict ? ModelOutput::from_value(given) : ModelOutput();
      if (once.items().empty()) once.set("last_hidden_state", given.to_items().at(0));
    } else {
      auto* encoder = dynamic_cast<PretrainedModel*>(model_.base_model().find_submodule("encoder"));
      if (!encoder) throw UserError("generate: " + model_.class_name() + " has no encoder to run; give encoder_outputs");
      ModelInputs source{{arg::inputs_embeds, inputs_[arg::inputs_embeds]},
                         {arg::attention_mask, inputs_[arg::attention_mask]},
                         {arg::output_attentions, wants(config_.output_attentions)},
                         {arg::output_hidden_states, wants(config_.output_hidden_states)}};
      if (const ModelArgument* main = find_argument(encoder->arguments(), model_.main_input_name()))
        source.set(ModelInputs::Item(*main, source_of(model_, inputs_)));
      once = (*encoder)(source);
    }
    out_.encoder_hidden_states = once.tensors("hidden_states");
    out_.encoder_attentions = once.tensors("attentions");
    encoder_outputs_ = dict({{"last_hidden_state", repeated(once["last_hidden_state"], rows)}});
    encoder_rows_ = rows;
    return encoder_outputs_;
  }

  void keep(const ModelOutput& result, const GenerationStep& step) {
    if (step.cache_position > 0) forget_beyond(step.cache_position + 1);
    out_.past_key_values = cache_;
    const std::string prefix = encoder_decoder_ ? "decoder_" : "";
    if (wants(config_.output_hidden_states)) keep(out_.hidden_states, result.tensors(prefix + "hidden_states"), step);
    if (!wants(config_.output_attentions)) return;
    keep(out_.attentions, result.tensors(prefix + "attentions"), step, true);
    if (result.has("cross_attentions")) keep(out_.cross_attentions, result.tensors("cross_attentions"), step);
  }
  // As if each candidate had been a step of its own: the dimension before the last is the position, the last that of what
  // was looked at.
  static void keep(std::vector<std::vector<Tensor>>& states, std::vector<Tensor> layers, const GenerationStep& step,
                   bool of_itself = false) {
    if (step.logits_to_keep == 1) return states.push_back(std::move(layers));
    const int64_t count = step.input_ids.size(1);
    for (int64_t from = 0, to = count - step.logits_to_keep + 1; to <= count; from = to++) {
      std::vector<Tensor>& one = states.emplace_back();
      for (const Tensor& layer : layers) {
        const Tensor rows = layer.narrow(-2, from, to - from);
        one.push_back(of_itself ? rows.narrow(-1, 0, step.cache_position + to) : rows);
      }
    }
  }

  PretrainedModel& model_;
  const ModelInputs& inputs_;
  const int64_t prompt_length_;
  const GenerationConfig& config_;
  const bool goes_back_;  // tokens that were read may be taken back
  ModelGenerateOutput& out_;
  const int64_t before_text_;               // positions of a prompt that was learned, in the cache alone
  BestLogitModel* const best_logit_model_;  // null where the class cannot look for the best logit alone
  NextWordModel* const next_word_model_;    // null where each position says what comes behind it
  const bool encoder_decoder_;
  KeyValueCache cache_;
  std::optional<CompiledSteps> compiled_;  // has the cache while it is there
  int64_t compile_after_;                  // steps that the model takes first; -1: all of them
  BestLogit best_logit_;
  ModelOutput before_;  // of a NextWordModel's last step
  Value encoder_outputs_;
  int64_t encoder_rows_ = -1;
};

// Where an encoder-decoder starts to write: the start token, before what the user gave unless that has it.
Tensor decoder_prompt(const ModelInputs& inputs, int64_t rows, int64_t start, Tensor& mask) {
  const Tensor first = full({rows, 1}, start, DType::int64);
  const Tensor given = inputs[arg::decoder_input_ids], given_mask = inputs[arg::decoder_attention_mask];
  if (!given.defined() || given.numel() == 0) {
    mask = ones({rows, 1}, DType::int64);
    return first;
  }
  mask = given_mask.defined() ? given_mask.to(DType::int64) : ones({given.size(0), given.size(1)}, DType::int64);
  if (!given.select(1, 0).ne(start).all().item_as<bool>()) return given;
  mask = cat({ones({rows, 1}, DType::int64), mask}, 1);
  return cat({first, given}, 1);
}

void check_assistant(const PretrainedModel& model, const PretrainedModel& assistant) {
  check_class(assistant);
  if (model.is_encoder_decoder() != assistant.is_encoder_decoder())
    throw UserError("generate: " + model.class_name() + " and its assistant " + assistant.class_name() +
                    " are not of a kind: one is an encoder-decoder");
  const int64_t mine = model.config().integer("vocab_size"), its = assistant.config().integer("vocab_size");
  if (mine != its)
    throw UserError("generate: the assistant has to have the model's tokenizer, but has a vocabulary of " +
                    std::to_string(its) + " instead of " + std::to_string(mine));
}

int64_t rows_of_source(const PretrainedModel& model, const ModelInputs& inputs) {
  if (const Tensor source = source_of(model, inputs); source.defined()) return source.size(0);
  if (const Tensor embeds = inputs[arg::inputs_embeds]; embeds.defined()) return embeds.size(0);
  const Value given = inputs[arg::encoder_outputs];
  const Value* state =
      given.kind() == Value::Kind::dict ? given.to_dict().find("last_hidden_state") : &given.to_items().at(0);
  if (!state) throw UserError("generate: encoder_outputs have no last_hidden_state");
  return state->to_tensor().size(0);
}

// The width that the model's embeddings have; not known of a class that has none.
std::optional<int64_t> embedding_width(PretrainedModel& model) {
  if (model.input_embeddings() || model.base_model().input_embeddings()) return get_input_embeddings(model).weight->size(1);
  return std::nullopt;
}

void check_embeds(PretrainedModel& model, const ModelInputs& inputs, const GenerateOptions& options) {
  const Tensor embeds = inputs[arg::inputs_embeds], ids = inputs[arg::input_ids];
  if (!model.takes(arg::inputs_embeds))
    throw UserError("generate: " + model.class_name() + " does not take inputs_embeds; give input_ids");
  if (model.is_encoder_decoder() && ids.defined())
    throw UserError("generate: both input_ids and inputs_embeds were given for the encoder of " + model.class_name() +
                    "; give one of them");
  const std::optional<int64_t> width = embedding_width(model);
  if (embeds.dim() != 3 || (width && embeds.size(2) != *width))
    throw UserError("generate: inputs_embeds have to be [batch, length, " + (width ? std::to_string(*width) : "width") +
                    "], found " + str(embeds.sizes()));
  if (embeds.size(1) == 0)
    throw UserError("generate: inputs_embeds have to have at least one position, found " + str(embeds.sizes()));
  if (ids.defined() && ids.size(0) != embeds.size(0))
    throw UserError("generate: input_ids and inputs_embeds have to have as many rows, found " + std::to_string(ids.size(0)) +
                    " and " + std::to_string(embeds.size(0)));
  if (options.assistant && !model.is_encoder_decoder())
    throw UserError(
        "generate: an assistant reads input_ids, found inputs_embeds; leave out the assistant or give ids alone");
}

// A NextWordModel reads the text as it likes: what says how to read it cannot be followed.
void check_next_word(const PretrainedModel& model, const ModelInputs& inputs, const GenerationConfig& config,
                     const GenerateOptions& options) {
  const std::string who = "generate: " + model.class_name();
  if (inputs[arg::inputs_embeds].defined()) throw UserError(who + " does not write from inputs_embeds; give input_ids");
  if (const Tensor mask = inputs[arg::attention_mask]; mask.defined() && !all_ones(mask))
    throw UserError(who +
                    " writes without an attention_mask, found one with padding; give rows of one length, or one at a time");
  if (options.assistant || options.candidates || config.prompt_lookup_num_tokens)
    throw UserError(who + " says one word at a time, so that candidates cannot be checked; leave out the assistant and " +
                    "prompt_lookup_num_tokens");
}

}  // namespace

ModelGenerateOutput generate(PretrainedModel& model, const ModelInputs& given, const GenerationConfig& given_config,
                             const GenerateOptions& given_options) {
  if (!model.can_generate() && model.output_embeddings() && classes_with_a_head(model).empty())
    throw UserError(
        "generate: " + model.class_name() +
        " says words where it is asked for them, and does not go on from a text token by token; call its forward");
  check_class(model);
  const GradModeScope no_grad(false);
  ModelInputs inputs = given;
  GenerationConfig config = given_config;
  GenerateOptions options = given_options;
  if (!options.max_position_embeddings)
    options.max_position_embeddings = text_part(model.config()).optional_integer("max_position_embeddings").value_or(0);
  if (config.cache_implementation && !inputs[arg::past_key_values].empty())
    throw UserError("generate: `cache_implementation` (" + *config.cache_implementation +
                    ") says what cache to make, but past_key_values are given: use one of the two");
  if (dynamic_cast<NextWordModel*>(&model)) {
    check_next_word(model, inputs, config, options);
    config.use_cache = false;
  }
  if (inputs.has(arg::inputs_embeds.name)) check_embeds(model, inputs, options);
  if (!inputs.fit(model.arguments())) inputs = inputs.fitted(model.arguments(), model.class_name());
  inputs = with_encoder_prompt(model, inputs);
  if (const Tensor mask = inputs[arg::attention_mask]; mask.defined() && mask.dim() != 2)
    throw UserError("generate: attention_mask has to be [batch, length], but is " + str(mask.sizes()));

  ModelGenerateOutput out;
  Tensor prompt = inputs[arg::input_ids];
  if (!model.is_encoder_decoder()) {
    if (const Tensor embeds = inputs[arg::inputs_embeds]; embeds.defined()) {
      options.prompt_positions = embeds.size(1);
      config.use_cache = true;  // the ids alone do not give the prompt again
      if (!prompt.defined()) prompt = empty({embeds.size(0), 0}, DType::int64);
    } else if (prompt.defined() && !options.encoder_input_ids.defined()) {
      options.encoder_input_ids = prompt;  // what encoder penalties look at is the prompt where there is no encoder
    }
    if (const Tensor mask = inputs[arg::attention_mask]; mask.defined()) options.attention_mask = mask;
    if (!inputs[arg::past_key_values].empty()) options.cache_position = inputs[arg::past_key_values].length().as_int();
  } else {
    const std::optional<int64_t> start = config.decoder_start_token_id ? config.decoder_start_token_id : config.bos_token_id;
    if (!start) throw UserError("generate: `decoder_start_token_id` or `bos_token_id` has to be set for an encoder-decoder");
    if (!source_of(model, inputs).defined() && !inputs[arg::inputs_embeds].defined() &&
        inputs[arg::encoder_outputs].is_none()) {
      if (model.main_input_name() != arg::input_ids.name)
        throw UserError("generate: " + model.class_name() + " needs " + model.main_input_name() + " or encoder_outputs");
      if (!config.bos_token_id)
        throw UserError("generate: there are no input_ids, and `bos_token_id` is not set: nothing to begin with");
      inputs.set(arg::input_ids, full({1, 1}, *config.bos_token_id, DType::int64));
    }
    if (inputs[arg::input_ids].defined() && !inputs[arg::attention_mask].defined())
      inputs.set(arg::attention_mask, attention_mask_of(inputs[arg::input_ids], config.pad_token_id,
                                                        config.eos_token_id ? config.eos_token_id->ids : TokenIds{}));
    if (inputs[arg::input_ids].defined() && !options.encoder_input_ids.defined())
      options.encoder_input_ids = inputs[arg::input_ids];
    prompt = decoder_prompt(inputs, rows_of_source(model, inputs), *start, options.attention_mask);
    if (!inputs[arg::past_key_values].empty()) options.cache_position = inputs[arg::past_key_values].length().as_int();
  }
  if (!options.vocab_size) options.vocab_size = text_part(model.config()).optional_integer("vocab_size").value_or(0);
  const int64_t prompt_length = options.prompt_positions                 ? *options.prompt_positions
                                : prompt.defined() && prompt.numel() > 0 ? prompt.size(1)
                                                                         : 1;  // the bos token
  const bool goes_back = options.assistant || options.candidates || config.prompt_lookup_num_tokens;
  Steps steps(model, inputs, prompt_length, config, goes_back, options.compile_after, out);
  // The assistant reads the same prompt or, with an encoder of its own, the same source.
  std::optional<Steps> assistant_steps;
  std::optional<AssistantCandidates> candidates;
  ModelInputs assistant_inputs = inputs;
  const GenerationConfig assistant_config;
  ModelGenerateOutput unused;
  if (options.assistant) {
    check_assistant(model, *options.assistant);
    assistant_inputs.set(arg::past_key_values, {});
    assistant_inputs.set(arg::encoder_outputs, {});
    assistant_steps.emplace(*options.assistant, assistant_inputs, prompt_length, assistant_config, true, -1, unused);
    AssistantCandidates::Shown shown{.padding = !model.is_encoder_decoder()};
    if (model.is_encoder_decoder() && !inputs[arg::decoder_attention_mask].defined())
      shown.again_within = options.assistant->config()
                               .optional_integer("max_position_embeddings")
                               .value_or(std::numeric_limits<int64_t>::max());
    candidates.emplace([&](const GenerationStep& step) { return (*assistant_steps)(step); }, options.assistant_config,
                       shown);
    options.candidates = &*candidates;
  }
  GenerateOutput made = generate([&](const GenerationStep& step) { return steps(step); }, prompt, config, options);
  static_cast<GenerateOutput&>(out) = std::move(made);
  const int64_t beside =
      options.prompt_positions ? prompt_length - prompt.size(1) : 0;  // positions that are not in the text
  steps.forget_beyond(out.sequences.size(1) + beside);
  return out;
}

GenerationConfig generation_config_of(const std::filesystem::path& given) {
  const std::filesystem::path folder = base_folder(given);
  if (std::filesystem::exists(folder / "generation_config.json")) return GenerationConfig::from_file(folder);
  const std::filesystem::path file = folder / "config.json";
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file.string());
  const std::span<const std::byte> bytes = mapped->bytes();
  return GenerationConfig::from_model_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

}  // namespace calque

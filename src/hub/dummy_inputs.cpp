#include "calque/hub/dummy_inputs.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/hub/peft_model.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/observer.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/tree.h"
#include "calque/trace/fake.h"

namespace calque {
namespace {

bool among(int64_t number, const std::vector<int64_t>& numbers) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

void collect_numbers(const Value& value, std::vector<int64_t>& out) {
  if (value.kind() == Value::Kind::integer) out.push_back(value.to_int());
  if (value.is_sequence())
    for (const Value& item : value.to_items()) collect_numbers(item, out);
  if (value.kind() == Value::Kind::dict)
    for (const auto& [key, item] : value.to_dict().items) collect_numbers(item, out);
}

bool contains(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }
DummySize fixed(int64_t size) { return {size, false}; }

Tensor zeros_of(const DummySizes& sizes, DType dtype, Device device) {
  SymInts plain;
  for (const DummySize& one : sizes) plain.push_back(one.size);
  return zeros(plain, dtype, std::nullopt, device);
}

Device device_of(const Module& model) {
  const std::vector<Tensor> parameters = model.parameters();
  return parameters.empty() ? Device() : parameters[0].device();
}

}  // namespace

int64_t draw_size(uint64_t& state, int64_t low, int64_t high, const std::vector<int64_t>& forbidden) {
  state += 0x9E3779B97F4A7C15U;  // splitmix64
  uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  std::vector<int64_t> free;
  for (int64_t n = low; n <= high; ++n)
    if (!among(n, forbidden)) free.push_back(n);
  if (!free.empty()) return free[z % free.size()];
  int64_t next = high + 1;
  while (among(next, forbidden)) ++next;
  return next;
}

std::vector<int64_t> numbers_of(const Config& config) {
  std::vector<int64_t> out;
  for (const auto& [key, value] : config.items()) collect_numbers(value, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

DummyInputs::DummyInputs(PretrainedModel& model, uint64_t seed)
    : model_(model),
      config_(model.config()),
      class_name_(model.class_name()),
      forbidden_(numbers_of(config_)),
      state_(seed) {
  if (const ModelClass* found = model_registry().find_class(without_peft(model).class_name())) tasks_ = found->tasks;
  batch = draw();
  length = draw();
  decoder_length = draw();
  choices.size = 0;
  if (is_of({"multiple-choice"})) choices = {draw_size(state_, 2, 5, {}), true};
  if (model.main_input_name() == "input_values") samples = draw(10000, 20000);
}

// What is drawn is not drawn again, nor what it is with a cache in front.
DummySize DummyInputs::draw(int64_t low, int64_t high) {
  const int64_t size = draw_size(state_, low, high, forbidden_);
  forbidden_.insert(forbidden_.end(), {size, size + cache_length, size - cache_length});
  return {size, true};
}

DummySizes DummyInputs::shape_of(DummySize own_length) const {
  if (choices.size != 0) return {batch, choices, own_length};
  return {batch, own_length};
}

bool DummyInputs::is_of(std::initializer_list<std::string_view> tasks) const {
  return std::ranges::any_of(tasks_, [&](const std::string& own) { return std::ranges::find(tasks, own) != tasks.end(); });
}

int64_t DummyInputs::hidden_size() const {
  for (const char* key : {"hidden_size", "d_model", "n_embd", "dim"})
    if (const auto size = config_.optional_integer(key)) return *size;
  return config_.integer("hidden_size");  // says that it is missing
}

// Of what stands in the place of ids: what their embedding gives.
int64_t DummyInputs::embedding_size() const {
  Child<Embedding>* own = model_.input_embeddings();
  if (!own) own = model_.base_model().input_embeddings();
  return own ? (*own)->weight->size(1) : hidden_size();
}

DummySizes DummyInputs::labels(const std::string& name, DType& dtype) {
  const DummySizes each = shape_of(model_.is_encoder_decoder() ? decoder_length : length);
  if (is_of({"next-sentence-prediction", "multiple-choice", "image-classification", "backbone", "audio-classification"}))
    return {batch};
  if (is_of({"sequence-classification"})) {
    const std::string type = config_.optional_text("problem_type").value_or("");
    const std::string expected =
        "expected \"regression\", \"single_label_classification\" or \"multi_label_classification\"";
    if (type.empty())
      throw UserError("the dummy input " + name + " of " + class_name_ +
                      " depends on the kind of problem, which the configuration does not say: set problem_type; " +
                      expected);
    if (type == "single_label_classification") return {batch};
    if (type != "regression" && type != "multi_label_classification")
      throw UserError("the dummy input " + name + " of " + class_name_ + ": problem_type is \"" + type + "\", " + expected);
    dtype = DType::float32;
    return {batch, fixed(config_.num_labels())};
  }
  if (is_of({"pretraining", "token-classification", "causal-lm", "masked-lm", "seq2seq-lm", "semantic-segmentation"}) ||
      (is_of({"special"}) && model_.takes(arg::mc_labels)))  // a language model and choices in one
    return each;
  if (is_of({"ctc"})) {
    dtype = DType::float32;
    return each;
  }
  throw UserError("there is no dummy input " + name + " for " + class_name_ + ": the class has no task with such labels" +
                  "; leave " + name + " out, or trace a class with a head that has a loss");
}

DummySizes DummyInputs::pixels() {
  std::vector<DummySize> size;
  const auto read = [&](const Config& config) {
    const Value* found = config.has("image_size") ? config.find("image_size") : nullptr;
    if (!found) return;
    std::vector<int64_t> numbers;
    collect_numbers(*found, numbers);
    for (const int64_t n : numbers) size.push_back(fixed(n));
  };
  read(config_);
  for (const char* inner : {"vision_config", "encoder"})
    if (size.empty() && config_.has(inner)) read(config_.nested(inner));
  if (const ModelInputs own = model_.example_inputs(); size.empty() && own.has("pixel_values")) {
    const Tensor pixels = own.tensor("pixel_values");  // a size that all the class's stages can halve
    size = {{pixels.size(-2), true}, {pixels.size(-1) + pixels.size(-1) / 2, true}};
  }
  if (size.empty()) size = {draw(), draw()};
  if (size.size() == 1) size.push_back(size[0]);
  return {batch, fixed(config_.optional_integer("num_channels").value_or(3)), size[0], size[1]};
}

// The keys and values that a run on fake tensors leaves: their structure, whatever the class.
Value DummyInputs::cache_of_a_run() {
  const ExampleSizes sizes{.batch = batch.size, .length = length.size, .decoder_length = 3};
  ModelInputs inputs = model_.example_inputs(sizes);
  // How much an encoder of features leaves of them follows from the dummy ones.
  if (const std::string main = model_.main_input_name(); main != arg::input_ids.name)
    for (const std::string& name : {main, std::string(arg::attention_mask.name)})
      if (inputs.has(name))
        inputs.set(ModelInputs::Item(*find_argument(model_.arguments(), name), make(name, {name}).at(0).value));
  if (model_.takes(arg::use_cache)) inputs.set(arg::use_cache, true);
  const NoModuleObserversScope unobserved;
  const auto fake = FakeMode::make({.allow_non_fake_inputs = true});
  const ModeScope faked(*fake);
  const GradModeScope no_grad(false);
  const ModelOutput out = model_(inputs);
  const Value* found = out.find("past_key_values");
  return found ? *found : Value();
}

// As long as the source, or as what the encoder leaves of it: a number of the class, or one that follows from the length.
DummySize DummyInputs::encoded_length(int64_t left) {
  if (left == length.size) return length;
  DummyInputs longer = *this;
  longer.length.size *= 2;
  int64_t of_longer = left;
  const auto look = [&](const Tensor& t) -> Value {
    of_longer = t.size(2);
    return t;
  };
  tree_map_tensors(look, longer.cache_of_a_run());  // the last tensor is one of the encoder's output
  return {left, of_longer != left, true};
}

DummyInput DummyInputs::cache() {
  DummyInput out{"past_key_values", cache_of_a_run(), {}};
  if (out.value.is_none())
    throw UserError("there is no dummy input past_key_values for " + class_name_ +
                    ": a run of the model leaves no keys and values; leave past_key_values out");
  const Device device = device_of(model_);
  size_t in_layer = 0;
  std::optional<DummySize> encoded;
  const auto made = [&](const Tensor& t) -> Value {
    if (t.dim() != 4)
      throw UserError("the keys of " + class_name_ + " have " + std::to_string(t.dim()) +
                      " dimensions, expected [batch, heads, length, size]");
    // Behind keys and values those of the encoder's output.
    const bool across = in_layer++ % 4 >= 2 && model_.is_encoder_decoder();
    if (across && !encoded) encoded = encoded_length(t.size(2));
    const DummySize long_as = across ? *encoded : DummySize{cache_length, true};
    const DummySizes sizes = {batch, fixed(t.size(1)), long_as, fixed(t.size(3))};
    out.sizes.push_back(sizes);
    return zeros_of(sizes, t.dtype(), device);
  };
  out.value = tree_map_tensors(made, out.value);
  return out;
}

std::vector<DummyInput> DummyInputs::make(const std::string& name, const std::vector<std::string>& all) {
  const ModelArgument* argument = find_argument(model_.arguments(), name);
  if (argument && (argument->kind == ModelArgument::Kind::flag || argument->kind == ModelArgument::Kind::integer))
    throw UserError("the input " + name + " of " + class_name_ +
                    " is no tensor: a graph is made for one value of it; leave it out of the input names");
  const bool of_decoder = name.starts_with("decoder_");
  const bool decoder_first = model_.is_encoder_decoder();
  // A decoder without ids of its own has the encoder's, or the labels'.
  const bool has_own_length = std::ranges::any_of(all, [](const std::string& one) {
    return one == "decoder_input_ids" || one == "decoder_inputs_embeds" || one == "labels";
  });
  const DummySizes ids =
      shape_of(of_decoder && has_own_length && !is_of({"sequence-classification"}) ? decoder_length : length);
  const auto with = [](DummySizes sizes, std::initializer_list<DummySize> last) {
    sizes.insert(sizes.end(), last);
    return sizes;
  };
  const auto one = [&](DummySizes sizes, DType dtype = DType::float32) -> std::vector<DummyInput> {
    Value value = zeros_of(sizes, dtype, device_of(model_));
    return {{name, std::move(value), {std::move(sizes)}}};
  };

  if (name == "labels" || name == "start_positions" || name == "end_positions") {
    DType dtype = DType::int64;
    if (is_of({"question-answering", "document-question-answering"})) {
      const Value positions = zeros_of({batch}, dtype, device_of(model_));
      return {{"start_positions", positions, {{batch}}},
              {"end_positions", zeros_of({batch}, dtype, device_of(model_)), {{batch}}}};
    }
    const DummySizes sizes = labels(name, dtype);
    return one(sizes, dtype);
  }
  if (contains(name, "pixel_values")) return one(pixels());
  if (contains(name, "bbox")) return one(with(ids, {fixed(4)}), DType::int64);
  if (contains(name, "input_features") && !config_.has("input_feat_per_channel") && model_.example_inputs().has(name)) {
    const Tensor own = model_.example_inputs().tensor(name);  // of a form that the class fixes
    DummySizes sizes = {batch};
    for (int64_t d = 1; d < own.dim(); ++d) sizes.push_back(fixed(own.size(d)));
    return one(sizes);
  }
  if (contains(name, "input_features")) return one(with(ids, {fixed(config_.integer("input_feat_per_channel"))}));
  // As many regions as there are: another number than that of tokens.
  const DummySizes regions = shape_of(decoder_length);
  if (contains(name, "visual_feats")) return one(with(regions, {fixed(config_.integer("visual_feat_dim"))}));
  if (contains(name, "visual_pos")) return one(with(regions, {fixed(config_.integer("visual_pos_dim"))}));
  if (contains(name, "inputs_embeds")) return one(with(ids, {fixed(embedding_size())}));
  if (contains(name, "inputs")) return one(ids);
  if (contains(name, "input_values")) return one({batch, samples.size != 0 ? samples : draw(10000, 20000)});
  if (name == "attention_mask" && samples.size != 0) return one({batch, samples}, DType::int64);
  if (contains(name, "mask")) {
    const bool has_cache = std::ranges::find(all, "past_key_values") != all.end();
    DummySizes sizes = ids;
    if (has_cache && (of_decoder || (!decoder_first && name == "attention_mask"))) sizes.back().size += cache_length;
    return one(sizes, DType::int64);
  }
  if (contains(name, "ids")) return one(ids, DType::int64);
  if (contains(name, "past_key_values")) return {cache()};
  return one(with(ids, {fixed(hidden_size())}));
}

}  // namespace calque

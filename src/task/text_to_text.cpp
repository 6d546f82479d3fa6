#include "calque/task/text_to_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"
#include "task/load.h"

namespace calque {
namespace {

const Value* params_of(const Config& config, std::string_view task) {
  const Value* all = config.find("task_specific_params");
  if (!all || all->kind() != Value::Kind::dict) return nullptr;
  const Value* found = all->to_dict().find(task);
  return found && found->kind() == Value::Kind::dict ? found : nullptr;
}

// A setting as JSON, which is how GenerationConfig takes one.
std::optional<std::string> json_of(const Value& value) {
  if (value.kind() == Value::Kind::boolean) return value.to_bool() ? "true" : "false";
  if (value.kind() == Value::Kind::integer) return std::to_string(value.to_int());
  if (value.kind() == Value::Kind::floating) return fmt::format("{}", value.to_float());
  if (value.kind() == Value::Kind::string) return json_quoted(value.to_string());
  return std::nullopt;
}

// The token of a language, which tokenizers spell in one of two ways.
std::optional<int64_t> language_token(const Tokenizer& tokenizer, const std::string& language) {
  for (const std::string& spelt : {language, "__" + language + "__"})
    if (const std::optional<int64_t> id = tokenizer.token_to_id(spelt); id && tokenizer.is_special(*id)) return id;
  return std::nullopt;
}

// "en" of "__en__"; a token that is spelt otherwise is its own name.
std::string_view without_frame(std::string_view token) {
  const bool framed = token.size() > 4 && token.starts_with("__") && token.ends_with("__");
  return framed ? token.substr(2, token.size() - 4) : token;
}

// Does a special token look like one of a language: "en_XX", "__en__", "eng_Latn"?
bool names_language(std::string_view token) {
  const std::string_view name = without_frame(token);
  const bool framed = name.size() < token.size();
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return name.size() >= 2 && name.size() <= 8 && std::ranges::all_of(name, letter) && name[0] >= 'a' && name[0] <= 'z' &&
         (framed || name.find('_') != std::string_view::npos);
}

std::string languages_of(const Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (const std::string& token : tokenizer.additional_special_tokens())
    if (names_language(token)) names.emplace_back(without_frame(token));
  if (names.empty()) return "its tokenizer names no languages";
  return "it knows " + join(names, ", ");
}

}  // namespace

std::vector<std::string> tasks_of(const Config& config) {
  std::vector<std::string> out;
  if (const Value* all = config.find("task_specific_params"); all && all->kind() == Value::Kind::dict)
    for (const auto& [name, params] : all->to_dict().items) out.push_back(name.to_string());
  return out;
}

TextToText::TextToText(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {
  prefix_ = model_->config().optional_text("prefix").value_or("");
}

TextToText TextToText::from_folder(const std::filesystem::path& folder, const TextToTextOptions& options) {
  static constexpr std::string_view tasks[] = {"seq2seq-lm"};
  TaskModel loaded = load_for_task(folder, options.load, tasks, options.asked_by);
  TextToText out(std::move(loaded.model), std::move(loaded.tokenizer));
  out.settings = generation_config_of(ModelFiles(folder.string()).folder());
  out.take_task(options.task);
  out.take_languages(options.from, options.to);
  return out;
}

void TextToText::take_task(const std::string& task) {
  if (task.empty()) return;
  const Value* params = params_of(model_->config(), task);
  if (!params) return;
  const std::vector<std::string> known = GenerationConfig::names();
  for (const auto& [key, value] : params->to_dict().items) {
    if (key.to_string() == "prefix") {
      prefix_ = value.to_string();
    } else if (std::ranges::find(known, key.to_string()) != known.end()) {
      if (const std::optional<std::string> json = json_of(value)) settings.set(key.to_string(), *json);
    }
  }
}

void TextToText::take_languages(const std::string& from, const std::string& to) {
  const auto token = [&](const std::string& language) {
    if (const std::optional<int64_t> id = language_token(tokenizer_, language)) return *id;
    throw UserError(fmt::format("translate: there is no language '{}'; {}", language, languages_of(tokenizer_)));
  };
  if (!from.empty()) source_language_ = token(from);
  if (!to.empty()) settings.forced_bos_token_id = token(to);
}

std::string TextToText::write(const std::string& text, const std::optional<int64_t>& max_new_tokens,
                              Streamer* streamer) const {
  const TextInput one[] = {prefix_ + text};
  TextInputs made = text_inputs(*model_, tokenizer_, one);
  if (source_language_) {
    // The file's template puts in the language that the tokenizer was saved with.
    std::vector<int64_t> ids = made.batch.rows.front().ids;
    for (size_t i = 0; i < ids.size(); ++i)
      if (made.batch.rows.front().special_tokens_mask[i])
        if (const auto token = tokenizer_.id_to_token(ids[i]); token && names_language(*token)) ids[i] = *source_language_;
    made.inputs.set(arg::input_ids, tensor_of<int64_t>(ids, {1, std::ssize(ids)}));
  }
  // generate makes its own of these.
  made.inputs.set(arg::token_type_ids, Tensor());
  GenerationConfig config = settings;
  if (max_new_tokens) config.max_new_tokens = max_new_tokens;
  if (config.max_new_tokens) config.max_length = std::nullopt;
  if (!config.max_length && !config.max_new_tokens) config.max_new_tokens = 256;
  GenerateOptions options;
  options.tokenizer = &tokenizer_;
  options.streamer = streamer;
  const Tensor sequences = generate(*model_, made.inputs, config, options).sequences.contiguous();
  const int64_t* row = sequences.data_as<int64_t>();
  return tokenizer_.decode({row, row + sequences.size(1)}, true);
}

}  // namespace calque

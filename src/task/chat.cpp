#include "calque/task/chat.h"

#include <algorithm>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"
#include "calque/task/text_inputs.h"
#include "task/load.h"

namespace calque {
namespace {

size_t common_beginning(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Chat::Chat(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer, ChatTemplate chat_template)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)), template_(std::move(chat_template)) {}

Chat Chat::from_folder(const std::filesystem::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"causal-lm"};
  const std::filesystem::path files = ModelFiles(folder.string()).folder();
  ChatTemplate chat_template = ChatTemplate::from_folder(files);  // before the weights: most folders that are wrong lack it
  TaskModel loaded = load_for_task(folder, options, tasks, "chat");
  Chat out(std::move(loaded.model), std::move(loaded.tokenizer), std::move(chat_template));
  out.settings = generation_config_of(files);
  return out;
}

void Chat::system(const std::string& text) {
  if (!history_.empty() && history_.front().role == "system") history_.erase(history_.begin());
  history_.insert(history_.begin(), {"system", text});
}

void Chat::forget() {
  std::erase_if(history_, [](const ChatMessage& message) { return message.role != "system"; });
  cache_ = {};
  read_.clear();
}

ChatTurn Chat::say(const std::string& text, const TextStreamer::Sink& sink, Generator* generator) {
  ChatOptions options;
  options.messages = history_;
  options.messages.push_back({"user", text});
  options.add_generation_prompt = true;
  options.variables_json = variables_json;
  const std::vector<int64_t> prompt = tokenizer_.encode_ids(template_.render(options), false);
  if (prompt.empty()) throw UserError("chat: the chat template makes no text of these messages");
  const std::optional<size_t> most = model_positions(*model_);
  if (most && prompt.size() >= *most)
    throw UserError(fmt::format("chat: the conversation has {} tokens, but {} reads at most {}; begin a new one",
                                prompt.size(), model_->class_name(), *most));

  GenerationConfig config = settings;
  config.return_dict_in_generate = true;  // for the cache
  if (config.max_new_tokens)
    config.max_length = std::nullopt;
  else if (!config.max_length)
    config.max_new_tokens = 512;
  if (most && config.max_new_tokens)
    config.max_new_tokens = std::min(*config.max_new_tokens, static_cast<int64_t>(*most - prompt.size()));
  if (!config.pad_token_id && config.eos_token_id && !config.eos_token_id->ids.empty())
    config.pad_token_id = config.eos_token_id->ids[0];  // of one row nothing is padded

  ModelInputs inputs{{arg::input_ids, tensor_of<int64_t>(prompt, {1, std::ssize(prompt)})}};
  // At least the last token is read again: its logits are what the answer begins with.
  size_t known = std::min(common_beginning(read_, prompt), prompt.size() - 1);
  if (!cache_.can_go_back_to(static_cast<int64_t>(known))) known = 0;  // a window has dropped what would be looked at
  if (known > 0) inputs.set(arg::past_key_values, cache_.first_tokens(static_cast<int64_t>(known)));
  std::optional<TextStreamer> streamer;
  if (sink) streamer.emplace(tokenizer_, sink, true);
  GenerateOptions generation;
  generation.tokenizer = &tokenizer_;
  generation.streamer = streamer ? &*streamer : nullptr;
  generation.generator = generator;
  const ModelGenerateOutput made = generate(*model_, inputs, config, generation);

  const Tensor sequence = made.sequences.contiguous();
  const int64_t* ids = sequence.data_as<int64_t>();
  ChatTurn turn;
  turn.prompt_tokens = std::ssize(prompt);
  turn.ids.assign(ids + prompt.size(), ids + sequence.size(1));
  turn.text = tokenizer_.decode(turn.ids, true);
  cache_ = made.past_key_values;
  read_.assign(ids, ids + (cache_.empty() ? 0 : cache_.length().as_int()));
  history_ = std::move(options.messages);
  history_.push_back({"assistant", turn.text});
  return turn;
}

}  // namespace calque

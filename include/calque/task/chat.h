// Chat: a conversation with a decoder, in the form that its chat template gives it. The history stays, and what the model has read of
// it is not read again.
//
//   Chat chat = Chat::from_folder(folder);
//   chat.system("You answer in one sentence.");
//   std::string answer = chat.say("What is a calque?");
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/text/chat_template.h"

namespace calque {

struct ChatTurn {
  std::string text;           // the answer
  std::vector<int64_t> ids;   // its tokens
  int64_t prompt_tokens = 0;  // of the whole conversation, as the template writes it
};

class Chat {
 public:
  // UserError for a class that writes no text, and for a folder without a chat template.
  static Chat from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});

  // The first message; replaces one that is there.
  void system(const std::string& text);
  // Adds a message and the model's answer. `sink` is given the answer as it comes. UserError for a conversation that fills what the
  // model reads at once; the message is then not added.
  ChatTurn say(const std::string& text, const TextStreamer::Sink& sink = {}, Generator* generator = nullptr);
  void forget();  // all but the system's message

  const std::vector<ChatMessage>& history() const { return history_; }
  GenerationConfig settings;   // the folder's; the caller's to change
  std::string variables_json;  // of the template, a JSON object: {"enable_thinking": false}
  const Tokenizer& tokenizer() const { return tokenizer_; }
  PretrainedModel& model() const { return *model_; }

 private:
  Chat(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer, ChatTemplate chat_template);
  std::shared_ptr<PretrainedModel> model_;
  Tokenizer tokenizer_;
  ChatTemplate template_;
  std::vector<ChatMessage> history_;
  KeyValueCache cache_;
  std::vector<int64_t> read_;  // what the cache is of
};

}  // namespace calque

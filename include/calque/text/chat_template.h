// ChatTemplate: messages to the text that a model was trained on, as the template of its folder says: the Jinja that transformers'
// templates are written in, with the output of apply_chat_template. A template is a stranger's program: it runs without access to
// anything but the values given, and within ChatLimits. What is read is immutable; any number of threads may render with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace calque {

struct ChatMessage {
  std::string role, content;
};

// No template that was made for use comes near these. More is a UserError (bad_file) that names the template and the limit.
struct ChatLimits {
  size_t steps = 50'000'000;          // a step is a part of an expression, an item looked at, some bytes copied
  size_t memory = size_t{512} << 20;  // of the values that exist at the same time
  size_t output = size_t{64} << 20;   // bytes of the text
};

struct ChatOptions {
  std::vector<ChatMessage> messages;
  // Instead of messages, where they hold more than a role and a text (tool calls, parts, names): a JSON array of objects.
  std::string messages_json;
  std::string tools_json;               // a JSON array of function schemas
  std::string documents_json;           // a JSON array of objects
  std::string variables_json;           // further variables of the template, a JSON object: {"enable_thinking": false}
  bool add_generation_prompt = false;   // the text ends where the model's answer begins
  bool continue_final_message = false;  // the text ends where the last message ends, without what would close it
  // "bos_token": "<s>", ...: over those that the folder's files name.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  // Which of several templates; by default "tool_use" where there are tools and the folder has it, else "default".
  std::string template_name;
  std::optional<std::chrono::system_clock::time_point> now;  // of strftime_now; the clock's unless it is given
  ChatLimits limits = {};
};

class ChatTemplate {
 public:
  // A model's folder: chat_template.jinja, additional_chat_templates/*.jinja, chat_template.json, or "chat_template" of
  // tokenizer_config.json; with `name`, one of several. The special tokens come from tokenizer_config.json and
  // special_tokens_map.json. UserError says what the folder lacks, or the line of what is wrong in the template.
  static ChatTemplate from_folder(const std::filesystem::path& folder, const std::string& name = "");
  // Is there one? Nothing is compiled.
  static bool exists_in(const std::filesystem::path& folder);
  // `name` stands in messages.
  static ChatTemplate from_text(std::string_view text, const std::string& name = "chat template");

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // A template's own refusal (raise_exception) is a UserError (invalid_input) with its words.
  std::string render(const ChatOptions& options) const;
  std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const;

  std::vector<std::string> names() const;                                 // of the templates: "default", "tool_use", ...
  const std::string& text(const std::string& name = "") const;            // of one of them
  std::optional<std::string> special_token(std::string_view role) const;  // "bos_token", as the folder's files name it

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace calque

#include "calque/text/chat_template.h"

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"
#include "text/utf8.h"

namespace calque {

namespace fs = std::filesystem;
using jinja::Budget;
using jinja::Dict;
using jinja::Kind;
using jinja::Value;

namespace {

constexpr size_t largest_template = size_t{4} << 20;
constexpr std::string_view continue_tag = "CONTINUE_FINAL_MESSAGE_TAG ";
// Names that a message's reasoning goes by; templates read the first.
constexpr std::string_view reasoning_fields[] = {"reasoning_content", "thinking", "reasoning"};

struct NamedTemplate {
  std::string name, text;
  std::vector<jinja::NodePtr> body;
  std::string mistake;  // why it cannot be used; it matters when it is
};

NamedTemplate compiled(const std::string& name, std::string_view text) {
  NamedTemplate out;
  out.name = name;
  out.text = text;
  try {
    if (text.size() > largest_template)
      throw UserError("the template has " + std::to_string(text.size()) + " bytes, more than " +
                      std::to_string(largest_template));
    if (!is_valid_utf8(text)) throw UserError("the template is not UTF-8 text");
    out.body = jinja::parse_template(text);
  } catch (const UserError& error) {
    out.mistake = error.what();
  }
  return out;
}

std::string file_text(const fs::path& path) {
  const auto file = MappedFile::open(path.string());
  const auto bytes = file->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// ---- what a folder holds ----------------------------------------------------------------------------------------------

using Texts = std::vector<std::pair<std::string, std::string>>;  // by name

void add_text(Texts& texts, const std::string& name, std::string text) {
  for (auto& [known, old] : texts)
    if (known == name) {
      old = std::move(text);
      return;
    }
  texts.emplace_back(name, std::move(text));
}

Texts template_files(const fs::path& folder) {
  Texts out;
  if (is_file(folder / "chat_template.jinja")) out.emplace_back("default", file_text(folder / "chat_template.jinja"));
  std::vector<fs::path> more;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", error))
    if (entry.path().extension() == ".jinja" && is_file(entry.path())) more.push_back(entry.path());
  std::sort(more.begin(), more.end());
  for (const fs::path& path : more) add_text(out, path.stem().string(), file_text(path));
  return out;
}

// "chat_template" of a JSON file: a text, or a list of named ones.
Texts template_member(const fs::path& path) {
  Texts out;
  if (!is_file(path)) return out;
  const std::string text = file_text(path);
  const JsonDocument document(text, path.string());
  document.read([&](const Json& json) {
    const Json* found = json.is_object() ? json.find("chat_template") : nullptr;
    if (!found || found->is_null()) return;
    if (found->is_string()) return out.emplace_back("default", repair_utf8(found->to_string())), void();
    if (found->is_object()) {
      for (const JsonMember& member : found->members())
        add_text(out, std::string(member.key), repair_utf8(member.value.to_string()));
      return;
    }
    for (const Json& item : found->items())
      add_text(out, std::string(item.at("name").to_string()), repair_utf8(item.at("template").to_string()));
  });
  return out;
}

Texts templates_of(const fs::path& folder) {
  Texts out = template_files(folder);
  if (out.empty()) out = template_member(folder / "tokenizer_config.json");
  if (out.empty()) out = template_member(folder / "chat_template.json");
  return out;
}

// "bos_token" and its like; earlier files come first.
Texts special_tokens_of(const fs::path& folder) {
  Texts out;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (!is_file(folder / name)) continue;
    const std::string text = file_text(folder / name);
    const JsonDocument document(text, (folder / name).string());
    document.read([&](const Json& json) {
      for (const JsonMember& member : json.members()) {
        if (!member.key.ends_with("_token")) continue;
        const Json* content = member.value.is_object() ? member.value.find("content") : &member.value;
        const bool known = std::any_of(out.begin(), out.end(), [&](const auto& t) { return t.first == member.key; });
        if (content && content->is_string() && !known) out.emplace_back(member.key, repair_utf8(content->to_string()));
      }
    });
  }
  return out;
}

// ---- what a template is given -----------------------------------------------------------------------------------------

// The members of a message, with its reasoning under the names that templates read.
std::shared_ptr<Dict> message_with_reasoning(Budget& budget, const Dict& message) {
  const Value* reasoning = nullptr;
  for (const std::string_view field : reasoning_fields) {
    const Value* found = message.find(field);
    if (!reasoning && found && !found->is(Kind::none)) reasoning = found;
  }
  auto out = std::make_shared<Dict>(budget);
  if (reasoning) out->set(jinja::make_text(budget, "thinking"), *reasoning);
  for (const auto& [key, value] : message.items) out->set(key, value);
  if (reasoning) out->set(jinja::make_text(budget, "reasoning_content"), *reasoning);
  return out;
}

std::vector<std::shared_ptr<Dict>> messages_of(Budget& budget, const ChatOptions& options) {
  std::vector<std::shared_ptr<Dict>> out;
  if (!options.messages.empty() && !options.messages_json.empty())
    throw UserError("chat: messages are given twice, as messages and as messages_json; give one of them");
  for (const ChatMessage& message : options.messages) {
    auto dict = std::make_shared<Dict>(budget);
    dict->set(jinja::make_text(budget, "role"), jinja::make_text(budget, repair_utf8(message.role)));
    dict->set(jinja::make_text(budget, "content"), jinja::make_text(budget, repair_utf8(message.content)));
    out.push_back(std::move(dict));
  }
  if (!options.messages_json.empty()) {
    const Value json = jinja::from_json(budget, options.messages_json, "messages");
    if (!json.is(Kind::list))
      throw UserError(std::string("messages: expected a JSON array of objects, found ") + type_name(json));
    for (const Value& message : json.list().items) {
      if (!message.is(Kind::dict))
        throw UserError(std::string("messages: expected objects with \"role\" and \"content\", found ") +
                        type_name(message));
      out.push_back(message_with_reasoning(budget, message.dict()));
    }
  }
  if (out.empty()) throw UserError("Cannot apply chat template to an empty conversation. Provide at least one message.");
  return out;
}

Value json_list(Budget& budget, const std::string& text, const char* name) {
  if (text.empty()) return {};
  Value json = jinja::from_json(budget, text, name);
  if (json.is(Kind::none)) return json;
  if (!json.is(Kind::list))
    throw UserError(std::string(name) + ": expected a JSON array of objects, found " + type_name(json));
  for (const Value& item : json.list().items)
    if (!item.is(Kind::dict)) throw UserError(std::string(name) + ": expected objects, found " + type_name(item));
  return json;
}

// ---- the last message goes on -----------------------------------------------------------------------------------------

Value tagged(Budget& budget, const Value& text) {
  if (!text.is(Kind::text)) throw UserError("chat: the final message has no text to continue");
  return jinja::make_text(budget, text.text().bytes + std::string(continue_tag));
}

// Marks the end of the last message's text, and gives that text.
std::string tag_final_message(Budget& budget, std::vector<std::shared_ptr<Dict>>& messages,
                              const std::string& template_text) {
  const Value key = jinja::make_text(budget, "content");
  const Value* found = messages.back()->find("content");
  if (!found || found->is(Kind::none))
    throw UserError("continue_final_message is set but the final message has no \"content\" to continue!");
  if (template_text.find("content") == std::string::npos)
    throw UserError("continue_final_message is set to \"content\" but this is not an accepted field in the chat_template");
  const Value content = *found;
  if (content.is(Kind::text)) {
    messages.back()->set(key, tagged(budget, content));
    return content.text().bytes;
  }
  if (!content.is(Kind::list)) throw UserError("chat: the final message has no text to continue");
  std::vector<Value> parts = content.list().items;
  for (size_t i = parts.size(); i-- > 0;) {
    const Value* text = parts[i].is(Kind::dict) ? parts[i].dict().find("text") : nullptr;
    if (!text) continue;
    const Value before = *text;
    auto part = std::make_shared<Dict>(budget);
    for (const auto& [k, v] : parts[i].dict().items) part->set(k, v);
    part->set(jinja::make_text(budget, "text"), tagged(budget, before));
    parts[i] = Value(Kind::dict, part);
    messages.back()->set(key, jinja::make_list(budget, std::move(parts)));
    return before.text().bytes;
  }
  throw UserError("continue_final_message is set but we could not find any text to continue in the final message!");
}

// The text up to where the last message ends.
std::string cut_at_tag(std::string rendered, std::string_view final_message) {
  const std::string_view bare = continue_tag.substr(0, continue_tag.size() - 1);
  const size_t at = rendered.rfind(bare);
  if (at == std::string::npos || rendered.find(jinja::strip(final_message, nullptr, true, true)) == std::string::npos)
    throw UserError(
        "continue_final_message is set but the final message does not appear in the chat after applying the chat template! "
        "This "
        "can happen if the chat template deletes portions of the final message. Final message to continue: " +
        excerpt(final_message, 200));
  const bool spaced = std::string_view(rendered).substr(at).starts_with(continue_tag);
  rendered.resize(at);
  if (!spaced) rendered = jinja::strip(rendered, nullptr, false, true);
  return rendered;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string name;  // of the folder or text, for messages
  std::vector<NamedTemplate> templates;
  Texts special_tokens;

  const NamedTemplate* find(std::string_view wanted) const {
    for (const NamedTemplate& t : templates)
      if (t.name == wanted) return &t;
    return nullptr;
  }
  std::string listed() const {
    return join(templates, ", ", [](const NamedTemplate& t) { return "\"" + t.name + "\""; });
  }
  const NamedTemplate& choose(const std::string& wanted, bool with_tools) const {
    const NamedTemplate* found = nullptr;
    if (!wanted.empty()) {
      found = find(wanted);
      if (!found) throw UserError(name + ": no chat template is named \"" + wanted + "\"; there is " + listed());
    } else if (templates.size() == 1) {
      found = &templates[0];
    } else {
      found = with_tools ? find("tool_use") : nullptr;
      if (!found) found = find("default");
      if (!found)
        throw UserError(name + ": there are several chat templates and none is the default; choose one of " + listed());
    }
    if (!found->mistake.empty()) throw UserError(ErrorKind::bad_file, where(*found) + found->mistake);
    return *found;
  }
  std::string where(const NamedTemplate& t) const {
    return name + (templates.size() > 1 ? " (\"" + t.name + "\")" : "") + ": ";
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

bool ChatTemplate::exists_in(const fs::path& folder) { return !templates_of(folder).empty(); }

ChatTemplate ChatTemplate::from_folder(const fs::path& folder, const std::string& name) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw UserError(folder.string() + ": there is no such folder");
  const Texts texts = templates_of(folder);
  if (texts.empty())
    throw UserError(
        ErrorKind::bad_file,
        folder.string() +
            ": the model has no chat template (no chat_template.jinja, and no \"chat_template\" in "
            "tokenizer_config.json); it is perhaps not a chat model: use plain text, or put a template of your own in " +
            (folder / "chat_template.jinja").string());
  auto impl = std::make_unique<Impl>();
  impl->name = folder.string() + ": chat template";
  for (const auto& [its_name, text] : texts) impl->templates.push_back(compiled(its_name, text));
  impl->special_tokens = special_tokens_of(folder);
  if (!name.empty()) {
    impl->choose(name, false);
    std::erase_if(impl->templates, [&](const NamedTemplate& t) { return t.name != name; });
  } else if (impl->templates.size() == 1) {
    impl->choose("", false);
  }
  return ChatTemplate(std::move(impl));
}

ChatTemplate ChatTemplate::from_text(std::string_view text, const std::string& name) {
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  impl->templates.push_back(compiled("default", text));
  impl->choose("", false);
  return ChatTemplate(std::move(impl));
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const {
  ChatOptions options;
  options.messages = messages;
  options.add_generation_prompt = add_generation_prompt;
  return render(options);
}

std::string ChatTemplate::render(const ChatOptions& options) const {
  Budget budget(options.limits);
  const Value tools = json_list(budget, options.tools_json, "tools");
  const NamedTemplate& chosen = impl_->choose(options.template_name, !tools.is(Kind::none));
  if (options.add_generation_prompt && options.continue_final_message)
    throw UserError(
        "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you want the "
        "model to "
        "continue the final message, and add_generation_prompt when you want it to start a new assistant message.");
  std::vector<std::shared_ptr<Dict>> messages = messages_of(budget, options);
  std::string final_message;
  if (options.continue_final_message) final_message = tag_final_message(budget, messages, chosen.text);

  std::vector<Value> list;
  for (auto& message : messages) list.emplace_back(Kind::dict, std::move(message));
  std::vector<std::pair<std::string, Value>> variables;
  for (const Texts& tokens : {impl_->special_tokens, options.special_tokens})
    for (const auto& [role, token] : tokens) variables.emplace_back(role, jinja::make_text(budget, repair_utf8(token)));
  if (!options.variables_json.empty()) {
    const Value more = jinja::from_json(budget, options.variables_json, "variables");
    if (!more.is(Kind::dict)) throw UserError(std::string("variables: expected a JSON object, found ") + type_name(more));
    for (const auto& [key, value] : more.dict().items) variables.emplace_back(key.text().bytes, value);
  }
  variables.emplace_back("messages", jinja::make_list(budget, std::move(list)));
  variables.emplace_back("tools", tools);
  variables.emplace_back("documents", json_list(budget, options.documents_json, "documents"));
  variables.emplace_back("add_generation_prompt", Value(options.add_generation_prompt));

  jinja::Render run(budget, options.now.value_or(std::chrono::system_clock::now()));
  std::string out;
  try {
    out = run.run(chosen.body, variables);
  } catch (jinja::RaisedByTemplate& error) {
    error.prepend(impl_->where(chosen));
    throw;
  } catch (UserError& error) {
    error.prepend(impl_->where(chosen) + "line " + std::to_string(run.line()) + ": ");
    throw;
  }
  return options.continue_final_message ? cut_at_tag(std::move(out), final_message) : out;
}

std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> out;
  for (const NamedTemplate& t : impl_->templates) out.push_back(t.name);
  return out;
}

const std::string& ChatTemplate::text(const std::string& name) const { return impl_->choose(name, false).text; }

std::optional<std::string> ChatTemplate::special_token(std::string_view role) const {
  for (const auto& [known, token] : impl_->special_tokens)
    if (known == role) return token;
  return std::nullopt;
}

}  // namespace calque

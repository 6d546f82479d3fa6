// calque summarize, translate and chat: what is written on texts.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"
#include "calque/task/chat.h"
#include "calque/task/text_to_text.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/task.h"

namespace calque::cli {
namespace {

// The task of the config that translates so: "translation_en_to_fr".
std::string translation_task(const Config& config, const RewriteOptions& o) {
  if (!o.task.empty()) return o.task;
  const std::vector<std::string> tasks = tasks_of(config);
  const auto is_translation = [](const std::string& task) { return task.starts_with("translation"); };
  if (std::ranges::none_of(tasks, is_translation)) return "";
  const std::string wanted = "translation_" + o.from + "_to_" + o.to;
  if (std::ranges::find(tasks, wanted) != tasks.end()) return wanted;
  std::vector<std::string> known;
  for (const std::string& task : tasks)
    if (is_translation(task)) known.push_back(task.substr(std::string("translation_").size()));
  throw UserError("translate: say what to translate with --from and --to; the model knows " + join(known, ", "));
}

void show_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_output();
}

// One turn of a conversation, shown as it comes.
void say_and_show(Chat& chat, const std::string& text, bool json, Generator& generator) {
  const ChatTurn turn = chat.say(text, json ? TextStreamer::Sink() : show_text, &generator);
  if (!json) return show_text("\n");
  print_json_line({{"role", "assistant"},
                   {"content", turn.text},
                   {"prompt_tokens", turn.prompt_tokens},
                   {"new_tokens", turn.ids.size()}});
  flush_output();
}

// A conversation at the keyboard, or with a program that writes a message a line.
void converse(Chat& chat, bool json, Generator& generator) {
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0;
  if (terminal) write_error_text("A message a line; /new forgets, an empty line or Ctrl-D ends.\n");
  for (;;) {
    if (terminal) write_error_text("> ");
    std::string line;
    if (!std::getline(std::cin, line) || (terminal && line.empty())) return;
    if (line == "/new")
      chat.forget();
    else if (!line.empty())
      say_and_show(chat, line, json, generator);
  }
}

}  // namespace

void run_rewrite(const RewriteOptions& o) {
  check(o.writing, o.command);
  const std::vector<std::string> texts = texts_of(o.command, o);
  const std::string folder = model_folder(o.model);
  const Config config = config_from_pretrained(folder);
  TextToTextOptions options;
  options.asked_by = o.command;
  options.load = load_options(o);
  options.task = o.command == "summarize" ? "summarization" : translation_task(config, o);
  if (o.command == "translate" && options.task.empty()) options.from = o.from, options.to = o.to;
  TextToText writer = TextToText::from_folder(folder, options);
  options.load = {};  // with its bar
  apply(o.writing, writer.settings, o.command);
  const TaskProgress progress = texts.size() > 1 ? progress_bar(o.command) : TaskProgress();
  const bool streams = !o.json && writer.settings.num_beams.value_or(1) == 1;
  for (size_t i = 0; i < texts.size(); ++i) {
    TextStreamer streamer(writer.tokenizer(), show_text, true);
    const std::string text = writer.write(texts[i], o.writing.max_new_tokens, streams ? &streamer : nullptr);
    if (o.json)
      print_json_line({{"text", texts[i]}, {"output", text}});
    else
      show_text(streams ? "\n" : text + "\n");
    if (progress) progress(i + 1, texts.size());
  }
}

void run_chat(const ChatCommandOptions& o) {
  check(o.writing, "chat");
  Chat chat = Chat::from_folder(model_folder(o.model), load_options(o));
  apply(o.writing, chat.settings, "chat");
  chat.variables_json = o.variables;
  if (!o.system.empty()) chat.system(o.system);
  Generator generator(o.writing.seed ? static_cast<uint64_t>(*o.writing.seed) : Generator::default_seed);
  if (!o.writing.seed) generator.seed();
  if (o.prompts.empty() && o.file.empty()) return converse(chat, o.json, generator);
  for (const std::string& text : texts_of("chat", o)) say_and_show(chat, text, o.json, generator);
}

}  // namespace calque::cli

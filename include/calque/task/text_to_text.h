// TextToText: texts that a model makes of texts: summaries, translations. Prefixes and settings come from task_specific_params of the
// config (T5), languages from the language tokens that the tokenizer has (mBART, M2M-100, NLLB).
//
//   TextToText t5 = TextToText::from_folder(folder, {.task = "translation_en_to_de"});
//   std::string german = t5.write("How are you?");
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calque/generate/generation_config.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/task/text_inputs.h"

namespace calque {

struct TextToTextOptions {
  std::string task = {};  // of task_specific_params: "summarization", "translation_en_to_fr"; empty: none
  // Languages, as the tokenizer's tokens name them ("en_XX", "eng_Latn", "en" for "__en__"); empty: none.
  std::string from = {}, to = {};
  LoadOptions load = {};
  std::string asked_by = "TextToText";  // what messages begin with
};

class TextToText {
 public:
  // UserError for a model that writes nothing, and for a language or direction that it does not know, with those that it does.
  static TextToText from_folder(const std::filesystem::path& folder, const TextToTextOptions& options = {});

  // What the model writes for a text. `settings` count over the model's; a streamer is told of the tokens as they come.
  std::string write(const std::string& text, const std::optional<int64_t>& max_new_tokens = {},
                    Streamer* streamer = nullptr) const;

  GenerationConfig settings;  // the folder's, the task's and the language's; the caller's to change
  const Tokenizer& tokenizer() const { return tokenizer_; }
  PretrainedModel& model() const { return *model_; }
  const std::string& prefix() const { return prefix_; }

 private:
  TextToText(std::shared_ptr<PretrainedModel> model, Tokenizer tokenizer);
  void take_task(const std::string& task);
  void take_languages(const std::string& from, const std::string& to);

  std::shared_ptr<PretrainedModel> model_;
  Tokenizer tokenizer_;
  std::string prefix_;
  std::optional<int64_t> source_language_;
};

// The tasks that task_specific_params of a config name.
std::vector<std::string> tasks_of(const Config& config);

}  // namespace calque

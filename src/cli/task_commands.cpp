#include "cli/task_commands.h"

#include <memory>

#include "cli/options.h"
#include "cli/task.h"

namespace calque::cli {
namespace {

void add_texts(CLI::App& command, std::vector<std::string>& prompts, std::string& file, const char* what) {
  command.add_option("-p,--prompt", prompts, std::string(what) + " (may be given several times); - reads standard input")
      ->allow_extra_args(false);
  command.add_option("--file", file, "a file with a text a line; - reads standard input");
}

void add_model(CLI::App& command, TaskOptions& o) {
  command.add_option("model", o.model, "a model folder, tiny-lm, or ORG/NAME[@REVISION] in the hub's cache")->required();
  add_class(&command, o.model_class);
  add_dtype(&command, o.dtype, "compute in this; by default as the weights are");
  add_attention(&command, o.attention);
  add_json(&command, o.json, "for programs to read: a JSON document for each input, on a line of its own");
}

void add_common(CLI::App& command, TaskOptions& o, const char* text) {
  add_model(command, o);
  add_texts(command, o.prompts, o.file, text);
}

CLI::Option* add_images(CLI::App& command, MediaOptions& o) {
  command.add_option("--max-pixels", o.max_pixels, "a picture of more is refused; by default 178956970")->check(positive());
  return command.add_option("--image", o.images, "a PNG, JPEG or WebP file (may be given several times)")
      ->allow_extra_args(false);
}

CLI::Option* add_sounds(CLI::App& command, MediaOptions& o) {
  command.add_option("--max-seconds", o.max_seconds, "a sound that lasts longer is refused; by default 21600")
      ->check(positive());
  return command.add_option("--audio", o.sounds, "a WAV, FLAC or Ogg file (may be given several times)")
      ->allow_extra_args(false);
}

void add_batches(CLI::App& command, TaskOptions& o) {
  command.add_option("--batch-size", o.batch_size, "texts at once")->check(between(1, 65536))->capture_default_str();
}

void add_tokenize(CLI::App& app) {
  auto o = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "The tokens of texts: ids, tokens, where in the text they are");
  command->group(use_group);
  command
      ->add_option("tokenizer", o->tokenizer,
                   "a model folder, tiny-lm, ORG/NAME[@REVISION] in the hub's cache, or a tokenizer.json")
      ->required();
  add_texts(*command, o->prompts, o->file, "a text");
  command->add_flag("--no-special-tokens", o->no_special_tokens, "without the tokens that the model wants around a text");
  command->add_flag("--json", o->json, "for programs to read: a JSON document a text, each on a line");
  command->callback([o] { run_tokenize(*o); });
}

void add_embed(CLI::App& app) {
  auto o = std::make_shared<EmbedCommandOptions>();
  CLI::App* command = app.add_subcommand("embed", "Vectors of texts, as sentence-transformers makes them, or of pictures");
  command->group(use_group);
  add_common(*command, *o, "a text");
  add_images(*command, *o);
  add_batches(*command, *o);
  command->add_option("--pool", o->pool,
                      "mean, cls, max, last, mean_sqrt_len_tokens or weightedmean; by default as the folder says, or mean");
  command->add_flag("--normalize", o->normalize, "vectors of length 1, also where the folder does not say so");
  command->add_option("--prompt-name", o->prompt_name, "one of the model's prompts, put before each text");
  command->add_option("--prefix", o->prefix, "this before each text, instead of the model's default prompt");
  command->add_option("-o,--output", o->output, "a .npy, .safetensors (one tensor, `embeddings`) or .jsonl file to write");
  command->callback([o] { run_embed(*o); });
}

void add_classify(CLI::App& app) {
  auto o = std::make_shared<ClassifyCommandOptions>();
  CLI::App* command =
      app.add_subcommand("classify", "Labels of texts, pictures or sounds with their scores, or of the words in texts");
  command->group(use_group);
  add_common(*command, *o, "a text");
  add_images(*command, *o);
  add_sounds(*command, *o);
  add_batches(*command, *o);
  command->add_flag("--pairs", o->pairs, "each text is two, with a tab between them");
  command->add_option("--top", o->top, "so many labels of a text")->check(positive())->capture_default_str();
  command->callback([o] { run_classify(*o); });
}

void add_segment(CLI::App& app) {
  auto o = std::make_shared<SegmentOptions>();
  CLI::App* command = app.add_subcommand("segment", "Which label each pixel of a picture has");
  command->group(use_group);
  add_model(*command, *o);
  add_images(*command, *o)->required();
  command->add_option("-o,--output", o->output,
                      "a .png file to write, each label in a colour of its own; of several pictures a folder");
  command->callback([o] { run_segment(*o); });
}

void add_match(CLI::App& app) {
  auto o = std::make_shared<MatchOptions>();
  CLI::App* command =
      app.add_subcommand("match", "Which of several texts fits a picture, with probabilities (CLIP, SigLIP)");
  command->group(use_group);
  add_common(*command, *o, "a text");
  add_images(*command, *o)->required();
  command->add_option("--template", o->pattern, "what each text becomes: \"This is a photo of {}.\"")->capture_default_str();
  command->callback([o] { run_match(*o); });
}

void add_transcribe(CLI::App& app) {
  auto o = std::make_shared<TranscribeOptions>();
  CLI::App* command = app.add_subcommand("transcribe", "What is said in a sound");
  command->group(use_group);
  add_model(*command, *o);
  add_sounds(*command, *o)->required();
  auto* times =
      command->add_option("--times", o->times, "when each was said: segment or word (Whisper), word or char (CTC)");
  times->check(CLI::IsMember({"none", "segment", "word", "char"}))->capture_default_str();
  command->add_flag("--timestamps", o->timestamps, "the same as --times segment")->excludes(times);
  command->add_option("--language", o->language,
                      "Whisper: the language that is spoken, de or german; by default it is detected");
  command->add_option("--task", o->task, "Whisper: transcribe, or translate into English")
      ->check(CLI::IsMember({"transcribe", "translate"}));
  command
      ->add_option("--temperatures", o->temperatures,
                   "Whisper: a part that falls short of a threshold is tried again at the next: 0,0.4,0.8")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  command->add_option("--compression-ratio-threshold", o->compression_ratio_threshold,
                      "Whisper: a part that repeats itself more falls short: 1.35");
  command->add_option("--logprob-threshold", o->logprob_threshold,
                      "Whisper: a part whose tokens are less likely on average falls short: -1");
  command->add_option("--no-speech-threshold", o->no_speech_threshold,
                      "Whisper: one that falls so short and is more probably silent is skipped: 0.6");
  command->add_flag("--condition-on-prev-tokens", o->condition_on_prev_tokens,
                    "Whisper: each part is told what was said before");
  add_writing(command, o->writing);
  command->callback([o] { run_transcribe(*o); });
}

void add_fill(CLI::App& app) {
  auto o = std::make_shared<FillCommandOptions>();
  CLI::App* command = app.add_subcommand("fill", "What a masked language model writes in the place of its mask token");
  command->group(use_group);
  add_common(*command, *o, "a text with a mask token, or several of them");
  command->add_option("--top", o->top, "so many tokens for each mask")->check(positive())->capture_default_str();
  command->callback([o] { run_fill(*o); });
}

void add_answer(CLI::App& app) {
  auto o = std::make_shared<AnswerCommandOptions>();
  CLI::App* command = app.add_subcommand("answer", "The part of a text that answers a question");
  command->group(use_group);
  add_common(*command, *o, "the question");
  command->add_option("--context", o->context,
                      "the text that holds the answer; without it each line is question, tab, context");
  command->add_option("--context-file", o->context_file, "a file that is this text");
  command->add_option("--top", o->top, "so many answers")->check(positive())->capture_default_str();
  command->add_option("--longest-answer", o->longest_answer, "in tokens")->check(positive())->capture_default_str();
  command
      ->add_option("--max-length", o->max_length,
                   "tokens that are read at once; a longer text is read in parts; by default 384")
      ->check(positive());
  command->add_option("--stride", o->stride, "tokens that a part shares with the next; by default 128");
  command->add_flag("--may-be-impossible", o->may_be_impossible, "that the text holds no answer is one too");
  command->callback([o] { run_answer(*o); });
}

void add_rewrite(CLI::App& app, const char* name, const char* what) {
  auto o = std::make_shared<RewriteOptions>();
  o->command = name;
  CLI::App* command = app.add_subcommand(name, what);
  command->group(use_group);
  add_common(*command, *o, "a text");
  add_writing(command, o->writing);
  if (o->command == "translate") {
    command->add_option("--from", o->from, "the language of the text, as the model names it: en, en_XX, eng_Latn");
    command->add_option("--to", o->to, "the language to write");
  }
  command->callback([o] { run_rewrite(*o); });
}

void add_chat(CLI::App& app) {
  auto o = std::make_shared<ChatCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "chat",
      "A conversation with a model that has a chat template; without -p and --file at the keyboard, a message a line");
  command->group(use_group);
  add_common(*command, *o, "a message");
  add_writing(command, o->writing);
  command->add_option("--system", o->system, "what the model is told before the conversation");
  command->add_option("--template-variables", o->variables, "a JSON object for the template: {\"enable_thinking\": false}");
  command->callback([o] { run_chat(*o); });
}

}  // namespace

void add_task_commands(CLI::App& app) {
  add_tokenize(app);
  add_embed(app);
  add_classify(app);
  add_segment(app);
  add_match(app);
  add_transcribe(app);
  add_fill(app);
  add_answer(app);
  add_rewrite(app, "summarize", "A shorter text that says the same");
  add_rewrite(app, "translate", "The same text in another language");
  add_chat(app);
}

}  // namespace calque::cli

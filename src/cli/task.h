// The commands that do one thing with texts, pictures or sounds: tokenize, embed, classify, fill, answer, summarize, translate, chat, segment,
// match, transcribe. What they have in common: texts come from -p or, a line each, from --file, pictures from --image and sounds from
// --audio; --json prints one document for each, on a line of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "calque/hub/from_pretrained.h"
#include "calque/task/text_inputs.h"
#include "cli/writing.h"

namespace calque::cli {

struct TaskOptions {
  std::string model;
  std::vector<std::string> prompts;  // "-": all of standard input
  std::string file;                  // a text a line; "-": standard input
  std::string model_class, dtype, attention;
  size_t batch_size = 32;
  bool json = false;
};

// The texts of -p and of --file; UserError where there is none.
// `beside`: what else the command takes.
std::vector<std::string> texts_of(const std::string& command, const TaskOptions& options, const std::string& beside = "");
LoadOptions load_options(const TaskOptions& options);
// A bar on standard error, on a terminal, for what takes longer than a second; nothing elsewhere.
TaskProgress progress_bar(const std::string& what);
void print_json_line(const nlohmann::ordered_json& json);
// A file's name without what the program does not write: UserError names the endings that `known` has ("npy, safetensors or jsonl").
std::string ending_of(const std::string& path, std::initializer_list<std::string_view> known);
// The two texts around the tab of a line; UserError says which line has none.
TextInput split_pair(const std::string& command, const std::string& line, size_t number);

struct TokenizeOptions {
  std::string tokenizer;  // a model or a tokenizer.json
  std::vector<std::string> prompts;
  std::string file;
  bool no_special_tokens = false;
  bool json = false;
};
void run_tokenize(const TokenizeOptions& options);

// Files of pictures and sounds, each of which is one input, and how large they may be.
struct MediaOptions {
  std::vector<std::string> images, sounds;
  std::optional<size_t> max_pixels;
  std::optional<double> max_seconds;
};

struct EmbedCommandOptions : TaskOptions, MediaOptions {
  std::string pool, output;
  std::optional<std::string> prompt_name, prefix;
  bool normalize = false;
};
void run_embed(const EmbedCommandOptions& options);

struct ClassifyCommandOptions : TaskOptions, MediaOptions {
  bool pairs = false;
  size_t top = 1;
};
void run_classify(const ClassifyCommandOptions& options);

// Of --image or --audio; UserError where both are given, or -p as well.
void run_embed_images(const EmbedCommandOptions& options);
void run_classify_media(const ClassifyCommandOptions& options);
// An embedding as a line of JSON: what it is of, under `key`, and the numbers.
std::string embedding_line(const std::string& key, const std::string& text, const float* values, size_t count);
void write_embeddings(const std::string& path, const std::string& ending, const std::string& key,
                      const std::vector<std::string>& texts, const Tensor& vectors);

struct SegmentOptions : TaskOptions, MediaOptions {
  std::string output;  // a .png file; of several pictures a folder
};
void run_segment(const SegmentOptions& options);

struct MatchOptions : TaskOptions, MediaOptions {
  std::string pattern = "{}";  // what each text becomes
};
void run_match(const MatchOptions& options);

struct TranscribeOptions : TaskOptions, MediaOptions {
  std::string times = "none";  // segment, word or char
  bool timestamps = false;     // times of segments
  WritingOptions writing;
  // Whisper's.
  std::string language, task;
  std::vector<double> temperatures;
  std::optional<double> compression_ratio_threshold, logprob_threshold, no_speech_threshold;
  bool condition_on_prev_tokens = false;
};
void run_transcribe(const TranscribeOptions& options);

struct FillCommandOptions : TaskOptions {
  size_t top = 5;
};
void run_fill(const FillCommandOptions& options);

struct AnswerCommandOptions : TaskOptions {
  std::string context, context_file;
  size_t top = 1, longest_answer = 15;
  std::optional<size_t> max_length, stride;
  bool may_be_impossible = false;
};
void run_answer(const AnswerCommandOptions& options);

struct RewriteOptions : TaskOptions {
  std::string command;  // summarize or translate
  std::string from, to, task;
  WritingOptions writing;
};
void run_rewrite(const RewriteOptions& options);

struct ChatCommandOptions : TaskOptions {
  std::string system, variables;
  WritingOptions writing;
};
void run_chat(const ChatCommandOptions& options);

}  // namespace calque::cli

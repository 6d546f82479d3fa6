// calque tokenize, embed, classify, fill and answer: what is read from texts.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/npy.h"
#include "calque/file/safetensors.h"
#include "calque/hub/adapters.h"
#include "calque/op/tensor.h"
#include "calque/task/answer.h"
#include "calque/task/classify.h"
#include "calque/task/embed.h"
#include "calque/task/fill.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/task.h"

namespace calque::cli {
namespace {

using TaskJson = nlohmann::ordered_json;

std::string score_text(double score) { return fmt::format("{:.4f}", score); }

// A long text in a cell of a table.
std::string cell_text(const std::string& text) {
  constexpr size_t most = 60;
  std::string out = printable(text);
  size_t characters = 0, at = 0;
  for (; at < out.size(); ++at)
    if ((static_cast<unsigned char>(out[at]) & 0xC0) != 0x80 && ++characters > most) break;
  return at < out.size() ? out.substr(0, at) + "..." : out;
}

Tokenizer tokenizer_at(const std::string& name) {
  const bool file = std::filesystem::is_regular_file(name);
  return Tokenizer::from_file(file ? std::filesystem::path(name) : tokenizer_folder(model_folder(name)));
}

}  // namespace

void run_tokenize(const TokenizeOptions& o) {
  TaskOptions source;
  source.prompts = o.prompts, source.file = o.file;
  const std::vector<std::string> texts = texts_of("tokenize", source);
  const Tokenizer tokenizer = tokenizer_at(o.tokenizer);
  EncodeOptions options;
  options.add_special_tokens = !o.no_special_tokens;
  options.offsets = OffsetUnit::characters;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Encoding encoding = tokenizer.encode(texts[i], options);
    if (o.json) {
      TaskJson json{{"text", texts[i]}, {"ids", encoding.ids}, {"tokens", encoding.tokens}, {"offsets", TaskJson::array()}};
      for (const auto& [begin, end] : encoding.offsets) json["offsets"].push_back({begin, end});
      print_json_line(json);
    } else if (!o.file.empty()) {
      fmt::print("{}\n", fmt::join(encoding.ids, " "));
    } else {
      Table table({{"id", Table::Align::right}, {"token"}, {"begin", Table::Align::right}, {"end", Table::Align::right}});
      for (size_t k = 0; k < encoding.size(); ++k)
        table.add({std::to_string(encoding.ids[k]), printable(encoding.tokens[k]), std::to_string(encoding.offsets[k].first),
                   std::to_string(encoding.offsets[k].second)});
      fmt::print("{}{}", i == 0 ? "" : "\n", table.str());
    }
  }
}

std::string embedding_line(const std::string& key, const std::string& text, const float* values, size_t count) {
  // Of a float its own shortest text, not the double's that it is.
  std::string out = TaskJson{{key, text}}.dump(-1, ' ', false, TaskJson::error_handler_t::replace);
  out.pop_back();
  out += ",\"embedding\":[";
  for (size_t i = 0; i < count; ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", values[i]);
  return out + "]}\n";
}

void write_embeddings(const std::string& path, const std::string& ending, const std::string& key,
                      const std::vector<std::string>& texts, const Tensor& vectors) {
  if (ending == "npy") return save_npy(path, vectors);
  if (ending == "safetensors") return save_safetensors(path, {{"embeddings", vectors}});
  FileWriter file(path);
  const auto size = static_cast<size_t>(vectors.size(1));
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string line = embedding_line(key, texts[i], vectors.data_as<float>() + i * size, size);
    file.write(line.data(), line.size());
  }
  file.commit();
}

void run_embed(const EmbedCommandOptions& o) {
  if (!o.images.empty()) return run_embed_images(o);
  const std::string ending = o.output.empty() ? "" : ending_of(o.output, {"npy", "safetensors", "jsonl"});
  const std::vector<std::string> texts = texts_of("embed", o, "; a picture with --image");
  SentenceEncoderOptions options;
  options.load = load_options(o);
  options.normalize = o.normalize;
  if (!o.pool.empty()) options.pooling = pooling_from_name(o.pool);
  const SentenceEncoder encoder = SentenceEncoder::from_folder(model_folder(o.model), options);
  options.load = {};  // with its bar
  EmbedOptions embed;
  embed.batch_size = o.batch_size;
  embed.prompt_name = o.prompt_name;
  embed.prompt = o.prefix;
  embed.progress = progress_bar("embed");
  const Tensor vectors = encoder.embed(texts, embed);
  const auto size = static_cast<size_t>(vectors.size(1));
  if (!o.output.empty()) write_embeddings(o.output, ending, "text", texts, vectors);
  if (o.json && o.output.empty())
    for (size_t i = 0; i < texts.size(); ++i)
      fmt::print("{}", embedding_line("text", texts[i], vectors.data_as<float>() + i * size, size));
  else if (o.json)
    print_json_line({{"output", o.output}, {"texts", texts.size()}, {"dimension", size}});
  else if (!o.output.empty() && is_quiet())
    return;
  else if (!o.output.empty())
    fmt::print("{}: {} texts, {} numbers each\n", o.output, texts.size(), size);
  else
    fmt::print("{}\n", vectors.str());
}

namespace {

void classify_words(const ClassifyCommandOptions& o, const Classifier& classifier, const std::vector<TextInput>& texts,
                    const ClassifyOptions& options) {
  const std::vector<std::vector<WordGroup>> found = classifier.classify_words(texts, options);
  Table table({{"label"},
               {"score", Table::Align::right},
               {"word"},
               {"begin", Table::Align::right},
               {"end", Table::Align::right},
               {"text"}});
  for (size_t i = 0; i < texts.size(); ++i) {
    TaskJson words = TaskJson::array();
    for (const WordGroup& one : found[i]) {
      words.push_back(
          {{"entity_group", one.label}, {"score", one.score}, {"word", one.word}, {"start", one.begin}, {"end", one.end}});
      table.add({printable(one.label), score_text(one.score), cell_text(one.word), std::to_string(one.begin),
                 std::to_string(one.end), cell_text(texts[i].first)});
    }
    if (o.json) print_json_line({{"text", texts[i].first}, {"words", words}});
  }
  if (!o.json) fmt::print("{}", table.str());
}

}  // namespace

void run_classify(const ClassifyCommandOptions& o) {
  if (!o.images.empty() || !o.sounds.empty()) return run_classify_media(o);
  const std::vector<std::string> lines = texts_of("classify", o, "; a picture with --image, a sound with --audio");
  std::vector<TextInput> texts;
  for (size_t i = 0; i < lines.size(); ++i)
    texts.push_back(o.pairs ? split_pair("classify", lines[i], i) : TextInput(lines[i]));
  const Classifier classifier = Classifier::from_folder(model_folder(o.model), load_options(o));
  ClassifyOptions options;
  options.batch_size = o.batch_size;
  options.progress = progress_bar("classify");
  if (classifier.labels_tokens()) return classify_words(o, classifier, texts, options);
  const std::vector<std::vector<LabelScore>> found = classifier.classify(texts, options);
  Table table({{"label"}, {"score", Table::Align::right}, {"text"}});
  for (size_t i = 0; i < texts.size(); ++i) {
    TaskJson labels = TaskJson::array();
    for (size_t k = 0; k < std::min(o.top, found[i].size()); ++k) {
      labels.push_back({{"label", found[i][k].label}, {"score", found[i][k].score}});
      table.add({printable(found[i][k].label), score_text(found[i][k].score), k == 0 ? cell_text(lines[i]) : ""});
    }
    TaskJson json{{"text", texts[i].first}};
    if (texts[i].second) json["text_pair"] = *texts[i].second;
    json["labels"] = labels;
    if (o.json) print_json_line(json);
  }
  if (!o.json) fmt::print("{}", table.str());
}

void run_fill(const FillCommandOptions& o) {
  const std::vector<std::string> texts = texts_of("fill", o);
  const MaskFiller filler = MaskFiller::from_folder(model_folder(o.model), load_options(o));
  Table table({{"mask", Table::Align::right}, {"token"}, {"score", Table::Align::right}, {"text"}});
  const TaskProgress progress = progress_bar("fill");
  for (size_t i = 0; i < texts.size(); ++i) {
    TaskJson masks = TaskJson::array();
    const auto found = filler.fill(texts[i], o.top);
    for (size_t m = 0; m < found.size(); ++m) {
      TaskJson tokens = TaskJson::array();
      for (const FilledToken& one : found[m]) {
        tokens.push_back({{"score", one.score}, {"token", one.id}, {"token_str", one.token}, {"sequence", one.sequence}});
        table.add({std::to_string(m + 1), printable(one.token), score_text(one.score), cell_text(one.sequence)});
      }
      masks.push_back(tokens);
    }
    if (o.json) print_json_line({{"text", texts[i]}, {"masks", masks}});
    if (progress) progress(i + 1, texts.size());
  }
  if (!o.json) fmt::print("{}", table.str());
}

void run_answer(const AnswerCommandOptions& o) {
  const bool one_context = !o.context.empty() || !o.context_file.empty();
  if (o.file.empty() && !one_context)
    throw UserError(
        "answer: give the text that holds the answer with --context or --context-file, or lines of question, tab, "
        "context with --file");
  std::string context = o.context;
  if (!o.context_file.empty()) {
    std::ifstream in(o.context_file);
    if (!in)
      throw UserError(ErrorKind::bad_file, o.context_file + ": cannot be read; expected the text that holds the answer");
    std::ostringstream all;
    all << in.rdbuf();
    context = all.str();
  }
  std::vector<TextInput> questions;
  const std::vector<std::string> lines = texts_of("answer", o);
  for (size_t i = 0; i < lines.size(); ++i)
    questions.push_back(one_context ? TextInput(lines[i], context) : split_pair("answer", lines[i], i));
  const Answerer answerer = Answerer::from_folder(model_folder(o.model), load_options(o));
  AnswerOptions options;
  options.top = o.top;
  options.longest_answer = o.longest_answer;
  options.max_length = o.max_length;
  options.stride = o.stride;
  options.may_be_impossible = o.may_be_impossible;
  Table table({{"answer"},
               {"score", Table::Align::right},
               {"begin", Table::Align::right},
               {"end", Table::Align::right},
               {"question"}});
  const TaskProgress progress = progress_bar("answer");
  for (size_t i = 0; i < questions.size(); ++i) {
    TaskJson answers = TaskJson::array();
    for (const Answer& one : answerer.answer(questions[i].first, *questions[i].second, options)) {
      answers.push_back({{"score", one.score}, {"start", one.begin}, {"end", one.end}, {"answer", one.text}});
      table.add({cell_text(one.text), score_text(one.score), std::to_string(one.begin), std::to_string(one.end),
                 cell_text(questions[i].first)});
    }
    if (o.json) print_json_line({{"question", questions[i].first}, {"answers", answers}});
    if (progress) progress(i + 1, questions.size());
  }
  if (!o.json) fmt::print("{}", table.str());
}

}  // namespace calque::cli

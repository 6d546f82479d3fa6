// calque embed, classify, segment, match and transcribe on pictures and sounds.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/tensor.h"
#include "calque/task/pictures.h"
#include "calque/task/sounds.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/task.h"

namespace calque::cli {
namespace {

using MediaJson = nlohmann::ordered_json;

PictureOptions picture_options(const MediaOptions& o) {
  PictureOptions out;
  out.max_pixels = o.max_pixels.value_or(out.max_pixels);
  return out;
}

WaveformOptions waveform_options(const MediaOptions& o) {
  WaveformOptions out;
  out.max_seconds = o.max_seconds.value_or(out.max_seconds);
  return out;
}

void refuse_texts(const std::string& command, const TaskOptions& o) {
  if (!o.prompts.empty() || !o.file.empty()) throw UserError(command + ": give texts or files, not both");
}

// Calls fn(file) for each, with a bar.
template <class F>
void for_files(const std::string& command, const std::vector<std::string>& files, F&& fn) {
  const TaskProgress progress = progress_bar(command);
  for (size_t i = 0; i < files.size(); ++i) {
    fn(files[i]);
    if (progress) progress(i + 1, files.size());
  }
}

}  // namespace

void run_embed_images(const EmbedCommandOptions& o) {
  refuse_texts("embed", o);
  const std::string ending = o.output.empty() ? "" : ending_of(o.output, {"npy", "safetensors", "jsonl"});
  const PictureEncoder encoder = PictureEncoder::from_folder(model_folder(o.model), load_options(o), o.normalize);
  std::vector<Tensor> rows;
  for_files("embed", o.images, [&](const std::string& file) {
    rows.push_back(encoder.embed(load_picture(file, picture_options(o))));
    if (o.json && o.output.empty())
      fmt::print("{}",
                 embedding_line("image", file, rows.back().data_as<float>(), static_cast<size_t>(rows.back().size(1))));
  });
  const Tensor vectors = cat(rows, 0).contiguous();
  if (o.output.empty()) {
    if (!o.json) fmt::print("{}\n", vectors.str());
    return;
  }
  write_embeddings(o.output, ending, "image", o.images, vectors);
  if (o.json)
    print_json_line({{"output", o.output}, {"images", rows.size()}, {"dimension", vectors.size(1)}});
  else
    fmt::print("{}: {} pictures, {} numbers each\n", o.output, rows.size(), vectors.size(1));
}

void run_classify_media(const ClassifyCommandOptions& o) {
  refuse_texts("classify", o);
  if (!o.images.empty() && !o.sounds.empty()) throw UserError("classify: give --image or --audio, not both");
  Table table({{"label"}, {"score", Table::Align::right}, {"file"}});
  const auto show = [&](const char* key, const std::string& file, const std::vector<LabelScore>& found) {
    MediaJson labels = MediaJson::array();
    for (size_t k = 0; k < std::min(o.top, found.size()); ++k) {
      labels.push_back({{"label", found[k].label}, {"score", found[k].score}});
      table.add({printable(found[k].label), fmt::format("{:.4f}", found[k].score), k == 0 ? printable(file) : ""});
    }
    if (o.json) print_json_line({{key, file}, {"labels", labels}});
  };
  const std::string folder = model_folder(o.model);
  if (!o.images.empty()) {
    const PictureClassifier classifier = PictureClassifier::from_folder(folder, load_options(o));
    for_files("classify", o.images, [&](const std::string& file) {
      show("image", file, classifier.classify(load_picture(file, picture_options(o))));
    });
  } else {
    const SoundClassifier classifier = SoundClassifier::from_folder(folder, load_options(o));
    for_files("classify", o.sounds, [&](const std::string& file) {
      show("audio", file, classifier.classify(load_waveform(file, waveform_options(o))));
    });
  }
  if (!o.json) fmt::print("{}", table.str());
}

void run_segment(const SegmentOptions& o) {
  namespace fs = std::filesystem;
  const bool several = o.images.size() > 1;
  if (!o.output.empty() && !several) ending_of(o.output, {"png"});
  if (!o.output.empty() && several && !fs::is_directory(o.output))
    throw UserError("segment: " + o.output +
                    " is no folder; masks of several pictures are written into one, each under its picture's name");
  const Segmenter segmenter = Segmenter::from_folder(model_folder(o.model), load_options(o));
  Table table({{"label"}, {"id", Table::Align::right}, {"share", Table::Align::right}, {"file"}});
  for_files("segment", o.images, [&](const std::string& file) {
    const Segmentation found = segmenter.segment(load_picture(file, picture_options(o)));
    const std::string mask =
        o.output.empty() || !several ? o.output : (fs::path(o.output) / fs::path(file).stem()).string() + ".png";
    if (!mask.empty()) save_png(mask, found.coloured());
    MediaJson segments = MediaJson::array();
    for (const Segment& one : found.segments) {
      segments.push_back({{"label", one.label}, {"id", one.id}, {"share", one.share}});
      table.add({printable(one.label), std::to_string(one.id), fmt::format("{:.4f}", one.share),
                 &one == found.segments.data() ? printable(file) : ""});
    }
    MediaJson json{{"image", file}, {"height", found.ids.size(0)}, {"width", found.ids.size(1)}, {"segments", segments}};
    if (!mask.empty()) json["mask"] = mask;
    if (o.json) print_json_line(json);
  });
  if (!o.json) fmt::print("{}", table.str());
}

void run_match(const MatchOptions& o) {
  const std::vector<std::string> texts = texts_of("match", o);
  const size_t hole = o.pattern.find("{}");
  if (hole == std::string::npos) throw UserError("match: --template has no {}, which each text replaces");
  std::vector<std::string> asked;
  for (const std::string& text : texts) asked.push_back(std::string(o.pattern).replace(hole, 2, text));
  const PictureMatcher matcher = PictureMatcher::from_folder(model_folder(o.model), load_options(o));
  Table table({{"text"}, {"score", Table::Align::right}, {"file"}});
  for_files("match", o.images, [&](const std::string& file) {
    const std::vector<double> scores = matcher.match(load_picture(file, picture_options(o)), asked);
    std::vector<size_t> order(texts.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    MediaJson found = MediaJson::array();
    for (const size_t i : order) {
      found.push_back({{"text", texts[i]}, {"score", scores[i]}});
      table.add({printable(texts[i]), fmt::format("{:.4f}", scores[i]), i == order[0] ? printable(file) : ""});
    }
    if (o.json) print_json_line({{"image", file}, {"texts", found}});
  });
  if (!o.json) fmt::print("{}", table.str());
}

namespace {

SpeechOptions speech_options(const TranscribeOptions& o) {
  SpeechOptions out;
  out.times = o.times == "word"                   ? TimesOf::words
              : o.times == "char"                 ? TimesOf::characters
              : o.timestamps || o.times != "none" ? TimesOf::segments
                                                  : TimesOf::nothing;
  WhisperOptions& whisper = out.whisper;
  if (!o.language.empty()) whisper.language = {o.language};
  whisper.task = o.task;
  whisper.temperature = o.temperatures;
  if (o.writing.temperature) whisper.temperature = {*o.writing.temperature};
  whisper.compression_ratio_threshold = o.compression_ratio_threshold;
  whisper.logprob_threshold = o.logprob_threshold;
  whisper.no_speech_threshold = o.no_speech_threshold;
  if (o.condition_on_prev_tokens) whisper.condition_on_prev_tokens = true;
  return out;
}

MediaJson seconds_json(const std::optional<double>& seconds) { return seconds ? MediaJson(*seconds) : MediaJson(nullptr); }

std::string seconds_text(const std::optional<double>& seconds) { return seconds ? fmt::format("{:.2f}", *seconds) : "?"; }

}  // namespace

void run_transcribe(const TranscribeOptions& o) {
  check(o.writing, "transcribe");
  SpeechOptions options = speech_options(o);
  Transcriber transcriber = Transcriber::from_folder(model_folder(o.model), load_options(o));
  apply(o.writing, transcriber.settings(), "transcribe");
  Generator generator(o.writing.seed ? static_cast<uint64_t>(*o.writing.seed) : Generator::default_seed);
  if (!o.writing.seed) generator.seed();
  options.generator = &generator;
  for_files("transcribe", o.sounds, [&](const std::string& file) {
    const Transcript found = transcriber.transcribe(load_waveform(file, waveform_options(o)), options);
    MediaJson json{{"audio", file}, {"text", found.text}};
    MediaJson parts = MediaJson::array();
    for (const SpokenPart& one : found.parts)
      parts.push_back({{"text", one.text}, {"timestamp", {seconds_json(one.begin), seconds_json(one.end)}}});
    if (!found.language.empty()) json["language"] = found.language;
    if (options.times != TimesOf::nothing) json["chunks"] = parts;
    json["ids"] = found.ids;
    if (o.json) return print_json_line(json);
    fmt::print("{}\n", printable(found.text));
    for (const SpokenPart& one : found.parts)
      fmt::print("{:>9} {:>9}  {}\n", seconds_text(one.begin), seconds_text(one.end), printable(one.text));
  });
}

}  // namespace calque::cli

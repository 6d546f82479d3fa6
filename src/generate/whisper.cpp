#include "calque/generate/whisper.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/operators.h"
#include "generate/checks.h"
#include "generate/token_times.h"
#include "generate/whisper_segments.h"
#include "generate/whisper_settings.h"

namespace calque {
namespace {

constexpr ArgumentName<Tensor> whisper_features{"input_features"};

Tensor rows_of(const Tensor& tensor, const std::vector<size_t>& rows) {
  const std::vector<int64_t> places(rows.begin(), rows.end());
  return tensor.index_select(0, tensor_of<int64_t>(places, {std::ssize(places)}));
}

// Which row of a step's scores and weights a text comes from: of beams, the one that it was then.
int64_t row_at(const GenerateOutput& out, int64_t row, size_t step) {
  if (out.beam_rows.empty()) return row;
  const std::vector<int64_t>& rows = out.beam_rows[static_cast<size_t>(row)];
  return step < rows.size() ? rows[step] : 0;
}

// What a part begins with, padded on the left.
struct Prompt {
  Tensor ids, mask;  // no mask: every position counts
  int64_t length() const { return ids.size(1); }
};

// What was written of a part.
struct Written {
  TokenIds ids;  // without the end of text
  std::vector<float> times;
  bool silent = false;  // nobody speaks: skipped
};

class Transcription {
 public:
  Transcription(PretrainedModel& model, const Tensor& features, const GenerationConfig& config,
                const WhisperOptions& whisper, const GenerateOptions& options);
  WhisperOutput all();

 private:
  TokenIds detected_languages() const;
  void next_part();
  Tensor part_of_features(const std::vector<size_t>& rows) const;
  Prompt prompt_for(const std::vector<size_t>& rows) const;
  void settle_length(int64_t prompt);
  std::vector<Written> written(const Tensor& states, const Prompt& prompt, const std::vector<size_t>& rows);
  ModelGenerateOutput generated(const Tensor& states, const Prompt& prompt, std::vector<float>& no_speech) const;
  std::vector<float> no_speech_of(const Tensor& states, const Prompt& prompt) const;
  TokenIds without_padding(std::span<const int64_t> ids) const;
  bool falls_short(const TokenIds& ids, const ModelGenerateOutput& out, int64_t row, double temperature, float no_speech,
                   bool& silent) const;
  // Of the row of `out` that stands for rows[place].
  std::vector<float> times_of(const ModelGenerateOutput& out, int64_t row, int64_t prompt, const std::vector<size_t>& rows,
                              size_t place) const;
  int64_t sound_left(size_t row) const;  // frames that are no padding, from where the part begins
  Tensor state_of(const Tensor& features) const;
  int64_t frames_left(size_t row) const { return std::min(frames_[row] - seek_[row], part_frames_); }

  PretrainedModel& model_;
  GenerationConfig config_;  // changes from part to part
  const WhisperOptions& whisper_;
  const GenerateOptions& options_;
  PretrainedModel& encoder_;
  const int64_t stride_ = 2;
  const int64_t positions_, part_frames_;
  WhisperSettings settings_;
  Tensor features_;
  int64_t timestamp_begin_ = 0, start_places_ = 0;
  std::vector<TokenIds> first_tokens_;
  std::vector<int64_t> seek_, frames_;
  std::vector<bool> conditioned_;  // the next part is told what was said before
  std::vector<std::vector<SpokenSegment>> segments_;
};

PretrainedModel& encoder_of(PretrainedModel& model) {
  auto* encoder = dynamic_cast<PretrainedModel*>(model.base_model().find_submodule("encoder"));
  if (model.config().model_type() != "whisper" || !model.can_generate() || !model.is_encoder_decoder() || !encoder)
    throw UserError("whisper_generate: " + model.class_name() + " is no WhisperForConditionalGeneration");
  return *encoder;
}

Transcription::Transcription(PretrainedModel& model, const Tensor& features, const GenerationConfig& config,
                             const WhisperOptions& whisper, const GenerateOptions& options)
    : model_(model),
      config_(config),
      whisper_(whisper),
      options_(options),
      encoder_(encoder_of(model)),
      positions_(model.config().integer("max_target_positions")),
      part_frames_(stride_ * model.config().integer("max_source_positions")),
      features_(features) {
  if (!features.defined() || features.dim() != 3 || features.size(1) != model.config().integer("num_mel_bins"))
    throw UserError("whisper_generate: expected features [rows, " + std::to_string(model.config().integer("num_mel_bins")) +
                    ", frames], found " + (features.defined() ? str(features.sizes()) : std::string("none")));
  const bool is_short = features.size(2) <= part_frames_;
  settings_ = whisper_settings_of(config, model.config(), whisper, is_short);
  timestamp_begin_ =
      settings_.no_timestamps_token_id ? *settings_.no_timestamps_token_id + 1 : model.config().integer("vocab_size") + 1;
  if (!config_.decoder_start_token_id) config_.decoder_start_token_id = config_.bos_token_id;
  if (!config_.decoder_start_token_id)
    throw UserError("generate: `decoder_start_token_id` or `bos_token_id` has to be set for an encoder-decoder");
  if (!config_.max_length) config_.max_length = 20;
  const auto given_rows = static_cast<size_t>(features.size(0));
  first_tokens_ =
      whisper_first_tokens(settings_, *config_.decoder_start_token_id, given_rows, [&] { return detected_languages(); });
  start_places_ = std::ssize(first_tokens_[0]);
  frames_.assign(given_rows, features.size(2));
  if (given_rows > 1 && !is_short) {
    if (!whisper.attention_mask.defined())
      throw UserError(
          "whisper_generate: several recordings that are longer than a part need an attention_mask [rows, frames]");
    const Tensor sums = whisper.attention_mask.to(DType::int64).sum({-1}).contiguous();
    std::copy_n(sums.data_as<int64_t>(), given_rows, frames_.begin());
  }
  if (const int64_t copies = config_.num_return_sequences.value_or(1); copies > 1) {
    const auto repeat = [&](auto& rows) {
      auto all = rows;
      all.clear();
      for (const auto& row : rows) all.insert(all.end(), static_cast<size_t>(copies), row);
      rows = all;
    };
    repeat(first_tokens_);
    repeat(frames_);
    features_ = features_.repeat_interleave(copies, 0);
    config_.num_return_sequences.reset();
  }
  seek_.assign(frames_.size(), 0);
  conditioned_.assign(frames_.size(), whisper.condition_on_prev_tokens.value_or(false));
  segments_.resize(frames_.size());
  if (!whisper.prompt_ids.empty() && !whisper.prompt_in_all_segments) {
    const bool marked = settings_.prev_sot_token_id && whisper.prompt_ids[0] == *settings_.prev_sot_token_id;
    const TokenIds said(whisper.prompt_ids.begin() + (marked ? 1 : 0), whisper.prompt_ids.end());
    for (std::vector<SpokenSegment>& row : segments_) row.push_back({0, 0, said, {}});
  }
}

Tensor Transcription::state_of(const Tensor& features) const {
  ModelInputs in;
  in.set(whisper_features, features);
  return encoder_(in).last_hidden_state();
}

TokenIds Transcription::detected_languages() const {
  const int64_t rows = features_.size(0), frames = std::min(features_.size(2), part_frames_);
  ModelInputs in;
  in.set(whisper_features, features_.narrow(2, 0, frames));
  in.set(arg::decoder_input_ids, full({rows, 1}, *config_.decoder_start_token_id, DType::int64));
  in.set(arg::use_cache, false);
  const Tensor logits = model_(in).logits().select(1, 0).to(DType::float32).contiguous();
  TokenIds out;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = logits.data_as<float>() + r * logits.size(1);
    std::optional<int64_t> best;
    for (const auto& [name, id] : *settings_.lang_to_id) {
      if (id < 0 || id >= logits.size(1))
        throw UserError("Whisper: `lang_to_id` says " + std::to_string(id) + " for " + name +
                        ", which is not in the vocabulary of " + std::to_string(logits.size(1)));
      if (!best || row[id] > row[*best] || (row[id] == row[*best] && id < *best)) best = id;
    }
    if (!best) throw UserError("Whisper: `lang_to_id` of generation_config.json has no language");
    out.push_back(*best);
  }
  return out;
}

Tensor Transcription::part_of_features(const std::vector<size_t>& rows) const {
  std::vector<Tensor> parts;
  for (const size_t row : rows) {
    const int64_t count = frames_left(row);
    const Tensor part = features_.narrow(0, static_cast<int64_t>(row), 1).narrow(2, seek_[row], count);
    parts.push_back(count < part_frames_ ? constant_pad_nd(part, {0, part_frames_ - count}) : part);
  }
  return cat(parts, 0);
}

Prompt Transcription::prompt_for(const std::vector<size_t>& rows) const {
  std::vector<TokenIds> texts(rows.size());
  const bool told = std::ranges::find(conditioned_, true) != conditioned_.end() && !segments_[0].empty();
  if (told) {
    TokenIds mark;
    if (whisper_.prompt_in_all_segments)
      mark = whisper_.prompt_ids;
    else if (settings_.prev_sot_token_id)
      mark = {*settings_.prev_sot_token_id};
    else if (config_.suppress_tokens && config_.suppress_tokens->size() >= 2)
      mark = {(*config_.suppress_tokens)[config_.suppress_tokens->size() - 2]};
    for (size_t i = 0; i < rows.size(); ++i) {
      texts[i] = mark;
      if (!conditioned_[rows[i]]) continue;
      const TokenIds said = previous_ids(segments_[rows[i]], timestamp_begin_, positions_ / 2 - 1);
      texts[i].insert(texts[i].end(), said.begin(), said.end());
    }
  } else {
    for (TokenIds& text : texts) text = whisper_.prompt_ids;
  }
  size_t longest = 0;
  for (const TokenIds& text : texts) longest = std::max(longest, text.size());
  TokenIds all;
  for (size_t i = 0; i < rows.size(); ++i) {
    all.insert(all.end(), longest - texts[i].size(), config_.pad_token_id.value_or(0));
    all.insert(all.end(), texts[i].begin(), texts[i].end());
    all.insert(all.end(), first_tokens_[rows[i]].begin(), first_tokens_[rows[i]].end());
  }
  Prompt out{tensor_of<int64_t>(all, {std::ssize(rows), std::ssize(all) / std::ssize(rows)}), {}};
  if (told) out.mask = out.ids.ne(config_.pad_token_id.value_or(0)).to(DType::int64);
  return out;
}

// Each part may be as much longer as it is told before it begins; transformers lets that add up, and so does this.
void Transcription::settle_length(int64_t prompt) {
  if (const int64_t more = config_.max_new_tokens.value_or(0); more + prompt > positions_)
    throw UserError("Whisper: " + std::to_string(prompt) + " tokens to begin with and `max_new_tokens` " +
                    std::to_string(more) + " are more than the " + std::to_string(positions_) +
                    " positions of the decoder; give a shorter prompt or fewer new tokens");
  if (!config_.max_new_tokens)
    config_.max_length = std::min(*config_.max_length + std::min(positions_ / 2 - 1, prompt), positions_);
}

// The probability that nobody speaks, as the model sees it at the start of the transcript.
std::vector<float> Transcription::no_speech_of(const Tensor& states, const Prompt& prompt) const {
  ModelInputs in;
  in.set(arg::encoder_outputs, dict({{"last_hidden_state", states}}));
  in.set(arg::decoder_input_ids, prompt.ids);
  in.set(arg::use_cache, false);
  if (prompt.mask.defined()) {
    static constexpr ArgumentName<Tensor> decoder_position_ids{"decoder_position_ids"};
    in.set(arg::decoder_attention_mask, prompt.mask);
    in.set(decoder_position_ids, (prompt.mask.cumsum(-1) - 1).masked_fill(prompt.mask.eq(0), 0));
  }
  const Tensor logits = model_(in).logits().select(1, prompt.length() - start_places_).to(DType::float32);
  const Tensor silence = logits.softmax(-1).select(1, timestamp_begin_ - 2).contiguous();
  return {silence.data_as<float>(), silence.data_as<float>() + silence.numel()};
}

ModelGenerateOutput Transcription::generated(const Tensor& states, const Prompt& prompt,
                                             std::vector<float>& no_speech) const {
  GenerationConfig config = config_;
  GenerateOptions options = options_;
  LogitsProcessorList own;
  if (settings_.no_speech_threshold && start_places_ == 1) {
    const bool are_logs = config.num_beams.value_or(1) > 1;
    own.push_back({"WhisperNoSpeechDetection", [&, are_logs](const Tensor& ids, const Tensor& scores) {
                     if (ids.size(1) != prompt.length()) return scores;
                     const Tensor all = are_logs ? scores.exp() : scores.softmax(-1);
                     const Tensor silence = all.select(1, timestamp_begin_ - 2).contiguous();
                     no_speech.assign(silence.data_as<float>(), silence.data_as<float>() + silence.numel());
                     return scores;
                   }});
  }
  if (config.begin_suppress_tokens)
    own.push_back(suppress_tokens_at_begin_logits_processor(*config.begin_suppress_tokens, prompt.length()));
  if (config.suppress_tokens) own.push_back(suppress_tokens_logits_processor(*config.suppress_tokens));
  config.begin_suppress_tokens.reset();
  config.suppress_tokens.reset();
  if (settings_.timestamps()) {
    const std::optional<int64_t> end =
        config.eos_token_id ? std::optional(config.eos_token_id->ids.at(0)) : config.bos_token_id;
    own.push_back(whisper_timestamp_logits_processor(
        {timestamp_begin_ - 1, end.value_or(0), settings_.max_initial_timestamp_index, settings_.timestamps_by_probability},
        prompt.length()));
  }
  options.processors.insert(options.processors.begin(), own.begin(), own.end());
  if (settings_.logprob_threshold || whisper_.token_timestamps) config.return_dict_in_generate = true;
  if (settings_.logprob_threshold) config.output_scores = true;
  if (whisper_.token_timestamps) config.output_attentions = true;
  // The prompt stands as it is: what it begins with may be what was said before.
  config.decoder_start_token_id = prompt.ids.select(0, 0).select(0, 0).item_as<int64_t>();
  ModelInputs in;
  in.set(arg::encoder_outputs, dict({{"last_hidden_state", states}}));
  in.set(arg::decoder_input_ids, prompt.ids);
  in.set(arg::decoder_attention_mask, prompt.mask);
  return generate(model_, in, config, options);
}

TokenIds Transcription::without_padding(std::span<const int64_t> ids) const {
  const std::optional<int64_t> pad = config_.pad_token_id;
  size_t count = ids.size();
  if (pad && count > 0 && ids.back() == *pad) {
    auto paddings = static_cast<size_t>(std::ranges::count(ids, *pad));
    if (config_.eos_token_id && config_.eos_token_id->ids.at(0) == *pad) --paddings;
    count -= paddings;
  }
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool Transcription::falls_short(const TokenIds& ids, const ModelGenerateOutput& out, int64_t row, double temperature,
                                float no_speech, bool& silent) const {
  const bool out_short =
      settings_.compression_ratio_threshold &&
      compression_ratio(ids, model_.config().integer("vocab_size")) > *settings_.compression_ratio_threshold;
  if (!settings_.logprob_threshold) return out_short;
  std::vector<Tensor> scores;
  for (size_t step = 0; step < out.scores.size(); ++step)
    scores.push_back(out.scores[step].select(0, row_at(out, row, step)));
  const float mean = mean_log_probability(scores, ids, temperature);
  if (!(mean < *settings_.logprob_threshold)) return out_short;
  silent = settings_.no_speech_threshold && no_speech > *settings_.no_speech_threshold;
  return !silent;
}

int64_t Transcription::sound_left(size_t row) const {
  const int64_t copies = std::ssize(frames_) / whisper_.attention_mask.size(0);
  const Tensor mask = whisper_.attention_mask.select(0, static_cast<int64_t>(row) / copies);
  return mask.to(DType::int64).sum().item_as<int64_t>() - seek_[row];
}

std::vector<float> Transcription::times_of(const ModelGenerateOutput& out, int64_t row, int64_t prompt,
                                           const std::vector<size_t>& rows, size_t place) const {
  TokenTimesOptions options{.prompt = prompt, .time_precision = whisper_.time_precision};
  options.median_width = model_.config().integer("median_filter_width");
  if (whisper_.attention_mask.defined()) {
    options.frames = sound_left(rows[place]);
    options.cut_twice = std::ranges::all_of(rows, [&](size_t other) { return sound_left(other) == *options.frames; });
  }
  std::vector<Tensor> heads;
  for (const auto& [layer, head] : *settings_.alignment_heads) {
    std::vector<Tensor> steps;
    for (size_t i = 0; i < out.cross_attentions.size(); ++i) {
      const std::vector<Tensor>& step = out.cross_attentions[i];
      if (layer < 0 || layer >= std::ssize(step) || head < 0 || head >= step[static_cast<size_t>(layer)].size(1))
        throw UserError("Whisper: `alignment_heads` names head " + std::to_string(head) + " of layer " +
                        std::to_string(layer) + ", which this model does not have");
      steps.push_back(step[static_cast<size_t>(layer)].select(0, row_at(out, row, i)).select(0, head));
    }
    heads.push_back(cat(steps, 0));
  }
  return token_times(stack(heads, 0), options);
}

std::vector<Written> Transcription::written(const Tensor& states, const Prompt& prompt, const std::vector<size_t>& rows) {
  std::vector<Written> out(rows.size());
  std::vector<float> no_speech;
  if (settings_.no_speech_threshold && start_places_ > 1) no_speech = no_speech_of(states, prompt);
  std::vector<std::optional<double>> temperatures(whisper_.temperature.begin(), whisper_.temperature.end());
  if (temperatures.empty()) temperatures.emplace_back();
  std::vector<size_t> left(rows.size());  // which of the rows are still to be written
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  for (const std::optional<double> temperature : temperatures) {
    config_.do_sample = temperature.value_or(0) > 0;
    config_.temperature = *config_.do_sample ? temperature : std::nullopt;
    if (*config_.do_sample) config_.num_beams.reset();
    const bool some = left.size() < rows.size();
    const Prompt now =
        some ? Prompt{rows_of(prompt.ids, left), prompt.mask.defined() ? rows_of(prompt.mask, left) : Tensor()} : prompt;
    const ModelGenerateOutput made = generated(some ? rows_of(states, left) : states, now, no_speech);
    const Tensor ids = made.sequences.narrow(1, prompt.length(), made.sequences.size(1) - prompt.length()).contiguous();
    const IdRows texts(ids);
    std::vector<size_t> again;
    for (size_t i = 0; i < left.size(); ++i) {
      Written& one = out[left[i]];
      one = {without_padding(texts[i]), {}, false};
      const float silence = no_speech.empty() ? 0.0F : no_speech[start_places_ > 1 ? left[i] : i];
      if (falls_short(one.ids, made, static_cast<int64_t>(i), temperature.value_or(0), silence, one.silent))
        again.push_back(left[i]);
      if (whisper_.token_timestamps) {
        one.times = times_of(made, static_cast<int64_t>(i), prompt.length(), rows, left[i]);
        one.times.erase(one.times.begin(), one.times.begin() + prompt.length());
      }
      if (config_.eos_token_id && !one.ids.empty() && one.ids.back() == config_.eos_token_id->ids.at(0)) one.ids.pop_back();
      conditioned_[rows[left[i]]] = settings_.condition_on_prev_tokens.value_or(false) && temperature.value_or(0) < 0.5;
    }
    left = std::move(again);
    if (left.empty()) break;
  }
  return out;
}

void Transcription::next_part() {
  std::vector<size_t> rows;
  for (size_t row = 0; row < seek_.size(); ++row)
    if (seek_[row] < frames_[row]) rows.push_back(row);
  const Tensor states = state_of(part_of_features(rows));
  const Prompt prompt = prompt_for(rows);
  settle_length(prompt.length());
  const std::vector<Written> parts = written(states, prompt, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = rows[i];
    const int64_t count = frames_left(row);
    if (parts[i].silent) {
      seek_[row] += count;
      continue;
    }
    WhisperSegments found =
        segments_of(parts[i].ids, parts[i].times,
                    {seek_[row], count, stride_, timestamp_begin_, whisper_.time_precision, whisper_.frame_precision});
    if (found.offset <= 0)
      throw UserError(
          "Whisper: a part ends with the timestamp that it begins with, so there is no end to it; the processors or "
          "settings of generation let timestamps go backwards");
    seek_[row] += found.offset;
    segments_[row].insert(segments_[row].end(), std::make_move_iterator(found.segments.begin()),
                          std::make_move_iterator(found.segments.end()));
  }
}

WhisperOutput Transcription::all() {
  const auto unfinished = [&] {
    for (size_t row = 0; row < seek_.size(); ++row)
      if (seek_[row] < frames_[row]) return true;
    return false;
  };
  while (unfinished()) {
    if (whisper_.progress) whisper_.progress(seek_, frames_);
    next_part();
  }
  WhisperOutput out;
  out.first_tokens = first_tokens_;
  out.segments = std::move(segments_);
  size_t longest = 0;
  std::vector<TokenIds> texts;
  for (std::vector<SpokenSegment>& row : out.segments) {
    if (!whisper_.prompt_ids.empty() && !whisper_.prompt_in_all_segments) row.erase(row.begin());
    TokenIds& text = texts.emplace_back();
    for (const SpokenSegment& one : row) text.insert(text.end(), one.ids.begin(), one.ids.end());
    longest = std::max(longest, text.size());
  }
  TokenIds all;
  for (const TokenIds& text : texts) {
    all.insert(all.end(), text.begin(), text.end());
    all.insert(all.end(), longest - text.size(), config_.pad_token_id.value_or(0));
  }
  out.sequences = tensor_of<int64_t>(all, {std::ssize(texts), static_cast<int64_t>(longest)});
  return out;
}

}  // namespace

WhisperOutput whisper_generate(PretrainedModel& model, const Tensor& features, const GenerationConfig& config,
                               const WhisperOptions& whisper, const GenerateOptions& options) {
  if (options.assistant || options.candidates)
    throw UserError("whisper_generate: candidates of an assistant are not there for Whisper; leave them out");
  const GradModeScope no_grad(false);
  return Transcription(model, features, config, whisper, options).all();
}

}  // namespace calque

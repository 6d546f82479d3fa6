#include "generate/whisper_settings.h"

#include <algorithm>
#include <array>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/hub/config.h"

namespace calque {
namespace {

using Language = std::pair<std::string_view, std::string_view>;

constexpr std::array whisper_language_names = std::to_array<Language>({
    {"en", "english"},        {"zh", "chinese"},       {"de", "german"},    {"es", "spanish"},    {"ru", "russian"},
    {"ko", "korean"},         {"fr", "french"},        {"ja", "japanese"},  {"pt", "portuguese"}, {"tr", "turkish"},
    {"pl", "polish"},         {"ca", "catalan"},       {"nl", "dutch"},     {"ar", "arabic"},     {"sv", "swedish"},
    {"it", "italian"},        {"id", "indonesian"},    {"hi", "hindi"},     {"fi", "finnish"},    {"vi", "vietnamese"},
    {"he", "hebrew"},         {"uk", "ukrainian"},     {"el", "greek"},     {"ms", "malay"},      {"cs", "czech"},
    {"ro", "romanian"},       {"da", "danish"},        {"hu", "hungarian"}, {"ta", "tamil"},      {"no", "norwegian"},
    {"th", "thai"},           {"ur", "urdu"},          {"hr", "croatian"},  {"bg", "bulgarian"},  {"lt", "lithuanian"},
    {"la", "latin"},          {"mi", "maori"},         {"ml", "malayalam"}, {"cy", "welsh"},      {"sk", "slovak"},
    {"te", "telugu"},         {"fa", "persian"},       {"lv", "latvian"},   {"bn", "bengali"},    {"sr", "serbian"},
    {"az", "azerbaijani"},    {"sl", "slovenian"},     {"kn", "kannada"},   {"et", "estonian"},   {"mk", "macedonian"},
    {"br", "breton"},         {"eu", "basque"},        {"is", "icelandic"}, {"hy", "armenian"},   {"ne", "nepali"},
    {"mn", "mongolian"},      {"bs", "bosnian"},       {"kk", "kazakh"},    {"sq", "albanian"},   {"sw", "swahili"},
    {"gl", "galician"},       {"mr", "marathi"},       {"pa", "punjabi"},   {"si", "sinhala"},    {"km", "khmer"},
    {"sn", "shona"},          {"yo", "yoruba"},        {"so", "somali"},    {"af", "afrikaans"},  {"oc", "occitan"},
    {"ka", "georgian"},       {"be", "belarusian"},    {"tg", "tajik"},     {"sd", "sindhi"},     {"gu", "gujarati"},
    {"am", "amharic"},        {"yi", "yiddish"},       {"lo", "lao"},       {"uz", "uzbek"},      {"fo", "faroese"},
    {"ht", "haitian creole"}, {"ps", "pashto"},        {"tk", "turkmen"},   {"nn", "nynorsk"},    {"mt", "maltese"},
    {"sa", "sanskrit"},       {"lb", "luxembourgish"}, {"my", "myanmar"},   {"bo", "tibetan"},    {"tl", "tagalog"},
    {"mg", "malagasy"},       {"as", "assamese"},      {"tt", "tatar"},     {"haw", "hawaiian"},  {"ln", "lingala"},
    {"ha", "hausa"},          {"ba", "bashkir"},       {"jw", "javanese"},  {"su", "sundanese"},  {"yue", "cantonese"},
});
// Other names of some of them.
constexpr std::array whisper_other_names = std::to_array<Language>({
    {"my", "burmese"},
    {"ca", "valencian"},
    {"nl", "flemish"},
    {"ht", "haitian"},
    {"lb", "letzeburgesch"},
    {"ps", "pushto"},
    {"pa", "panjabi"},
    {"ro", "moldavian"},
    {"ro", "moldovan"},
    {"si", "sinhalese"},
    {"es", "castilian"},
    {"zh", "mandarin"},
});

std::string lower_ascii(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Reads the settings that GenerationConfig does not know.
class OtherSettings {
 public:
  explicit OtherSettings(const GenerationConfig& config) : config_(config) {}
  // fn(value) where the key is there and not null.
  template <class F>
  void read(std::string_view key, F&& fn) const {
    for (const auto& [name, text] : config_.other)
      if (name == key)
        JsonDocument(text, "generation_config.json, " + name).read([&](const Json& json) {
          if (!json.is_null()) fn(json);
        });
  }
  void get(std::string_view key, std::optional<bool>& to) const {
    read(key, [&](const Json& json) { to = json.to_bool(); });
  }
  void get(std::string_view key, std::optional<int64_t>& to) const {
    read(key, [&](const Json& json) { to = json.to_int(); });
  }
  void get(std::string_view key, std::optional<double>& to) const {
    read(key, [&](const Json& json) { to = json.to_float(); });
  }
  void get(std::string_view key, std::optional<std::map<std::string, int64_t>>& to) const {
    read(key, [&](const Json& json) {
      to.emplace();
      for (const JsonMember& one : json.members()) (*to)[std::string(one.key)] = one.value.to_int();
    });
  }

 private:
  const GenerationConfig& config_;
};

using ForcedIds = std::vector<std::pair<int64_t, std::optional<int64_t>>>;

ForcedIds forced_ids_of(const Json& json) {
  ForcedIds out;
  for (const Json& item : json.items()) {
    const auto pair = item.items();
    if (pair.size() != 2) item.fail("expected [place, token]");
    out.emplace_back(pair[0].to_int(), pair[1].is_null() ? std::nullopt : std::optional(pair[1].to_int()));
  }
  return out;
}

WhisperSettings settings_in(const GenerationConfig& config) {
  WhisperSettings out;
  const OtherSettings other(config);
  other.get("lang_to_id", out.lang_to_id);
  other.get("task_to_id", out.task_to_id);
  other.get("is_multilingual", out.is_multilingual);
  other.get("return_timestamps", out.return_timestamps);
  other.get("condition_on_prev_tokens", out.condition_on_prev_tokens);
  other.get("no_timestamps_token_id", out.no_timestamps_token_id);
  other.get("max_initial_timestamp_index", out.max_initial_timestamp_index);
  other.get("prev_sot_token_id", out.prev_sot_token_id);
  other.get("compression_ratio_threshold", out.compression_ratio_threshold);
  other.get("logprob_threshold", out.logprob_threshold);
  other.get("no_speech_threshold", out.no_speech_threshold);
  other.read("task", [&](const Json& json) { out.task = std::string(json.to_string()); });
  other.read("language", [&](const Json& json) {
    if (json.is_string()) return out.language.emplace_back(json.to_string()), void();
    for (const Json& one : json.items()) out.language.emplace_back(one.to_string());
  });
  other.read("alignment_heads", [&](const Json& json) {
    out.alignment_heads.emplace();
    for (const Json& item : json.items()) {
      const auto pair = item.items();
      if (pair.size() != 2) item.fail("expected [layer, head]");
      out.alignment_heads->emplace_back(pair[0].to_int(), pair[1].to_int());
    }
  });
  other.read("forced_decoder_ids", [&](const Json& json) { out.forced_decoder_ids = forced_ids_of(json); });
  other.read("_detect_timestamp_from_logprob", [&](const Json& json) { out.timestamps_by_probability = json.to_bool(); });
  return out;
}

// Older folders have them in config.json.
void take_forced_ids(const Config& model, WhisperSettings& to) {
  const Value* found =
      to.forced_decoder_ids || !model.has("forced_decoder_ids") ? nullptr : model.find("forced_decoder_ids");
  if (!found || found->is_none()) return;
  to.forced_decoder_ids.emplace();
  for (const Value& item : found->to_items()) {
    const Values& pair = item.to_items();
    if (pair.size() != 2) throw UserError("config.json: forced_decoder_ids has to be a list of [place, token]");
    to.forced_decoder_ids->emplace_back(pair[0].to_int(),
                                        pair[1].is_none() ? std::nullopt : std::optional(pair[1].to_int()));
  }
}

[[noreturn]] void missing_setting(const char* what, const char* key) {
  throw UserError("Whisper: " + std::string(what) + " needs `" + key +
                  "` in generation_config.json, which this model's folder does not have; newer files of the same model do");
}

void check_multilingual(WhisperSettings& settings, const WhisperOptions& options) {
  if (options.is_multilingual) {
    if (!settings.is_multilingual) missing_setting("`is_multilingual`", "is_multilingual");
    settings.is_multilingual = options.is_multilingual;
  }
  if (!settings.is_multilingual.value_or(true) && (!options.task.empty() || !options.language.empty()))
    throw UserError(
        "Whisper: this model writes English only, so there is no language and no task to choose; leave them out, or take a "
        "model of several languages");
  if (!options.language.empty() && !settings.lang_to_id) missing_setting("a language", "lang_to_id");
  if (!options.task.empty() && !settings.task_to_id) missing_setting("a task", "task_to_id");
}

int64_t language_id(const WhisperSettings& settings, const std::string& given) {
  const std::string name = lower_ascii(given);
  const std::map<std::string, int64_t>& known = *settings.lang_to_id;
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::string_view code;
  for (const auto& [each, english] : whisper_language_names)
    if (each == name || english == name) code = each;
  for (const auto& [each, english] : whisper_other_names)
    if (english == name) code = each;
  if (code.empty()) {
    std::vector<std::string> names;
    for (const auto& [each, english] : whisper_language_names) names.emplace_back(name.size() == 2 ? each : english);
    throw UserError("Whisper: there is no language " + given + "; expected one of " + join(names, ", "));
  }
  const auto found = known.find("<|" + std::string(code) + "|>");
  if (found == known.end())
    throw UserError("Whisper: this model does not know the language " + given + ": <|" + std::string(code) +
                    "|> is not in `lang_to_id` of its generation_config.json");
  return found->second;
}

int64_t task_id(const WhisperSettings& settings, const std::string& task) {
  if (task != "translate" && task != "transcribe")
    throw UserError("Whisper: there is no task " + task + "; expected \"transcribe\" or \"translate\"");
  const auto found =
      settings.task_to_id ? settings.task_to_id->find(task) : std::map<std::string, int64_t>::const_iterator();
  if (!settings.task_to_id || found == settings.task_to_id->end())
    missing_setting(("the task " + task).c_str(), "task_to_id");
  return found->second;
}

// The tokens behind the start as older folders say them, one for each place from 1 on.
std::vector<std::optional<int64_t>> forced_tokens(const ForcedIds& forced) {
  std::vector<std::optional<int64_t>> out;
  if (forced.empty() || forced[0].first != 1) return out;
  for (const auto& [place, token] : forced) {
    if (place != std::ssize(out) + 1)
      throw UserError("Whisper: `forced_decoder_ids` has a token for place " + std::to_string(place) +
                      ", and none for place " + std::to_string(out.size() + 1) + "; expected one for each place from 1 on");
    out.push_back(token);
  }
  return out;
}

void add_task(const WhisperSettings& settings, std::vector<std::optional<int64_t>>& tokens) {
  const auto has_task = [&] {
    return std::ranges::any_of(*settings.task_to_id, [&](const auto& one) {
      return std::ranges::find(tokens, std::optional(one.second)) != tokens.end();
    });
  };
  if (!settings.task.empty())
    tokens.push_back(task_id(settings, settings.task));
  else if (!settings.language.empty() && settings.task_to_id && !has_task())
    tokens.push_back(task_id(settings, "transcribe"));
}

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> whisper_languages() { return whisper_language_names; }

WhisperSettings whisper_settings_of(const GenerationConfig& config, const Config& model, const WhisperOptions& options,
                                    bool is_short) {
  WhisperSettings out = settings_in(config);
  take_forced_ids(model, out);
  if (options.return_timestamps) out.return_timestamps = options.return_timestamps;
  if (!is_short) {
    if (out.return_timestamps && !*out.return_timestamps)
      throw UserError(
          "Whisper: a recording that is longer than the model hears at once is cut at its timestamps, but return_timestamps "
          "is "
          "false; leave it out, or give a shorter recording");
    out.return_timestamps = true;
  }
  if (out.timestamps() && !out.no_timestamps_token_id) missing_setting("writing timestamps", "no_timestamps_token_id");
  check_multilingual(out, options);
  if (!options.language.empty()) out.language = options.language;
  if (!options.task.empty()) out.task = options.task;
  if (options.token_timestamps && !out.alignment_heads) missing_setting("the time of each token", "alignment_heads");
  const auto over = [](const auto& option, auto& setting) {
    if (option) setting = option;
  };
  over(options.condition_on_prev_tokens, out.condition_on_prev_tokens);
  over(options.compression_ratio_threshold, out.compression_ratio_threshold);
  over(options.logprob_threshold, out.logprob_threshold);
  over(options.no_speech_threshold, out.no_speech_threshold);
  if (out.no_speech_threshold && !out.logprob_threshold)
    throw UserError("Whisper: no_speech_threshold counts only beside logprob_threshold; set both");
  if (out.no_speech_threshold && !out.no_timestamps_token_id)
    missing_setting("no_speech_threshold", "no_timestamps_token_id");
  if (options.prompt_in_all_segments && !out.condition_on_prev_tokens.value_or(false))
    throw UserError("Whisper: a prompt for all segments needs condition_on_prev_tokens; set it to true");
  return out;
}

std::vector<TokenIds> whisper_first_tokens(const WhisperSettings& settings, int64_t start, size_t rows,
                                           const std::function<TokenIds()>& detect) {
  std::vector<std::optional<int64_t>> usual = {start};
  if (settings.task.empty() && settings.language.empty() && settings.forced_decoder_ids)
    for (const std::optional<int64_t> token : forced_tokens(*settings.forced_decoder_ids)) usual.push_back(token);
  if (settings.language.size() > 1 && settings.language.size() != rows)
    throw UserError("Whisper: there are " + std::to_string(settings.language.size()) + " languages for " +
                    std::to_string(rows) + " recordings; give one, or one for each");
  TokenIds languages;
  if (!settings.language.empty()) {
    if (!settings.lang_to_id) missing_setting("a language", "lang_to_id");
    for (const std::string& each : settings.language) languages.push_back(language_id(settings, each));
  } else if (settings.lang_to_id && (usual.size() <= 1 || !usual[1])) {
    languages = detect();
  }
  std::vector<TokenIds> out;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<std::optional<int64_t>> tokens = usual;
    if (!languages.empty()) {
      const int64_t language = languages[languages.size() == 1 ? 0 : row];
      if (tokens.size() > 1)
        tokens[1] = language;
      else
        tokens.push_back(language);
    }
    add_task(settings, tokens);
    const std::optional<int64_t> none = settings.no_timestamps_token_id;
    if (none && !settings.timestamps() && tokens.back() != none) tokens.push_back(none);
    if (none && settings.timestamps() && tokens.back() == none) tokens.pop_back();
    TokenIds& ids = out.emplace_back();
    for (const std::optional<int64_t> token : tokens)
      if (token) ids.push_back(*token);
  }
  return out;
}

}  // namespace calque

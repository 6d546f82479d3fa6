#include "calque/generate/generation_config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/tensor/number_text.h"

namespace calque {
namespace {

// ---- values from and to JSON --------------------------------------------------------------------------------------

void read(const Json& j, bool& v) { v = j.to_bool(); }
void read(const Json& j, int64_t& v) { v = j.to_int(); }
void read(const Json& j, double& v) { v = j.to_float(); }
void read(const Json& j, std::string& v) { v = std::string(j.to_string()); }
void read(const Json& j, TokenIds& v) {
  v.clear();
  for (const Json& item : j.items()) v.push_back(item.to_int());
}
void read(const Json& j, std::vector<TokenIds>& v) {
  for (const Json& item : j.items()) read(item, v.emplace_back());
}
void read(const Json& j, std::vector<std::string>& v) {
  if (j.is_string()) {  // one alone
    v.emplace_back(j.to_string());
    return;
  }
  for (const Json& item : j.items()) v.emplace_back(item.to_string());
}
void read(const Json& j, TokenIdOrList& v) {
  if (j.is_array()) {
    TokenIds ids;
    read(j, ids);
    if (ids.empty()) j.fail("expected the id of a token or a list of ids, found an empty list; leave the setting out");
    v = TokenIdOrList(std::move(ids));
  } else {
    v = TokenIdOrList(j.to_int());
  }
}
void read(const Json& j, std::variant<bool, std::string>& v) {
  if (j.is_string())
    v = std::string(j.to_string());
  else
    v = j.to_bool();
}
void read(const Json& j, std::pair<int64_t, double>& v) {
  const auto items = j.items();
  if (items.size() != 2) j.fail("expected [start, factor]");
  v = {items[0].to_int(), items[1].to_float()};
}
void read(const Json& j, SequenceBias& v) {
  for (const Json& item : j.items()) {
    const auto pair = item.items();
    if (pair.size() != 2) item.fail("expected [[token ids], bias]");
    TokenIds ids;
    read(pair[0], ids);
    v.emplace_back(std::move(ids), pair[1].to_float());
  }
}

void write(JsonWriter& w, bool v) { w.value(v); }
void write(JsonWriter& w, int64_t v) { w.value(v); }
void write(JsonWriter& w, double v) { w.value(v); }
void write(JsonWriter& w, const std::string& v) { w.value(std::string_view(v)); }
template <class A, class B>
void write(JsonWriter& w, const std::pair<A, B>& v);
template <class T>
void write(JsonWriter& w, const std::vector<T>& v) {
  w.begin_array();
  for (const T& item : v) write(w, item);
  w.end_array();
}
template <class A, class B>
void write(JsonWriter& w, const std::pair<A, B>& v) {
  w.begin_array();
  write(w, v.first);
  write(w, v.second);
  w.end_array();
}
void write(JsonWriter& w, const TokenIdOrList& v) {
  if (v.is_list)
    write(w, v.ids);
  else
    write(w, v.ids.at(0));
}
void write(JsonWriter& w, const std::variant<bool, std::string>& v) {
  std::visit([&](const auto& x) { write(w, x); }, v);
}

void copy(JsonWriter& w, const Json& j) {
  switch (j.kind()) {
    case Json::Kind::null: w.null(); break;
    case Json::Kind::boolean: w.value(j.to_bool()); break;
    case Json::Kind::integer: w.value(j.to_int()); break;
    case Json::Kind::floating: w.value(j.to_float()); break;
    case Json::Kind::string: w.value(j.to_string()); break;
    case Json::Kind::array:
      w.begin_array();
      for (const Json& item : j.items()) copy(w, item);
      w.end_array();
      break;
    case Json::Kind::object:
      w.begin_object();
      for (const JsonMember& m : j.members()) {
        w.key(m.key);
        copy(w, m.value);
      }
      w.end_object();
      break;
  }
}

std::string text_of(const Json& j) {
  JsonWriter w;
  copy(w, j);
  return w.take();
}

// The one list of fields: f(name, member).
template <class Config, class F>
void for_each_field(Config&& c, F&& f) {
#define FIELD(name) f(#name, c.name)
  FIELD(max_length), FIELD(max_new_tokens), FIELD(min_length), FIELD(min_new_tokens), FIELD(early_stopping), FIELD(max_time);
  FIELD(stop_strings), FIELD(do_sample), FIELD(use_cache), FIELD(cache_implementation), FIELD(num_beams),
      FIELD(num_beam_groups), FIELD(penalty_alpha);
  FIELD(length_penalty), FIELD(diversity_penalty), FIELD(prompt_lookup_num_tokens), FIELD(max_matching_ngram_size);
  FIELD(num_assistant_tokens), FIELD(num_assistant_tokens_schedule), FIELD(assistant_confidence_threshold);
  FIELD(temperature), FIELD(top_k);
  FIELD(top_p), FIELD(min_p), FIELD(top_h), FIELD(typical_p), FIELD(epsilon_cutoff), FIELD(eta_cutoff);
  FIELD(repetition_penalty), FIELD(encoder_repetition_penalty), FIELD(no_repeat_ngram_size);
  FIELD(encoder_no_repeat_ngram_size), FIELD(bad_words_ids), FIELD(sequence_bias), FIELD(renormalize_logits);
  FIELD(remove_invalid_values), FIELD(forced_bos_token_id), FIELD(forced_eos_token_id);
  FIELD(exponential_decay_length_penalty), FIELD(suppress_tokens), FIELD(begin_suppress_tokens), FIELD(guidance_scale);
  FIELD(num_return_sequences), FIELD(output_attentions), FIELD(output_hidden_states), FIELD(output_scores);
  FIELD(output_logits), FIELD(return_dict_in_generate), FIELD(pad_token_id), FIELD(bos_token_id);
  FIELD(decoder_start_token_id), FIELD(eos_token_id);
#undef FIELD
}

template <class T>
T blank() {
  if constexpr (std::is_same_v<T, TokenIdOrList>)
    return T(int64_t{0});
  else
    return T{};
}

// False when there is no such field. Null unsets it.
bool set_field(GenerationConfig& config, std::string_view key, const Json& json) {
  bool known = false;
  for_each_field(config, [&]<class T>(const char* name, std::optional<T>& member) {
    if (key != name) return;
    known = true;
    member.reset();
    if (json.is_null()) return;
    T value = blank<T>();
    try {
      read(json, value);
    } catch (UserError& e) {
      e.prepend("`" + std::string(key) + "`: ");
      throw;
    }
    member = std::move(value);
  });
  return known;
}

// Keys that say where a file came from, not how to generate.
bool is_metadata(std::string_view key) { return key == "transformers_version" || key == "_commit_hash"; }

constexpr std::string_view arguments_of_generate[] = {
    "logits_processor", "stopping_criteria", "prefix_allowed_tokens_fn", "synced_gpus",
    "assistant_model",  "streamer",          "negative_prompt_ids",      "negative_prompt_attention_mask"};

std::string read_text(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path.string());
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

std::string shown(double v) { return python_repr(v); }
std::string shown(int64_t v) { return std::to_string(v); }

}  // namespace

GenerationConfig GenerationConfig::from_json(std::string_view text, const std::string& name) {
  return JsonDocument(text, name).read([](const Json& root) {
    GenerationConfig config;
    for (const JsonMember& m : root.members()) {
      if (m.key == "_from_model_config")
        config.derived_from_model_config = !m.value.is_null() && m.value.to_bool();
      else if (!set_field(config, m.key, m.value) && !is_metadata(m.key))
        config.other.emplace_back(m.key, text_of(m.value));
    }
    return config;
  });
}

GenerationConfig GenerationConfig::from_file(const std::filesystem::path& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = folder ? path / "generation_config.json" : path;
  if (folder && !std::filesystem::exists(file))
    throw UserError(ErrorKind::bad_file, path.string() + ": no generation_config.json in this folder");
  return from_json(read_text(file), file.string());
}

GenerationConfig GenerationConfig::from_model_config(std::string_view text, const std::string& name) {
  return JsonDocument(text, name).read([](const Json& root) {
    GenerationConfig config;
    for (const JsonMember& m : root.members()) set_field(config, m.key, m.value);
    for (const char* part : {"decoder", "generator", "text_config"}) {
      const Json* inner = root.find(part);
      if (!inner || !inner->is_object()) continue;
      std::set<std::string_view> known;
      for_each_field(config, [&]<class T>(const char* field, const std::optional<T>& member) {
        if (member) known.insert(field);
      });
      for (const JsonMember& m : inner->members())
        if (!known.contains(m.key)) set_field(config, m.key, m.value);
    }
    config.derived_from_model_config = true;
    return config;
  });
}

std::vector<std::string> GenerationConfig::names() {
  std::vector<std::string> out;
  for_each_field(GenerationConfig(), [&](const char* name, const auto&) { out.emplace_back(name); });
  return out;
}

void GenerationConfig::set(std::string_view key, std::string_view json) {
  const JsonDocument document(json, std::string(key));
  if (!set_field(*this, key, document.root()))
    throw UserError("generation: there is no setting `" + std::string(key) +
                    "`; its name is misspelt, or Calque does not have it");
}

std::string GenerationConfig::to_json() const {
  std::map<std::string, std::string> values(other.begin(), other.end());
  for_each_field(*this, [&]<class T>(const char* name, const std::optional<T>& member) {
    if (!member) return;
    JsonWriter w;
    write(w, *member);
    values[name] = w.take();
  });
  if (derived_from_model_config) values["_from_model_config"] = "true";
  std::string out = "{\n";
  bool first = true;
  for (const auto& [key, value] : values) {
    if (!first) out += ",\n";
    first = false;
    out += "  " + json_quoted(key) + ": " + value;
  }
  return out + "\n}\n";
}

void GenerationConfig::save(const std::filesystem::path& folder) const {
  std::string problems;
  try {
    for (const std::string& issue : validate()) problems += "\n- " + issue;
  } catch (const UserError& e) {
    problems = "\n- " + std::string(e.what());
  }
  if (!problems.empty()) throw UserError("generation_config.json is not written: fix these settings first." + problems);
  const std::string text = to_json();
  FileWriter writer((folder / "generation_config.json").string());
  writer.write(std::as_bytes(std::span(text)));
  writer.commit();
}

namespace {

// Values that no way of generating has a use for.
void check_values(const GenerationConfig& c) {
  for_each_field(c, []<class T>(const char* name, const std::optional<T>& member) {
    if constexpr (std::is_same_v<T, double>)
      if (member && std::isnan(*member)) throw UserError("`" + std::string(name) + "` is NaN; expected a number.");
  });
  const auto positive = [](const char* name, const std::optional<int64_t>& value) {
    if (value && *value < 1)
      throw UserError("`" + std::string(name) + "` must be greater than 0, but is " + std::to_string(*value) + ".");
  };
  positive("max_new_tokens", c.max_new_tokens);
  positive("num_beams", c.num_beams);
  positive("num_beam_groups", c.num_beam_groups);
  positive("num_return_sequences", c.num_return_sequences);
  if (c.length_penalty && !std::isfinite(*c.length_penalty))
    throw UserError("`length_penalty` is " + shown(*c.length_penalty) + "; expected a finite number.");
  if (const auto& decay = c.exponential_decay_length_penalty) {
    if (decay->first < 0)
      throw UserError("`exponential_decay_length_penalty` starts at " + shown(decay->first) +
                      "; expected a number of tokens.");
    if (std::isnan(decay->second)) throw UserError("`exponential_decay_length_penalty` is NaN; expected a number.");
  }
  if (const auto* text = c.early_stopping ? std::get_if<std::string>(&*c.early_stopping) : nullptr; text && *text != "never")
    throw UserError("`early_stopping` must be a boolean or 'never', but is " + *text + ".");
}

// Where and in how much memory keys and values are kept changes no token, so that one cache serves all but those that change them.
void check_cache(const GenerationConfig& c, std::vector<std::string>& issues) {
  static constexpr std::string_view served[] = {"dynamic",          "static",           "sliding_window",
                                                "hybrid",           "hybrid_chunked",   "offloaded",
                                                "offloaded_static", "offloaded_hybrid", "offloaded_hybrid_chunked"};
  if (!c.cache_implementation) return;
  const std::string& name = *c.cache_implementation;
  if (name == "quantized" || name == "paged")
    throw UserError(
        "`cache_implementation` is \"" + name + "\", which Calque does not have: " +
        (name == "paged" ? "it serves many texts at once" : "it rounds keys and values, and with them the text") +
        "; leave it out, or say \"dynamic\".");
  if (std::find(std::begin(served), std::end(served), name) == std::end(served)) {
    std::string names;
    for (const std::string_view one : served) names += (names.empty() ? "" : ", ") + std::string(one);
    throw UserError("Invalid `cache_implementation` (" + name + "). Choose one of: " + names + ".");
  }
  if (c.use_cache == false)
    issues.push_back("`use_cache` is false, but `cache_implementation` is set to " + name + ", and has no effect.");
}

// Settings that the chosen way of generating does not look at.
void find_unused(const GenerationConfig& c, std::vector<std::string>& issues) {
  const auto only_for = [&](const char* name, const auto& value, auto unset, const char* mode, const char* fix) {
    if (value && *value != unset)
      issues.push_back("`" + std::string(name) + "` is set to " + shown(*value) + ", but is only used in " + mode +
                       " generation. Set " + fix + " or unset `" + name + "`.");
  };
  if (!c.do_sample.value_or(false)) {
    const auto sample_only = [&](const char* name, const auto& value, auto unset) {
      only_for(name, value, unset, "sample-based", "`do_sample` to true");
    };
    sample_only("temperature", c.temperature, 1.0);
    sample_only("top_p", c.top_p, 1.0);
    sample_only("min_p", c.min_p, -1.0);
    sample_only("top_h", c.top_h, -1.0);
    sample_only("typical_p", c.typical_p, 1.0);
    if (!c.penalty_alpha) sample_only("top_k", c.top_k, int64_t{50});
    sample_only("epsilon_cutoff", c.epsilon_cutoff, 0.0);
    sample_only("eta_cutoff", c.eta_cutoff, 0.0);
  }
  if (c.num_beams.value_or(1) == 1) {
    if (c.early_stopping && *c.early_stopping != std::variant<bool, std::string>(false))
      issues.push_back(
          "`early_stopping` is set, but is only used in beam-based generation. Set `num_beams` above 1 or unset it.");
    only_for("num_beam_groups", c.num_beam_groups, int64_t{1}, "beam-based", "`num_beams` above 1");
    only_for("diversity_penalty", c.diversity_penalty, 0.0, "beam-based", "`num_beams` above 1");
    only_for("length_penalty", c.length_penalty, 1.0, "beam-based", "`num_beams` above 1");
  }
}

// Numbers of beams, groups and results that contradict each other.
void check_beams(const GenerationConfig& c) {
  const bool sampling = c.do_sample.value_or(false);
  const int64_t beams = c.num_beams.value_or(1), groups = c.num_beam_groups.value_or(1),
                sequences = c.num_return_sequences.value_or(1);
  if (beams > 1 && groups > 1) {
    if (sampling) throw UserError("`do_sample` is true, but group beam search (`num_beam_groups` > 1) does not sample.");
    if (beams % groups != 0)
      throw UserError("`num_beams` (" + std::to_string(beams) + ") has to be divisible by `num_beam_groups` (" +
                      std::to_string(groups) + ").");
    if (c.diversity_penalty.value_or(0.0) == 0.0)
      throw UserError(
          "`diversity_penalty` has to be greater than 0 when `num_beam_groups` > 1, otherwise the groups are identical.");
  }
  if (sequences > 1 && beams == 1 && !sampling)
    throw UserError("Greedy methods without beam search do not support `num_return_sequences` different than 1 (got " +
                    std::to_string(sequences) + ").");
  if (beams > 1 && sequences > beams)
    throw UserError("`num_return_sequences` (" + std::to_string(sequences) +
                    ") has to be smaller or equal to `num_beams` (" + std::to_string(beams) + ").");
}

void find_ignored_outputs(const GenerationConfig& c, std::vector<std::string>& issues) {
  if (c.return_dict_in_generate.value_or(false)) return;
  const auto ignored = [&](const char* name, const std::optional<bool>& value) {
    if (value.value_or(false))
      issues.push_back("`return_dict_in_generate` is not set to true, but `" + std::string(name) + "` is, and is ignored.");
  };
  ignored("output_attentions", c.output_attentions);
  ignored("output_hidden_states", c.output_hidden_states);
  ignored("output_scores", c.output_scores);
  ignored("output_logits", c.output_logits);
}

void check_forced_tokens(const GenerationConfig& c) {
  const auto forced = [&](const char* name, const TokenIds& ids) {
    const auto is_suppressed = [&](int64_t id) {
      return std::find(c.suppress_tokens->begin(), c.suppress_tokens->end(), id) != c.suppress_tokens->end();
    };
    if (c.suppress_tokens && !ids.empty() && std::all_of(ids.begin(), ids.end(), is_suppressed))
      throw UserError("Every token in `" + std::string(name) +
                      "` is also in `suppress_tokens`: no token could be chosen where it is forced.");
  };
  if (c.forced_bos_token_id) forced("forced_bos_token_id", {*c.forced_bos_token_id});
  if (c.forced_eos_token_id) forced("forced_eos_token_id", c.forced_eos_token_id->ids);
}

}  // namespace

std::vector<std::string> GenerationConfig::validate() const {
  std::vector<std::string> issues;
  check_values(*this);
  if (pad_token_id && *pad_token_id < 0)
    issues.push_back("`pad_token_id` should be positive but got " + std::to_string(*pad_token_id) +
                     ". This will cause errors when batch generating, if there is padding.");
  check_cache(*this, issues);
  find_unused(*this, issues);
  check_beams(*this);
  find_ignored_outputs(*this, issues);
  check_forced_tokens(*this);
  for (const auto& [key, value] : other)
    if (std::find(std::begin(arguments_of_generate), std::end(arguments_of_generate), key) !=
        std::end(arguments_of_generate))
      throw UserError("`" + key + "` is not a setting of a generation config: pass it to generate itself.");
  return issues;
}

GenerationMode GenerationConfig::mode(bool assistant) const {
  const auto has = [&](std::string_view key) {
    return std::any_of(other.begin(), other.end(), [&](const auto& o) { return o.first == key && o.second != "null"; });
  };
  const bool sampling = do_sample.value_or(false);
  GenerationMode base;
  if (has("constraints") || has("force_words_ids"))
    base = GenerationMode::constrained_beam_search;
  else if (num_beams.value_or(1) == 1)
    base = sampling                                                        ? GenerationMode::sample
           : top_k.value_or(50) > 1 && penalty_alpha && *penalty_alpha > 0 ? GenerationMode::contrastive_search
                                                                           : GenerationMode::greedy_search;
  else if (num_beam_groups.value_or(1) > 1)
    base = GenerationMode::group_beam_search;
  else
    base = sampling ? GenerationMode::beam_sample : GenerationMode::beam_search;
  if ((assistant || prompt_lookup_num_tokens) && (base == GenerationMode::greedy_search || base == GenerationMode::sample))
    return GenerationMode::assisted_generation;
  return base;
}

std::string_view name_of(GenerationMode mode) {
  switch (mode) {
    case GenerationMode::greedy_search: return "greedy_search";
    case GenerationMode::sample: return "sample";
    case GenerationMode::beam_search: return "beam_search";
    case GenerationMode::beam_sample: return "beam_sample";
    case GenerationMode::group_beam_search: return "group_beam_search";
    case GenerationMode::contrastive_search: return "contrastive_search";
    case GenerationMode::constrained_beam_search: return "constrained_beam_search";
    case GenerationMode::assisted_generation: return "assisted_generation";
  }
  return "";
}

}  // namespace calque

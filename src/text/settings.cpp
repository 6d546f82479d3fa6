#include "text/settings.h"

#include <algorithm>
#include <array>

#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "text/json_parts.h"

namespace calque {
namespace {

constexpr std::array roles{"bos", "eos", "unk", "sep", "pad", "cls", "mask"};

// What transformers' classes say where their files do not; a kind is the class's name without "Tokenizer", in small letters, or
// config.json's model_type without its separators.
constexpr std::array pad_left{"llama", "codellama", "gemma", "cohere", "xlnet", "siglip2", "cpmant"};
constexpr std::array with_types{"bert",
                                "align",
                                "bark",
                                "blip",
                                "bros",
                                "chineseclip",
                                "convbert",
                                "electra",
                                "ernie",
                                "flava",
                                "git",
                                "funnel",
                                "groundingdino",
                                "layoutlm",
                                "lxmert",
                                "megatronbert",
                                "mmgroundingdino",
                                "mobilebert",
                                "nezha",
                                "nomicbert",
                                "qdqbert",
                                "realm",
                                "retribert",
                                "squeezebert",
                                "tvp",
                                "vilt",
                                "visualbert",
                                "deberta",
                                "debertav2",
                                "canine",
                                "dprcontextencoder",
                                "dprquestionencoder",
                                "fnet",
                                "layoutlmv2",
                                "markuplm",
                                "tapas"};

template <size_t n>
bool among(const std::array<const char*, n>& list, const std::string& kind) {
  return std::any_of(list.begin(), list.end(), [&](const char* name) { return kind == name; });
}

std::string kind_of(std::string_view name) {
  for (const std::string_view end : {"Fast", "Tokenizer"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  std::string kind;
  for (const char c : name)
    if (c != '-' && c != '_') kind += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return kind;
}

TextSide side_of(const Json& json) {
  const std::string_view name = json.to_string();
  if (name == "left" || name == "Left") return TextSide::left;
  if (name == "right" || name == "Right") return TextSide::right;
  json.fail("expected \"left\" or \"right\", found \"" + excerpt(name) + "\"");
}

// A member that is there and not null.
const Json* member(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found && !found->is_null() ? found : nullptr;
}

// A token: an object, which says how it is found, or its name. As transformers adds it, one by name is found before anything is
// normalized, if no other file has said how.
AddedToken named_token(const Json& json) {
  if (json.is_object()) {
    AddedToken token = read_added_token(json);
    token.special = true;
    token.normalized = flag_or(json, "normalized", false);
    return token;
  }
  AddedToken token;
  token.content = json.to_string();
  token.special = token.name_only = true;
  token.normalized = false;
  return token;
}

// The root of a file, if there is one: read(root).
template <class Read>
void read_file(const std::filesystem::path& path, Read&& read) {
  if (!std::filesystem::exists(path)) return;
  const auto file = MappedFile::open(path.string());
  const auto bytes = file->bytes();
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  if (!is_valid_utf8(text)) throw UserError(ErrorKind::bad_file, path.string() + ": not UTF-8 text");
  const JsonDocument document(text, path.string());
  document.read([&](const Json& root) { read(root); });
}

// `read` names the member in its errors.
template <class Read>
void with_member(const Json& json, const std::string& key, Read&& read) {
  const Json* found = member(json, key);
  if (!found) return;
  try {
    read(*found);
  } catch (UserError& e) {
    e.prepend(key + ": ");
    throw;
  }
}

class Reader {
 public:
  explicit Reader(TokenizerSettings& settings) : settings_(settings) {}

  // Special tokens, where no file before has named them.
  void read_tokens(const Json& root) {
    for (const char* role : roles)
      with_member(root, std::string(role) + "_token", [&](const Json& json) {
        AddedToken token = named_token(json);
        if (settings_.special_tokens.emplace(role, token.content).second) settings_.named_tokens.push_back(std::move(token));
      });
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
      with_member(root, key, [&](const Json& json) {
        if (!json.is_array()) return;  // by names: transformers gives those to a model's own attributes
        for (const Json& item : json.items()) {
          AddedToken token = named_token(item);
          auto& all = settings_.additional_special_tokens;
          if (std::find(all.begin(), all.end(), token.content) != all.end()) continue;
          all.push_back(token.content);
          settings_.named_tokens.push_back(std::move(token));
        }
      });
  }

  void read_config(const Json& root) {
    read_tokens(root);
    // Files without a limit say 10^30.
    with_member(root, "model_max_length", [&](const Json& json) {
      const double most = json.to_float();
      if (!(most >= 0)) json.fail("model_max_length must be a number of tokens, found one below 0");
      if (most < 1e15) settings_.model_max_length = static_cast<int64_t>(most);
      has_length = true;
    });
    with_member(root, "padding_side", [&](const Json& json) { padding_side = side_of(json); });
    with_member(root, "truncation_side", [&](const Json& json) { settings_.truncation_side = side_of(json); });
    with_member(root, "pad_token_type_id", [&](const Json& json) { settings_.pad_type_id = json.to_int(); });
    with_member(root, "clean_up_tokenization_spaces", [&](const Json& json) { settings_.clean_up_spaces = json.to_bool(); });
    with_member(root, "model_input_names", [&](const Json& json) {
      settings_.model_input_names.clear();
      for (const Json& name : json.items()) settings_.model_input_names.emplace_back(name.to_string());
    });
    with_member(root, "tokenizer_class", [&](const Json& json) { kind = kind_of(json.to_string()); });
  }

  // tokenizer.json's own, which transformers takes where tokenizer_config.json says nothing.
  void read_own(const Json& root) {
    with_member(root, "padding", [&](const Json& padding) {
      with_member(padding, "direction", [&](const Json& json) { padding_side = side_of(json); });
      with_member(padding, "pad_type_id", [&](const Json& json) { settings_.pad_type_id = json.to_int(); });
      with_member(padding, "pad_token", [&](const Json& json) { pad_token = json.to_string(); });
    });
    with_member(root, "truncation", [&](const Json& truncation) {
      with_member(truncation, "direction", [&](const Json& json) { settings_.truncation_side = side_of(json); });
      with_member(truncation, "max_length", [&](const Json& json) { own_length = json.to_int(); });
    });
  }

  void finish() {
    settings_.padding_side = padding_side.value_or(among(pad_left, kind) ? TextSide::left : TextSide::right);
    if (pad_token) settings_.special_tokens.emplace("pad", *pad_token);
    if (!has_length && own_length && *own_length >= 0) settings_.model_max_length = own_length;
    if (settings_.model_input_names.empty()) {
      settings_.model_input_names = {"input_ids", "attention_mask"};
      if (among(with_types, kind)) settings_.model_input_names = {"input_ids", "token_type_ids", "attention_mask"};
    }
  }

  std::optional<TextSide> padding_side;
  std::optional<std::string> pad_token;
  std::optional<int64_t> own_length;
  bool has_length = false;
  std::string kind;

 private:
  TokenizerSettings& settings_;
};

}  // namespace

AddedToken read_added_token(const Json& json) {
  AddedToken token;
  token.content = json.at("content").to_string();
  token.single_word = flag_or(json, "single_word", false);
  token.lstrip = flag_or(json, "lstrip", false);
  token.rstrip = flag_or(json, "rstrip", false);
  token.special = flag_or(json, "special", false);
  token.normalized = flag_or(json, "normalized", !token.special);
  return token;
}

TokenizerSettings TokenizerSettings::read(const JsonDocument& tokenizer_json,
                                          const std::optional<std::filesystem::path>& folder) {
  TokenizerSettings settings;
  Reader reader(settings);
  tokenizer_json.read([&](const Json& root) { reader.read_own(root); });
  if (folder) {
    read_file(*folder / "tokenizer_config.json", [&](const Json& root) { reader.read_config(root); });
    read_file(*folder / "special_tokens_map.json", [&](const Json& root) { reader.read_tokens(root); });
    if (reader.kind.empty())
      read_file(*folder / "config.json", [&](const Json& root) {
        with_member(root, "model_type", [&](const Json& json) { reader.kind = kind_of(json.to_string()); });
      });
  }
  reader.finish();
  return settings;
}

void TokenizerSettings::guess_roles(const std::function<bool(std::string_view)>& has) {
  if (!named_tokens.empty()) return;
  const auto take = [&](std::initializer_list<std::pair<const char*, const char*>> tokens) {
    for (const auto& [role, token] : tokens)
      if (has(token)) special_tokens.emplace(role, token);
  };
  if (has("[CLS]") && has("[SEP]"))
    take({{"cls", "[CLS]"}, {"sep", "[SEP]"}, {"pad", "[PAD]"}, {"unk", "[UNK]"}, {"mask", "[MASK]"}});
  else if (has("<s>") && has("</s>") && has("<mask>"))
    take({{"bos", "<s>"},
          {"eos", "</s>"},
          {"cls", "<s>"},
          {"sep", "</s>"},
          {"pad", "<pad>"},
          {"unk", "<unk>"},
          {"mask", "<mask>"}});
  else if (has("<s>") && has("</s>"))
    take({{"bos", "<s>"}, {"eos", "</s>"}, {"unk", "<unk>"}, {"pad", "<pad>"}});
  else if (has("</s>"))
    take({{"eos", "</s>"}, {"pad", "<pad>"}, {"unk", "<unk>"}});
  else if (has("<|endoftext|>"))
    take({{"bos", "<|endoftext|>"}, {"eos", "<|endoftext|>"}, {"unk", "<|endoftext|>"}});
}

}  // namespace calque

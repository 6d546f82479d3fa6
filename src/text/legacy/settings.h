// What a model folder says of its tokenizer beside the vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json
// and the model's config.json, merged as transformers merges them. All of them may be missing; one that is there and wrong is a
// UserError (bad_file) that names it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/file/json.h"
#include "text/legacy/document.h"

namespace calque {

// A token as the files give it: its text alone (plain), or with the ways in which it matches.
struct GivenToken {
  LegacyToken token;
  bool plain = true;
};

class LegacySettings {
 public:
  explicit LegacySettings(const std::filesystem::path& folder);
  const std::filesystem::path& folder() const { return folder_; }
  // Of config.json and of either file.
  std::optional<std::string> model_type() const;
  std::optional<std::string> tokenizer_class() const;  // without "Fast"

  // Arguments of the class, from tokenizer_config.json.
  bool has(std::string_view key) const;  // also when it is null
  bool flag(std::string_view key, bool otherwise) const;
  int64_t number(std::string_view key, int64_t otherwise, int64_t most) const;
  std::optional<std::string> text(std::string_view key) const;
  const Json* find(std::string_view key) const;

  std::map<std::string, std::optional<GivenToken>, std::less<>> roles;  // "cls_token", ...: nothing where a file says null
  std::vector<std::pair<std::string, GivenToken>> own_roles;            // of this model alone, such as "image_token"
  std::optional<std::vector<GivenToken>> extra;                         // extra_special_tokens
  std::optional<std::vector<GivenToken>> additional;                    // additional_special_tokens that are not those
  std::map<int64_t, LegacyToken> added;                                 // added_tokens_decoder, by id

 private:
  // A file that may be missing; its values live as long as it does.
  struct File {
    explicit File(const std::filesystem::path& path);
    template <class F>
    void read(F&& fn) const {
      if (document) document->read(fn);
    }
    std::string text;
    std::optional<JsonDocument> document;
  };
  void read_config(const Json& root);
  void read_added_decoder(const Json& decoder);
  void read_special_map(const Json& root);
  void read_added_tokens(const Json& root);

  std::filesystem::path folder_;
  File config_, model_config_;
};

constexpr std::string_view legacy_roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                             "pad_token", "cls_token", "mask_token"};

}  // namespace calque

// What the files of a tokenizer say besides how text is split: the special tokens and their roles, the sides on which rows are
// padded and cut, what a model takes. From tokenizer_config.json, special_tokens_map.json, config.json (the kind of model) and the
// "padding" and "truncation" of tokenizer.json itself.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/text/tokenizer.h"
#include "text/added_tokens.h"

namespace calque {

class Json;
class JsonDocument;

struct TokenizerSettings {
  std::map<std::string, std::string, std::less<>> special_tokens;  // by role
  std::vector<std::string> additional_special_tokens;
  // All special tokens that the files name, as they are to be found in texts.
  std::vector<AddedToken> named_tokens;
  std::optional<int64_t> model_max_length;
  TextSide padding_side = TextSide::right, truncation_side = TextSide::right;
  int64_t pad_type_id = 0;
  std::vector<std::string> model_input_names;
  bool clean_up_spaces = false;

  // `folder`, where there is one, has the other files.
  static TokenizerSettings read(const JsonDocument& tokenizer_json, const std::optional<std::filesystem::path>& folder);

  // Roles by what the tokens are called, when no file names a role: [CLS] and its company are BERT's, <s> and </s> with a <mask>
  // RoBERTa's, </s> with a <pad> T5's, <|endoftext|> GPT-2's.
  void guess_roles(const std::function<bool(std::string_view token)>& has);
};

// An item of "added_tokens", or a token of tokenizer_config.json that is written as one.
AddedToken read_added_token(const Json& json);

}  // namespace calque

// Tokenizers of model folders that have no tokenizer.json: one is made from the vocabulary files, the one that transformers' class of the
// folder would save, as text for the ordinary reader. docs/tokenizers.md says which files are read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace calque {

struct LegacyTokenizer {
  std::string class_name;                                          // of transformers, such as "BertTokenizer"
  std::string json;                                                // a tokenizer.json
  std::map<std::string, std::string, std::less<>> special_tokens;  // by role: "bos", "eos", ...
  bool clean_up_spaces = false;                                    // of texts that are decoded
};

LegacyTokenizer read_legacy_tokenizer(const std::filesystem::path& folder);

}  // namespace calque

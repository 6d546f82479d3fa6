// What a Tokenizer holds.
#pragma once

#include <mutex>

#include "calque/text/tokenizer.h"
#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/settings.h"
#include "text/text_model.h"

namespace calque {

struct Tokenizer::Impl {
  std::string name;  // of the file, for messages
  TextLimits limits;
  Normalizers normalizers;
  std::unique_ptr<TextModel> model;
  PreTokenizers pre_tokenizers;
  std::vector<std::unique_ptr<PostProcessor>> post_processors;
  Decoders decoders;
  AddedTokens added;
  TokenizerSettings settings;

  // Room to work in, lent to one encoding at a time; the words it remembers stay warm.
  struct Scratch {
    std::vector<Piece> pieces, other;
    std::vector<ModelToken> tokens;
    ModelRoom model;
  };
  class Loan;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Scratch>> idle;

  enum class Want { ids, everything };
  Encoding encode_one(std::string_view text, int64_t type, Want want, OffsetUnit unit, TextBudget& budget) const;
  Encoding post_process(std::vector<Encoding> encodings, const PostContext& context) const;
  size_t added_by_post_processors(bool pair) const;
  // The rows of one input: cut, with its special tokens, not padded.
  std::vector<Encoding> rows_of(const TextInput& input, const BatchOptions& options) const;
  // The tokens of ids, without those that are not wanted.
  std::vector<std::string> tokens_of(std::span<const int64_t> ids, bool skip_special_tokens, TextBudget& budget) const;
  const std::string* token(int64_t id) const;
};

}  // namespace calque

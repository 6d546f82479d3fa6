// What a Tokenizer holds.
#pragma once

#include <map>
#include <mutex>

#include "calque/text/tokenizer.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"

namespace calque {

struct Tokenizer::Impl {
  std::string name;  // of the file, for messages
  TextLimits limits;
  Normalizers normalizers;
  std::unique_ptr<Bpe> model;
  PreTokenizers pre_tokenizers;
  std::vector<std::unique_ptr<PostProcessor>> post_processors;
  Decoders decoders;
  AddedTokens added;
  std::map<std::string, std::string, std::less<>> special_tokens;  // by role
  std::optional<int64_t> model_max_length;

  // Room to work in, lent to one encoding at a time; the words it remembers stay warm.
  struct Scratch {
    std::vector<Piece> pieces, other;
    std::vector<BpeToken> tokens;
    BpeCache cache;
  };
  class Loan;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Scratch>> idle;

  enum class Want { ids, everything };
  Encoding encode_one(std::string_view text, int64_t type, Want want, OffsetUnit unit, TextBudget& budget) const;
  Encoding post_process(std::vector<Encoding> encodings, bool add_special_tokens, TextBudget& budget) const;
  // The tokens of ids, without those that are not wanted.
  std::vector<std::string> tokens_of(std::span<const int64_t> ids, bool skip_special_tokens, TextBudget& budget) const;
  const std::string* token(int64_t id) const;
};

}  // namespace calque

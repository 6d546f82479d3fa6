// A SentencePiece model: the protobuf message that `spm_train` writes, as far as a tokenizer needs it. Views point into the bytes
// that were read, which must outlive it. Read with a reader of the wire format that checks every length; what is no such model
// (cut off, of another kind, with an empty or repeated piece or a score that is no number) is one UserError (bad_file).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

struct SentencePiece {
  enum class Kind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  std::string_view text;
  float score = 0;
  Kind kind = Kind::normal;
};

struct SentencePieceModel {
  enum class Type : uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  std::vector<SentencePiece> pieces;  // by id
  // Of the trainer's settings.
  Type type = Type::unigram;
  bool byte_fallback = false;
  int64_t unk_id = 0, bos_id = 1, eos_id = 2, pad_id = -1;
  std::string_view unk_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
  // Of the normalizer's: a trie of replacements, empty when nothing is replaced.
  std::string_view precompiled_charsmap;
};

// `name` is the file's, for messages.
SentencePieceModel read_sentencepiece(std::span<const std::byte> bytes, const std::string& name);

}  // namespace calque

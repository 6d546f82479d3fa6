// Tokenizer: text to token ids and back, as a tokenizer.json of Hugging Face says (byte-level BPE and its relatives). What
// is read is immutable; any number of threads may encode and decode with one Tokenizer. Text is UTF-8; bytes that are not
// are taken as Python's errors="replace" takes them, one U+FFFD for each wrong sequence. "truncation" and "padding" of the
// file are not applied: how long a batch may be is the caller's to say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace calque {

struct Encoding {
  std::vector<int64_t> ids;
  std::vector<std::string> tokens;
  // Where in the text each token came from; a token made of a part of a character names the whole of it. (0, 0) for
  // tokens that the post-processor put in.
  std::vector<std::pair<size_t, size_t>> offsets;
  std::vector<int64_t> type_ids;             // 0, and 1 for the second of two texts, unless the file says otherwise
  std::vector<uint8_t> special_tokens_mask;  // 1: put in by the post-processor
  size_t size() const { return ids.size(); }
};

enum class OffsetUnit { bytes, characters };  // of the text given; of its characters as Python counts them

struct EncodeOptions {
  bool add_special_tokens = true;
  OffsetUnit offsets = OffsetUnit::bytes;
};

// What a tokenizer.json may cost. No tokenizer that was made for use comes near these limits; a file that was made to hang the
// program or to fill its memory gets a UserError (bad_file) instead, which names the file, the part and the limit.
struct TextLimits {
  // All regular expressions of the file together: instructions of their programs, with repetitions written out, and members
  // of their sets. Counted while they are read.
  size_t expression_size = 50'000;
  // For one text, a fixed part and one for each of its bytes. A step is a character looked at, an instruction of an expression,
  // a piece handed on. An id to decode counts as 16 bytes.
  size_t steps = 10'000'000, steps_per_byte = 1'000;
  // The bytes of memory that are made of one text on its way to tokens, or of ids on their way to text: rewritten text with its
  // origins (9 bytes a byte), pieces, the ways that an expression has left to try, the encoding.
  size_t memory = size_t{32} << 20, memory_per_byte = 1'024;
};

class Tokenizer {
 public:
  // A tokenizer.json, or a folder that has one and perhaps a tokenizer_config.json. UserError (bad_file) names the file
  // and what is wrong in it or not supported.
  static Tokenizer from_file(const std::filesystem::path& path, const TextLimits& limits = {});
  static Tokenizer from_json(std::string_view json, const std::string& name = "tokenizer.json",
                             const TextLimits& limits = {});

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {}) const;
  // The ids alone, which is faster.
  std::vector<int64_t> encode_ids(std::string_view text, bool add_special_tokens = true) const;

  // Ids that there are not are left out.
  std::string decode(std::span<const int64_t> ids, bool skip_special_tokens = true) const;

  size_t vocab_size() const;  // with the added tokens
  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int64_t id) const;
  bool is_special(int64_t id) const;

  // From tokenizer_config.json: "bos", "eos", "pad", "unk", "cls", "sep", "mask".
  std::optional<std::string> special_token(std::string_view role) const;
  std::optional<int64_t> special_token_id(std::string_view role) const;
  std::optional<int64_t> model_max_length() const;

 private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Decodes ids as they come and gives out whole characters only. All that it gave out, with what finish() gives, is what
// Tokenizer::decode makes of the same ids, and all of it may cost what decode may for them. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  std::string push(int64_t id);  // the text that is certain now
  std::string finish();          // the rest; starts anew

 private:
  std::string decoded(std::span<const int64_t> ids);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  size_t came_ = 0, spent_ = 0;  // ids, and the steps that they took
  std::string bytes_;            // of a byte-level decoder: what is no whole character yet
  std::vector<int64_t> ids_;     // of others: what the next text may depend on, and what has no text yet
  size_t context_ = 0;           // how many of them have been given out
  std::string given_;            // their text
};

}  // namespace calque

// Tokenizer: text to token ids and back, as a tokenizer.json of Hugging Face says, with what tokenizer_config.json and
// special_tokens_map.json beside it add. What is read is immutable; any number of threads may encode and decode with one
// Tokenizer. Text is UTF-8; bytes that are not are taken as Python's errors="replace" takes them, one U+FFFD for each wrong
// sequence. encode() neither cuts nor pads; encode_padded() does both, as transformers' tokenizer(texts) does.
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
  std::vector<uint8_t> special_tokens_mask;  // 1: put in by the post-processor, or padding
  std::vector<uint8_t> attention_mask;       // 0: padding
  std::vector<int32_t> word_ids;             // which piece of its text, as the pre-tokenizers cut it; -1: of none
  std::vector<int8_t> sequence_ids;          // 0 and 1: of the first and the second text; -1: of neither
  size_t size() const { return ids.size(); }
};

enum class OffsetUnit { bytes, characters };  // of the text given; of its characters as Python counts them

struct EncodeOptions {
  bool add_special_tokens = true;
  OffsetUnit offsets = OffsetUnit::bytes;
};

enum class TextSide : uint8_t { left, right };

// A text, or a pair of texts.
struct TextInput {
  std::string first;
  std::optional<std::string> second;
  TextInput() = default;
  TextInput(std::string text) : first(std::move(text)) {}  // NOLINT: a text is an input
  TextInput(const char* text) : first(text) {}             // NOLINT
  TextInput(std::string a, std::string b) : first(std::move(a)), second(std::move(b)) {}
};

struct BatchOptions {
  enum class Truncation : uint8_t { longest_first, only_first, only_second };

  bool add_special_tokens = true;
  bool pad = true;                                // all rows get the length of the longest one
  std::optional<size_t> pad_to = {};              // or, when they are shorter, this length
  std::optional<size_t> pad_to_multiple_of = {};  // and then the next multiple
  bool truncate = false;
  std::optional<size_t> max_length = {};  // with the special tokens; else model_max_length(), and without one nothing is cut
  size_t stride = 0;                      // how many tokens an overflowing row has in common with the one before it
  Truncation strategy = Truncation::longest_first;
  std::optional<TextSide> padding_side = {}, truncation_side = {};  // else as the files say
  OffsetUnit offsets = OffsetUnit::bytes;
  bool overflow = false;  // what is cut off becomes further rows
};

// Rows of one length, if they were padded.
struct Batch {
  std::vector<Encoding> rows;
  std::vector<size_t> row_of;  // by row: which text it is of; a text's rows follow one another
  size_t width = 0;            // the length of the longest row
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
  // Cut and padded, on the threads of calque/base/thread.h; how many there are does not change the result. UserError when
  // there is nothing to pad with, or no room for the special tokens.
  Batch encode_padded(std::span<const TextInput> inputs, const BatchOptions& options = {}) const;
  // The ids alone, which is faster.
  std::vector<int64_t> encode_ids(std::string_view text, bool add_special_tokens = true) const;

  // Ids that there are not are left out.
  std::string decode(std::span<const int64_t> ids, bool skip_special_tokens = true) const;
  // As transformers' decode: where "clean_up_tokenization_spaces" of tokenizer_config.json asks for it, and the model is not
  // BPE, the spaces before punctuation and contractions are taken out.
  std::string decode_clean(std::span<const int64_t> ids, bool skip_special_tokens = true) const;

  size_t vocab_size() const;  // with the added tokens
  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int64_t id) const;
  bool is_special(int64_t id) const;

  // By the role's name: "bos", "eos", "pad", "unk", "cls", "sep", "mask". From tokenizer_config.json and
  // special_tokens_map.json; where neither names any, from what the added tokens are called.
  std::optional<std::string> special_token(std::string_view role) const;
  std::optional<int64_t> special_token_id(std::string_view role) const;
  const std::vector<std::string>& additional_special_tokens() const;
  // As tokenizer_config.json says; else as transformers' class of that name has it; else as "padding" and "truncation" of
  // tokenizer.json say.
  std::optional<int64_t> model_max_length() const;
  TextSide padding_side() const;
  TextSide truncation_side() const;
  int64_t pad_type_id() const;
  const std::vector<std::string>& model_input_names() const;  // "input_ids", perhaps "token_type_ids", "attention_mask"

 private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  // `folder` has the files beside tokenizer.json.
  static Tokenizer read(std::string_view json, const std::string& name, const TextLimits& limits,
                        const std::optional<std::filesystem::path>& folder);
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

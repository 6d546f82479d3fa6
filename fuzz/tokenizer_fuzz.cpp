// Any bytes as text for a tokenizer, as a tokenizer.json, or as a regular expression (the first byte says which; a zero byte
// ends the file or the expression, the text follows). What is made must be consistent; otherwise one UserError, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "calque/base/error.h"
#include "calque/text/tokenizer.h"
#include "text/regex.h"
#include "text/utf8.h"

using namespace calque;

namespace {

const Tokenizer& fixed() {
  static const Tokenizer tokenizer = Tokenizer::from_json(R"({"normalizer": {"type": "NFKC"},
    "added_tokens": [{"id": 5, "content": "<x>", "lstrip": true, "rstrip": true, "special": true, "normalized": true},
                     {"id": 6, "content": "b ", "single_word": true, "special": false, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "unk_token": "u", "byte_fallback": true, "vocab": {"u": 0, "a": 1, "b": 2, "ab": 3, "Ġ": 4}, "merges": [["a", "b"]]}})");
  return tokenizer;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  const Encoding e = tokenizer.encode(text);
  require(e.tokens.size() == e.size() && e.offsets.size() == e.size() && e.type_ids.size() == e.size());
  for (const auto& [begin, end] : e.offsets) require(begin <= end && end <= text.size());
  require(tokenizer.encode_ids(text) == e.ids);
  const Encoding characters = tokenizer.encode(text, {.offsets = OffsetUnit::characters});
  require(characters.ids == e.ids);
  const std::string decoded = tokenizer.decode(e.ids, false);
  require(is_valid_utf8(decoded));
  StreamDecoder stream(tokenizer, false);
  std::string streamed;
  for (const int64_t id : e.ids) streamed += stream.push(id);
  streamed += stream.finish();
  require(is_valid_utf8(streamed));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t zero = all.find('\0');
  const std::string_view first = all.substr(0, zero), text = zero == std::string_view::npos ? "" : all.substr(zero + 1);
  try {
    if (data[0] % 3 == 0) {
      use(fixed(), all);
    } else if (data[0] % 3 == 1) {
      use(Tokenizer::from_json(first), text);
    } else {
      const TextRegex regex(repair_utf8(first));
      const std::string subject = repair_utf8(text);
      size_t begin = 0, end = 0;
      if (regex.find(subject, 0, begin, end)) require(begin <= end && end <= subject.size());
    }
  } catch (const UserError&) {
  }
  return 0;
}

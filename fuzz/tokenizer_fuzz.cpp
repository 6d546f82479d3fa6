// A tokenizer.json, mostly changed as JSON, value by value, with the texts that its member "texts" lists; or any bytes as text
// for a fixed tokenizer, as a tokenizer.json, or as a regular expression (the first byte says which; a zero byte ends the file
// or the expression, the text follows). What is made must be consistent; otherwise one UserError, nothing else.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../tests/support/json_changes.h"
#include "calque/base/error.h"
#include "calque/text/tokenizer.h"
#include "text/regex.h"
#include "text/utf8.h"

using namespace calque;

namespace {

using Json = nlohmann::ordered_json;

// Small, so that what reaches a limit is quick too.
constexpr TextLimits limits{
    .expression_size = 5'000, .steps = 200'000, .steps_per_byte = 1'000, .memory = 1 << 20, .memory_per_byte = 1'024};

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

// Calls `f`; a UserError is an answer too.
template <class F>
void answered(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    require(std::string_view(e.what()).size() < 20'000);
  }
}

// Rows of one length, each with all that belongs to it, in the order of the texts.
void use_batch(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TextInput> inputs{std::string(text), "a", {"b a", std::string(text.substr(0, text.size() / 2))}};
  const BatchOptions options{
      .truncate = true, .max_length = 4 + text.size() % 8, .stride = text.size() % 3, .overflow = text.size() % 2 == 0};
  const Batch batch = tokenizer.encode_padded(inputs, options);
  require(batch.row_of.size() == batch.rows.size() && std::is_sorted(batch.row_of.begin(), batch.row_of.end()));
  for (const Encoding& e : batch.rows) {
    require(e.size() == batch.width && e.tokens.size() == e.size() && e.offsets.size() == e.size());
    require(e.type_ids.size() == e.size() && e.special_tokens_mask.size() == e.size());
    require(e.attention_mask.size() == e.size() && e.sequence_ids.size() == e.size());
  }
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  const Encoding e = tokenizer.encode(text);
  require(e.tokens.size() == e.size() && e.offsets.size() == e.size() && e.type_ids.size() == e.size());
  for (const auto& [begin, end] : e.offsets) require(begin <= end && end <= text.size());
  require(tokenizer.encode_ids(text) == e.ids);
  const Encoding characters = tokenizer.encode(text, {.offsets = OffsetUnit::characters});
  require(characters.ids == e.ids);
  answered([&] { tokenizer.encode_pair(text, "a b"); });
  const std::string decoded = tokenizer.decode(e.ids, false);
  require(is_valid_utf8(decoded));
  answered([&] { require(is_valid_utf8(tokenizer.decode_clean(e.ids))); });
  answered([&] { use_batch(tokenizer, text); });
  StreamDecoder stream(tokenizer, false);
  std::string streamed;
  for (size_t i = 0; i < std::min<size_t>(e.size(), 200); ++i) streamed += stream.push(e.ids[i]);
  streamed += stream.finish();
  require(is_valid_utf8(streamed));
}

std::vector<std::string> texts_of(const Json& json) {
  std::vector<std::string> out;
  if (const auto found = json.find("texts"); found != json.end() && found->is_array())
    for (const Json& text : *found)
      if (text.is_string() && out.size() < 8) out.push_back(text.get<std::string>());
  out.emplace_back("a b  <x>1\xC3\xA9");
  return out;
}

void use_file(std::string_view text, const Json& json) {
  answered([&] {
    const Tokenizer tokenizer = Tokenizer::from_json(text, "tokenizer.json", limits);
    for (const std::string& given : texts_of(json)) answered([&] { use(tokenizer, given); });
    // Ids of all kinds, also such as there are not.
    answered([&] {
      require(is_valid_utf8(tokenizer.decode(std::vector<int64_t>{0, 1, 2, 3, 4, 5, -1, int64_t{1} << 40, 300})));
    });
  });
}

}  // namespace

// Of libFuzzer; the replay of the seeds does without.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Texts and expressions are changed within: a few characters of their own kind, or as libFuzzer changes bytes.
static void change_string(Json& root, std::mt19937& chance) {
  std::vector<Json*> all, strings;
  test::collect(root, all);
  std::copy_if(all.begin(), all.end(), std::back_inserter(strings), [](const Json* j) { return j->is_string(); });
  if (strings.empty()) return;
  Json& here = *strings[chance() % strings.size()];
  std::string text = here.get<std::string>();
  static constexpr std::string_view parts[] = {
      "|",        "(?:a+b?)+",    "{2,900}",    "(?=",    ")",       "(?<!a)", "[^",   "]",    "++",
      "*?",       "\\p{L}",       "&&",         "(?i:",   "^",       "$",      "\\b",  "a",    " ",
      "\xC3\x89", "\xEF\xB7\xBA", "\xCC\x81",   "<0x41>", "(a|)\\1", "\\K",    "\\G",  "\\R",  "(?<n>b)",
      "\\k<n>",   "[[:alpha:]]",  "\\p{Greek}", "(?mx)",  "(?i)ss",  "?+",     "(?<=", "{3,1}"};
  const size_t at = chance() % (text.size() + 1);
  switch (chance() % 4) {
    case 0: text.insert(at, parts[chance() % std::size(parts)]); break;
    case 1: text.erase(at, 1 + chance() % 4); break;
    case 2: text += text.substr(at, 40); break;
    default:
      text.resize(text.size() + 16);
      text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), text.size() - 16, text.size()));
  }
  here = repair_utf8(text);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 chance(seed);
  Json json = size > 0 && data[0] == '{' ? Json::parse(data, data + size, nullptr, false) : Json(nullptr);
  if (!json.is_object() || chance() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t times = 1 + chance() % 3; times > 0; --times) {
    if (chance() % 2 == 0)
      change_string(json, chance);
    else
      test::change_one(json, chance);
  }
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_size || !json.is_object()) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view whole(reinterpret_cast<const char*>(data), size);
  if (data[0] == '{') {
    const Json json = Json::parse(whole, nullptr, false);
    use_file(whole, json.is_object() ? json : Json::object());
    return 0;
  }
  const std::string_view all = whole.substr(1);
  const size_t zero = all.find('\0');
  const std::string_view first = all.substr(0, zero), text = zero == std::string_view::npos ? "" : all.substr(zero + 1);
  answered([&] {
    if (data[0] % 3 == 0) {
      use(fixed(), all);
    } else if (data[0] % 3 == 1) {
      use(Tokenizer::from_json(first, "tokenizer.json", limits), text);
    } else {
      ExpressionBudget expressions(limits);
      const TextRegex regex(repair_utf8(first), expressions);
      const std::string subject = repair_utf8(text);
      TextBudget budget(limits, "fuzz", TextBudget::Of::text, subject.size());
      size_t begin = 0, end = 0;
      if (regex.find(subject, 0, budget, begin, end)) require(begin <= end && end <= subject.size());
    }
  });
  return 0;
}

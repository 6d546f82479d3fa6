#include "text/charsmap.h"

#include <array>

#include "calque/base/error.h"
#include "text/base64.h"
#include "text/char_classes.h"

namespace calque {
namespace {

constexpr size_t longest_grapheme = 5;  // bytes: longer ones are replaced character by character

[[noreturn]] void wrong(const std::string& what) {
  throw UserError(ErrorKind::bad_file, "tokenizer: precompiled_charsmap: " + what);
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The units of the double array, as darts-clone packs them.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t label(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
size_t offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & 1u << 9) >> 6); }

// Takes note of `text` in the place of `count` characters, as the library counts the places: what is too many stands at the end,
// what is missing is taken from the character before.
void replace(std::vector<CharacterChange>& changes, size_t count, std::string_view text) {
  const size_t before = changes.size();
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.data() + i);
    changes.push_back({c.value, 0});
    i += c.size;
  }
  const size_t made = changes.size() - before;
  for (size_t i = count; i < made; ++i) changes[before + i].grown = 1;
  if (made < count && !changes.empty()) changes.back().grown -= static_cast<int64_t>(count - made);
}

}  // namespace

Charsmap::Charsmap(std::string_view base64, bool longest) : longest_(longest) {
  const std::optional<std::string> decoded = decode_base64(base64);
  if (!decoded) wrong("expected base 64");
  const std::string& bytes = *decoded;
  if (bytes.size() < 4) wrong("expected at least 4 bytes, found " + std::to_string(bytes.size()));
  const size_t size = little_endian(bytes);
  if (size % 4 != 0 || size > bytes.size() - 4)
    wrong("a trie of " + std::to_string(size) + " bytes in a map of " + std::to_string(bytes.size()));
  for (size_t i = 0; i < size; i += 4) units_.push_back(little_endian(std::string_view(bytes).substr(4 + i)));
  pool_ = bytes.substr(4 + size);
  if (!is_valid_utf8(pool_)) wrong("what it puts in is not UTF-8 text");
}

std::optional<Charsmap::Found> Charsmap::find(std::string_view text, TextBudget& budget) const {
  std::optional<Found> found;
  if (units_.empty()) return found;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    budget.spend(1);
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const size_t at = units_[node] & 0x7FFFFFFF;
    if (at >= pool_.size() || is_utf8_continuation(pool_[at])) break;
    const std::string_view rest = std::string_view(pool_).substr(at);
    if (i + 1 == text.size() || !is_utf8_continuation(text[i + 1])) found = {rest.substr(0, rest.find('\0')), i + 1};
    if (!longest_) break;
  }
  return found;
}

Piece Charsmap::apply_longest(const Piece& piece, TextStore& store) const {
  TextBudget& budget = store.budget();
  std::vector<CharacterChange> changes;
  bool changed = false;
  for (size_t i = 0; i < piece.text.size();) {
    budget.spend(1);
    if (const auto found = find(piece.text.substr(i), budget)) {
      budget.require((changes.size() + found->made.size()) * sizeof(CharacterChange));
      replace(changes, count_utf8(piece.text.substr(i, found->size)), found->made);
      changed = true;
      i += found->size;
    } else {
      const Utf8Char c = decode_utf8(piece.text.data() + i);
      changes.push_back({c.value, 0});
      i += c.size;
    }
  }
  return changed ? rewrite(piece, changes, store) : piece;
}

Piece Charsmap::apply(const Piece& piece, TextStore& store) const {
  if (longest_) return apply_longest(piece, store);
  TextBudget& budget = store.budget();
  const CharClasses& classes = CharClasses::instance();
  const std::string_view text = piece.text;
  std::vector<CharacterChange> changes;
  bool changed = false;
  const auto put = [&](std::string_view part, size_t characters) {
    const auto made = find(part, budget);
    if (!made) return false;
    budget.require((changes.size() + made->made.size()) * sizeof(CharacterChange));
    replace(changes, characters, made->made);
    changed = true;
    return true;
  };
  for (size_t i = 0; i < text.size();) {
    const size_t end = grapheme_end(text, i, classes);
    const std::string_view grapheme = text.substr(i, end - i);
    budget.spend(grapheme.size());
    if (grapheme.size() <= longest_grapheme && put(grapheme, count_utf8(grapheme))) {
      i = end;
      continue;
    }
    while (i < end) {
      const Utf8Char c = decode_utf8(text.data() + i);
      if (!put(text.substr(i, c.size), 1)) changes.push_back({c.value, 0});
      i += c.size;
    }
  }
  return changed ? rewrite(piece, changes, store) : piece;
}

}  // namespace calque

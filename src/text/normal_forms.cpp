#include "text/normal_forms.h"

#include <algorithm>
#include <unordered_map>

#include "text/unicode_data.h"

namespace calque {
namespace {

constexpr char32_t hangul_first = 0xAC00, hangul_count = 11172;
constexpr char32_t lead_first = 0x1100, vowel_first = 0x1161, tail_first = 0x11A7;
constexpr char32_t leads = 19, vowels = 21, tails = 28;

struct Tables {
  // 0 canonical, 1 compatibility (only where it differs): length << 16 | place in the pool.
  std::unordered_map<char32_t, uint32_t> decompositions[2];
  std::unordered_map<uint64_t, char32_t> compositions;

  Tables() {
    for (size_t i = 0; i < unicode_decompositions.size(); i += 2) {
      const uint32_t where = unicode_decompositions[i + 1];
      decompositions[where >> 31].emplace(unicode_decompositions[i], where & 0x7FFFFFFF);
    }
    for (size_t i = 0; i < unicode_compositions.size(); i += 3)
      compositions.emplace(uint64_t{unicode_compositions[i]} << 32 | unicode_compositions[i + 1],
                           unicode_compositions[i + 2]);
  }
  static const Tables& instance() {
    static const Tables tables;
    return tables;
  }
};

uint32_t combining_class(char32_t c) {
  if (c < 0x300) return 0;
  const auto after =
      std::upper_bound(unicode_class_runs.begin(), unicode_class_runs.end(), static_cast<uint32_t>(c) << 8 | 0xFF);
  return *(after - 1) & 0xFF;
}

char32_t compose(char32_t a, char32_t b) {  // 0: they do not
  if (a >= lead_first && a < lead_first + leads && b >= vowel_first && b < vowel_first + vowels)
    return hangul_first + ((a - lead_first) * vowels + (b - vowel_first)) * tails;
  if (a >= hangul_first && a < hangul_first + hangul_count && (a - hangul_first) % tails == 0 && b > tail_first &&
      b < tail_first + tails)
    return a + (b - tail_first);
  const auto& known = Tables::instance().compositions;
  const auto found = known.find(static_cast<uint64_t>(a) << 32 | b);
  return found == known.end() ? 0 : found->second;
}

using Change = CharacterChange;

void decompose(char32_t c, bool compatible, std::vector<Change>& out) {
  if (c >= hangul_first && c < hangul_first + hangul_count) {
    const char32_t s = c - hangul_first;
    out.push_back({lead_first + s / (vowels * tails), 0});
    out.push_back({vowel_first + s % (vowels * tails) / tails, 1});
    if (s % tails != 0) out.push_back({tail_first + s % tails, 1});
    return;
  }
  const Tables& tables = Tables::instance();
  for (int kind = compatible ? 1 : 0; kind >= 0; --kind) {
    const auto found = tables.decompositions[kind].find(c);
    if (found == tables.decompositions[kind].end()) continue;
    const uint32_t length = found->second >> 16, place = found->second & 0xFFFF;
    for (uint32_t i = 0; i < length; ++i) out.push_back({unicode_decomposition_pool[place + i], i > 0});
    return;
  }
  out.push_back({c, 0});
}

// Marks behind a character in the order of their classes.
void order_marks(std::vector<Change>& text) {
  for (size_t i = 0; i < text.size();) {
    if (combining_class(text[i].c) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && combining_class(text[end].c) != 0) ++end;
    const auto at = [&](size_t k) { return text.begin() + static_cast<std::ptrdiff_t>(k); };
    std::stable_sort(at(i), at(end),
                     [](const Change& a, const Change& b) { return combining_class(a.c) < combining_class(b.c); });
    i = end;
  }
}

std::vector<Change> recompose(const std::vector<Change>& text) {
  std::vector<Change> out;
  for (size_t i = 0; i < text.size();) {
    if (combining_class(text[i].c) != 0) {  // a mark that has nothing to stand on
      out.push_back(text[i++]);
      continue;
    }
    Change base = text[i++];
    std::vector<Change> marks;
    uint32_t last = 0;
    for (; i < text.size(); ++i) {
      const uint32_t own = combining_class(text[i].c);
      const bool blocked = !marks.empty() && last >= own;
      if (const char32_t made = blocked ? 0 : compose(base.c, text[i].c)) {
        base = {made, base.grown + text[i].grown - 1};
        continue;
      }
      if (own == 0) break;
      marks.push_back(text[i]);
      last = own;
    }
    out.push_back(base);
    out.insert(out.end(), marks.begin(), marks.end());
  }
  return out;
}

// Characters that a composing form may change, by themselves or together with what stands before them.
class Unstable {
 public:
  static const Unstable& of(bool compatible) {
    static const Unstable canonical(false), compatibility(true);
    return compatible ? compatibility : canonical;
  }
  bool operator[](char32_t c) const { return set_[c]; }

 private:
  explicit Unstable(bool compatible) : set_(0x110000) {
    for (size_t i = 0; i < unicode_class_runs.size(); ++i) {
      const size_t end = i + 1 < unicode_class_runs.size() ? unicode_class_runs[i + 1] >> 8 : set_.size();
      for (size_t c = unicode_class_runs[i] >> 8; c < end && (unicode_class_runs[i] & 0xFF); ++c) set_[c] = true;
    }
    for (size_t i = 0; i < unicode_compositions.size(); i += 3) set_[unicode_compositions[i + 1]] = true;
    for (char32_t c = 0; c < vowels; ++c) set_[vowel_first + c] = true;
    for (char32_t c = 1; c < tails; ++c) set_[tail_first + c] = true;
    for (size_t i = 0; i < unicode_decompositions.size(); i += 2) {
      std::vector<Change> changes;
      decompose(unicode_decompositions[i], compatible, changes);
      changes = recompose(changes);
      if (changes.size() != 1 || changes[0].c != unicode_decompositions[i]) set_[unicode_decompositions[i]] = true;
    }
  }
  std::vector<bool> set_;
};

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_stable(std::string_view text, bool compatible) {
  const Unstable& unstable = Unstable::of(compatible);
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.data() + i);
    if (unstable[c.value]) return false;
    i += c.size;
  }
  return true;
}

}  // namespace

Piece normalize(const Piece& piece, NormalForm form, TextStore& store) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  if (is_ascii(piece.text) || (composes && is_stable(piece.text, compatible))) return piece;
  std::vector<Change> changes;
  changes.reserve(piece.text.size());
  for (size_t i = 0; i < piece.text.size();) {
    const Utf8Char c = decode_utf8(piece.text.data() + i);
    decompose(c.value, compatible, changes);
    i += c.size;
  }
  order_marks(changes);
  if (composes) changes = recompose(changes);
  return rewrite(piece, changes, store);
}

}  // namespace calque

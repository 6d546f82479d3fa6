#include "text/subword_bpe.h"

#include <limits>

#include "text/budget.h"
#include "text/json_parts.h"
#include "text/utf8.h"

namespace calque {
namespace {

constexpr std::string_view subword_end = "</w>", subword_goes_on = "@@";
constexpr uint32_t no_symbol = std::numeric_limits<uint32_t>::max();

}  // namespace

SubwordBpe::SubwordBpe(const Json& json) {
  vocabulary_.read(json.at("vocab"));
  unknown_.emplace(json, vocabulary_);
  const Json& merges = json.at("merges");
  if (merges.is_null()) return;
  can_encode_ = true;
  uint32_t rank = 0;
  for (const Json& item : merges.items()) {
    const auto pair = item.items();
    if (pair.size() != 2) item.fail("a merge is two tokens, found " + std::to_string(pair.size()));
    const std::string left(pair[0].to_string()), right(pair[1].to_string());
    const uint64_t key = uint64_t{symbol_of(left)} << 32 | symbol_of(right);
    merges_[key] = {rank++, symbol_of(left + right)};
  }
}

uint32_t SubwordBpe::symbol_of(const std::string& text) {
  return symbols_.try_emplace(text, static_cast<uint32_t>(symbols_.size())).first->second;
}

const SubwordBpe::SubwordMerge* SubwordBpe::merge_of(const SubwordSymbol& a, const SubwordSymbol& b) const {
  if (a.id == no_symbol || b.id == no_symbol) return nullptr;
  const auto found = merges_.find(uint64_t{a.id} << 32 | b.id);
  return found == merges_.end() ? nullptr : &found->second;
}

// The best pair wherever it stands, from left to right, until there is none.
void SubwordBpe::split(std::string_view word, bool, TextBudget& budget, ModelRoom&, std::vector<ModelToken>& out) const {
  if (!can_encode_)
    throw UserError(ErrorKind::bad_file,
                    "tokenizer: without a merges.txt its vocabulary can only be used for decoding, not for encoding");
  std::vector<SubwordSymbol> symbols;
  std::string text;
  for (size_t i = 0; i < word.size();) {
    const uint32_t size = decode_utf8(word.data() + i).size;
    text = word.substr(i, size);
    i += size;
    if (i == word.size()) text += subword_end;
    const auto found = symbols_.find(text);
    symbols.push_back({found == symbols_.end() ? no_symbol : found->second, size});
  }
  while (symbols.size() > 1) {
    budget.spend(symbols.size());
    const SubwordMerge* best = nullptr;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      if (const SubwordMerge* merge = merge_of(symbols[i], symbols[i + 1]); merge && (!best || merge->rank < best->rank))
        best = merge;
    if (!best) break;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i, ++kept) {
      symbols[kept] = symbols[i];
      if (i + 1 == symbols.size() || merge_of(symbols[i], symbols[i + 1]) != best) continue;
      symbols[kept] = {best->id, symbols[i].size + symbols[i + 1].size};
      ++i;
    }
    symbols.resize(kept);
  }
  for (size_t i = 0, at = 0; i < symbols.size(); at += symbols[i++].size) {
    text = word.substr(at, symbols[i].size);
    if (i + 1 < symbols.size()) text += subword_goes_on;
    const auto id = token_to_id(text);
    out.emplace_back(id ? *id : unknown_->for_word(text), symbols[i].size);
  }
}

}  // namespace calque

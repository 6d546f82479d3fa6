#include "text/added_tokens.h"

#include <algorithm>

#include "text/text_model.h"
#include "text/unicode.h"

namespace calque {

void AddedTokens::Finder::insert(std::string_view token, uint32_t id) {
  if (token.empty()) return;
  first_[static_cast<unsigned char>(token[0])] = true;
  trie_.insert(token, id);  // of two that are equal the first one is found
}

size_t AddedTokens::Finder::longest(std::string_view text, size_t at, TextBudget& budget, uint32_t& id) const {
  size_t length = 0;
  ByteTrie::Node node = ByteTrie::root;
  for (size_t i = at; i < text.size(); ++i) {
    node = trie_.next(node, text[i]);
    if (node == ByteTrie::none) break;
    budget.spend(1);
    if (!ByteTrie::ends(node)) continue;
    length = i + 1 - at;
    id = trie_.value(node);
  }
  return length;
}

size_t AddedTokens::Finder::candidate(std::string_view text, size_t from) const {
  while (from < text.size() && !first_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

void AddedTokens::add(const std::vector<AddedToken>& tokens, const TextModel& model, const Normalizers& normalizers,
                      TextBudget& budget) {
  for (const AddedToken& token : tokens)
    if (token.special && !token.content.empty()) special_.insert(token.content);
  std::vector<uint32_t> order;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const auto known = token_to_id(token.content);
    if (known && token.name_only) continue;
    uint32_t id;
    if (known)
      id = *known;
    else if (const auto in_model = model.token_to_id(token.content))
      id = *in_model;
    else
      id = std::max(static_cast<uint32_t>(model.vocab_size()), by_id_.empty() ? 0 : by_id_.rbegin()->first + 1);
    if (!known) order.push_back(id);
    ids_[token.content] = id;
    by_id_[id] = token;  // of two that are called the same, the later one says how it is found
  }
  // Of tokens that look the same, the special one is found.
  std::stable_partition(order.begin(), order.end(), [&](uint32_t id) { return special_.contains(by_id_.at(id).content); });
  TextStore store(budget);
  for (const uint32_t id : order) {
    AddedToken& token = by_id_.at(id);
    Piece content{token.content};
    if (token.normalized) content = apply_normalizers(normalizers, content, store);
    (token.normalized ? normalized_ : plain_).insert(content.text, id);
    token.decoded = content.text;
  }
}

std::optional<uint32_t> AddedTokens::token_to_id(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const AddedToken* AddedTokens::find(uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

void AddedTokens::split_at(const Finder& finder, const Piece& piece, TextBudget& budget, std::vector<Piece>& out) const {
  const std::string_view text = piece.text;
  if (finder.empty()) {
    if (!text.empty()) out.push_back(piece);
    return;
  }
  budget.enter("added tokens");
  budget.spend(1 + text.size());
  const UnicodeTable& table = UnicodeTable::instance();
  const auto before = [&](size_t i) {  // where the character before i begins
    do --i;
    while (i > 0 && is_utf8_continuation(text[i]));
    return i;
  };
  const auto properties = [&](size_t i) { return table.of(decode_utf8(text.data() + i).value); };
  size_t done = 0;
  for (size_t i = finder.candidate(text, 0); i < text.size();) {
    uint32_t id = 0;
    const size_t length = finder.longest(text, i, budget, id);
    if (length == 0) {
      i = finder.candidate(text, i + 1);
      continue;
    }
    size_t begin = i, end = i + length;
    i = finder.candidate(text, end);
    const AddedToken& token = by_id_.at(id);
    if (token.single_word) {
      const bool word_before = begin > 0 && (properties(before(begin)) & unicode_beside_word);
      const bool word_after = end < text.size() && (properties(end) & unicode_beside_word);
      if (word_before || word_after) continue;
    }
    if (token.lstrip) {
      if (end <= done) continue;  // the white space behind the last token, all of it
      while (begin > done && (properties(before(begin)) & unicode_space)) begin = before(begin);
      begin = std::max(begin, done);
    }
    if (token.rstrip)
      while (end < text.size() && (properties(end) & unicode_space)) end += decode_utf8(text.data() + end).size;
    budget.spend(end - begin);
    if (done < begin) out.push_back(piece.slice(done, begin));
    Piece found = piece.slice(begin, end);
    found.added = id;
    out.push_back(found);
    done = end;
  }
  if (done < text.size()) out.push_back(piece.slice(done, text.size()));
}

void AddedTokens::split(const Piece& text, const Normalizers& normalizers, std::vector<Piece>& out, TextStore& store) const {
  std::vector<Piece> parts;
  split_at(plain_, text, store.budget(), parts);
  for (const Piece& part : parts) {
    if (part.added >= 0) {
      out.push_back(part);
      continue;
    }
    split_at(normalized_, apply_normalizers(normalizers, part, store), store.budget(), out);
  }
}

}  // namespace calque

#include "text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/budget.h"
#include "text/json_parts.h"
#include "text/utf8.h"

namespace calque {
namespace {

constexpr double unknown_penalty = 10;  // below the worst score
constexpr uint32_t not_a_piece = std::numeric_limits<uint32_t>::max();
constexpr uint32_t not_reached = std::numeric_limits<uint32_t>::max();

}  // namespace

Unigram::Unigram(const Json& json) {
  const auto items = json.at("vocab").items();
  if (items.size() >= ModelToken::end_id)
    json.at("vocab").fail("a vocabulary of " + std::to_string(items.size()) + " tokens");
  vocabulary_.reserve(items.size());
  double worst = std::numeric_limits<double>::infinity();
  for (const Json& item : items) {
    const auto pair = item.items();
    if (pair.size() != 2) item.fail("expected [token, score], found " + std::to_string(pair.size()) + " values");
    const double score = pair[1].to_float();
    if (!std::isfinite(score)) item.fail("the score of \"" + excerpt(pair[0].to_string()) + "\" is not a finite number");
    vocabulary_.add(pair[0].to_string(), static_cast<uint32_t>(scores_.size()));
    scores_.push_back(score);
    worst = std::min(worst, score);
  }
  unknown_score_ = worst - unknown_penalty;
  tokens_ = scores_.size();
  if (const Json* unknown = json.find("unk_id"); unknown && !unknown->is_null()) {
    const int64_t id = unknown->to_int();
    if (id < 0 || static_cast<size_t>(id) >= scores_.size())
      unknown->fail("unk_id is " + std::to_string(id) + ", expected one of the " + std::to_string(scores_.size()) +
                    " tokens of the vocabulary");
    unknown_ = static_cast<uint32_t>(id);
  }
  byte_fallback_ = flag_or(json, "byte_fallback", false);
  if (const Json* pieces = json.find("pieces"))
    read_pieces(*pieces);
  else
    for (const auto& [token, id] : vocabulary_.ids()) trie_.insert(token, id);
}

void Unigram::read_pieces(const Json& json) {
  scores_.clear();
  piece_ids_.emplace();
  float worst = std::numeric_limits<float>::max();
  for (const Json& item : json.items()) {
    const auto pair = item.items();
    if (pair.size() != 2) item.fail("expected [piece, score], found " + std::to_string(pair.size()) + " values");
    const std::string_view piece = pair[0].to_string();
    const auto score = static_cast<float>(pair[1].to_float());
    if (!std::isfinite(score)) item.fail("the score of \"" + excerpt(piece) + "\" is not a finite number");
    if (scores_.size() >= ModelToken::end_id) item.fail("too many pieces");
    trie_.insert(piece, static_cast<uint32_t>(scores_.size()));
    scores_.push_back(score);
    piece_ids_->push_back(token_to_id(piece).value_or(unknown()));
    worst = std::min(worst, score);
  }
  unknown_score_ = worst - static_cast<float>(unknown_penalty);
}

uint32_t Unigram::id_of(uint32_t token) const { return piece_ids_ ? (*piece_ids_)[token] : token; }

uint32_t Unigram::unknown() const {
  if (unknown_) return *unknown_;
  throw UserError(ErrorKind::bad_file,
                  "tokenizer: the text has a character that is not in the vocabulary, and the model has no unk_id");
}

// The best way to every place between characters, from left to right; of ways that are as good, the one found first.
void Unigram::find_best(std::string_view word, TextBudget& budget, std::vector<BestPath>& paths) const {
  budget.require(word.size() * sizeof(BestPath));
  paths.assign(word.size() + 1, {0, not_reached, 0});
  const bool single = piece_ids_.has_value();
  const uint32_t unknown_token = single ? not_a_piece : unknown_.value_or(not_a_piece);
  const auto reach = [&](size_t start, size_t end, double score, uint32_t id) {
    if (single) score = static_cast<float>(score);
    BestPath& path = paths[end];
    if (path.start != not_reached && score <= path.score) return;
    path = {score, static_cast<uint32_t>(start), id};
  };
  for (size_t start = 0; start < word.size();) {
    const size_t character = decode_utf8(word.data() + start).size;
    const double score = paths[start].score;
    bool alone = false;  // is the character a token?
    size_t i = start;
    for (ByteTrie::Node node = ByteTrie::root; i < word.size(); ++i) {
      node = trie_.next(node, word[i]);
      if (node == ByteTrie::none) break;
      if (!ByteTrie::ends(node)) continue;
      const uint32_t id = trie_.value(node);
      reach(start, i + 1, scores_[id] + score, id);
      alone = alone || i + 1 - start == character;
    }
    budget.spend(i - start);
    if (!alone) {
      if (!unknown_) unknown();
      reach(start, start + character, unknown_score_ + score, unknown_token);
    }
    start += character;
  }
}

// Unknown characters in a row are one token, or bytes.
void Unigram::add_unknown(std::string_view text, std::vector<ModelToken>& out) const {
  const auto size = static_cast<uint32_t>(text.size());
  if (const auto id = token_to_id(text)) {
    out.emplace_back(*id, size);
    return;
  }
  if (byte_fallback_) {
    const size_t before = out.size();
    for (const char c : text) {
      const auto id = token_to_id(byte_token(static_cast<unsigned char>(c)));
      if (!id) break;
      out.emplace_back(*id, size, false, true);
    }
    if (out.size() - before == text.size()) {
      out.back().shared = 0;
      return;
    }
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
  }
  out.emplace_back(unknown(), size, true);
}

void Unigram::split(std::string_view word, bool, TextBudget& budget, ModelRoom& room, std::vector<ModelToken>& out) const {
  find_best(word, budget, room.paths);
  const uint32_t unknown_token = piece_ids_ ? not_a_piece : unknown_.value_or(not_a_piece);
  std::vector<uint32_t> ends;  // of the tokens, the last one first
  for (auto end = static_cast<uint32_t>(word.size()); end > 0; end = room.paths[end].start) ends.push_back(end);
  budget.require(ends.size() * sizeof(uint32_t));
  for (size_t i = ends.size(); i-- > 0;) {
    const BestPath& path = room.paths[ends[i]];
    if (path.id != unknown_token) {
      out.emplace_back(id_of(path.id), ends[i] - path.start);
      continue;
    }
    while (i > 0 && room.paths[ends[i - 1]].id == unknown_token) --i;
    add_unknown(word.substr(path.start, ends[i] - path.start), out);
  }
}

}  // namespace calque

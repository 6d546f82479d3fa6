#include "text/word_models.h"

#include "text/budget.h"
#include "text/json_parts.h"
#include "text/utf8.h"

namespace calque {

UnknownToken::UnknownToken(const Json& json, const Vocabulary& vocabulary)
    : name_(text_or(json, "unk_token", "")), id_(vocabulary.find(name_)) {}

uint32_t UnknownToken::for_word(std::string_view word) const {
  if (id_) return *id_;
  throw UserError(ErrorKind::bad_file, "tokenizer: \"" + excerpt(word) +
                                           "\" is not in the vocabulary, and neither is the unk_token \"" + excerpt(name_) +
                                           "\"");
}

WordLevel::WordLevel(const Json& json) {
  vocabulary_.read(json.at("vocab"));
  unknown_.emplace(json, vocabulary_);
}

void WordLevel::split(std::string_view word, bool, TextBudget&, ModelRoom&, std::vector<ModelToken>& out) const {
  const auto id = token_to_id(word);
  out.emplace_back(id ? *id : unknown_->for_word(word), static_cast<uint32_t>(word.size()));
}

WordPiece::WordPiece(const Json& json) {
  vocabulary_.read(json.at("vocab"));
  unknown_.emplace(json, vocabulary_);
  const std::string prefix = text_or(json, "continuing_subword_prefix", "##");
  const Json* longest = json.find("max_input_chars_per_word");
  const int64_t characters = longest ? longest->to_int() : 100;
  if (characters < 0) longest->fail("expected a number of characters, found " + std::to_string(characters));
  longest_word_ = static_cast<size_t>(characters);
  for (const auto& [token, id] : vocabulary_.ids()) {
    first_.insert(token, id);
    if (token.starts_with(prefix)) continuing_.insert(std::string_view(token).substr(prefix.size()), id);
  }
}

void WordPiece::split(std::string_view word, bool, TextBudget& budget, ModelRoom&, std::vector<ModelToken>& out) const {
  const size_t before = out.size();
  const auto give_up = [&] {
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    out.emplace_back(unknown_->for_word(word), static_cast<uint32_t>(word.size()));
  };
  if (word.size() > longest_word_ && count_utf8(word) > longest_word_) return give_up();
  for (size_t at = 0; at < word.size();) {
    const ByteTrie& trie = at == 0 ? first_ : continuing_;
    size_t end = at, i = at;
    uint32_t id = 0;
    for (ByteTrie::Node node = ByteTrie::root; i < word.size(); ++i) {
      node = trie.next(node, word[i]);
      if (node == ByteTrie::none) break;
      if (ByteTrie::ends(node)) end = i + 1, id = trie.value(node);
    }
    budget.spend(i - at);
    if (end == at) return give_up();
    out.emplace_back(id, static_cast<uint32_t>(end - at));
    at = end;
  }
}

}  // namespace calque

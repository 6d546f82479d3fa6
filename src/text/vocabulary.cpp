#include "text/vocabulary.h"

#include <algorithm>

#include "calque/file/json.h"
#include "text/text_model.h"
#include "text/utf8.h"

namespace calque {

void Vocabulary::reserve(size_t tokens) {
  ids_.reserve(tokens);
  tokens_.reserve(tokens);
}

void Vocabulary::add(std::string_view token, uint32_t id) {
  const auto at = ids_.insert_or_assign(std::string(token), id).first;
  if (id >= tokens_.size()) tokens_.resize(size_t{id} + 1);
  tokens_[id] = &at->first;
}

void Vocabulary::read(const Json& json) {
  const auto members = json.members();
  ids_.reserve(members.size());
  // Ids are places in a table, so one that is far past the number of tokens is a mistake or an attack.
  const auto limit = std::min<int64_t>(static_cast<int64_t>(members.size()) * 16 + 1'000'000, ModelToken::end_id);
  for (const JsonMember& m : members) {
    const int64_t id = m.value.to_int();
    if (id < 0 || id >= limit)
      m.value.fail("the id of token \"" + excerpt(m.key) + "\" is " + std::to_string(id) + ", expected 0 to " +
                   std::to_string(limit - 1) + " in a vocabulary of " + std::to_string(members.size()));
    add(m.key, static_cast<uint32_t>(id));
  }
}

}  // namespace calque

// The tokens of a model and their ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace calque {

class Json;

class Vocabulary {
 public:
  // {"token": id, ...}
  void read(const Json& json);
  void reserve(size_t tokens);
  // Of two tokens that are equal, the later id is the token's; both ids have it.
  void add(std::string_view token, uint32_t id);

  size_t size() const { return ids_.size(); }
  std::optional<uint32_t> find(std::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string* token(uint32_t id) const { return id < tokens_.size() ? tokens_[id] : nullptr; }  // null: none
  size_t end_id() const { return tokens_.size(); }
  const auto& ids() const { return ids_; }

 private:
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::unordered_map<std::string, uint32_t, StringHash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // by id
};

}  // namespace calque

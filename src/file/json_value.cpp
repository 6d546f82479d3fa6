#include "file/json_value.h"

namespace calque {

Value value_of_json(const Json& json, const JsonObjectReader& special) {
  switch (json.kind()) {
    case Json::Kind::null: return {};
    case Json::Kind::boolean: return json.to_bool();
    case Json::Kind::integer: return json.to_int();
    case Json::Kind::floating: return json.to_float();
    case Json::Kind::string: return json.to_string();
    case Json::Kind::array: {
      Values items;
      for (const Json& item : json.items()) items.push_back(value_of_json(item, special));
      return list(std::move(items));
    }
    case Json::Kind::object: {
      if (special)
        if (std::optional<Value> value = special(json)) return *std::move(value);
      std::vector<std::pair<Value, Value>> items;
      for (const JsonMember& member : json.members()) items.emplace_back(member.key, value_of_json(member.value, special));
      return dict(std::move(items));
    }
  }
  return {};
}

}  // namespace calque

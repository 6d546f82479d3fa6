// Small changes of JSON that keep it JSON: values replaced, taken away, doubled, exchanged with others of their kind, and members
// renamed. For readers that must refuse what they do not understand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace calque::test {

using Json = nlohmann::ordered_json;

inline void collect(Json& json, std::vector<Json*>& out) {
  out.push_back(&json);
  if (json.is_structured())
    for (Json& child : json) collect(child, out);
}

inline void change_one(Json& root, std::mt19937& chance) {
  const auto below = [&](size_t n) { return chance() % n; };
  std::vector<Json*> all;
  collect(root, all);
  Json& here = *all[below(all.size())];
  switch (below(7)) {
    case 0: {
      const Json other = *all[below(all.size())];
      here = other;
      return;
    }
    case 1: {
      static const Json odd[] = {nullptr,
                                 true,
                                 0,
                                 -1,
                                 1,
                                 std::numeric_limits<int32_t>::max(),
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<uint64_t>::max(),
                                 1e308,
                                 "",
                                 "s0",
                                 "Infinity",
                                 Json::array(),
                                 Json::object()};
      here = odd[below(std::size(odd))];
      return;
    }
    case 2:
      if (here.is_structured() && !here.empty())
        here.erase(std::next(here.begin(), static_cast<ptrdiff_t>(below(here.size()))));
      return;
    case 3:
      if (here.is_array()) {
        const Json other = here.empty() || below(2) == 0 ? *all[below(all.size())] : here[below(here.size())];
        here.insert(std::next(here.begin(), static_cast<ptrdiff_t>(below(here.size() + 1))), other);
      }
      return;
    case 4: {  // a value of the same kind from elsewhere: another name, another number
      std::vector<Json*> alike;
      std::copy_if(all.begin(), all.end(), std::back_inserter(alike),
                   [&](const Json* j) { return j->type() == here.type(); });
      const Json other = *alike[below(alike.size())];
      here = other;
      return;
    }
    case 5:
      if (here.is_number_integer()) here = static_cast<int64_t>(static_cast<uint64_t>(here.get<int64_t>()) + below(5) - 2);
      return;
    default:
      if (here.is_object() && !here.empty()) {  // a member under another's name
        const auto from = std::next(here.begin(), static_cast<ptrdiff_t>(below(here.size())));
        const Json value = from.value();
        const std::string key = from.key();
        std::vector<std::string> keys;
        for (const Json* j : all)
          if (j->is_object())
            for (const auto& [name, unused] : j->items()) keys.push_back(name);
        here.erase(key);
        here[keys[below(keys.size())]] = value;
      }
      return;
  }
}

}  // namespace calque::test

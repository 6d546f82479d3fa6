// Configurations between JSON and Values: numbers that JSON has no word for are {"__float__": "Infinity"}, as transformers 5
// writes them. Private to hub/.
#pragma once

#include <string>
#include <string_view>

#include "calque/file/json.h"
#include "calque/hub/config.h"

namespace calque {

Config::Items items_of(const Value& dict);
// UserError (bad_file) unless the text is an object; `where` names it.
Config::Items parse_config_items(std::string_view json, const std::string& where);
// Sorted keys, indented by two, a line break at the end.
std::string config_json(const Config::Items& items);

// Keys that every configuration has, and their defaults: transformers 5's, then those that only transformers 4 has.
struct CommonKeys {
  Config::Items current;  // left out of files where they have these values
  Config::Items older;
};
const CommonKeys& common_keys();
const Config::Items& generation_defaults();
const Value* find_item(const Config::Items& items, std::string_view key);
// Python's ==: numbers by value, dicts in any order.
bool same_value(const Value& a, const Value& b);

}  // namespace calque

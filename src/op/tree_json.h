// What the tree needs to know about contexts, which PyTorch keeps as JSON. Private to tensor/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calque/op/tree.h"

namespace calque::tree_json {

inline constexpr std::string_view tuple_type = "builtins.tuple";
inline constexpr std::string_view list_type = "builtins.list";
inline constexpr std::string_view dict_type = "builtins.dict";
inline constexpr std::string_view ordered_dict_type = "collections.OrderedDict";
inline constexpr std::string_view default_dict_type = "collections.defaultdict";
inline constexpr std::string_view deque_type = "collections.deque";
inline constexpr std::string_view namedtuple_type = "collections.namedtuple";

// A message that quotes what may be of any length, cut where it is too long to read.
std::string cut(std::string message);

std::string quote(std::string_view utf8);                              // a JSON string, ASCII only
std::string name_list_context(const std::vector<std::string>& names);  // the context of a ModelOutput
// The content of a context that is a JSON string ("collections.namedtuple" keeps the registered name so).
std::string unquote(const std::string& context);

// The keys of a structure's children as its flatten_with_keys_fn would give them, told from the context.
std::vector<TreeKey> structure_keys(std::string_view type, const std::string& context,
                                    const std::vector<std::string>& fields, size_t count);
// The context as Python would print it once loaded.
std::string context_repr(std::string_view type, const std::string& context);

}  // namespace calque::tree_json

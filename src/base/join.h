// Items one behind the other with a separator between them, as lists in messages and in text forms are written.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace calque {

// `text` makes the text of an item; items that are text need none.
template <class Range, class Text = std::identity>
std::string join(const Range& items, std::string_view separator, Text&& text = {}) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    out += text(item);
    first = false;
  }
  return out;
}

// A name below a path of names: "encoder.layer", or the name itself at the root.
inline std::string dotted(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

}  // namespace calque

// Dynamic shapes as the command line writes them.
#include <algorithm>
#include <charconv>
#include <map>

#include "calque/base/error.h"
#include "calque/export/dynamic_shapes.h"
#include "sym/linear_text.h"

namespace calque {

namespace {

struct Bounds {
  std::optional<int64_t> min, max;
  bool operator==(const Bounds&) const = default;
};

struct Entry {
  NamedDim::Derived dim{"", 0, 0};  // without a root: a number
  bool is_example = false;          // `*`
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::optional<int64_t> number(std::string_view text) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

class Reader {
 public:
  void read(const std::string& text, const std::vector<std::string>& names) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw UserError("dynamic shapes: expected NAME=D,D,..., such as input_ids=batch,seq, found " + text);
    const std::string name = text.substr(0, equals);
    if (std::ranges::find(names, name) == names.end()) {
      Values known(names.begin(), names.end());
      throw UserError("dynamic shapes: " + text + " names the argument " + name + "; the arguments are " +
                      list(std::move(known)).str());
    }
    if (entries_.contains(name)) throw UserError("dynamic shapes: the argument " + name + " is named twice");
    std::vector<Entry>& entries = entries_[name];
    if (equals + 1 == text.size()) return;  // a tensor without dimensions
    for (const std::string_view entry : split(std::string_view(text).substr(equals + 1), ','))
      entries.push_back(read_entry(entry, text));
  }

  DynamicShapes shapes(const std::vector<std::string>& names) const {
    DynamicShapes::Entries out;
    for (const std::string& name : names) {
      const auto at = entries_.find(name);
      if (at == entries_.end()) {
        out.emplace_back(name, DynamicShapes());
        continue;
      }
      DynamicShapes::Items items;
      for (const Entry& e : at->second) items.push_back(made(e));
      out.emplace_back(name, DynamicShapes::tuple(std::move(items)));
    }
    return DynamicShapes::dict(std::move(out));
  }

 private:
  Entry read_entry(std::string_view entry, const std::string& text) {
    const auto fail = [&](const std::string& why) -> UserError {
      return UserError("dynamic shapes: in " + text + ", " + (entry.empty() ? "an empty entry" : std::string(entry)) + " " +
                       why);
    };
    if (entry == "*") return {.is_example = true};
    const size_t colon = entry.find(':');
    const std::optional<NamedDim::Derived> dim = parse_linear(entry.substr(0, colon));
    if (!dim || entry.empty())
      throw fail("is not *, a number, NAME, NAME:MIN..MAX or a multiple of a name such as 2*NAME+1");
    if (colon == std::string_view::npos) return {.dim = *dim};
    const std::string_view limits = entry.substr(colon + 1);
    const size_t dots = limits.find("..");
    if (dots == std::string_view::npos || dim->root != entry.substr(0, colon))
      throw fail("has bounds that are not NAME:MIN..MAX");
    const std::string_view low = limits.substr(0, dots), high = limits.substr(dots + 2);
    const Bounds bounds{number(low), number(high)};
    if ((!low.empty() && !bounds.min) || (!high.empty() && !bounds.max)) throw fail("has bounds that are no numbers");
    const auto [known, is_new] = bounds_.emplace(dim->root, bounds);
    if (!is_new && known->second != bounds) throw fail("has other bounds than before");
    return {.dim = *dim};
  }

  DynamicShapes made(const Entry& e) const {
    if (e.is_example) return Dim::STATIC;
    if (e.dim.root.empty()) return e.dim.offset;
    const auto bounds = bounds_.find(e.dim.root);
    Dim out = bounds == bounds_.end() ? Dim(e.dim.root) : Dim(e.dim.root, bounds->second.min, bounds->second.max);
    if (e.dim.multiplier != 1) out = e.dim.multiplier * out;
    if (e.dim.offset != 0) out = out + e.dim.offset;
    return out;
  }

  std::map<std::string, std::vector<Entry>> entries_;
  std::map<std::string, Bounds> bounds_;
};

}  // namespace

DynamicShapes parse_dynamic_shapes(const std::vector<std::string>& texts, const std::vector<std::string>& argument_names) {
  if (texts.empty()) return {};
  Reader reader;
  for (const std::string& text : texts) reader.read(text, argument_names);
  return reader.shapes(argument_names);
}

}  // namespace calque

// Suggested fixes, from an error's text to data and into the spec that was wrong.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "calque/base/error.h"
#include "calque/export/dynamic_shapes.h"
#include "sym/linear_text.h"

namespace calque {

namespace {

constexpr std::string_view heading = "Suggested fixes:";

std::string_view trimmed(std::string_view s) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

std::optional<int64_t> bound(std::string_view text, std::string_view which) {
  const size_t at = text.find(which);
  if (at == std::string_view::npos) return {};
  int64_t out = 0;
  std::from_chars(text.data() + at + which.size(), text.data() + text.size(), out);
  return out;
}

std::optional<SuggestedFix> parse(std::string_view line) {
  const size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return {};
  SuggestedFix fix{.name = std::string(line.substr(0, equals))};
  const std::string_view right = line.substr(equals + 3);
  if (right.starts_with("Dim('")) {
    const size_t bounds = right.find("',");
    const std::string_view rest = bounds == std::string_view::npos ? std::string_view() : right.substr(bounds);
    fix.min = bound(rest, "min=");
    fix.max = bound(rest, "max=");
    return fix;
  }
  const std::optional<NamedDim::Derived> linear = parse_linear(right);
  if (!linear) return {};
  if (linear->root.empty())
    fix.value = linear->offset;
  else
    fix.derived = linear;
  return fix;
}

class Refiner {
 public:
  Refiner(std::vector<SuggestedFix> fixes, const DynamicShapes& shapes) {
    for (SuggestedFix& fix : fixes) fixes_[fix.name] = std::move(fix);
    collect(shapes);
    std::set<std::string> roots;
    for (const auto& [name, fix] : fixes_)
      if (fix.derived) roots.insert(fix.derived->root);
    for (const auto& [name, fix] : fixes_)
      if (!dims_.contains(name) && !roots.contains(name))
        throw UserError("shape_fixes key '" + name + "' not found in name_to_dim or roots");
  }

  DynamicShapes apply(const DynamicShapes& shapes) const {
    switch (shapes.kind()) {
      case DynamicShapes::Kind::none:
      case DynamicShapes::Kind::integer:
      case DynamicShapes::Kind::hint: return shapes;
      case DynamicShapes::Kind::dim: return refined(shapes.dim(), 0);
      case DynamicShapes::Kind::tuple:
      case DynamicShapes::Kind::list: {
        DynamicShapes::Items items;
        for (const DynamicShapes& item : shapes.items()) items.push_back(apply(item));
        return shapes.kind() == DynamicShapes::Kind::list ? DynamicShapes::list(std::move(items))
                                                          : DynamicShapes::tuple(std::move(items));
      }
      case DynamicShapes::Kind::dict: {
        DynamicShapes::Entries entries;
        for (const auto& [key, entry] : shapes.entries()) entries.emplace_back(key, apply(entry));
        return DynamicShapes::dict(std::move(entries));
      }
    }
    throw InternalError("DynamicShapes: unknown kind");
  }

 private:
  void collect(const DynamicShapes& shapes) {
    if (shapes.is_sequence()) {
      for (const DynamicShapes& item : shapes.items()) collect(item);
    } else if (shapes.kind() == DynamicShapes::Kind::dict) {
      for (const auto& [key, entry] : shapes.entries()) collect(entry);
    } else if (shapes.kind() == DynamicShapes::Kind::dim) {
      dims_.insert_or_assign(shapes.dim().name(), shapes.dim());
      dims_.insert_or_assign(shapes.dim().root().name(), shapes.dim().root());
    }
  }

  static DynamicShapes scaled(const DynamicShapes& root, int64_t multiplier, int64_t offset) {
    if (root.kind() == DynamicShapes::Kind::integer) return root.integer() * multiplier + offset;
    Dim out = root.dim();
    if (multiplier != 1) out = multiplier * out;
    if (offset != 0) out = out + offset;
    return out;
  }

  // What a name stands for now.
  DynamicShapes named(const std::string& name, size_t depth) const {
    if (depth > fixes_.size()) throw UserError("the suggested fixes define " + name + " by itself");
    const auto fix = fixes_.find(name);
    if (fix == fixes_.end()) {
      const auto dim = dims_.find(name);
      if (dim == dims_.end()) throw UserError("symbol.name '" + name + "' not found in name_to_dim");
      return dim->second;
    }
    const SuggestedFix& f = fix->second;
    if (f.value) return *f.value;
    if (f.derived) return scaled(named(f.derived->root, depth + 1), f.derived->multiplier, f.derived->offset);
    return Dim(name, f.min, f.max);
  }

  DynamicShapes refined(const Dim& dim, size_t depth) const {
    if (fixes_.contains(dim.name())) return named(dim.name(), depth);
    if (dim.is_derived() && fixes_.contains(dim.root().name()))
      return scaled(named(dim.root().name(), depth), dim.multiplier(), dim.offset());
    return dim;
  }

  std::map<std::string, SuggestedFix> fixes_;
  std::map<std::string, Dim> dims_;
};

}  // namespace

std::vector<SuggestedFix> suggested_fixes(std::string_view message) {
  const size_t at = message.find(heading);
  std::vector<SuggestedFix> out;
  if (at == std::string_view::npos) return out;
  std::string_view rest = trimmed(message.substr(at + heading.size()));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::optional<SuggestedFix> fix = parse(trimmed(rest.substr(0, end)));
    if (!fix) break;  // what follows is about the call
    out.push_back(*fix);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

DynamicShapes refine_dynamic_shapes_from_suggested_fixes(std::string_view message, const DynamicShapes& shapes) {
  std::vector<SuggestedFix> fixes = suggested_fixes(message);
  if (fixes.empty())
    throw UserError("Suggested fixes not found in error message given to refine_dynamic_shapes_from_suggested_fixes()");
  return Refiner(std::move(fixes), shapes).apply(shapes);
}

}  // namespace calque

#include "trace/functional_form.h"

#include <algorithm>

namespace calque {

bool writes_out(const Operator& op) {
  const auto& arguments = op.schema().arguments;
  return !arguments.empty() && arguments.back().keyword_only && arguments.back().is_written();
}

const Operator* find_functional_form(const Operator& op) {
  if (op.has_tag(Tag::inplace_view)) return nullptr;
  if (op.base()) return op.base();
  const Schema& s = op.schema();
  if (std::none_of(s.arguments.begin(), s.arguments.end(), [](const SchemaArgument& a) { return a.is_written(); }))
    return nullptr;
  std::string name = s.name;
  if (!writes_out(op) && name.ends_with('_')) name.pop_back();
  for (const Operator* candidate : overloads_of(s.name_space + "::" + name)) {
    const auto& arguments = candidate->schema().arguments;
    const auto is_known = [&](const SchemaArgument& a) {
      if (a.is_written() && a.keyword_only) return true;
      const auto at = candidate->schema().find_argument(a.name);
      return at && arguments[*at].type == a.type && !arguments[*at].is_written();
    };
    const auto is_given = [&](const SchemaArgument& a) { return a.default_value || s.find_argument(a.name); };
    if (candidate != &op && std::all_of(s.arguments.begin(), s.arguments.end(), is_known) &&
        std::all_of(arguments.begin(), arguments.end(), is_given))
      return candidate;
  }
  return nullptr;
}

}  // namespace calque

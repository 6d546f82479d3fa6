#include "op/derived_schema.h"

#include <string>
#include <vector>

#include "calque/base/error.h"

namespace calque {
namespace {

void set_name(Schema& s, std::string_view name) {
  const size_t dot = name.find('.');
  s.name = name.substr(0, dot);
  s.overload = dot == std::string_view::npos ? "" : name.substr(dot + 1);
}

}  // namespace

Schema derive_in_place(const Schema& functional, std::string_view name) {
  Schema s = functional;
  set_name(s, name);
  internal_assert(!s.arguments.empty() && s.returns.size() == 1, "an in-place form needs a first argument and one result");
  s.arguments[0].alias = "a!";
  s.returns[0].alias = "a!";
  return s;
}

Schema derive_out(const Schema& functional, std::string_view spec) {
  Schema s = functional;
  std::vector<std::string> names;
  const size_t open = spec.find('(');
  if (open != std::string_view::npos) {
    std::string_view rest = spec.substr(open + 1, spec.size() - open - 2);
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      std::string_view item = rest.substr(0, comma);
      while (item.starts_with(' ')) item.remove_prefix(1);
      names.emplace_back(item);
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  } else if (s.returns.size() == 1) {
    names.emplace_back("out");
  } else {
    for (size_t i = 0; i < s.returns.size(); ++i) names.push_back("out" + std::to_string(i));
  }
  set_name(s, spec.substr(0, open));
  internal_assert(names.size() == s.returns.size(), "an out= form names one argument per result");
  for (size_t i = 0; i < names.size(); ++i) {
    SchemaArgument a;
    a.name = names[i];
    a.keyword_only = true;
    a.alias = std::string(1, static_cast<char>('a' + i)) + "!";
    s.returns[i].alias = a.alias;
    s.arguments.push_back(std::move(a));
  }
  return s;
}

}  // namespace calque

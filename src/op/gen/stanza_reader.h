// Stanzas as the generator sees them: what a stanza file says in calls of .def("..."), .in_place("..."), .out("..."),
// .alias("...", "...") and so on, read as C++ tokens, so that comments and formatting do not matter.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calque/op/schema.h"

namespace calque::gen {

// One operator form that gets a typed front.
struct Form {
  Schema schema;
  std::string cpp_name;        // the front's name; from the schema unless the stanza says cpp_name("...")
  bool wraps_numbers = false;  // the stanza says wraps_numbers(): a number argument calls the overload for tensors
};

// .alias("arccos", "acos"): the forms of the target, which may stand in another file, under another name.
struct Alias {
  std::string name;
  std::string target;
};

using Stanza = std::variant<Form, Alias>;

// In the file's order. UserError on a chain that begins with anything but a schema, or that is cut off.
std::vector<Stanza> read_stanzas(std::string_view text);
// A form of the target as the alias has it.
Form aliased(const Form& target, const Alias& alias);

// The names that stand before a parenthesis: of a header, the functions that it declares among them.
std::set<std::string> read_calls(std::string_view text);

}  // namespace calque::gen

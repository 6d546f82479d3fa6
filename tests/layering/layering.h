// Checks the one rule of the house: a file includes its own room and the rooms below it, and a public header includes
// no private one. Reads #include lines only; it does not preprocess, so an include under #if counts too.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace calque::layering {

/// The rooms in `path` (cmake/rooms.txt), lowest first.
std::vector<std::string> read_rooms(const std::filesystem::path& path);

/// One line for each include under `root`/include/calque and `root`/src that breaks the rule, and for each folder there
/// that is no room; "file:line: what is wrong", sorted.
std::vector<std::string> find_violations(const std::filesystem::path& root, const std::vector<std::string>& rooms);

/// One line for each type that two headers under these folders define in the same namespace. The linker takes them for one;
/// nothing else notices where no file includes both. Types at the left margin count, nested ones and specialisations do not.
std::vector<std::string> find_twins(const std::filesystem::path& root);

/// "file: name" for each variable of a thread under these folders, sorted; the name is empty where the declaration goes on in
/// another line. Comments do not count.
std::vector<std::string> find_thread_locals(const std::filesystem::path& root);

/// One line for each literal "aten::..." in these folders outside of op/ and of comments: what is said of an operator stands
/// in its stanza, and who means one operator takes it from op/well_known.h.
std::vector<std::string> find_operator_names(const std::filesystem::path& root);

struct DefaultedSwitch {
  std::string place;        // "file:line" of the `default:`
  std::string enumeration;  // as its cases write it
};
/// Each switch in the tree that has a `default:` and enumerators among its labels (`case Kind::list:`), sorted: the compiler would
/// not say that a new enumerator is missing there. Switches over characters and numbers need a default.
std::vector<DefaultedSwitch> find_defaulted_switches(const std::filesystem::path& root);

/// One line for each `#include "calque/op/aten/<family>.h"` in the tree of a file that names no operator of that family: it
/// would be compiled again for nothing. `headers` is the folder of the families' headers.
std::vector<std::string> find_needless_families(const std::filesystem::path& root, const std::filesystem::path& headers);

}  // namespace calque::layering

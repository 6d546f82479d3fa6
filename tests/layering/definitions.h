// Finds what C++ files define: functions everywhere, and in anonymous namespaces types and variables as well. It reads tokens and
// braces, it does not compile. Lambdas belong to the function around them.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace calque::layering {

struct Definition {
  enum class Kind { function, type, alias, variable } kind = Kind::function;
  std::string file;   // relative to the root
  std::string scope;  // "calque::graph", classes included
  std::string name;   // of a test "Suite.name"
  int first = 0, last = 0;
  bool hidden = false;           // in an anonymous namespace of a .cpp file
  bool member = false;           // of a class
  std::string parameters;        // as tokens: a function's types of parameters, an alias's type
  std::set<std::string> called;  // the words of a function's body
  bool is_test() const { return name.find('.') != std::string::npos; }
};

/// The definitions in the .h and .cpp files of these folders of `root`, in the order of files and lines.
std::vector<Definition> find_definitions(const std::filesystem::path& root, const std::vector<std::string>& folders);

/// One line for each function of more than `most` lines.
std::vector<std::string> find_long_functions(const std::vector<Definition>& definitions, int most);

/// One line for each name in an anonymous namespace that another file of the room has in one as well; functions may share a name
/// when their parameters differ, aliases when they name the same type. Files of a room are compiled together, and which ones changes
/// with every new file.
std::vector<std::string> find_hidden_twins(const std::vector<Definition>& definitions);

/// One line for each test in which nothing can fail: neither it nor a function that it names has an EXPECT_, an ASSERT_ or a FAIL.
/// A test that says why a row does not apply (CALQUE_NOT_APPLICABLE) is none.
std::vector<std::string> find_tests_without_checks(const std::vector<Definition>& definitions);

}  // namespace calque::layering

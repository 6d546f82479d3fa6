#include "definitions.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include "lexer.h"

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

// Follows braces from the outside in. What stands before a brace says what it opens.
class Finder {
 public:
  Finder(const std::vector<Token>& tokens, std::string file, std::vector<Definition>& out)
      : tokens_(tokens), file_(std::move(file)), out_(out) {}

  void run() {
    while (at_ < tokens_.size()) step();
  }

 private:
  struct Scope {
    std::string name;
    bool is_class = false, hidden = false;
  };

  void step() {
    const std::string_view text = tokens_[at_].text;
    if (text == ";") {
      add_variable();
      start_ = ++at_;
    } else if (text == "}") {
      if (!scopes_.empty()) scopes_.pop_back();
      start_ = ++at_;
    } else if (text == "(" || text == "[") {
      const bool is_macro = text == "(" && at_ == start_ + 1 && is_in_capitals(tokens_[start_].text);
      at_ = behind_brackets(at_);
      if (is_macro) start_ = at_;
    } else if (text == "{") {
      open();
    } else if (text == ":" && at_ > start_ &&
               (tokens_[at_ - 1].text == "public" || tokens_[at_ - 1].text == "private" ||
                tokens_[at_ - 1].text == "protected")) {
      start_ = ++at_;
    } else {
      ++at_;
    }
  }

  static bool is_in_capitals(std::string_view word) {
    return !word.starts_with("TEST") && word.size() > 1 &&
           std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::islower(c); });
  }

  // Behind the bracket that closes the one at `from`, of whatever kind.
  size_t behind_brackets(size_t from) const {
    int depth = 0;
    for (size_t i = from; i < tokens_.size(); ++i) {
      const std::string_view text = tokens_[i].text;
      if (text == "(" || text == "[" || text == "{") ++depth;
      if ((text == ")" || text == "]" || text == "}") && --depth == 0) return i + 1;
    }
    return tokens_.size();
  }

  bool stands(std::string_view word, size_t from, size_t to) const {
    return std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(from),
                       tokens_.begin() + static_cast<std::ptrdiff_t>(to),
                       [&](const Token& token) { return token.text == word; });
  }

  // The first parenthesis of the declaration that follows a name: behind it stand the parameters.
  size_t parameters_of_declaration() const {
    int angles = 0;
    for (size_t i = start_; i < at_; ++i) {
      const std::string_view text = tokens_[i].text;
      if (text == "=" && angles == 0 && tokens_[i - 1].text != "operator") return at_;
      if (text == "[" || text == "{") {
        i = behind_brackets(i) - 1;
      } else if (text == "<" && tokens_[i - 1].text != "operator") {
        ++angles;
      } else if (text == ">" && angles > 0) {
        --angles;
      } else if (text == "(" && i > start_) {
        const std::string_view before = tokens_[i - 1].text;
        const bool names = tokens_[i - 1].is_word() && before != "requires" && before != "alignas" &&
                           before != "__attribute__" && before != "decltype" && before != "explicit";
        const bool is_operator = i >= 2 && stands("operator", std::max(start_, i - std::min<size_t>(i, 4)), i);
        if (angles == 0 && (names || is_operator)) return i;
        i = behind_brackets(i) - 1;
      }
    }
    return at_;
  }

  void open() {
    if (start_ < at_ && stands("namespace", start_, std::min(start_ + 2, at_))) {
      Scope scope;
      for (size_t i = start_; i < at_; ++i)
        if (tokens_[i].text != "namespace" && tokens_[i].text != "inline") scope.name += tokens_[i].text;
      scope.hidden = scope.name.empty();
      return enter(std::move(scope));
    }
    if (start_ < at_ && tokens_[start_].text == "extern" && at_ == start_ + 2) return enter({});
    const size_t parameters = parameters_of_declaration();
    if (parameters < at_) return add_function(parameters);
    for (const std::string_view kind : {"class", "struct", "union", "enum"})
      if (const size_t word = word_outside_of_angles(kind); word < at_ && !stands("=", word, at_)) {
        size_t name = word + 1;
        if (name < at_ && tokens_[name].text == "class") ++name;  // enum class
        while (name + 1 < at_ && tokens_[name].text == "alignas") name = behind_brackets(name + 1);
        const std::string_view named = name < at_ ? tokens_[name].text : std::string_view();
        if (name + 1 >= at_ || tokens_[name + 1].text != "<") add_type(named);  // no specialisation
        return enter({std::string(named), true, false});
      }
    at_ = behind_brackets(at_);  // the value of a variable
  }
  size_t word_outside_of_angles(std::string_view word) const {
    int angles = 0;
    for (size_t i = start_; i < at_; ++i) {
      if (tokens_[i].text == "<") ++angles;
      if (tokens_[i].text == ">") --angles;
      if (angles == 0 && tokens_[i].text == word) return i;
    }
    return at_;
  }
  void enter(Scope scope) {
    scopes_.push_back(std::move(scope));
    start_ = ++at_;
  }

  // What begins at start_, without its name.
  Definition definition(Definition::Kind kind) const {
    Definition d;
    d.kind = kind;
    d.file = file_;
    d.first = d.last = tokens_[start_].line;
    for (const Scope& scope : scopes_) {
      if (!scope.name.empty()) d.scope += (d.scope.empty() ? "" : "::") + scope.name;
      d.hidden = d.hidden || scope.hidden;
      d.member = d.member || scope.is_class;
    }
    d.hidden = d.hidden && file_.ends_with(".cpp");
    return d;
  }

  void add_type(std::string_view name) {
    Definition d = definition(Definition::Kind::type);
    d.name = name;
    if (d.hidden && !d.member && !d.name.empty()) out_.push_back(std::move(d));
  }

  // A constant or variable with a value, or a name for a type: the word before its = or its brace.
  void add_variable() {
    if (start_ + 1 >= at_ || stands("namespace", start_, start_ + 1)) return;
    size_t end = start_;
    while (end < at_ && tokens_[end].text != "=" && tokens_[end].text != "{" && tokens_[end].text != "(") ++end;
    if (end == at_ || tokens_[end].text == "(") return;
    while (end > start_ && tokens_[end - 1].text != ">" && !tokens_[end - 1].is_word()) --end;  // before the [] of an array
    if (end == start_ || tokens_[end - 1].text == ">") return;                                  // a specialisation
    const bool is_alias = stands("using", start_, end);
    Definition d = definition(is_alias ? Definition::Kind::alias : Definition::Kind::variable);
    d.name = std::string(tokens_[end - 1].text);
    for (size_t i = end; is_alias && i < at_; ++i) d.parameters += std::string(tokens_[i].text) + " ";
    if (d.hidden && !d.member) out_.push_back(std::move(d));
  }

  void add_function(size_t parameters) {
    Definition d = definition(Definition::Kind::function);
    d.name = std::string(tokens_[parameters - 1].text);
    if (parameters >= 3 && tokens_[parameters - 2].text == ":") d.member = true;
    const size_t behind = behind_brackets(parameters);
    if (d.name.starts_with("TEST")) {
      d.name.clear();
      for (size_t i = parameters + 1; i + 1 < behind; ++i) d.name += tokens_[i].text == "," ? "." : tokens_[i].text;
    }
    d.parameters = types_of(parameters + 1, behind - 1);
    // The list of members that a constructor fills has braces too: behind a name and before a comma or the body.
    while (at_ < tokens_.size() && tokens_[at_].text == "{" && stands(":", behind, at_) &&
           (tokens_[at_ - 1].is_word() || tokens_[at_ - 1].text == ">") && !is_body_word(tokens_[at_ - 1].text)) {
      at_ = behind_brackets(at_);
      while (at_ < tokens_.size() && tokens_[at_].text != "{")
        at_ = tokens_[at_].text == "(" ? behind_brackets(at_) : at_ + 1;
    }
    const size_t end = behind_brackets(at_);
    for (size_t i = at_; i < end; ++i)
      if (tokens_[i].is_word()) d.called.emplace(tokens_[i].text);
    d.last = tokens_[end - 1].line;
    out_.push_back(std::move(d));
    start_ = at_ = end;
  }
  static bool is_body_word(std::string_view word) {
    return word == "const" || word == "noexcept" || word == "override" || word == "final" || word == "mutable";
  }

  // The parameters without their names and default values: the last word of each, where another stands before it.
  std::string types_of(size_t from, size_t to) const {
    std::string out;
    int angles = 0;
    size_t first = from;
    const auto add = [&](size_t end) {
      size_t stop = end;
      for (size_t i = first; i < end; ++i)
        if (tokens_[i].text == "=") {
          stop = i;
          break;
        }
      if (stop > first + 1 && tokens_[stop - 1].is_word() && tokens_[stop - 2].text != ":") --stop;
      for (size_t i = first; i < stop; ++i) out += std::string(tokens_[i].text) + " ";
      out += ",";
    };
    for (size_t i = from; i < to; ++i) {
      const std::string_view text = tokens_[i].text;
      if (text == "(" || text == "[" || text == "{") i = behind_brackets(i) - 1;
      if (text == "<") ++angles;
      if (text == ">") --angles;
      if (text == "," && angles == 0) {
        add(i);
        first = i + 1;
      }
    }
    if (to > first) add(to);
    return out;
  }

  const std::vector<Token>& tokens_;
  std::string file_;
  std::vector<Definition>& out_;
  std::vector<Scope> scopes_;
  size_t at_ = 0, start_ = 0;
};

std::string room_of(const std::string& file) { return file.substr(0, file.find('/', file.find('/') + 1)); }

std::string place(const Definition& d) { return d.file + ":" + std::to_string(d.first); }

}  // namespace

std::vector<Definition> find_definitions(const fs::path& root, const std::vector<std::string>& folders) {
  std::vector<fs::path> paths;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Definition> definitions;
  for (const fs::path& path : paths) {
    std::ifstream in(path);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const std::vector<Token> tokens = tokens_of(text);
    Finder(tokens, fs::relative(path, root).string(), definitions).run();
  }
  return definitions;
}

std::vector<std::string> find_long_functions(const std::vector<Definition>& definitions, int most) {
  std::vector<std::string> found;
  for (const Definition& d : definitions)
    if (const int lines = d.last - d.first + 1; d.kind == Definition::Kind::function && lines > most)
      found.push_back(place(d) + ": " + d.name + " has " + std::to_string(lines) + " lines");
  return found;
}

std::vector<std::string> find_hidden_twins(const std::vector<Definition>& definitions) {
  std::map<std::string, const Definition*> seen;
  std::vector<std::string> found;
  for (const Definition& d : definitions) {
    if (!d.hidden || d.member || d.is_test()) continue;
    std::string name = room_of(d.file) + " " + d.scope + "::" + d.name;
    if (d.kind == Definition::Kind::function) name += "(" + d.parameters;
    const auto [first, added] = seen.emplace(std::move(name), &d);
    const bool same_alias = d.kind == Definition::Kind::alias && d.parameters == first->second->parameters;
    if (!added && !same_alias && first->second->file != d.file)
      found.push_back(place(d) + ": " + d.name + " is also in " + place(*first->second));
  }
  return found;
}

std::vector<std::string> find_tests_without_checks(const std::vector<Definition>& definitions) {
  const auto is_check = [](const std::string& word) {
    return word.starts_with("EXPECT_") || word.starts_with("ASSERT_") || word == "ADD_FAILURE" || word == "FAIL" ||
           word == "CALQUE_NOT_APPLICABLE";
  };
  std::set<std::string> checking;
  const auto checks = [&](const Definition& d) {
    return std::any_of(d.called.begin(), d.called.end(),
                       [&](const std::string& word) { return is_check(word) || checking.contains(word); });
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (const Definition& d : definitions)
      if (!d.is_test() && checks(d)) grows = checking.insert(d.name).second || grows;
  }
  std::vector<std::string> found;
  for (const Definition& d : definitions)
    if (d.is_test() && !checks(d)) found.push_back(place(d) + ": " + d.name + " checks nothing");
  return found;
}

}  // namespace calque::layering

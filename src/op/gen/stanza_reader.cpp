#include "stanza_reader.h"

#include <cctype>
#include <optional>
#include <set>

#include "calque/base/error.h"
#include "op/derived_schema.h"
#include "op/schema_text.h"

namespace calque::gen {
namespace {

struct Token {
  enum class Kind { identifier, string, other, end };
  Kind kind = Kind::end;
  std::string text;  // of a string literal: what it stands for, adjacent literals joined
};

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  Token next() {
    skip();
    if (at_ >= text_.size()) return {};
    if (starts_string()) {
      Token token{Token::Kind::string, string()};
      for (skip(); starts_string(); skip()) token.text += string();
      return token;
    }
    const char c = text_[at_];
    if (c == '\'') {  // a character; digit separators are met inside numbers below
      const size_t from = at_++;
      while (at_ < text_.size() && text_[at_] != '\'') at_ += text_[at_] == '\\' ? 2 : 1;
      ++at_;
      return {Token::Kind::other, std::string(text_.substr(from, at_ - from))};
    }
    if (is_word(c)) {
      const size_t from = at_;
      const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
      while (at_ < text_.size() && (is_word(text_[at_]) || (number && (text_[at_] == '\'' || text_[at_] == '.')))) ++at_;
      return {number ? Token::Kind::other : Token::Kind::identifier, std::string(text_.substr(from, at_ - from))};
    }
    ++at_;
    return {Token::Kind::other, std::string(1, c)};
  }

 private:
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  bool starts_string() const { return at("\"") || at("R\""); }

  void skip() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])))
        ++at_;
      else if (at("//"))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (at("/*"))
        at_ = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
      else
        return;
    }
  }

  std::string string() {
    if (at("R\"")) {
      const size_t open = text_.find('(', at_);
      const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
      const size_t end = text_.find(close, open);
      if (open == std::string_view::npos || end == std::string_view::npos) throw UserError("a raw string does not end");
      at_ = end + close.size();
      return std::string(text_.substr(open + 1, end - open - 1));
    }
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;  // schemas have no escapes but \" and \\ .
      if (at_ < text_.size()) out += text_[at_];
    }
    if (at_ >= text_.size()) throw UserError("a string does not end: \"" + out.substr(0, 40));
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

const std::set<std::string_view> cpp_keywords = {"and",  "or",    "not",  "xor",  "int", "float",  "double",
                                                 "bool", "short", "long", "char", "new", "delete", "default"};

// One chain: .def("...") and the calls behind it, up to the end of its statement.
class Chain {
 public:
  explicit Chain(std::string schema) { add(parse_schema_text(schema)); }

  void call(const std::string& name, const std::optional<std::string>& argument) {
    if (name == "wraps_numbers") {
      for (Form& form : forms_) form.wraps_numbers = true;
      wraps_numbers_ = true;
    } else if (!argument) {
      return;
    } else if (name == "in_place") {
      add(derive_in_place(forms_.front().schema, *argument));
    } else if (name == "out") {
      add(derive_out(forms_.front().schema, *argument));
    } else if (name == "cpp_name") {
      cpp_name_ = *argument;
      for (Form& form : forms_) form.cpp_name = name_of(form.schema);
    }
  }
  std::vector<Form> forms() && { return std::move(forms_); }

 private:
  void add(Schema schema) {
    Form form{std::move(schema), {}, wraps_numbers_};
    form.cpp_name = name_of(form.schema);
    forms_.push_back(std::move(form));
  }
  std::string name_of(const Schema& schema) const {
    const bool derived_in_place = schema.name.ends_with("_") && !forms_.empty() && forms_[0].schema.name != schema.name;
    if (!cpp_name_.empty()) return cpp_name_ + (derived_in_place ? "_" : "");
    return schema.name + (cpp_keywords.contains(schema.name) ? "_" : "");
  }

  std::vector<Form> forms_;  // the functional one first
  std::string cpp_name_;
  bool wraps_numbers_ = false;
};

}  // namespace

Form aliased(const Form& target, const Alias& alias) {
  Form form = target;
  form.schema.name = alias.name;
  // Out arguments have a type of their own, so that an out= form needs no name of its own.
  const bool is_out = form.schema.arguments.back().keyword_only && form.schema.arguments.back().is_written();
  form.cpp_name = is_out ? alias.name : alias.name + form.cpp_name.substr(target.schema.name.size());
  return form;
}

std::vector<Stanza> read_stanzas(std::string_view text) {
  std::vector<Stanza> found;
  std::optional<Chain> chain;
  const auto finish = [&] {
    if (!chain) return;
    for (Form& form : std::move(*chain).forms()) found.push_back(std::move(form));
    chain.reset();
  };
  Tokens tokens(text);
  int depth = 0;  // of parentheses and braces, counted from the chain's .def
  for (Token token = tokens.next(); token.kind != Token::Kind::end;) {
    if (token.kind == Token::Kind::other && token.text == ".") {
      const Token name = tokens.next();
      if (name.kind != Token::Kind::identifier) {
        token = name;
        continue;
      }
      token = tokens.next();
      if (token.text != "(" || token.kind != Token::Kind::other) continue;
      token = tokens.next();
      std::optional<std::string> argument;
      if (token.kind == Token::Kind::string) argument = token.text;
      if (name.text == "def" && argument) {
        finish();
        chain.emplace(*argument);
        depth = 1;
      } else if (name.text == "alias" && argument) {
        finish();
        token = tokens.next();
        const Token target = tokens.next();
        if (token.text != "," || target.kind != Token::Kind::string)
          throw UserError("alias(\"" + *argument + "\", ...) names its target by a string");
        found.emplace_back(Alias{*argument, target.text});
        depth = 1;
      } else {
        if (chain && depth == 0) chain->call(name.text, argument);
        ++depth;
      }
      continue;  // `token` is the first one behind the parenthesis
    }
    if (token.kind == Token::Kind::other) {
      if (token.text == "(" || token.text == "{" || token.text == "[") ++depth;
      if (token.text == ")" || token.text == "}" || token.text == "]") --depth;
      if (token.text == ";" && depth == 0) finish();
    }
    token = tokens.next();
  }
  finish();
  return found;
}

std::set<std::string> read_calls(std::string_view text) {
  std::set<std::string> found;
  Tokens tokens(text);
  Token before;
  for (Token token = tokens.next(); token.kind != Token::Kind::end; before = std::move(token), token = tokens.next())
    if (token.text == "(" && before.kind == Token::Kind::identifier) found.insert(before.text);
  return found;
}

}  // namespace calque::gen

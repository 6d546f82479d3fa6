// Reading the values of a graph's text form.
#pragma once

#include <functional>
#include <memory>

#include "calque/graph/graph.h"
#include "text_scanner.h"

namespace calque {

class ValueParser {
 public:
  // `find_node` gives null for a name that is not defined.
  ValueParser(TextScanner& scanner, ShapeEnv& env, std::function<Node*(std::string_view)> find_node)
      : in_(scanner), env_(env), find_node_(std::move(find_node)) {}

  Value value();
  Value val();           // what meta.val's text says: "f32[2, s0]", "Sym(s0)", "(f32[2], None)"
  std::string quoted();  // a Python string literal

 private:
  Value number();
  Value bracketed(char close, bool is_list);
  Value in_parentheses();
  Value in_braces();
  Value named();
  Value call(std::string_view function);
  Value constant_tensor();
  Tensor fake_tensor();
  SymInts sizes();
  DType abbreviated_dtype();

  // Symbolic expressions, by precedence.
  Value expression();
  Value conjunction();
  Value comparison();
  Value sum();
  Value product();
  Value factor();
  Value power();
  Value atom();
  Value choice();
  Value function_of(std::string_view name, const Values& args);
  Value apply(std::string_view function, const Values& args) const;

  // Text that nests deeper is refused: reading it must not exhaust the stack.
  class Depth {
   public:
    explicit Depth(ValueParser& p) : parser_(p) {
      if (++p.depth_ > 200) p.in_.fail("nested too deeply");
    }
    ~Depth() { --parser_.depth_; }

   private:
    ValueParser& parser_;
  };

  TextScanner& in_;
  ShapeEnv& env_;
  std::function<Node*(std::string_view)> find_node_;
  int depth_ = 0;
};

}  // namespace calque

// Function: what a call_function node calls when it is no operator of the table: Python's operator.* and math.*,
// builtins.getattr, torch's functions by the name a user wrote (torch.relu: an overload is chosen when it runs), and
// functions of the user's own. Target: what a node calls or reads. A Target keeps its Function alive; operators live as
// long as the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "calque/op/operator.h"

namespace calque {

using Kwargs = std::vector<std::pair<std::string, Value>>;

class Function {
 public:
  using Body = std::function<Value(const Values& args, const Kwargs& kwargs)>;

  // `name` is the qualified one, as PyTorch prints it: "operator.add", "torch.relu", "my_module.fused". An impure
  // function is never dead code and never merged with an equal call.
  Function(std::string name, Body body, bool is_impure = false);

  const std::string& name() const { return name_; }
  std::string_view short_name() const;  // Python's __name__: "add"
  bool is_impure() const { return is_impure_; }
  // For a function that stands for all overloads of an operator: "aten::relu". Empty for others.
  const std::string& packet() const { return packet_; }
  Value operator()(const Values& args, const Kwargs& kwargs = {}) const;

 private:
  friend class FunctionTable;
  std::string name_;
  std::string packet_;
  Body body_;
  bool is_impure_;
};

using FunctionRef = std::shared_ptr<const Function>;

// Enters a function under its name, so that text and files that name it find it. UserError when the name is taken.
FunctionRef register_function(std::string name, Function::Body body, bool is_impure = false);
// A function of that name, registered or derived from the operator table; null when there is none.
FunctionRef find_function(std::string_view name);
FunctionRef get_function(std::string_view name);  // UserError when there is none

// `self.name(...)` as a call_method node runs it.
Value call_method(std::string_view name, const Values& args, const Kwargs& kwargs = {});

class Target {
 public:
  Target() = default;
  Target(const Operator& op) : v_(&op) {}
  Target(const Operator* op) : v_(op) {}
  Target(FunctionRef function) : v_(std::move(function)) {}
  Target(std::string text) : v_(std::move(text)) {}
  Target(std::string_view text) : v_(std::string(text)) {}
  Target(const char* text) : v_(std::string(text)) {}

  // The operator or function that this text names ("aten.add.Tensor", "torch.ops.aten.add.Tensor", "operator.add");
  // the text itself when nothing has that name.
  static Target resolve(std::string_view text);

  const Operator* op() const {
    const auto* p = std::get_if<const Operator*>(&v_);
    return p ? *p : nullptr;
  }
  const Function* function() const {
    const auto* p = std::get_if<FunctionRef>(&v_);
    return p ? p->get() : nullptr;
  }
  bool is_text() const { return std::holds_alternative<std::string>(v_); }
  // A path, a method's or an argument's name; the text of a function that is not known.
  const std::string& text() const;

  std::string str() const;             // "aten.add.Tensor", "operator.add", "layer.0"
  std::string qualified_name() const;  // as PyTorch prints it: "torch.ops.aten.add.Tensor"
  std::string python_name() const;     // Python's __name__: "add.Tensor", "add"; the text itself
  bool operator==(const Target& other) const { return v_ == other.v_; }
  size_t hash() const;

 private:
  std::variant<std::string, const Operator*, FunctionRef> v_;
};

}  // namespace calque

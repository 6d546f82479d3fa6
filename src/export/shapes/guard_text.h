// GuardText: a condition on inputs as guards_code has it, "((L['x'].size()[0] + L['y'].size()[0]) % 4) == 0", read into a form
// that can be evaluated and written for people. Integers only: what else Python could say there is not read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

class GuardText {
 public:
  // A value that the condition depends on: "L['x'][0]" and a property of it.
  struct Variable {
    enum class Property : uint8_t { value, size, stride, storage_offset };
    std::string source;
    Property property = Property::value;
    size_t dimension = 0;
  };

  static std::optional<GuardText> parse(std::string_view text);

  const std::vector<Variable>& variables() const { return variables_; }
  // Nothing where a value overflows or a divisor is 0. `values` in the order of variables().
  std::optional<bool> holds(const std::vector<int64_t>& values) const;
  // As Python's ast.unparse writes it, with `name(source)` for sources.
  std::string str(const std::function<std::string(const std::string& source)>& name) const;

  struct Node;

 private:
  std::vector<Variable> variables_;
  std::shared_ptr<const Node> root_;
};

}  // namespace calque

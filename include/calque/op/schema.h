// An operator's signature, parsed from ATen's text: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
// Keeps defaults, keyword-only marks and aliasing annotations, and prints as PyTorch prints a schema.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace calque {

class Value;

struct SchemaType {
  enum class Kind : uint8_t {
    tensor,
    scalar,
    integer,
    sym_int,
    floating,
    boolean,
    sym_bool,
    string,
    dtype,
    device,
    layout,
    memory_format,
    generator,
    complex
  };
  Kind kind = Kind::tensor;
  bool optional = false;          // "int?", "int[]?"
  bool list = false;              // "int[]"
  bool element_optional = false;  // "Tensor?[]"
  int fixed_size = 0;             // "int[2]": a single int stands for two of it

  std::string str() const;       // as in the schema text
  std::string cpp_type() const;  // the C++ parameter type of typed calls: "const Tensor&", "optional<int64_t>"
  std::string cpp_return_type() const;
  bool operator==(const SchemaType&) const = default;
};

struct SchemaArgument {
  std::string name;
  SchemaType type;
  std::shared_ptr<const Value> default_value;  // null: the argument has to be given
  std::string default_text;                    // the default as the schema writes it
  bool keyword_only = false;
  std::string alias;  // the annotation without parentheses: "a!", "a", "a -> *", or empty
  bool has_default() const { return !default_text.empty(); }
  bool is_written() const { return alias.find('!') != std::string::npos; }
  std::string str() const;
};

struct Schema {
  std::string name_space;  // "aten"
  std::string name;        // "add"
  std::string overload;    // "Tensor", empty for the default one
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaArgument> returns;  // names may be empty
  bool returns_parenthesised = false;

  std::string full_name() const;    // "aten::add.Tensor"
  std::string target_name() const;  // "aten.add.Tensor", "aten.relu.default"
  std::string str() const;          // "aten::add.Tensor(Tensor self, ...) -> Tensor"
  std::optional<size_t> find_argument(std::string_view argument_name) const;
};

// UserError with the position on text that is no schema. A missing namespace becomes `default_namespace`.
Schema parse_schema(std::string_view text, std::string_view default_namespace = "aten");

}  // namespace calque

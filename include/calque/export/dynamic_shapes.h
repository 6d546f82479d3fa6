// What a user says about the sizes of an export's inputs, as torch.export takes it: named dimensions with bounds, multiples of
// them, hints, and a tree of these that follows the inputs. Plain values; making symbols of them is fake_inputs.h's.
//
//   const Dim batch("batch", 1, 64);
//   DynamicShapes::dict({{"x", DynamicShapes::dict({{0, batch}})}, {"y", DynamicShapes::tuple({2 * batch, Dim::AUTO})}})
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "calque/op/value.h"
#include "calque/sym/dim_constraints.h"

namespace calque {

using Kwargs = std::vector<std::pair<std::string, Value>>;

// The tracer decides (automatic), or a size must turn out dynamic, or is the example's. Bounds narrow what is inferred.
struct DimHint {
  enum class Type : uint8_t { automatic, dynamic, fixed };
  Type type = Type::automatic;
  std::optional<int64_t> min = {};
  std::optional<int64_t> max = {};
  bool bounded = false;  // bounds were given, and cannot be given again

  DimHint operator()(std::optional<int64_t> min_size = {}, std::optional<int64_t> max_size = {}) const;
  std::string str() const;  // "DimHint(DYNAMIC, max=8)"
  friend bool operator==(const DimHint&, const DimHint&) = default;
};

// A dimension with a name and bounds, or a multiple of one plus a number. Dims are the same if their names are; two that
// share a name must share their bounds.
class Dim {
 public:
  static const DimHint AUTO;
  static const DimHint DYNAMIC;
  static const DimHint STATIC;

  explicit Dim(std::string name, std::optional<int64_t> min = {}, std::optional<int64_t> max = {});

  const std::string& name() const { return name_; }  // "batch", "2*batch + 1"
  bool is_derived() const { return root_ != nullptr; }
  const Dim& root() const { return root_ ? *root_ : *this; }
  int64_t multiplier() const { return multiplier_; }  // of a derived one: size = multiplier * root + offset
  int64_t offset() const { return offset_; }
  // Bounds; of a derived one from its root's, a UserError where they leave the range of sizes.
  int64_t min() const;
  int64_t max() const;  // ValueRange::unbounded_above
  ValueRange range() const { return {min(), max()}; }
  std::string str() const;  // as PyTorch prints it: "Dim('batch', min=1, max=64)", "2*batch + 1"

  // Only increasing: a multiplier is positive.
  friend Dim operator+(const Dim& d, int64_t n) { return d.derive(1, n); }
  friend Dim operator+(int64_t n, const Dim& d) { return d.derive(1, n); }
  friend Dim operator-(const Dim& d, int64_t n) { return d.derive(1, -n); }
  friend Dim operator*(const Dim& d, int64_t n) { return d.derive(n, 0); }
  friend Dim operator*(int64_t n, const Dim& d) { return d.derive(n, 0); }

 private:
  Dim() = default;
  Dim derive(int64_t multiplier, int64_t offset) const;

  std::string name_;
  int64_t min_ = 0;
  int64_t max_ = ValueRange::unbounded_above;
  std::shared_ptr<const Dim> root_;
  int64_t multiplier_ = 1;
  int64_t offset_ = 0;
};

inline constexpr DimHint Dim::AUTO{DimHint::Type::automatic};
inline constexpr DimHint Dim::DYNAMIC{DimHint::Type::dynamic};
inline constexpr DimHint Dim::STATIC{DimHint::Type::fixed};

// Several with the same bounds.
std::vector<Dim> dims(const std::vector<std::string>& names, std::optional<int64_t> min = {},
                      std::optional<int64_t> max = {});

// The tree. At the top: nothing (every size as in the example), a dict by argument name, or a tuple or list by position.
// Below it follows the inputs' containers; a structure's children stand in a list. Where the inputs have a tensor:
// nothing, a tuple or list with an entry for each dimension, or a dict from dimensions to entries. An entry is a Dim, a
// hint, a number (this very size) or nothing (the example's). Where they have an integer: nothing or a hint.
class DynamicShapes {
 public:
  enum class Kind : uint8_t { none, integer, hint, dim, tuple, list, dict };
  using Items = std::vector<DynamicShapes>;
  using Entries = std::vector<std::pair<Value, DynamicShapes>>;  // keys: strings or integers

  DynamicShapes() = default;
  DynamicShapes(None) {}
  template <std::integral T>
  DynamicShapes(T size) : v_(static_cast<int64_t>(size)) {}
  DynamicShapes(DimHint hint) : v_(hint) {}
  DynamicShapes(Dim dim) : v_(std::move(dim)) {}
  static DynamicShapes tuple(Items items);
  static DynamicShapes list(Items items);
  static DynamicShapes dict(Entries entries);

  Kind kind() const;
  bool is_none() const { return kind() == Kind::none; }
  bool is_sequence() const { return kind() == Kind::tuple || kind() == Kind::list; }
  bool empty() const;  // says nothing: none or an empty container
  int64_t integer() const { return std::get<int64_t>(v_); }
  const DimHint& hint() const { return std::get<DimHint>(v_); }
  const Dim& dim() const { return std::get<Dim>(v_); }
  const Items& items() const;      // of a tuple or list
  const Entries& entries() const;  // of a dict
  const DynamicShapes* find(const Value& key) const;
  std::string str() const;                        // Python's repr
  bool equals(const DynamicShapes& other) const;  // dims by name and bounds

 private:
  struct Sequence {
    bool is_list = false;
    Items items;
  };
  std::variant<std::monostate, int64_t, DimHint, Dim, std::shared_ptr<const Sequence>, std::shared_ptr<const Entries>> v_;
};

// A call's arguments under the names that the callee gives them, in the order of its parameters. "*args" and "**kwargs"
// in `names` take what is left; no names at all are those two.
Kwargs combine_args(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs);

// Shapes by tensor, for inputs whose structure is tedious to repeat.
class ShapesCollection {
 public:
  void set(const Tensor& tensor, DynamicShapes shape);
  void set(const Tensor& tensor, int64_t dimension, DynamicShapes entry);
  size_t size() const { return shapes_.size(); }
  // The tree for these arguments; a UserError if a tensor is not among them.
  DynamicShapes dynamic_shapes(const Kwargs& combined_args) const;

 private:
  std::vector<std::pair<Tensor, DynamicShapes>> shapes_;
};

// Shapes by further examples: what differs between them is dynamic.
class AdditionalInputs {
 public:
  void add(Values args, Kwargs kwargs = {});
  DynamicShapes dynamic_shapes(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs = {}) const;
  const std::vector<std::pair<Values, Kwargs>>& examples() const { return examples_; }

 private:
  std::vector<std::pair<Values, Kwargs>> examples_;
};

// UserError in PyTorch's words where the spec does not fit the arguments. Warns of None as a dimension's entry.
void check_dynamic_shapes(const Kwargs& combined_args, const DynamicShapes& shapes);
// What the spec says of each leaf of the arguments (None, strings and numbers are leaves too), in the order of
// tree_flatten; nothing where it is silent.
std::vector<DynamicShapes> flatten_dynamic_shapes(const Kwargs& combined_args, const DynamicShapes& shapes);
// The dims that occur, roots of derived ones included, each once.
std::vector<NamedDim> named_dims(const DynamicShapes& shapes);

// ---- suggested fixes ------------------------------------------------------------------------------------------------

// What a constraint violation tells the user to write for a dim: a number, bounds, or a multiple of another dim.
struct SuggestedFix {
  std::string name;
  std::optional<int64_t> value = {};
  std::optional<int64_t> min = {};
  std::optional<int64_t> max = {};
  std::optional<NamedDim::Derived> derived = {};
};
// The fixes at the end of an error's text; none if there are none.
std::vector<SuggestedFix> suggested_fixes(std::string_view message);
// The spec with the fixes applied. UserError if the message has none or a fix is of a dim that the spec does not have.
DynamicShapes refine_dynamic_shapes_from_suggested_fixes(std::string_view message, const DynamicShapes& shapes);

// ---- as text --------------------------------------------------------------------------------------------------------

// As the command line has them, one text an argument: "input_ids=batch,seq:1..128", "mask=batch,*,2*seq+1". An entry is `*` (the
// example's size), a number, a dim with or without bounds, or a multiple of one. A name is one dim wherever it occurs; its bounds
// may be given once. Arguments that no text names are static. UserError names the text and the entry.
DynamicShapes parse_dynamic_shapes(const std::vector<std::string>& texts, const std::vector<std::string>& argument_names);

// ---- as plain data --------------------------------------------------------------------------------------------------

// {"dynamic_shapes": ..., "dims": {"dx": {"min": 4, "max": 16, "derived": ["dx + 1"]}}}: a list for each tensor, dims by
// name, hints as "_DimHint.AUTO".
Value dump_dynamic_shapes(const DynamicShapes& shapes, const Values& args, const Kwargs& kwargs = {});
DynamicShapes load_dynamic_shapes(const Value& spec);

}  // namespace calque

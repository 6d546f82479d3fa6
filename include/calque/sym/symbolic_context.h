// Symbols for inputs: which dimensions are dynamic, what the user promised about them, and the symbolic sizes, strides
// and offset of a whole tensor. Strides become products of sizes where the example says so. Symbols made here know
// their source, so that guards can be written and checked on real inputs (produce_guards.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "calque/sym/shape_env.h"
#include "calque/sym/source.h"
#include "calque/sym/unbacked.h"

namespace calque {

enum class DimDynamic : uint8_t {
  dynamic_size,  // a symbol of its own
  duck,          // a symbol, shared with dimensions of the same example size (under ShapeEnvOptions::duck_shape)
  static_size,   // the example's value
  unbacked,      // a value that is not known while tracing, and a size
  infer_stride,  // of strides: from sizes and other strides where they match; else as duck, or static if all sizes are
};

// The caller promises a size in the range; no guard may narrow it further.
struct StrictMinMaxConstraint {
  ValueRange range;
  bool warn_only = false;
  friend bool operator==(const StrictMinMaxConstraint&, const StrictMinMaxConstraint&) = default;
};
// The size must not be specialised to one value; anything else is fine.
struct RelaxedUnspecConstraint {
  bool warn_only = false;
};
using DimConstraint = std::variant<std::monostate, StrictMinMaxConstraint, RelaxedUnspecConstraint>;

struct SymbolicContext {
  std::vector<DimDynamic> sizes;
  std::vector<DimDynamic> strides;                // empty: all infer_stride
  std::vector<DimConstraint> constraint_sizes;    // empty: none
  std::vector<DimConstraint> constraint_strides;  // empty: none
  std::map<size_t, std::string> shape_ids;        // unbacked dimensions with the same id are checked to be equal
  std::map<size_t, ValueRange> unbacked_bounds;
  // Sizes that the trace takes for the example's, one for each dimension; empty: the example's own. A dimension of 0 or 1 that is
  // to stay dynamic gets another here, and what the trace asks is answered for sizes in general.
  std::vector<int64_t> examples;
};

struct SymbolRequest {
  DimDynamic dynamic = DimDynamic::duck;
  DimConstraint constraint;
  bool positive = true;                     // false: an integer argument, of any sign
  bool do_not_specialize_zero_one = false;  // 0 and 1 are like other examples
};

// One symbol (or plain integer) for an input integer with this example value.
SymInt create_symbol(ShapeEnv& env, int64_t example, const Source& source, const SymbolRequest& request = {});
// An integer argument: any sign, never specialised for being 0 or 1.
SymInt create_unspecified_symbol(ShapeEnv& env, int64_t example, const Source& source,
                                 DimDynamic dynamic = DimDynamic::duck);
SymFloat create_float_symbol(ShapeEnv& env, double example, const Source& source);

// Without a context every dimension is duck sized (static under ShapeEnvOptions::assume_static_by_default).
TensorGeometry create_symbolic_geometry(ShapeEnv& env, IntList sizes, IntList strides, int64_t storage_offset,
                                        const Source& source, const SymbolicContext* context = nullptr);

// What the user calls a dimension, for messages: "L['x'].size()[0]" is "batch".
void set_debug_name(ShapeEnv& env, const Source& source, const std::string& name);
// The sources of a symbol; the first one binds it.
std::vector<Source> sources_of(const ShapeEnv& env, std::string_view symbol);

}  // namespace calque

// The text form of a graph, which parses back: one node a line,
//
//   %x : f32[s0, 3] = placeholder
//   %w : f32[3] = get_attr[layer.weight]
//   %add : f32[s0, 3] = aten.add.Tensor(%x, %w, alpha=2)
//   %y = call_module[layer.norm](%add)
//   %z = call_method[relu](%y)
//   return (%z, {'sum': %add})
//
// What stands between ':' and '=' is meta.val: dtype, sizes, strides where they are not contiguous, device where it is
// not the CPU; Sym(...) for a symbolic number; tuples of such. Other meta is not part of the text.
#pragma once

#include <string>

#include "calque/graph/graph.h"

namespace calque {

// "f32", "i64", "b8": PyTorch's abbreviations.
std::string_view dtype_abbreviation(DType dtype);
// "f32[s0, 3]", "Sym(s0 + 1)", "(f32[2], i64[2])"; empty for what has no text.
std::string val_text(const Value& val);
// A value as the text form writes it; nodes are %name.
std::string value_text(const Value& value);

}  // namespace calque

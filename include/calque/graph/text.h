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
// not the CPU; Sym(...) for a symbolic number; tuples of such. Other meta is not part of the text. Lines such as
// "symbol s0 in [2, inf] = 7" (range, example) may stand in front; '#' starts a comment line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "calque/graph/graph.h"

namespace calque {

// "f32", "i64", "b8": PyTorch's abbreviations.
std::string_view dtype_abbreviation(DType dtype);
// "f32[s0, 3]", "Sym(s0 + 1)", "(f32[2], i64[2])"; empty for what has no text.
std::string val_text(const Value& val);
// A value as the text form writes it; nodes are %name.
std::string value_text(const Value& value);
// "symbol ..." lines for the symbols of the graph's environment, then Graph::str().
std::string text_with_symbols(const Graph& graph);

// UserError with line and column on text that is no graph. Functions that nobody knows are kept by name. Symbols are
// looked up in `env` and declared there when missing; without one the graph gets an environment of its own.
Graph parse_graph(std::string_view text, std::shared_ptr<ShapeEnv> env = nullptr);

}  // namespace calque

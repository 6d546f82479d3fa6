#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/padding.h"
#include "programs.h"

namespace calque::capture {

void add_layout(Programs& programs) {
  const Adder add(programs);
  add("views", [](const Tensor& x) -> Value {
    return tuple({x.t(), x.unsqueeze(1), x.view({-1}), x.index_by({none}), x.permute({1, 0})});
  });
  add("view_sizes", [](const Tensor& x) { return x.view({x.sym_size(0), 2, 3, x.sym_size(2)}); });
  add("transpose_reshape", [](const Tensor& x) { return x.transpose(0, 1).reshape({6, -1}); });
  add("flatten_all", [](const Tensor& x) -> Value { return tuple({x.flatten(), x.flatten(1), x.flatten(0, 1)}); });
  add("merged_by_hand", [](const Tensor& x) { return x.reshape({x.sym_size(0) * x.sym_size(1), x.sym_size(2)}); });
  add("split_by_hand", [](const Tensor& x) {
    return x.view({x.sym_size(0), floor_div(x.sym_size(1), 2), 2, x.sym_size(2)});
  });
  add("expanded", [](const Tensor& x) -> Value {
    return tuple({x.unsqueeze(0).expand({2, -1, -1}), x.index_by({Slice(), none}).expand({-1, 3, x.sym_size(1)})});
  });
  add("contiguity", [](const Tensor& x) -> Value {
    return tuple({x.t().contiguous(), x.contiguous(), x.t().clone(), x.t() + 1});
  });
  add("strided", [](const Tensor& x) -> Value {
    return tuple({x.index_by({Slice(none, none, 2)}), x.index_by({Slice(1), Slice(none, none, 2)}),
                  x.index_by({Slice(1, none, 3), Slice(none, -1)})});
  });
  add("squeezes", [](const Tensor& x) -> Value {
    return tuple({x.squeeze(), x.squeeze(1), x.squeeze(0), x.squeeze(-1).unsqueeze(-1)});
  });
  add("diagonals", [](const Tensor& x) -> Value {
    return tuple({x.diagonal(), x.tril(), x.triu(1), x.flip({0}), x.roll({1}, {0})});
  });
  add("unfolded", [](const Tensor& x) -> Value {
    return tuple({x.unfold(1, 3, 2), x.movedim(0, 1), x.narrow(1, 2, 3), x.select(0, 1)});
  });
  add("unflattened", [](const Tensor& x) -> Value { return tuple({x.unflatten(1, {2, -1}), x.view({2, 2, -1})}); });

  add("concatenated", [](const Tensor& x, const Tensor& y) -> Value {
    return tuple({cat({x, y}), cat({x, x}, 1), stack({x, x}, 1)});
  });
  add("split_even", [](const Tensor& x) {
    const auto parts = x.split(2, 1);
    const Tensor sum = parts[0] + parts[1];
    return results(sum, cat({parts[0], parts[1]}));
  });
  add("chunks", [](const Tensor& x) {
    const auto parts = x.chunk(2, 1);
    return parts[0] * parts[1];
  });
  add("split_sizes", [](const Tensor& x) {
    const auto parts = x.split({1, 1, 2}, 1);
    return results(parts[2], parts[0], parts[1]);
  });
  add("unbinding", [](const Tensor& x) {
    const auto parts = x.unbind(0);
    return parts[0] + parts[1] + parts[2];
  });
  add("halves_by_size", [](const Tensor& x) {
    const SymInt n = floor_div(x.sym_size(0), 2);
    const Tensor back = x.index_by({Slice(n)});
    return cat({back, x.index_by({Slice(none, n)})});
  });
  add("cat_then_size", [](const Tensor& x, const Tensor& y) {
    const Tensor z = cat({x, y});
    return z.view({z.sym_size(0), 2, -1}) * z.sym_size(0);
  });
  add("padding", [](const Tensor& x) -> Value {
    return tuple(
        {pad(x, {1, 2}), pad(x, {0, 1, 2, 0}, "constant", 3.0), x.repeat({2, 1}), x.repeat_interleave(2, 0), x.tile({2})});
  });
}

}  // namespace calque::capture

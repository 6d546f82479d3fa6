#include "calque/nn/functional.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/softmax.h"
#include "programs.h"

namespace calque::capture {

void add_reductions(Programs& programs) {
  const Adder add(programs);
  add("reductions", [](const Tensor& x) -> Value {
    return tuple({x.sum(), x.sum({0}), x.mean({1}, true), x.amax({0}), x.prod(),
                  calque::call("aten::var.dim", {x, list({1})}), calque::call("aten::std.correction", {x})});
  });
  add("extremes", [](const Tensor& x) -> Value {
    const auto [values, indices] = x.max(1);
    const Tensor largest = x.argmax();
    const Tensor smallest = x.argmin(0);
    const Tensor least = x.min();
    const auto [low, high] = x.aminmax(0);
    return tuple({values, indices, largest, smallest, least, tuple({low, high})});
  });
  add("ordering", [](const Tensor& x) -> Value {
    const auto [values, indices] = x.sort(1);
    const auto [top, at] = x.topk(2, 1);
    return tuple({values, indices, top, at, x.argsort(int64_t{0})});
  });
  add("cumulative", [](const Tensor& x) -> Value {
    return tuple({x.cumsum(0), x.cumprod(1), x.logsumexp({1}), linalg_vector_norm(x), linalg_vector_norm(x, 2, {1})});
  });
  add("counting", [](const Tensor& m, const Tensor& n) -> Value {
    return tuple({m.any(), m.all(1), m.sum(), n.sum({1}), (n > 3).sum({0})});
  });
  add("softmaxes", [](const Tensor& x) -> Value {
    return tuple({x.softmax(-1), x.log_softmax(0), softmax(x, 1, DType::float64)});
  });
  add("mean_by_hand", [](const Tensor& x) -> Value { return tuple({x.sum() / x.sym_numel(), x.sum({1}) / x.sym_size(1)}); });
  add("losses", [](const Tensor& x, const Tensor& n) -> Value {
    return tuple({cross_entropy_loss(x, n), nll_loss_nd(x.log_softmax(1), n), functional::mse_loss(x, x * 2),
                  functional::l1_loss(x, x + 1)});
  });
  add("shifted_loss", [](const Tensor& logits, const Tensor& labels) {
    const Tensor rows = logits.index_by({Slice(), Slice(none, -1)}).reshape({-1, logits.sym_size(-1)});
    return cross_entropy_loss(rows, labels.index_by({Slice(), Slice(1)}).reshape({-1}));
  });
  add("embeddings", [](const Tensor& n, const Tensor& w) -> Value { return tuple({embedding(w, n), w[n]}); });
}

}  // namespace calque::capture

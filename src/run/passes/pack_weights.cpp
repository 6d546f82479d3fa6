#include <map>
#include <utility>

#include "calque/file/mapped_file.h"
#include "graph/passes/mutation.h"
#include "kernel/cpu/gemm/packed.h"
#include "run/packed_linear.h"
#include "run/passes/passes.h"
#include "run/stored_weights.h"

namespace calque::run {
namespace {

// Weights of fewer columns or numbers are multiplied as fast where they lie.
constexpr int64_t least_columns = 48, least_numbers = 4096;

// The weights of a product as they are laid out: [k, n]; undefined where they stay.
Tensor weights_of(const Node& n, const PassInput& input, const Mutations& mutations) {
  const ProductForm* form = product_form(n);
  if (!form || form->weight >= n.args().size() || !n.args()[form->weight].is_node()) return {};
  const Node& from = *n.args()[form->weight].to_node();
  if (from.kind() != NodeKind::get_attr || input.written.contains(from.target().text()) || mutations.is_written(from))
    return {};
  const Tensor* t = input.module.find_tensor(from.target().text());
  if (!t || t->is_fake() || t->dtype() != DType::float32 || t->dim() != 2 || t->device().type != DeviceType::cpu) return {};
  const int64_t columns = t->size(form->weight_is_transposed ? 0 : 1);
  return columns >= least_columns && t->numel() >= least_numbers ? *t : Tensor();
}

Tensor packed_copy(const Tensor& weights, bool transposed) {
  const int64_t columns = weights.size(transposed ? 0 : 1), depth = weights.size(transposed ? 1 : 0);
  Tensor made = make_tensor({kernel::packed_numbers(columns, depth)}, DType::float32);
  kernel::pack_weights(columns, depth, weights.data_as<float>(), weights.stride(transposed ? 1 : 0),
                       weights.stride(transposed ? 0 : 1), made.mutable_data_as<float>());
  return made;
}

}  // namespace

bool pack_weights(PassInput& input) {
  const Mutations mutations(input.module.graph(), [](const Node& n) { return product_form(n) != nullptr; });
  std::map<std::pair<const void*, bool>, std::string> packed;  // by tensor and which way it lies: a tied one is packed once
  bool changed = false;
  for (Node* n : input.module.graph().nodes()) {
    const Tensor weights = weights_of(*n, input, mutations);
    if (!weights.defined()) continue;
    const bool transposed = product_form(*n)->weight_is_transposed;
    std::string& path = packed[{&weights.impl(), transposed}];
    if (path.empty()) {
      Tensor copy = input.stored ? input.stored->find(weights, transposed) : Tensor();
      if (!copy.defined()) {
        copy = packed_copy(weights, transposed);
        input.state.add_made(copy.nbytes());
      }
      // The numbers where they were are not read by this plan again: pages of a mapped file need not stay.
      const Storage& source = *weights.storage();
      if (source.is_read_only()) release_mapped({static_cast<const std::byte*>(source.data()), source.nbytes()});
      do path = "_packed" + std::to_string(packed.size() - 1);
      while (input.module.find_tensor(path) || input.module.find_submodule(path));
      input.module.set_attribute(path, Attribute(copy));
      input.state.add(weights);
      input.packed.push_back({weights, transposed, copy});
    }
    set_packed_weights(*n, path);
    changed = true;
  }
  return changed;
}

}  // namespace calque::run

// Table lookups: embedding, its dense gradient, embedding_renorm_, embedding_bag.
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/copying.h"
#include "kernel/cpu/index/embedding.h"

#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/index/index.h"
#include "op/rule/indexing.h"
#include "op/stanza.h"

namespace calque {
namespace {

void check_indices(const char* op, const Tensor& indices) {
  if (indices.dtype() != DType::int64 && indices.dtype() != DType::int32)
    throw UserError(std::string(op) + ": Expected indices to be of dtype int64 or int32, found " +
                    std::string(name(indices.dtype())));
}

Meta embedding_rule(const Tensor& weight, const Tensor& indices, SymInt, bool, bool) {
  if (weight.dim() != 2) throw UserError("embedding: 'weight' must be 2-D, found sizes " + str(weight.sym_sizes()));
  check_indices("embedding", indices);
  SymInts sizes(indices.sym_sizes().begin(), indices.sym_sizes().end());
  sizes.push_back(weight.sym_sizes()[1]);
  return rule::contiguous(sizes, weight.dtype(), weight.device());
}
void embedding_kernel(const Tensor& weight, const Tensor& indices, SymInt, bool, bool, const Tensor& out) {
  if (out.numel() == 0 && indices.numel()) {  // rows of nothing are looked up all the same
    const Tensor index = indices.to(DType::int64).contiguous();
    for (int64_t i = 0; i < index.numel(); ++i) {
      const int64_t at = index.data_as<int64_t>()[i];
      if (at < 0 || at >= weight.size(0))
        throw UserError("embedding: index " + std::to_string(at) + " is out of bounds for a weight of " +
                        std::to_string(weight.size(0)) + " rows");
    }
    return;
  }
  const TensorBase* const along[] = {&indices};
  kernel::select_elements(weight, kernel::Selection{"embedding", 0, {along, 1}, indices.sizes(), false}, out);
}

Meta dense_backward_rule(const Tensor& grad_output, const Tensor& indices, SymInt num_weights, SymInt, bool) {
  check_indices("embedding_dense_backward", indices);
  return rule::contiguous({num_weights, grad_output.sym_size(-1)}, grad_output.dtype(), grad_output.device());
}
void dense_backward_kernel(const Tensor& grad_output, const Tensor& indices, SymInt, SymInt padding_idx,
                           bool scale_grad_by_freq, const Tensor& out) {
  kernel::embedding_dense_backward(grad_output, indices, padding_idx.as_int(), scale_grad_by_freq, out);
}

Meta renorm_rule(const Tensor& self, const Tensor& indices, double, double) {
  if (self.dim() != 2) throw UserError("embedding_renorm_: self must be 2-D, found sizes " + str(self.sym_sizes()));
  check_indices("embedding_renorm_", indices);
  return rule::preserved(self);
}
void renorm_kernel(const Tensor& self, const Tensor& indices, double max_norm, double norm_type, const Tensor& out) {
  if (indices.numel() && !is_floating(self.dtype()) && !is_complex(self.dtype()))
    throw UserError("embedding_renorm_: norm(): input dtype should be either floating point or complex. Got " +
                    std::string(name(self.dtype())) + " instead.");
  if (!out.is_same(self)) kernel::copy(self, out);
  kernel::embedding_renorm(out, indices, max_norm, norm_type);
}

// ---- embedding_bag ------------------------------------------------------------------------------------------------------
using kernel::BagMode;

std::array<Meta, 4> bag_metas(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                              const Tensor& per_sample_weights, bool include_last_offset, int64_t padding_idx,
                              bool forward_only) {
  const char* op = "_embedding_bag";
  check_indices(op, indices);
  check_indices(op, offsets);
  if (weight.dim() != 2 || indices.dim() != 1 || offsets.dim() != 1)
    throw UserError(std::string(op) + ": expected a 2-D weight and 1-D indices and offsets, found sizes " +
                    str(weight.sym_sizes()) + ", " + str(indices.sym_sizes()) + ", " + str(offsets.sym_sizes()));
  if (!is_floating(weight.dtype()) || is_float8(weight.dtype()))
    throw UserError(std::string(op) + ": expected a floating weight, found " + std::string(name(weight.dtype())));
  if (mode < 0 || mode > 2)
    throw UserError(std::string(op) + ": mode must be 0 (sum), 1 (mean) or 2 (max), found " + std::to_string(mode));
  if (per_sample_weights.defined()) {
    if (mode != 0)
      throw UserError(std::string(op) + ": per_sample_weights is supported with mode='sum' only, found mode " +
                      std::to_string(mode));
    if (per_sample_weights.dtype() != weight.dtype() || per_sample_weights.dim() != 1 ||
        !check(per_sample_weights.sym_sizes()[0] == indices.sym_sizes()[0]))
      throw UserError(std::string(op) +
                      ": per_sample_weights must have weight's dtype and one number for each index, found " +
                      std::string(name(per_sample_weights.dtype())) + " " + str(per_sample_weights.sym_sizes()));
  }
  const SymInt bags = include_last_offset ? offsets.sym_sizes()[0] - 1 : offsets.sym_sizes()[0];
  if (include_last_offset && !check(offsets.sym_sizes()[0] >= 1))
    throw UserError(std::string(op) + ": include_last_offset needs at least one offset, found none");
  const SymInt width = weight.sym_sizes()[1];
  const DType index = promote_types(indices.dtype(), offsets.dtype());
  const auto meta = [&](SymIntList sizes, DType d) { return rule::contiguous(sizes, d, weight.device()); };
  // Plain sums need no record of which bag an index is in; forward alone sizes its unused record by the offsets.
  const bool plain_sum = mode == 0 && padding_idx < 0 && weight.dtype() != DType::float64 &&
                         guard_or(weight.sym_strides()[1] == 1, false) &&
                         (!per_sample_weights.defined() || per_sample_weights.dim() == 0 ||
                          guard_or(per_sample_weights.sym_strides()[0] == 1, false));
  const SymInt offset2bag = plain_sum ? SymInt(0) : indices.sym_sizes()[0];
  const SymInt recorded = mode == 0 && forward_only ? offsets.sym_sizes()[0] : bags;
  return {meta({bags, width}, weight.dtype()), meta({offset2bag}, index), meta({recorded}, index),
          mode == 2 ? meta({bags, width}, index) : meta({recorded}, index)};
}
template <bool forward_only>
std::array<Meta, 4> bag_rule(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                             const Tensor& per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  return bag_metas(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, forward_only);
}
void bag_kernel(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                const Tensor& per_sample_weights, bool, int64_t padding_idx, const Tensor& out, const Tensor& offset2bag,
                const Tensor& bag_size, const Tensor& max_indices) {
  kernel::embedding_bag(weight, indices, offsets, static_cast<BagMode>(mode), per_sample_weights, padding_idx, out,
                        offset2bag, bag_size, max_indices);
}

Meta bag_back_meta(const char* op, const Tensor& grad, const Tensor& indices, SymInt num_weights, int64_t mode) {
  check_indices(op, indices);
  if (grad.dim() != 2 || indices.dim() != 1)
    throw UserError(std::string(op) + ": expected a 2-D gradient and 1-D indices, found sizes " + str(grad.sym_sizes()) +
                    " and " + str(indices.sym_sizes()));
  if (mode < 0 || mode > 2)
    throw UserError(std::string(op) + ": mode must be 0 (sum), 1 (mean) or 2 (max), found " + std::to_string(mode));
  if (!is_floating(grad.dtype()) || is_float8(grad.dtype()))
    throw UserError(std::string(op) + ": expected a floating gradient, found " + std::string(name(grad.dtype())));
  return rule::contiguous({num_weights, grad.sym_size(1)}, grad.dtype(), grad.device());
}
Meta bag_back_rule(const Tensor& grad, const Tensor& indices, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                   SymInt num_weights, bool, int64_t mode, bool sparse, const Tensor&, int64_t) {
  if (sparse)
    throw UserError(ErrorKind::unsupported_operator,
                    "_embedding_bag_backward: sparse gradients are not supported; pass sparse=False");
  return bag_back_meta("_embedding_bag_backward", grad, indices, num_weights, mode);
}
void bag_back_kernel(const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor& offset2bag,
                     const Tensor& bag_size, const Tensor& maximum_indices, SymInt, bool scale_grad_by_freq, int64_t mode,
                     bool, const Tensor& per_sample_weights, int64_t padding_idx, const Tensor& out) {
  kernel::embedding_bag_backward({grad, indices, offsets, offset2bag, bag_size, maximum_indices, per_sample_weights,
                                  static_cast<BagMode>(mode), scale_grad_by_freq, padding_idx},
                                 out);
}
Meta bag_dense_back_rule(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag, const Tensor&, const Tensor&,
                         SymInt num_weights, bool, int64_t mode, const Tensor&, int64_t) {
  if (!check(offset2bag.sym_numel() == indices.sym_numel()))
    throw UserError("_embedding_bag_dense_backward: expected a bag for each of " + indices.sym_numel().str() +
                    " indices, found " + offset2bag.sym_numel().str());
  return bag_back_meta("_embedding_bag_dense_backward", grad, indices, num_weights, mode);
}
void bag_dense_back_kernel(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag, const Tensor& bag_size,
                           const Tensor& maximum_indices, SymInt, bool scale_grad_by_freq, int64_t mode,
                           const Tensor& per_sample_weights, int64_t padding_idx, const Tensor& out) {
  kernel::embedding_bag_backward({grad, indices, offset2bag, offset2bag, bag_size, maximum_indices, per_sample_weights,
                                  static_cast<BagMode>(mode), scale_grad_by_freq, padding_idx},
                                 out);
}
Meta bag_weights_back_rule(const Tensor& grad, const Tensor& weight, const Tensor& indices, const Tensor&, const Tensor&,
                           int64_t mode, int64_t) {
  const char* op = "_embedding_bag_per_sample_weights_backward";
  if (mode != 0)
    throw UserError(std::string(op) + ": per_sample_weights is supported with mode='sum' only, found mode " +
                    std::to_string(mode));
  bag_back_meta(op, grad, indices, weight.sym_size(0), mode);
  return rule::contiguous({indices.sym_size(0)}, grad.dtype(), grad.device());
}
void bag_weights_back_kernel(const Tensor& grad, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                             const Tensor& offset2bag, int64_t, int64_t padding_idx, const Tensor& out) {
  kernel::embedding_bag_weights_backward({grad, indices, offsets, offset2bag, {}, {}, {}, BagMode::sum, false, padding_idx},
                                         weight, out);
}

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
Four bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
         bool sparse, const Tensor& per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  if (weight.requires_grad())
    return _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                          include_last_offset, padding_idx);
  return _embedding_bag_forward_only(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                     include_last_offset, padding_idx);
}
Four bag_default(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
                 bool sparse, const Tensor& per_sample_weights, bool include_last_offset) {
  return bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, -1);
}
Four bag_padded(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
                bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
                std::optional<int64_t> padding_idx) {
  int64_t padding = -1;
  if (padding_idx) {
    const SymInt rows = weight.sym_size(0);
    if (!check(sym_and(rows >= -SymInt(*padding_idx), rows > *padding_idx)))
      throw UserError("embedding_bag: padding_idx must be within the number of embeddings, -" + rows.str() + " through " +
                      (rows - 1).str() + ", but got " + std::to_string(*padding_idx));
    padding = *padding_idx < 0 ? (rows + *padding_idx).guard_int() : *padding_idx;
  }
  return bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding);
}

}  // namespace

void register_embedding(Library& aten);
void register_embedding(Library& aten) {
  aten.def(
          "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
          "sparse=False) -> Tensor")
      .compute(embedding_rule, embedding_kernel)
      .out("embedding.out")
      .tags(Tag::dense_out, Tag::core, Tag::strided_out)
      .gradient("weight", "indices", [](const Gradients& g) {
        return embedding_backward(g.grad(), g["indices"], g.sizes("weight")[0], g.sym_int("padding_idx"),
                                  g.flag("scale_grad_by_freq"), g.flag("sparse"));
      });
  aten.def(
          "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
          "scale_grad_by_freq) -> Tensor")
      .compute(dense_backward_rule, dense_backward_kernel)
      .out("embedding_dense_backward.out")
      .tags(Tag::dense_out, Tag::core, Tag::strided_out)
      .gradient("grad_output", "indices", [](const Gradients& g) {
        const Tensor indices = g["indices"];
        SymInts sizes(indices.sym_sizes().begin(), indices.sym_sizes().end());
        const Tensor grad = g.grad().index_select(0, indices.reshape({-1}));
        // The padding row passes nothing on.
        if (const SymInt padding = g.sym_int("padding_idx"); guard(padding >= 0))
          grad.masked_fill_(indices.eq(Scalar(padding)).reshape({-1, 1}), Scalar(0));
        sizes.push_back(g.sizes("grad_output").back());
        return grad.reshape(sizes);
      });
  aten.def(
          "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, "
          "bool sparse) -> Tensor")
      .composite([](const Tensor& grad, const Tensor& indices, SymInt num_weights, SymInt padding_idx,
                    bool scale_grad_by_freq, bool sparse) {
        if (sparse)
          throw UserError(ErrorKind::unsupported_operator,
                          "embedding_backward: sparse gradients are not supported; pass sparse=False");
        return embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
      });
  aten.def("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor")
      .compute(renorm_rule, renorm_kernel)
      .in_place("embedding_renorm_")
      .out("embedding_renorm.out")
      .tags(Tag::self_in_out, Tag::strided_out, Tag::dense_out);
  aten.def(
          "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
          "sparse=False, Tensor? per_sample_weights=None, bool "
          "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)")
      .compute(bag_rule<false>, bag_kernel)
      .out("_embedding_bag.out")
      .tags(Tag::dense_out, Tag::core)
      .gradient("weight", "indices offsets per_sample_weights result1 result2 result3",
                [](const Gradients& g) {
                  return _embedding_bag_backward(g.grad(), g["indices"], g["offsets"], g["result1"], g["result2"],
                                                 g["result3"], g.sizes("weight")[0], g.flag("scale_grad_by_freq"),
                                                 g.integer("mode"), g.flag("sparse"), g["per_sample_weights"],
                                                 g.integer("padding_idx"));
                })
      .gradient("per_sample_weights", "weight indices offsets result1",
                [](const Gradients& g) {
                  return _embedding_bag_per_sample_weights_backward(g.grad(), g["weight"], g["indices"], g["offsets"],
                                                                    g["result1"], g.integer("mode"),
                                                                    g.integer("padding_idx"));
                })
      .no_gradient("result1 result2 result3");
  aten.def(
          "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor "
          "maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
          "int padding_idx=-1) -> Tensor")
      .compute(bag_back_rule, bag_back_kernel);
  aten.def(
          "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor "
          "maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int "
          "padding_idx=-1) -> Tensor")
      .compute(bag_dense_back_rule, bag_dense_back_kernel)
      .out("_embedding_bag_dense_backward.out")
      .tags(Tag::dense_out, Tag::strided_out);
  aten.def(
          "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor "
          "offset2bag, int mode, int padding_idx=-1) -> Tensor")
      .compute(bag_weights_back_rule, bag_weights_back_kernel)
      .out("_embedding_bag_per_sample_weights_backward.out")
      .tags(Tag::dense_out, Tag::strided_out);
  aten.def(
          "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
          "mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
          "bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)")
      .compute(bag_rule<true>, bag_kernel)
      .out("_embedding_bag_forward_only.out")
      .tags(Tag::dense_out);
  aten.def(
          "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
          "sparse=False, Tensor? per_sample_weights=None, bool "
          "include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)")
      .composite(bag_default);
  aten.def(
          "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool "
          "sparse, Tensor? per_sample_weights, bool "
          "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)")
      .composite(bag_padded);
}

}  // namespace calque

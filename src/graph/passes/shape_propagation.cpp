#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/passes.h"
#include "calque/op/tree.h"

namespace calque {
namespace {

Value sizes_of(SymIntList sizes) {
  Values out;
  for (const SymInt s : sizes) out.push_back(s);
  return tuple(std::move(out));
}

bool has_strides(const Tensor& t, const SymInts& wanted) {
  for (size_t d = 0; d < wanted.size(); ++d)
    if (!identical(t.sym_strides()[d], wanted[d])) return false;
  return true;
}

// The first format whose strides these are; none when it is neither.
Value memory_format_of(const Tensor& t) {
  if (has_strides(t, contiguous_strides(t.sym_sizes()))) return MemoryFormat::contiguous;
  if (t.dim() == 4 && has_strides(t, strides_for(MemoryFormat::channels_last, t.sym_sizes())))
    return MemoryFormat::channels_last;
  if (t.dim() == 5 && has_strides(t, strides_for(MemoryFormat::channels_last_3d, t.sym_sizes())))
    return MemoryFormat::channels_last_3d;
  return {};
}

Value metadata(const Tensor& t) {
  return StructValue{"collections.namedtuple",
                     "\"torch.fx.passes.shape_prop.TensorMetadata\"",
                     {"shape", "dtype", "requires_grad", "stride", "memory_format", "is_quantized", "qparams"},
                     {sizes_of(t.sym_sizes()), t.dtype(), t.requires_grad(), sizes_of(t.sym_strides()), memory_format_of(t),
                      false, dict({})}};
}

Value without_data(const Tensor& t) { return t.is_fake() ? t : Tensor(make_tensor(t.meta(), true)); }

bool has_tensor(const Value& v) {
  for (const Value& leaf : tree_leaves(v))
    if (leaf.is_tensor()) return true;
  return false;
}

class ShapePropagation : public Interpreter {
 public:
  ShapePropagation(Graph& graph, const GraphOwner* owner) : Interpreter(graph, owner) {
    for (Node* n : graph.nodes()) {
      if (n->id() >= nodes_.size()) nodes_.resize(n->id() + 1);
      nodes_[n->id()] = n;
    }
  }

 protected:
  Value run_node(const Node& n) override {
    Value result = Interpreter::run_node(n);
    NodeMeta& meta = nodes_[n.id()]->meta;
    meta.val = tree_map_tensors(without_data, result);
    if (has_tensor(result)) meta.set("tensor_meta", tensor_metadata(result));
    return result;
  }

 private:
  std::vector<Node*> nodes_;  // by id, to be changed
};

}  // namespace

Value tensor_metadata(const Value& value) { return tree_map_tensors(metadata, value); }

Value propagate_shapes(Graph& graph, const Values& inputs, const GraphOwner* owner) {
  return ShapePropagation(graph, owner).run(inputs);
}
Value propagate_shapes(GraphModule& module, const Values& inputs) {
  return propagate_shapes(module.graph(), inputs, &module.as_owner());
}

}  // namespace calque

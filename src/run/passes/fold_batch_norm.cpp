#include <algorithm>

#include "calque/file/mapped_file.h"
#include "calque/op/mode.h"
#include "calque/op/operators.h"
#include "graph/passes/mutation.h"
#include "run/operator_call.h"
#include "run/passes/passes.h"

namespace calque::run {
namespace {

class NormFolding {
 public:
  explicit NormFolding(PassInput& input) : input_(input), mutations_(input.module.graph(), is_fresh) {}

  bool run() {
    const NoModesScope plain;
    const GradModeScope no_grad(false);  // calls that record gradients have the graph as it was
    bool changed = false;
    for (Node* n : input_.module.graph().node_list())
      if (is_norm(*n)) changed |= fold(*n);
    return changed;
  }

 private:
  static bool is_convolution(const Node& n) {
    static const Operator* const all[] = {&get_operator(aten_name("conv1d")), &get_operator(aten_name("conv2d")),
                                          &get_operator(aten_name("conv3d"))};
    return n.op() && std::find(std::begin(all), std::end(all), n.op()) != std::end(all) && n.args().size() >= 2 &&
           n.kwargs().empty();
  }
  // Neither shares memory with its weights, whoever writes the result.
  static bool is_fresh(const Node& n) { return is_convolution(n) || is_norm(n); }
  // As in inference: batch_norm(input, weight, bias, mean, variance, training=False, momentum, eps, cudnn_enabled).
  static bool is_norm(const Node& n) {
    static const Operator& batch_norm = get_operator(aten_name("batch_norm"));
    if (n.op() != &batch_norm || n.args().size() < 8 || !n.kwargs().empty()) return false;
    const Value &training = n.args()[5], &eps = n.args()[7];
    return training.kind() == Value::Kind::boolean && !training.to_sym_bool().is_symbolic() && !training.to_bool() &&
           eps.kind() == Value::Kind::floating;
  }

  // State that nobody writes; undefined for everything else.
  Tensor state(const Value& argument) const {
    if (!argument.is_node()) return {};
    const Node& n = *argument.to_node();
    if (n.kind() != NodeKind::get_attr || input_.written.contains(n.target().text()) || mutations_.is_written(n)) return {};
    const Tensor* t = input_.module.find_tensor(n.target().text());
    return t && !t->is_fake() && t->device().type == DeviceType::cpu ? *t : Tensor();
  }

  bool fold(Node& norm) {
    if (!norm.args()[0].is_node()) return false;
    Node& convolution = *norm.args()[0].to_node();
    if (!is_convolution(convolution) || convolution.users().size() != 1) return false;
    const Values& args = convolution.args();
    const bool has_bias = args.size() > 2 && !args[2].is_none();
    const Tensor weight = state(args[1]), bias = has_bias ? state(args[2]) : Tensor();
    const Tensor mean = state(norm.args()[3]), variance = state(norm.args()[4]);
    const Tensor factor = state(norm.args()[1]), shift = state(norm.args()[2]);
    if (!weight.defined() || !mean.defined() || !variance.defined() || bias.defined() != has_bias) return false;
    if (factor.defined() == norm.args()[1].is_none() || shift.defined() == norm.args()[2].is_none()) return false;
    for (const Tensor& t : {weight, bias, mean, variance, factor, shift})
      if (t.defined() && (t.dtype() != weight.dtype() || is_reduced_float(t.dtype()))) return false;
    if (mean.dim() != 1 || mean.size(0) != weight.size(0)) return false;
    Tensor scale = (variance + norm.args()[7].to_float()).rsqrt();
    if (factor.defined()) scale = scale * factor;
    SymInts column(static_cast<size_t>(weight.dim()), 1);
    column[0] = -1;
    Tensor moved = (bias.defined() ? bias - mean : -mean) * scale;
    if (shift.defined()) moved = moved + shift;
    for (const Tensor& t : {weight, bias, mean, variance, factor, shift})
      if (t.defined()) input_.state.add(t);
    const Storage& source = *weight.storage();
    Values folded = args;
    if (folded.size() < 3) folded.emplace_back();
    folded[1] = Value(attribute(convolution, (weight * scale.view(SymIntList(column))).contiguous(), *args[1].to_node()));
    folded[2] = Value(attribute(convolution, moved, *norm.args()[3].to_node()));
    if (source.is_read_only()) release_mapped({static_cast<const std::byte*>(source.data()), source.nbytes()});
    convolution.set_args_kwargs(std::move(folded), {});
    norm.replace_all_uses_with(&convolution);
    const std::string name = norm.name();
    convolution.meta = norm.meta;
    input_.module.graph().erase_node(&norm);
    convolution.set_name(name);
    return true;
  }

  Node* attribute(Node& before, const Tensor& value, const Node& like) {
    std::string path;
    do path = "_normed" + std::to_string(next_++);
    while (input_.module.find_tensor(path) || input_.module.find_submodule(path));
    input_.module.set_attribute(path, Attribute(value));
    input_.state.add_made(value.nbytes());
    const auto scope = input_.module.graph().inserting_before(&before);
    Node* made = input_.module.graph().get_attr(path);
    made->meta = like.meta;
    return made;
  }

  PassInput& input_;
  const Mutations mutations_;
  size_t next_ = 0;
};

}  // namespace

bool fold_batch_norm(PassInput& input) {
  const bool changed = NormFolding(input).run();
  if (changed) input.module.graph().eliminate_dead_code();
  return changed;
}

}  // namespace calque::run

// The operators of torch's torch_nn namespace, which PyTorch writes in Python: linear_cross_entropy in chunks of the batch,
// so that the logits of the whole batch never exist at once. Sums, dtypes and order are those of its CPU path.
#include <algorithm>

#include "calque/op/aten/zeros.h"
#include "op/stanza.h"
#include "op/table.h"

namespace calque {
namespace {

// What the arguments say about the dtypes of each step.
struct Precision {
  Precision(const Tensor& input, std::string_view policy, DType acc) : own(input.dtype()), acc(acc), mixed(own != acc) {
    if (mixed && !((own == DType::float16 || own == DType::bfloat16) && acc == DType::float32))
      throw UserError("linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got " +
                      std::string(name(acc)) + " acc_dtype and " + std::string(name(own)) + " inputs.");
    const bool saves_memory = policy == "balanced" || policy == "compact";
    output = mixed && own == DType::float16 ? acc : own;
    grad_input = mixed && !saves_memory ? acc : own;
    logits = mixed && !(own == DType::float16 && saves_memory) ? acc : own;
    weight = acc;
    stages_weight_grad = !(policy == "compact" && logits == own);
  }
  DType own, acc;
  bool mixed;
  DType output, grad_input, logits, weight;
  bool stages_weight_grad;  // the gradient of a chunk is summed in the accumulator's dtype first
};

void check_arguments(const Tensor& input, const Tensor& linear_weight, const Tensor& target, const Tensor& linear_bias,
                     double label_smoothing) {
  if (target.dtype() != DType::int64)
    throw UserError("linear_cross_entropy: target dtype must be torch.int64, got " + std::string(name(target.dtype())) +
                    ".");
  if (label_smoothing > 0) throw UserError("linear_cross_entropy does not support label smoothing");
  if (input.dim() != 2 || linear_weight.dim() != 2 || target.dim() != 1)
    throw UserError(
        "linear_cross_entropy: expected an input and a linear_weight of two dimensions and a target of one, found " +
        std::to_string(input.dim()) + ", " + std::to_string(linear_weight.dim()) + " and " + std::to_string(target.dim()));
  if (linear_bias.defined() && !(linear_bias.dim() == 1 && check(linear_bias.sym_size(0) == linear_weight.sym_size(0))))
    throw UserError("linear_cross_entropy: expected linear_bias shape [" + linear_weight.sym_size(0).str() + "], got " +
                    str(linear_bias.sym_sizes()) + ".");
}

// Targets within the classes, and what each row's loss is multiplied by: its class's weight, nothing for rows to ignore.
struct Rows {
  Rows(const Tensor& given, const Tensor& class_weight, int64_t classes, int64_t ignore_index, DType dtype) {
    const Tensor ignored = given.eq(ignore_index);
    target = ignore_index < 0 || ignore_index >= classes ? given.masked_fill(ignored, 0) : given;
    if (!class_weight.defined())
      weight = ignored.logical_not().to(dtype);
    else
      weight = class_weight.to(dtype).index_select(0, target).masked_fill(ignored, 0);
  }
  void reduce(std::string_view reduction) {
    if (reduction == "mean") {
      const double sum = weight.sum().item().to_double();
      weight = weight.div(sum == 0 ? std::numeric_limits<double>::quiet_NaN() : -sum);
    } else {
      weight = weight.neg();
    }
  }
  Tensor target, weight;
};

// Each chunk's logits less their largest, a function called with the chunk's first row and number of rows.
class Chunks {
 public:
  Chunks(const Tensor& input, const Tensor& linear_weight, const Tensor& linear_bias, const Precision& dtypes, int64_t size)
      : input_(input),
        weight_(linear_weight.to(dtypes.logits)),
        bias_(linear_bias),
        dtypes_(dtypes),
        size_(std::max<int64_t>(size, 1)) {
    if (bias_.defined()) bias_ = bias_.to(dtypes.logits);
  }
  template <class F>
  void each(F&& f) const {
    for (int64_t start = 0; start < input_.size(0); start += size_) {
      const int64_t rows = std::min(size_, input_.size(0) - start);
      const Tensor logits = input_.narrow(0, start, rows).to(dtypes_.logits).mm(weight_.t());
      if (bias_.defined()) logits.add_(bias_);
      logits.sub_(logits.amax({1}, true));
      f(logits, start, rows);
    }
  }
  const Tensor& weight() const { return weight_; }

 private:
  Tensor input_, weight_, bias_;
  const Precision& dtypes_;
  int64_t size_;
};

Tensor at_target(const Tensor& logits, const Tensor& target, DType dtype) {
  return logits.gather(1, target.unsqueeze(1)).squeeze(1).to(dtype);
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// The loss, and gradients for those of input, weight and bias that are asked for.
Results chunked(const Tensor& input, const Tensor& linear_weight, const Tensor& target, const Tensor& linear_bias,
                const Tensor& weight, std::string_view reduction, SymInt ignore_index, double label_smoothing,
                SymInt batch_chunk_size, std::string_view acc_policy, DType acc_dtype, bool, bool input_grad,
                bool weight_grad, bool bias_grad) {
  check_arguments(input, linear_weight, target, linear_bias, label_smoothing);
  if (reduction != "mean" && reduction != "sum")
    throw UserError("linear_cross_entropy does not support reduction='" + std::string(reduction) + "'");
  const Precision dtypes(input, acc_policy, acc_dtype);
  const int64_t classes = linear_weight.size(0);
  Rows rows(target, weight, classes, ignore_index.as_int(), dtypes.weight);
  rows.reduce(reduction);
  const Chunks chunks(input, linear_weight, linear_bias, dtypes, batch_chunk_size.as_int());
  const auto made = [&](bool asked, SymIntList sizes, SymIntList otherwise, DType dtype) {
    return zeros(asked ? sizes : otherwise, dtype);
  };
  const Tensor loss = zeros({}, dtypes.output);
  const Tensor grad_input = made(input_grad, input.sym_sizes(), {0, 0}, dtypes.grad_input);
  const Tensor grad_weight = made(weight_grad, linear_weight.sym_sizes(), {0, 0}, dtypes.own);
  const Tensor grad_bias = made(bias_grad, {classes}, {0}, dtypes.own);
  if (reduction == "mean" && input.size(0) == 0) loss.fill_(std::numeric_limits<double>::quiet_NaN());

  chunks.each([&](const Tensor& logits, int64_t start, int64_t count) {
    const Tensor at = rows.target.narrow(0, start, count);
    const Tensor factor = rows.weight.narrow(0, start, count);
    loss.add_(factor.dot(at_target(logits, at, factor.dtype())));
    const Tensor denominator = logits.exp_().sum({1}, false, dtypes.acc);
    if (input_grad || weight_grad || bias_grad) logits.mul_(factor.div(denominator).to(dtypes.logits).unsqueeze(1));
    loss.sub_(factor.to(denominator.dtype()).dot(denominator.log()));
    if (bias_grad) {
      const Tensor sum = logits.sum({0}, false, dtypes.acc).neg().index_add(0, at, factor);
      grad_bias.add_(sum.to(dtypes.own));
    }
    if (input_grad) {
      const Tensor own = chunks.weight().index_select(0, at).mul(factor.to(dtypes.logits).unsqueeze(1));
      grad_input.narrow(0, start, count).copy_(own.addmm(logits, chunks.weight(), 1, -1));
    }
    if (!weight_grad) return;
    const Tensor wide = input.narrow(0, start, count).to(dtypes.acc);
    const Tensor own = wide.mul(factor.unsqueeze(1));
    if (dtypes.stages_weight_grad) {
      grad_weight.sub_(logits.to(dtypes.acc).t().mm(wide).index_add(0, at, own, -1));
    } else {
      grad_weight.addmm_(logits.t(), input.narrow(0, start, count), 1, -1);
      grad_weight.index_add_(0, at, own.to(dtypes.own));
    }
  });
  return {loss.to(dtypes.own), grad_input.to(dtypes.own), grad_weight, grad_bias};
}

Results chunked_rule(const Tensor& input, const Tensor& linear_weight, const Tensor&, const Tensor&, const Tensor&,
                     std::string_view reduction, SymInt, double, SymInt, std::string_view, DType, bool, bool input_grad,
                     bool weight_grad, bool bias_grad) {
  if (reduction != "mean" && reduction != "sum")
    throw UserError("linear_cross_entropy does not support reduction='" + std::string(reduction) + "'");
  const SymInt classes = linear_weight.sym_size(0);
  const auto made = [&](bool asked, SymIntList sizes, SymIntList otherwise) {
    return input.new_empty(asked ? sizes : otherwise);
  };
  return {input.new_empty({}), made(input_grad, input.sym_sizes(), {0, 0}),
          made(weight_grad, linear_weight.sym_sizes(), {0, 0}), made(bias_grad, {classes}, {0})};
}

// The loss of each row.
Tensor chunked_rows(const Tensor& input, const Tensor& linear_weight, const Tensor& target, const Tensor& linear_bias,
                    const Tensor& weight, SymInt ignore_index, SymInt batch_chunk_size, std::string_view acc_policy,
                    DType acc_dtype) {
  check_arguments(input, linear_weight, target, linear_bias, 0);
  const Precision dtypes(input, acc_policy, acc_dtype);
  const Rows rows(target, weight, linear_weight.size(0), ignore_index.as_int(), dtypes.weight);
  const Tensor out = input.new_empty({input.size(0)});
  Chunks(input, linear_weight, linear_bias, dtypes, batch_chunk_size.as_int())
      .each([&](const Tensor& logits, int64_t start, int64_t count) {
        const Tensor own = at_target(logits, rows.target.narrow(0, start, count), dtypes.acc);
        const Tensor loss = logits.exp_().sum({1}, false, dtypes.acc).log().sub(own);
        out.narrow(0, start, count).copy_(loss.mul(rows.weight.narrow(0, start, count)));
      });
  return out;
}

}  // namespace

void register_torch_nn_operators() {
  Library torch_nn("torch_nn");
  torch_nn
      .def(
          "_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, "
          "Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt batch_chunk_size, "
          "str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool compute_input_grad, bool "
          "compute_linear_weight_grad, bool compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)")
      .own(chunked_rule, chunked);
  torch_nn
      .def(
          "_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor linear_weight, Tensor target, Tensor? "
          "linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str acc_policy, "
          "ScalarType acc_dtype) -> Tensor")
      .own([](const Tensor& input, const Tensor&, const Tensor&, const Tensor&, const Tensor&, SymInt, SymInt,
              std::string_view, DType) { return input.new_empty({input.sym_size(0)}); },
           chunked_rows);
}

}  // namespace calque

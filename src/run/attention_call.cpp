#include "run/attention_call.h"

#include <algorithm>

#include "calque/op/mode.h"
#include "kernel/cpu/attention/attention.h"
#include "run/operator_call.h"

namespace calque::run {
namespace {

bool calls(const Node& n, const Operator& op, size_t arguments) {
  return n.op() == &op && n.kwargs().empty() && n.args().size() == arguments;
}

bool is_dimension(const Value& v, int64_t last) {
  return v.kind() == Value::Kind::integer && !v.expr() && (v.to_int() == last || v.to_int() == last + 4);
}

std::optional<double> number(const Value& v) {
  if (v.expr()) return std::nullopt;
  if (v.kind() == Value::Kind::floating) return v.to_float();
  if (v.kind() == Value::Kind::integer) return static_cast<double>(v.to_int());
  return std::nullopt;
}

// Walks from the last product back to the first, over results that nobody else reads.
class AttentionMatcher {
 public:
  std::optional<AttentionForm> match(Node& last) {
    static const Operator& matmul = get_operator(aten_name("matmul"));
    if (!calls(last, matmul, 2) || !last.args()[0].is_node() || !last.args()[1].is_node()) return std::nullopt;
    form_.nodes.push_back(&last);
    form_.value = last.args()[1].to_node();
    Node* at = behind_weights(last.args()[0]);
    if (!at || !take_softmax(at) || !take_mask(at) || !take_scale(at)) return std::nullopt;
    if (!take(at) || !calls(*at, matmul, 2) || !at->args()[0].is_node() || !at->args()[1].is_node()) return std::nullopt;
    form_.query = at->args()[0].to_node();
    Node* const turned = at->args()[1].to_node();
    static const Operator& transpose = get_operator(aten_name("transpose.int"));
    if (!take(turned) || !calls(*turned, transpose, 3) || !turned->args()[0].is_node()) return std::nullopt;
    const Value &a = turned->args()[1], &b = turned->args()[2];
    if (!(is_dimension(a, -2) && is_dimension(b, -1)) && !(is_dimension(a, -1) && is_dimension(b, -2))) return std::nullopt;
    form_.key = turned->args()[0].to_node();
    return std::move(form_);
  }

 private:
  bool take(Node* n) {
    if (n->users().size() != 1) return false;
    form_.nodes.push_back(n);
    return true;
  }

  // Over what does nothing in inference: dropout, and a conversion to the dtype that it has.
  Node* behind_weights(const Value& from) {
    static const Operator& dropout = get_operator(aten_name("dropout"));
    static const Operator& to = get_operator(aten_name("to.dtype"));
    for (Node* at = from.to_node();;) {
      const bool dropped = calls(*at, dropout, 3) && at->args()[2].kind() == Value::Kind::boolean &&
                           !at->args()[2].to_sym_bool().is_symbolic() && !at->args()[2].to_bool();
      const bool converted = calls(*at, to, 2) && same_dtype(*at, at->args()[0]);
      if (!dropped && !converted) return at;
      if (!take(at) || !at->args()[0].is_node()) return nullptr;
      at = at->args()[0].to_node();
    }
  }
  static bool same_dtype(const Node& n, const Value& input) {
    if (!input.is_node() || !n.meta.val.is_tensor() || !input.to_node()->meta.val.is_tensor()) return false;
    return n.meta.val.to_tensor().dtype() == input.to_node()->meta.val.to_tensor().dtype();
  }

  bool take_softmax(Node*& at) {
    static const Operator& softmax = get_operator(aten_name("softmax.int"));
    if (at->op() != &softmax || !at->kwargs().empty() || at->args().size() < 2 || !at->args()[0].is_node()) return false;
    if (!is_dimension(at->args()[1], -1) || !same_dtype(*at, at->args()[0]) || !take(at)) return false;
    at = at->args()[0].to_node();
    return true;
  }

  // scores + mask; the scores are what a product or a scaled one gives.
  bool take_mask(Node*& at) {
    static const Operator& add = get_operator(aten_name("add.Tensor"));
    if (!calls(*at, add, 2)) return true;
    if (!at->args()[0].is_node() || !at->args()[1].is_node() || !take(at)) return false;
    form_.mask = at->args()[1].to_node();
    at = at->args()[0].to_node();
    return true;
  }

  bool take_scale(Node*& at) {
    static const Operator& mul = get_operator(aten_name("mul.Tensor"));
    static const Operator& div = get_operator(aten_name("div.Tensor"));
    const bool divides = calls(*at, div, 2);
    if (!divides && !calls(*at, mul, 2)) return true;
    const std::optional<double> factor = number(at->args()[1]);
    if (!factor || *factor <= 0 || !at->args()[0].is_node() || !take(at)) return false;
    form_.scale = divides ? 1 / *factor : *factor;
    at = at->args()[0].to_node();
    return true;
  }

  AttentionForm form_;
};

bool is_plain(const Tensor& t) {
  return t.defined() && !t.is_fake() && t.dtype() == DType::float32 && t.device().type == DeviceType::cpu &&
         !(records_gradients() && t.requires_grad());
}

}  // namespace

std::optional<AttentionForm> attention_form(Node& last) { return AttentionMatcher().match(last); }

std::unique_ptr<const AttentionCall> AttentionCall::make(const Node& call, const ValueIds& ids, const GraphOwner& owner,
                                                         std::unique_ptr<const Instruction> plain) {
  Graph* graph = owner.subgraph(call.target().text());
  if (!graph || !call.kwargs().empty() || !graph->output_node() || !graph->output_node()->args()[0].is_node())
    return nullptr;
  const std::optional<AttentionForm> form = attention_form(*graph->output_node()->args()[0].to_node());
  const std::vector<Node*> inputs = graph->placeholders();
  if (!form || inputs.size() != call.args().size()) return nullptr;
  std::unique_ptr<AttentionCall> made(new AttentionCall);
  const auto place = [&](const Node* n, std::optional<Operand>& to) {
    const auto at = std::find(inputs.begin(), inputs.end(), n);
    if (at == inputs.end()) return false;
    to.emplace(call.args()[static_cast<size_t>(at - inputs.begin())], ids);
    return true;
  };
  if (!place(form->query, made->query_) || !place(form->key, made->key_) || !place(form->value, made->value_))
    return nullptr;
  if (form->mask && !place(form->mask, made->mask_)) return nullptr;
  made->scale_ = form->scale;
  made->plain_ = std::move(plain);
  return made;
}

Tensor AttentionCall::attend(const Frame& frame, const Place& place) const {
  const Value given[4] = {query_->read(frame), key_->read(frame), value_->read(frame), mask_ ? mask_->read(frame) : Value()};
  for (size_t i = 0; i < 3; ++i)
    if (!given[i].is_tensor() || !is_plain(given[i].to_tensor()) || given[i].to_tensor().dim() != 4 ||
        given[i].to_tensor().stride(3) != 1 || given[i].to_tensor().numel() == 0)
      return {};
  const Tensor &q = given[0].to_tensor(), &k = given[1].to_tensor(), &v = given[2].to_tensor();
  Attention<float> g;
  g.batch = q.size(0), g.heads = q.size(1), g.q_length = q.size(2), g.kv_length = k.size(2);
  g.head_dim = q.size(3), g.value_dim = v.size(3);
  for (const Tensor* t : {&k, &v})
    if (t->size(0) != g.batch || t->size(1) != g.heads || t->size(2) != g.kv_length) return {};
  if (k.size(3) != g.head_dim) return {};
  for (int64_t d = 0; d < 3; ++d) g.q_strides[d] = q.stride(d), g.k_strides[d] = k.stride(d), g.v_strides[d] = v.stride(d);
  g.q = q.data_as<float>(), g.k = k.data_as<float>(), g.v = v.data_as<float>();
  g.scale = scale_;
  std::vector<float> sums;
  if (mask_) {
    if (!given[3].is_tensor() || !is_plain(given[3].to_tensor()) || given[3].to_tensor().dim() > 4) return {};
    const Tensor& mask = given[3].to_tensor();
    const int64_t sizes[4] = {g.batch, g.heads, g.q_length, g.kv_length}, missing = 4 - mask.dim();
    for (int64_t d = missing; d < 4; ++d) {
      const int64_t size = mask.size(d - missing);
      if (size != 1 && size != sizes[d]) return {};
      g.mask_strides[d] = size == 1 ? 0 : mask.stride(d - missing);
    }
    g.mask_kind = MaskKind::additive;
    g.mask = mask.data_as<float>();
    sums.resize(static_cast<size_t>(g.batch * g.heads * g.q_length));
    g.logsumexp = sums.data();
    g.logsumexp_strides[0] = g.heads * g.q_length, g.logsumexp_strides[1] = g.q_length, g.logsumexp_strides[2] = 1;
  }
  const SymInts sizes{g.batch, g.heads, g.q_length, g.value_dim};
  const Tensor out =
      new_result(frame, place, {sizes, contiguous_strides(SymIntList(sizes)), DType::float32, q.device(), false});
  for (int64_t d = 0; d < 3; ++d) g.out_strides[d] = out.stride(d);
  g.out = out.mutable_data_as<float>();
  attention(g);
  // Where every key of a row is masked, the kernel has 0 and a softmax NaN.
  return std::find(sums.begin(), sums.end(), 0.0F) == sums.end() ? out : Tensor();
}

Value AttentionCall::run(const Frame& frame, const Place& place) const {
  if (!modes_active())
    if (Tensor out = attend(frame, place); out.defined()) return out;
  return plain_->run(frame, place);
}

}  // namespace calque::run

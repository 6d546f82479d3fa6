// Scaled dot product attention: the choice between the one-pass kernel and the composition of matrix products, and both.
#include <cmath>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "kernel/cpu/attention/attention.h"
#include "kernel/cpu/attention/attention_backward.h"
#include "kernel/cpu/attention/attention_special.h"
#include "kernel/cpu/dispatch_among.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

bool same(SymInt a, SymInt b) { return identical(a, b) || guard(a == b); }

// ---- the one-pass kernel ------------------------------------------------------------------------------------------
std::array<Meta, 2> flash_rule(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool,
                               const Tensor& mask, std::optional<double>) {
  const std::string op = "_scaled_dot_product_flash_attention_for_cpu";
  const DType dtype = query.dtype();
  if (!is_floating(dtype) || is_float8(dtype))
    throw UserError(op + ": Expected data type in FP32, FP64, BF16, FP16, but got " + std::string(name(dtype)) +
                    " for query");
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4)
    throw UserError(op + ": Accept only 4 dims inputs shape of {B, H, T, K}, found " + str(query.sym_sizes()) + ", " +
                    str(key.sym_sizes()) + ", " + str(value.sym_sizes()));
  if (dropout_p != 0)
    throw UserError(op + ": Currently do not support dropout > 0, found dropout_p " + Scalar(dropout_p).str());
  if (key.dtype() != dtype || value.dtype() != dtype)
    throw UserError(op + ": expected key and value of query's dtype " + std::string(name(dtype)) + ", found " +
                    std::string(name(key.dtype())) + " and " + std::string(name(value.dtype())));
  if (mask.defined()) {
    if (mask.dtype() != dtype && !(mask.dtype() == DType::float32 && is_reduced_float(dtype)))
      throw UserError(op + ": Attention mask is the same data type as query, found " + std::string(name(mask.dtype())) +
                      " and " + std::string(name(dtype)));
    if (mask.dim() != 2 && mask.dim() != 4)
      throw UserError(op + ": Attention mask dim in {2, 4}, found " + std::to_string(mask.dim()));
  }
  const SymInt batch = query.sym_size(0), heads = query.sym_size(1), length = query.sym_size(2);
  Meta out = query.meta();
  out.strides = rule::preserved_strides(query);
  Meta logsumexp{{batch, heads, length},
                 {length * heads, 1, heads},
                 dtype == DType::float64 ? DType::float64 : DType::float32,
                 query.device(),
                 false};
  return {out, logsumexp};
}

Tensor with_dense_rows(const Tensor& x) {
  if (x.stride(3) == 1 || x.size(3) == 1) return x;
  Meta m = x.meta();
  m.strides = contiguous_strides(m.sizes);
  const Tensor dense = make_tensor(m);
  kernel::copy(x, dense);
  return dense;
}

template <class T>
void run_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool causal,
                   double scale, const Tensor& out, const Tensor& logsumexp) {
  Attention<T> g;
  g.batch = query.size(0), g.heads = query.size(1), g.q_length = query.size(2), g.kv_length = key.size(2);
  g.head_dim = query.size(3), g.value_dim = value.size(3);
  g.group = key.size(1) == 0 ? 1 : query.size(1) / key.size(1);
  g.q = query.data_as<T>(), g.k = key.data_as<T>(), g.v = value.data_as<T>(), g.out = out.mutable_data_as<T>();
  for (int64_t d = 0; d < 3; ++d) {
    g.q_strides[d] = query.stride(d), g.k_strides[d] = key.stride(d), g.v_strides[d] = value.stride(d),
    g.out_strides[d] = out.stride(d);
  }
  if (mask.defined()) {
    g.mask_kind = mask.dtype() == DType::bool_    ? MaskKind::boolean
                  : mask.dtype() == query.dtype() ? MaskKind::additive
                                                  : MaskKind::additive_float;
    g.mask = mask.data();
    for (int64_t d = 0; d < mask.dim(); ++d) {
      const int64_t at = 4 - mask.dim() + d;
      g.mask_strides[at] = mask.size(d) == 1 ? 0 : mask.stride(d);
    }
  }
  g.causal = causal;
  g.scale = scale;
  if (logsumexp.defined()) {
    g.logsumexp = logsumexp.mutable_data_as<Accumulate<T>>();
    for (int64_t d = 0; d < 3; ++d) g.logsumexp_strides[d] = logsumexp.stride(d);
  }
  attention(g);
  settle_special_values(g);
}
void attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool causal,
            std::optional<double> scale, const Tensor& out, const Tensor& logsumexp) {
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value);
  const bool dense_out = out.stride(3) == 1 || out.size(3) == 1;
  Tensor to = out;
  if (!dense_out) {
    Meta m = out.meta();
    m.strides = contiguous_strides(m.sizes);
    to = make_tensor(m);
  }
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(3))));
  kernel::dispatch_among<float, double, BFloat16, Half>(query.dtype(), "attention", [&](auto tag) {
    run_attention<typename decltype(tag)::type>(q, k, v, mask, causal, factor, to, logsumexp);
  });
  if (!dense_out) kernel::copy(to, out);
}
// Checked only where values are read: PyTorch's shape rule has no guard for it.
void check_fit(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  const std::string op = "_scaled_dot_product_flash_attention_for_cpu: ";
  if (query.size(3) != value.size(3) || key.size(3) != value.size(3))
    throw UserError(op + "Q/K/V should have the same head size, found " + std::to_string(query.size(3)) + ", " +
                    std::to_string(key.size(3)) + ", " + std::to_string(value.size(3)));
  const int64_t heads = key.size(1);
  if (key.size(0) != query.size(0) || value.size(0) != query.size(0) || value.size(1) != heads ||
      value.size(2) != key.size(2) || (heads == 0 ? query.size(1) != 0 : query.size(1) % heads != 0))
    throw UserError(op +
                    "key and value must have query's batch size, heads that divide query's, and one length, found sizes " +
                    str(query.sym_sizes()) + ", " + str(key.sym_sizes()) + " and " + str(value.sym_sizes()));
  if (!mask.defined()) return;
  const int64_t scores[] = {query.size(0), query.size(1), query.size(2), key.size(2)};
  for (int64_t d = 0; d < mask.dim(); ++d)
    if (mask.size(d) != 1 && mask.size(d) != scores[4 - mask.dim() + d])
      throw UserError(op + "the mask must broadcast to the scores' sizes " + str(IntList(scores, 4)) + ", found " +
                      str(mask.sym_sizes()));
}
void flash_kernel(const Tensor& query, const Tensor& key, const Tensor& value, double, bool is_causal, const Tensor& mask,
                  std::optional<double> scale, const Tensor& out, const Tensor& logsumexp) {
  check_fit(query, key, value, mask);
  attend(query, key, value, mask, is_causal, scale, out, logsumexp);
}

std::array<Meta, 3> flash_backward_rule(const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value,
                                        const Tensor&, const Tensor&, double dropout_p, bool, const Tensor& mask,
                                        std::optional<double>) {
  const std::string op = "_scaled_dot_product_flash_attention_for_cpu_backward";
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4)
    throw UserError(op + ": Accept only 4 dims inputs shape of {B, H, T, K}, found " + str(query.sym_sizes()) + ", " +
                    str(key.sym_sizes()) + ", " + str(value.sym_sizes()));
  if (!is_floating(query.dtype()) || is_float8(query.dtype()))
    throw UserError(op + ": Expected data type in FP32, FP64, BF16, FP16, but got " + std::string(name(query.dtype())) +
                    " for query");
  if (dropout_p != 0)
    throw UserError(op + ": Currently do not support dropout > 0, found dropout_p " + Scalar(dropout_p).str());
  if (mask.defined() && mask.dim() != 2 && mask.dim() != 4)
    throw UserError(op + ": Attention mask dim in {2, 4}, found " + std::to_string(mask.dim()));
  // Positions before heads in memory.
  const auto like = [](const Tensor& t) {
    Meta m = t.meta();
    const SymInt heads = m.sizes[1], length = m.sizes[2], width = m.sizes[3];
    m.strides = {length * heads * width, width, heads * width, 1};
    return m;
  };
  return {like(query), like(key), like(value)};
}
void flash_backward_kernel(const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
                           const Tensor& out, const Tensor& logsumexp, double, bool is_causal, const Tensor& mask,
                           std::optional<double> scale, const Tensor& grad_query, const Tensor& grad_key,
                           const Tensor& grad_value) {
  check_fit(query, key, value, mask);
  const auto check = [&](const char* what, const Tensor& t, IntList sizes) {
    if (!rule::equal_sizes(t.sym_sizes(), as_sym(sizes)))
      throw UserError(std::string("_scaled_dot_product_flash_attention_for_cpu_backward: expected ") + what + " of sizes " +
                      str(sizes) + ", found " + str(t.sym_sizes()));
  };
  check("grad_out", grad_out, query.sizes());
  check("out", out, query.sizes());
  check("logsumexp", logsumexp, IntList(query.sizes().data(), 3));
  for (const Tensor* t : {&grad_out, &key, &value, &out})
    if (t->dtype() != query.dtype())
      throw UserError("_scaled_dot_product_flash_attention_for_cpu_backward: expected tensors of query's dtype " +
                      std::string(name(query.dtype())) + ", found " + std::string(name(t->dtype())));
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(3))));
  kernel::attention_backward(
      {grad_out, query, key, value, out, logsumexp, mask, is_causal, factor, grad_query, grad_key, grad_value});
}
TensorVector of_flash(const Gradients& g) {
  if (!g.grad().defined()) return {};
  const Value& scale = g.argument("scale");
  auto [query, key, value] = _scaled_dot_product_flash_attention_for_cpu_backward(
      g.grad(), g["query"], g["key"], g["value"], g["result"], g["result1"], g.number("dropout_p"), g.flag("is_causal"),
      g["attn_mask"], scale.is_none() ? std::nullopt : std::optional<double>(scale.to_float()));
  return {query, key, value};
}

// ---- the choice ---------------------------------------------------------------------------------------------------
constexpr int64_t by_matrix_products = 0;
constexpr int64_t in_one_pass = 1;

bool mask_fits(const Tensor& mask, const Tensor& query, const Tensor& key) {
  if (mask.requires_grad()) return false;
  if (!same(mask.sym_size(-2), query.sym_size(2)) && !same(mask.sym_size(-2), 1)) return false;
  if (!same(mask.sym_size(-1), key.sym_size(2)) && !same(mask.sym_size(-1), 1)) return false;
  if (mask.dim() == 2) return true;
  return mask.dim() == 4 && (same(mask.sym_size(0), 1) || same(mask.sym_size(0), query.sym_size(0))) &&
         (same(mask.sym_size(1), 1) || same(mask.sym_size(1), query.sym_size(1)));
}
bool heads_fit(const Tensor& query, const Tensor& key, const Tensor& value, bool enable_gqa) {
  if (!same(query.sym_size(0), key.sym_size(0)) || !same(query.sym_size(0), value.sym_size(0))) return false;
  const SymInt q = query.sym_size(1), k = key.sym_size(1), v = value.sym_size(1);
  if (!enable_gqa) return same(q, k) && same(q, v);
  return same(k, v) && (same(q, k) || (guard(k > 0) && same(q % k, 0)));
}
int64_t choice(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p, bool,
               std::optional<double>, bool enable_gqa) {
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4 || dropout_p > 0) return by_matrix_products;
  if (!heads_fit(query, key, value, enable_gqa)) return by_matrix_products;
  if (mask.defined() && !mask_fits(mask, query, key)) return by_matrix_products;
  if (!same(query.sym_size(3), key.sym_size(3)) || !same(query.sym_size(3), value.sym_size(3))) return by_matrix_products;
  if (same(query.sym_size(2), 0) || same(key.sym_size(2), 0)) return by_matrix_products;
  for (const Tensor* t : {&query, &key, &value})
    if (!same(t->sym_stride(3), 1)) return by_matrix_products;
  const DType d = query.dtype();
  return is_floating(d) && !is_float8(d) ? in_one_pass : by_matrix_products;
}

// ---- the composition ----------------------------------------------------------------------------------------------
Tensor additive_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::bool_) return mask;
  return where(mask, Scalar(0.0), scalar_tensor(-INFINITY, dtype, std::nullopt, mask.device()));
}

Scalar root_of_scale(SymInt head_dim, std::optional<double> scale) {
  if (scale) return Scalar(std::sqrt(std::abs(*scale)));
  if (!head_dim.is_symbolic()) return Scalar(std::sqrt(1.0 / std::sqrt(static_cast<double>(head_dim.as_int()))));
  return Scalar(
      sym_float_pow(sym_float_div(SymFloat(1.0), sym_float_pow(sym_float(head_dim), SymFloat(0.5))), SymFloat(0.5)));
}

std::tuple<Tensor, Tensor> math_body(const Tensor& query_, const Tensor& key_, const Tensor& value_, const Tensor& attn_mask,
                                     double dropout_p, bool is_causal, const Tensor& dropout_mask,
                                     std::optional<double> scale, bool enable_gqa) {
  const DType dtype = query_.dtype();
  const bool widen = is_reduced_float(dtype);
  const Tensor wide = widen ? query_.to(DType::float32) : query_;
  Tensor key = widen ? key_.to(DType::float32) : key_;
  Tensor value = widen ? value_.to(DType::float32) : value_;
  Tensor mask = attn_mask;
  // Half of the scale goes to each factor of the product.
  const Scalar factor = root_of_scale(query_.sym_size(-1), scale);
  const Tensor query = mul(wide, scale && *scale < 0 ? Scalar(-factor.to_double()) : factor);
  if (is_causal) {
    if (mask.defined())
      throw UserError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    mask = additive_mask(tril(ones({query.sym_size(-2), key.sym_size(-2)}, DType::bool_, std::nullopt, query.device())),
                         query.dtype());
  }
  if (enable_gqa) {
    const SymInt q = query.sym_size(-3), k = key.sym_size(-3), v = value.sym_size(-3);
    if (!same(q, k) || !same(q, v)) {
      if (!same(q % k, 0) || !same(q % v, 0))
        throw UserError(
            "scaled_dot_product_attention: Number of heads in key and value must divide the number of heads in query, "
            "found " +
            k.str() + ", " + v.str() + " and " + q.str());
      key = repeat_interleave(key, floor_div(q, k), -3);
      value = repeat_interleave(value, floor_div(q, v), -3);
    }
  }
  Tensor scores = matmul(query, mul(transpose(key, -2, -1), factor));
  if (mask.defined()) {
    if (modes_active() || scores.is_fake())
      scores = add(scores, mask);
    else
      add_(scores, mask);
  }
  scores = _safe_softmax(scores, -1);
  if (dropout_p > 0) {
    if (dropout_mask.defined()) {
      scores = masked_fill(scores, logical_not(dropout_mask), Scalar(0.0));
      return {matmul(scores, mul(value, Scalar(1.0 / (1 - dropout_p)))).to(dtype), scores.to(dtype)};
    }
    scores = dropout(scores, dropout_p, true);
  }
  const Tensor weights = scores.to(dtype);
  return {matmul(scores, value).to(dtype), weights};
}

Tensor attention_body(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, double dropout_p,
                      bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const std::string op = "scaled_dot_product_attention: ";
  if (query.dtype() != key.dtype() || query.dtype() != value.dtype())
    throw UserError(op + "Expected query, key, and value to have the same dtype, but got query.dtype: " +
                    std::string(name(query.dtype())) + " key.dtype: " + std::string(name(key.dtype())) +
                    " and value.dtype: " + std::string(name(value.dtype())) + " instead");
  if (!(query.device() == key.device()) || !(query.device() == value.device()))
    throw UserError(op + "Expected query, key, and value to have the same device type, found " + query.device().str() +
                    ", " + key.device().str() + " and " + value.device().str());
  if (query.dim() < 2 || key.dim() < 2 || value.dim() < 2)
    throw UserError(op + "Expected query, key, and value to all be at least 2 dimensional, but got query.dim: " +
                    std::to_string(query.dim()) + " key.dim: " + std::to_string(key.dim()) +
                    " and value.dim: " + std::to_string(value.dim()) + " instead");
  if (attn_mask.defined() && attn_mask.dtype() != DType::bool_ && attn_mask.dtype() != DType::float32 &&
      attn_mask.dtype() != query.dtype())
    throw UserError(op + "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: " +
                    std::string(name(attn_mask.dtype())) + " and query.dtype: " + std::string(name(query.dtype())) +
                    " instead");
  if (guard_or(value.sym_numel() == 0, false) || guard_or(query.sym_size(-2) == 0, false)) {
    SymInts sizes(query.sym_sizes().begin(), query.sym_sizes().end());
    sizes.back() = value.sym_size(-1);
    const Tensor nothing = zeros(sizes, query.dtype(), query.layout(), query.device());
    const Tensor v = value.sum(), k = key.sum(), q = query.sum();
    return nothing.add(q.add(k).add(v).mul(Scalar(0)));
  }
  if (choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) == by_matrix_products)
    return std::get<0>(_scaled_dot_product_attention_math(query, key, value, additive_mask(attn_mask, query.dtype()),
                                                          dropout_p, is_causal, {}, scale, enable_gqa));
  const bool plain = !modes_active() && !query.is_fake() && !key.is_fake() && !value.is_fake() &&
                     !(attn_mask.defined() && attn_mask.is_fake()) &&
                     !(records_gradients() && (query.requires_grad() || key.requires_grad() || value.requires_grad()));
  if (plain && attn_mask.defined() && attn_mask.dtype() == DType::bool_) {
    // The kernel reads a boolean mask as it is.
    const Tensor out = make_tensor(flash_rule(query, key, value, dropout_p, is_causal, {}, scale)[0]);
    attend(query, key, value, attn_mask, is_causal, scale, out, {});
    return out;
  }
  return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal,
                                                                 additive_mask(attn_mask, query.dtype()), scale));
}

}  // namespace

void register_attention(Library& aten);
void register_attention(Library& aten) {
  aten.def(
          "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool "
          "is_causal=False, *, Tensor? attn_mask=None, "
          "float? scale=None) -> (Tensor output, Tensor logsumexp)")
      .compute(flash_rule, flash_kernel)
      .gradient("query key value", "query key value attn_mask result result1", of_flash)
      .no_gradient("result1");
  aten.def(
          "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
          "Tensor "
          "out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor "
          "grad_query, Tensor grad_key, Tensor grad_value)")
      .compute(flash_backward_rule, flash_backward_kernel);
  aten.def(
          "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
          "dropout_p=0., bool is_causal=False, "
          "Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)")
      .composite(math_body);
  aten.def(
          "_fused_sdp_choice(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool "
          "is_causal=False, *, float? scale=None, "
          "bool enable_gqa=False) -> int")
      .own(choice, choice);
  aten.def(
          "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
          "bool is_causal=False, *, "
          "float? scale=None, bool enable_gqa=False) -> Tensor")
      .tags(Tag::autocast_lower)
      .python("torch.nn.functional.scaled_dot_product_attention", "torch._C._nn.scaled_dot_product_attention")
      .composite(attention_body);
}

}  // namespace calque

// The rules of update.h, compiled once per instruction set. Products and sums are rounded where PyTorch's kernels round them:
// its operators with a factor (add with alpha, addcmul, lerp) round once. What add takes, a factor or a number, has the tensor's dtype; other numbers are wider.
#include "kernel/cpu/optim/update.h"
#include "kernel/cpu/simd/vec.h"
#include "kernel/cpu/simd/vec_math.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

// What is left of a value that went through memory as S.
template <class S, bool rounded>
CALQUE_INLINE Vec<Wide<S>> stored(Vec<Wide<S>> v) {
  if constexpr (rounded && !std::is_same_v<S, Wide<S>>) {
    S memory[lanes<float>];
    store_narrow(static_cast<S*>(memory), v);
    return load_wide(static_cast<const S*>(memory));
  } else {
    return v;
  }
}

// fn(p, g, s0, s1, s2) changes everything but g. Arrays that are not there are zeros and are not written.
template <class S, class F>
CALQUE_INLINE void each_vector(void* const* arrays, int64_t n, F fn) {
  using V = Vec<Wide<S>>;
  constexpr int64_t step = lanes<Wide<S>>;
  S* const p = static_cast<S*>(arrays[0]);
  const S* const g = static_cast<const S*>(arrays[1]);
  S* const s0 = static_cast<S*>(arrays[2]);
  S* const s1 = static_cast<S*>(arrays[3]);
  S* const s2 = static_cast<S*>(arrays[4]);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    V x = load_wide(static_cast<const S*>(p + i)), a{}, b{}, c{};
    if (s0) a = load_wide(static_cast<const S*>(s0 + i));
    if (s1) b = load_wide(static_cast<const S*>(s1 + i));
    if (s2) c = load_wide(static_cast<const S*>(s2 + i));
    fn(x, load_wide(g + i), a, b, c);
    store_narrow(p + i, x);
    if (s0) store_narrow(s0 + i, a);
    if (s1) store_narrow(s1 + i, b);
    if (s2) store_narrow(s2 + i, c);
  }
  if (const int64_t rest = n - i; rest > 0) {
    V x = load_wide_tail(static_cast<const S*>(p + i), rest), a{}, b{}, c{};
    if (s0) a = load_wide_tail(static_cast<const S*>(s0 + i), rest);
    if (s1) b = load_wide_tail(static_cast<const S*>(s1 + i), rest);
    if (s2) c = load_wide_tail(static_cast<const S*>(s2 + i), rest);
    fn(x, load_wide_tail(g + i, rest), a, b, c);
    store_narrow_tail(p + i, x, rest);
    if (s0) store_narrow_tail(s0 + i, a, rest);
    if (s1) store_narrow_tail(s1 + i, b, rest);
    if (s2) store_narrow_tail(s2 + i, c, rest);
  }
}

#define RULE_TYPES                                                          \
  using T = Wide<S>;                                                        \
  using V = Vec<T>;                                                         \
  const auto keep = [](V v) { return stored<S, rounded>(v); };              \
  const auto number = [](double v) { return splat<T>(static_cast<T>(v)); }; \
  const auto factor = [](double v) { return splat<T>(static_cast<T>(static_cast<S>(static_cast<T>(v)))); }

template <class S, bool rounded>
void sgd(void* const* arrays, int64_t n, const void* numbers) {
  RULE_TYPES;
  const SgdUpdate& u = *static_cast<const SgdUpdate*>(numbers);
  const V lr = factor(-u.lr), fresh = factor(1 - u.dampening), decay = factor(u.weight_decay);
  const V momentum = rounded ? number(u.momentum) : factor(u.momentum), ahead = factor(u.momentum);
  each_vector<S>(arrays, n, [&](V& p, V g, V& buffer, V&, V&) {
    if (u.maximize) g = -g;
    if (u.weight_decay != 0) g = keep(fma(p, decay, g));
    if (u.momentum != 0) {
      buffer = u.first ? g : keep(fma(g, fresh, keep(buffer * momentum)));
      g = u.nesterov ? keep(fma(buffer, ahead, g)) : buffer;
    }
    p = fma(g, lr, p);
  });
}

// From the nearer end, rounded once.
template <class V, class T>
CALQUE_INLINE V lerp_by(V start, V end, T weight) {
  return (weight < 0 ? -weight : weight) < T(0.5) ? fma(splat<T>(weight), end - start, start)
                                                  : fma(splat<T>(weight - T(1)), end - start, end);
}
template <class V>
CALQUE_INLINE V larger_or_nan(V a, V b) {
  return a != a ? a : b != b ? b : a > b ? a : b;
}

template <class S, bool rounded>
void adam(void* const* arrays, int64_t n, const void* numbers) {
  RULE_TYPES;
  const AdamUpdate& u = *static_cast<const AdamUpdate*>(numbers);
  const T weight = static_cast<T>(u.lerp_weight);
  const V decay = rounded ? factor(u.weight_decay) : number(u.weight_decay), shrink = number(u.shrink),
          beta2 = number(u.beta2), fresh = number(u.one_minus_beta2);
  const V correction = number(u.correction2_sqrt), eps = rounded ? factor(u.eps) : number(u.eps),
          step = number(-u.step_size);
  each_vector<S>(arrays, n, [&](V& p, V g, V& mean, V& square, V& most) {
    if (u.maximize) g = -g;
    if (u.weight_decay != 0) g = keep(fma(p, decay, g));
    if (u.shrink != 1) p = keep(p * shrink);
    mean = keep(lerp_by(mean, g, weight));
    square = keep(fma(fresh * g, g, keep(square * beta2)));
    V second = square;
    if (u.amsgrad) second = most = larger_or_nan(most, square);
    const V below = keep(keep(keep(v_sqrt(second)) / correction) + eps);
    p = p + step * mean / below;
  });
}

template <class S, bool rounded>
void adagrad(void* const* arrays, int64_t n, const void* numbers) {
  RULE_TYPES;
  const AdagradUpdate& u = *static_cast<const AdagradUpdate*>(numbers);
  const V decay = factor(u.weight_decay), lr = rounded ? number(-u.lr) : factor(-u.lr),
          eps = rounded ? factor(u.eps) : number(u.eps);
  each_vector<S>(arrays, n, [&](V& p, V g, V& sum, V&, V&) {
    if (u.maximize) g = -g;
    if (u.weight_decay != 0) g = keep(fma(p, decay, g));
    sum = keep(fma(g, g, sum));
    p = p + lr * g / keep(keep(v_sqrt(sum)) + eps);
  });
}

template <class S, bool rounded>
void rmsprop(void* const* arrays, int64_t n, const void* numbers) {
  RULE_TYPES;
  const RmspropUpdate& u = *static_cast<const RmspropUpdate*>(numbers);
  const V decay = factor(u.weight_decay), lr = number(-u.lr), alpha = number(u.alpha), fresh = number(u.one_minus_alpha);
  const V eps = factor(u.eps), momentum = number(u.momentum);
  const T weight = static_cast<T>(u.one_minus_alpha);
  each_vector<S>(arrays, n, [&](V& p, V g, V& square, V& buffer, V& mean) {
    if (u.maximize) g = -g;
    if (u.weight_decay != 0) g = keep(fma(p, decay, g));
    square = keep(fma(fresh * g, g, keep(square * alpha)));
    V spread = square;
    if (u.centered) {
      mean = keep(lerp_by(mean, g, weight));
      spread = keep(fma(-mean, mean, square));
    }
    const V below = keep(keep(v_sqrt(spread)) + eps);
    if (u.momentum > 0) {
      buffer = keep(keep(buffer * momentum) + g / below);
      p = fma(buffer, factor(-u.lr), p);
    } else {
      p = p + lr * g / below;
    }
  });
}

#define ROW(rule)                                                                                                \
  UpdateRow {                                                                                                    \
    &rule<float, false>, &rule<double, false>, &rule<BFloat16, true>, &rule<BFloat16, false>, &rule<Half, true>, \
        &rule<Half, false>                                                                                       \
  }

}  // namespace

extern const UpdateRow update_table[];
const UpdateRow update_table[] = {ROW(sgd), ROW(adam), ROW(adagrad), ROW(rmsprop)};  // as in UpdateNumbers

}  // namespace calque::kernel::CALQUE_ISA

#undef RULE_TYPES
#undef ROW

// Random numbers, from PyTorch's CPU generator stream. Generator arguments that are absent mean the default one.
#include <algorithm>

#include "calque/op/aten/empty.h"
#include "calque/tensor/generator.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/random/random.h"
#include "kernel/cpu/reduce/reduce.h"
#include "op/gradient/formulas.h"
#include "op/rule/factory.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

Meta float_factory(const char* op, SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
  const Meta m = rule::factory(op, size, d, l, v, p);
  const bool empty = std::any_of(size.begin(), size.end(),
                                 [](SymInt s) { return !s.is_symbolic() && s.as_int() == 0; });  // nothing is drawn
  if (is_integral(m.dtype) && !empty)
    throw UserError(ErrorKind::unsupported_operator,
                    std::string(op) + ": not implemented for dtype " + std::string(name(m.dtype)));
  return m;
}
Meta randint_rule(SymInt low, SymInt high, SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
  if (!check(low < high))
    throw UserError("randint: random_ expects 'from' to be less than 'to', but got from=" + low.str() +
                    " >= to=" + high.str());
  return rule::factory("randint", size, d ? d : DType::int64, l, v, p);
}
Meta randperm_rule(SymInt n, OptDType d, OptLayout l, OptDevice v, OptBool p) {
  if (!check(n >= 0)) throw UserError("randperm: n must be non-negative, got " + n.str());
  return rule::factory("randperm", SymIntList(&n, 1), d ? d : DType::int64, l, v, p);
}
Meta multinomial_rule(const Tensor& self, SymInt samples, bool replacement, Generator*) {
  if (self.dim() != 1 && self.dim() != 2)
    throw UserError("multinomial: prob_dist must be 1 or 2 dim, found " + std::to_string(self.dim()) + " dimensions");
  if (!is_floating(self.dtype()))
    throw UserError("multinomial: only supports floating-point dtypes for input, found " + std::string(name(self.dtype())));
  if (!check(samples > 0)) throw UserError("multinomial: cannot sample n_sample <= 0 samples, found " + samples.str());
  if (!replacement && !samples.is_symbolic() && !self.sym_size(-1).is_symbolic() &&
      samples.as_int() > self.sym_size(-1).as_int())
    throw UserError("multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement (" +
                    samples.str() + " of " + self.sym_size(-1).str() + ")");
  SymInts sizes;
  if (self.dim() == 2) sizes.push_back(self.sym_size(0));
  sizes.push_back(samples);
  return Meta{sizes, contiguous_strides(sizes), DType::int64, self.device(), false};
}
void check_std(const Tensor& std) {
  if (std.impl().special || std.numel() == 0) return;
  const Tensor least = make_tensor(Meta{{}, {}, std.dtype(), std.device(), false});
  kernel::reduce(kernel::Reduction::amin, std.dtype(), std, rule::all_dims(std.dim()), least);
  const Tensor value = make_tensor(Meta{{}, {}, DType::float64, std.device(), false});
  kernel::copy(least, value);
  if (!(*value.data_as<double>() >= 0)) throw UserError("normal: expects all elements of std >= 0.0");
}
// mean + std * normal(0, 1), drawn before scaling as PyTorch draws it.
Tensor normal_of(const Tensor& mean, const Tensor& std, Generator* g) {
  check_std(std);
  const Tensor out =
      empty(broadcast_sizes(mean.sym_sizes(), std.sym_sizes(), "normal"), mean.dtype(), std::nullopt, mean.device());
  return out.normal_(0, 1, g).mul_(std).add_(mean);
}

// The distributions that have factories: what a tensor of them looks like, and how it is filled.
struct Uniform {
  static constexpr const char* like_name = "rand_like";
  static Meta rule(SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
    return float_factory("rand", size, d, l, v, p);
  }
  static void draw(const Tensor& out, Generator* g) { uniform_kernel(out, 0, 1, g); }
  static void draw(const Tensor& out, Generator* g, SymIntList) { draw(out, g); }
};
struct Normal {
  static constexpr const char* like_name = "randn_like";
  static Meta rule(SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
    return float_factory("randn", size, d, l, v, p);
  }
  static void draw(const Tensor& out, Generator* g) { normal_kernel(out, 0, 1, g); }
  static void draw(const Tensor& out, Generator* g, SymIntList) { draw(out, g); }
};
struct Integers {
  static constexpr const char* like_name = "randint_like";
  static Meta rule(SymInt low, SymInt high, SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
    return randint_rule(low, high, size, d, l, v, p);
  }
  static Meta rule(SymInt high, SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
    return rule(0, high, size, d, l, v, p);
  }
  static void draw(const Tensor& out, Generator* g, SymInt low, SymInt high) {
    random_from_to_kernel(out, low.as_int(), high.as_int(), g);
  }
  static void draw(const Tensor& out, Generator* g, SymInt high) { draw(out, g, 0, high); }
  static void draw(const Tensor& out, Generator* g, SymInt low, SymInt high, SymIntList) { draw(out, g, low, high); }
  static void draw(const Tensor& out, Generator* g, SymInt high, SymIntList) { draw(out, g, 0, high); }
};
struct Permutation {
  static Meta rule(SymInt n, OptDType d, OptLayout l, OptDevice v, OptBool p) { return randperm_rule(n, d, l, v, p); }
  static void draw(const Tensor& out, Generator* g, SymInt) { randperm_kernel(out, g); }
};

// A factory; A are its arguments before the options of the tensor (and the generator).
template <class D, class... A>
OpBuilder& factory(OpBuilder&& op) {
  return op
      .compute([](A... a, OptDType d, OptLayout l, OptDevice v, OptBool p) { return D::rule(a..., d, l, v, p); },
               [](A... a, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { D::draw(out, nullptr, a...); })
      .tags(Tag::random);
}
template <class D, class... A>
OpBuilder& factory_of_generator(OpBuilder&& op) {
  return op
      .compute(
          [](A... a, Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p) { return D::rule(a..., d, l, v, p); },
          [](A... a, Generator* g, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { D::draw(out, g, a...); })
      .tags(Tag::random);
}
template <class D, class... A>
OpBuilder& like(OpBuilder&& op) {
  return op
      .compute([](const Tensor& self, A..., OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like(D::like_name, self, d, l, v, p, f); },
               [](const Tensor&, A... a, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
                 D::draw(out, nullptr, a...);
               })
      .tags(Tag::random)
      .no_gradient();
}
template <class D, class... A>
OpBuilder& like_of_generator(OpBuilder&& op) {
  return op
      .compute([](const Tensor& self, A..., Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like(D::like_name, self, d, l, v, p, f); },
               [](const Tensor&, A... a, Generator* g, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
                  const Tensor& out) { D::draw(out, g, a...); })
      .tags(Tag::random)
      .no_gradient();
}

// self filled by `draw`, whose parameters are A: in place, and as a tensor like self.
template <auto draw, class... A>
OpBuilder& fills(OpBuilder&& op) {
  return op
      .mutate([](const Tensor&, A..., Generator*) {}, [](const Tensor& self, A... a, Generator* g) { draw(self, a..., g); })
      .tags(Tag::random)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
}
template <rule::OpName name, auto draw, class... A>
OpBuilder& filled(OpBuilder&& op) {
  return op
      .compute([](const Tensor& self, A..., Generator*) { return rule::like(name.text, self, {}, {}, {}, {}, {}); },
               [](const Tensor&, A... a, Generator* g, const Tensor& out) { draw(out, a..., g); })
      .tags(Tag::random);
}

constexpr auto bernoulli_of = [](const Tensor& out, const auto& p, Generator* g) { bernoulli_kernel(out, p, g); };
constexpr auto integers_to = [](const Tensor& out, int64_t to, Generator* g) { random_from_to_kernel(out, 0, to, g); };

}  // namespace

void register_random(Library& aten);
void register_random(Library& aten) {
  factory<Uniform, SymIntList>(aten.def("rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                                        "device=None, bool? pin_memory=None) -> Tensor"))
      .tags(Tag::core);
  like<Uniform>(
      aten.def("rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory_of_generator<Uniform, SymIntList>(
      aten.def("rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor"));
  like_of_generator<Uniform>(
      aten.def("rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory<Normal, SymIntList>(aten.def("randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                                       "device=None, bool? pin_memory=None) -> Tensor"))
      .tags(Tag::core);
  like<Normal>(
      aten.def("randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory_of_generator<Normal, SymIntList>(
      aten.def("randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor"));
  like_of_generator<Normal>(
      aten.def("randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory<Integers, SymInt, SymIntList>(
      aten.def("randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor"));
  like<Integers, SymInt>(
      aten.def("randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory_of_generator<Integers, SymInt, SymIntList>(
      aten.def("randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"));
  like_of_generator<Integers, SymInt>(
      aten.def("randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory<Integers, SymInt, SymInt, SymIntList>(
      aten.def("randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor"));
  like<Integers, SymInt, SymInt>(
      aten.def("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"));
  factory_of_generator<Integers, SymInt, SymInt, SymIntList>(
      aten.def("randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? "
               "dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"));
  like_of_generator<Integers, SymInt, SymInt>(
      aten.def("randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType? "
               "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
               "memory_format=None) -> Tensor"));
  factory<Permutation, SymInt>(aten.def("randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? "
                                        "device=None, bool? pin_memory=None) -> Tensor"))
      .tags(Tag::core);
  factory_of_generator<Permutation, SymInt>(
      aten.def("randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor"));
  fills<bernoulli_of, double>(
      aten.def("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)"));
  fills<bernoulli_of, const Tensor&>(
      aten.def("bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)"))
      .gradient("p", "", [](const Gradients& g) { return gradient::zeros_of(g, "p"); });
  filled<"bernoulli.Tensor", bernoulli_of, const Tensor&>(
      aten.def("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor"));
  fills<normal_kernel, double, double>(
      aten.def("normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)"));
  filled<"normal_functional", normal_kernel, double, double>(
      aten.def("normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor"));
  fills<uniform_kernel, double, double>(
      aten.def("uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)"));
  filled<"uniform", uniform_kernel, double, double>(
      aten.def("uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor"));
  fills<exponential_kernel, double>(
      aten.def("exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)"));
  filled<"exponential", exponential_kernel, double>(
      aten.def("exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor"));
  fills<geometric_kernel, double>(
      aten.def("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)"));
  filled<"geometric", geometric_kernel, double>(
      aten.def("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor"));
  fills<cauchy_kernel, double, double>(
      aten.def("cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)"));
  filled<"cauchy", cauchy_kernel, double, double>(
      aten.def("cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor"));
  fills<log_normal_kernel, double, double>(
      aten.def("log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)"));
  filled<"log_normal", log_normal_kernel, double, double>(
      aten.def("log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor"));
  fills<random_from_to_kernel, int64_t, std::optional<int64_t>>(
      aten.def("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)"));
  filled<"random.from", random_from_to_kernel, int64_t, std::optional<int64_t>>(
      aten.def("random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor"));
  fills<integers_to, int64_t>(aten.def("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)"));
  filled<"random.to", integers_to, int64_t>(
      aten.def("random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor"));
  fills<random_kernel>(aten.def("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)"));
  filled<"random", random_kernel>(aten.def("random(Tensor self, *, Generator? generator=None) -> Tensor"));

  aten.def("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self,
                  Generator*) { return rule::like("bernoulli", self, {}, {}, {}, {}, MemoryFormat::contiguous); },
               [](const Tensor& self, Generator* g, const Tensor& out) { bernoulli_kernel(out, self, g); })
      .out("bernoulli.out", Tag::left_whole)
      .tags(Tag::any_out, Tag::random)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, double,
                  Generator*) { return rule::like("bernoulli", self, {}, {}, {}, {}, MemoryFormat::contiguous); },
               [](const Tensor&, double p, Generator* g, const Tensor& out) { bernoulli_kernel(out, p, g); })
      .tags(Tag::random)
      .no_gradient();
  aten.def("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor")
      .compute(multinomial_rule, [](const Tensor& self, SymInt, bool replacement, Generator* g,
                                    const Tensor& out) { multinomial_kernel(out, self, replacement, g); })
      .out("multinomial.out")
      .tags(Tag::random)
      .no_gradient();
  aten.def("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite(normal_of)
      .tags(Tag::random)
      .gradient("mean", "", [](const Gradients& g) { return gradient::zeros_of(g, "mean"); })
      .gradient("std", "", [](const Gradients& g) { return gradient::zeros_of(g, "std"); });
  aten.def("normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](const Tensor& mean, double std, Generator* g) {
        return empty_like(mean, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous)
            .normal_(0, std, g)
            .add_(mean);
      })
      .tags(Tag::random)
      .gradient("mean", "", [](const Gradients& g) { return gradient::zeros_of(g, "mean"); });
  aten.def("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](double mean, const Tensor& std, Generator* g) {
        check_std(std);
        return empty_like(std, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous)
            .normal_(0, 1, g)
            .mul_(std)
            .add_(Scalar(mean));
      })
      .tags(Tag::random)
      .gradient("std", "", [](const Gradients& g) { return gradient::zeros_of(g, "std"); });
  aten.def(
          "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
          "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](double mean, double std, SymIntList size, Generator* g, OptDType d, OptLayout l, OptDevice v,
                    OptBool p) { return empty(size, d, l, v, p).normal_(mean, std, g); })
      .tags(Tag::random);
}

}  // namespace calque

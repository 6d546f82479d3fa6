// Random numbers, from PyTorch's CPU generator stream. Generator arguments that are absent mean the default one.
#include <algorithm>

#include "calque/tensor/generator.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/random/random.h"
#include "kernel/cpu/reduce/reduce.h"
#include "op/rule/factory.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

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

}  // namespace

void register_random(Library& aten);
void register_random(Library& aten) {
  aten.def(
          "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute(
          [](SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
            return float_factory("rand", size, d, l, v, p);
          },
          [](SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { uniform_kernel(out, 0, 1, nullptr); })
      .tags(Tag::random, Tag::core);
  aten.def(
          "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("rand_like", self, d, l, v, p, f); },
               [](const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
                 uniform_kernel(out, 0, 1, nullptr);
               })
      .tags(Tag::random);
  aten.def(
          "rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute([](SymIntList size, Generator*, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return float_factory("rand", size, d, l, v, p); },
               [](SymIntList, Generator* g, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 uniform_kernel(out, 0, 1, g);
               })
      .tags(Tag::random);
  aten.def(
          "rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("rand_like", self, d, l, v, p, f); },
               [](const Tensor&, Generator* g, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
                 uniform_kernel(out, 0, 1, g);
               })
      .tags(Tag::random);
  aten.def(
          "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute(
          [](SymIntList size, OptDType d, OptLayout l, OptDevice v, OptBool p) {
            return float_factory("randn", size, d, l, v, p);
          },
          [](SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { normal_kernel(out, 0, 1, nullptr); })
      .tags(Tag::random, Tag::core);
  aten.def(
          "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("randn_like", self, d, l, v, p, f); },
               [](const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
                 normal_kernel(out, 0, 1, nullptr);
               })
      .tags(Tag::random);
  aten.def(
          "randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute([](SymIntList size, Generator*, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return float_factory("randn", size, d, l, v, p); },
               [](SymIntList, Generator* g, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 normal_kernel(out, 0, 1, g);
               })
      .tags(Tag::random);
  aten.def(
          "randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("randn_like", self, d, l, v, p, f); },
               [](const Tensor&, Generator* g, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
                 normal_kernel(out, 0, 1, g);
               })
      .tags(Tag::random);
  aten.def(
          "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .compute([](SymInt high, SymIntList size, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return randint_rule(0, high, size, d, l, v, p); },
               [](SymInt high, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 random_from_to_kernel(out, 0, high.as_int(), nullptr);
               })
      .tags(Tag::random);
  aten.def(
          "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, SymInt, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("randint_like", self, d, l, v, p, f); },
               [](const Tensor&, SymInt high, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
                 random_from_to_kernel(out, 0, high.as_int(), nullptr);
               })
      .tags(Tag::random);
  aten.def(
          "randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? "
          "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .compute([](SymInt high, SymIntList size, Generator*, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return randint_rule(0, high, size, d, l, v, p); },
               [](SymInt high, SymIntList, Generator* g, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 random_from_to_kernel(out, 0, high.as_int(), g);
               })
      .tags(Tag::random);
  aten.def(
          "randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? "
          "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, SymInt, Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("randint_like", self, d, l, v, p, f); },
               [](const Tensor&, SymInt high, Generator* g, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
                  const Tensor& out) { random_from_to_kernel(out, 0, high.as_int(), g); })
      .tags(Tag::random);
  aten.def(
          "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute([](SymInt low, SymInt high, SymIntList size, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return randint_rule(low, high, size, d, l, v, p); },
               [](SymInt low, SymInt high, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 random_from_to_kernel(out, low.as_int(), high.as_int(), nullptr);
               })
      .tags(Tag::random);
  aten.def(
          "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
          "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, SymInt, SymInt, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("randint_like", self, d, l, v, p, f); },
               [](const Tensor&, SymInt low, SymInt high, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
                  const Tensor& out) { random_from_to_kernel(out, low.as_int(), high.as_int(), nullptr); })
      .tags(Tag::random);
  aten.def(
          "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, "
          "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .compute([](SymInt low, SymInt high, SymIntList size, Generator*, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return randint_rule(low, high, size, d, l, v, p); },
               [](SymInt low, SymInt high, SymIntList, Generator* g, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { random_from_to_kernel(out, low.as_int(), high.as_int(), g); })
      .tags(Tag::random);
  aten.def(
          "randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType? "
          "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) "
          "-> Tensor")
      .compute([](const Tensor& self, SymInt, SymInt, Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("randint_like", self, d, l, v, p, f); },
               [](const Tensor&, SymInt low, SymInt high, Generator* g, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
                  const Tensor& out) { random_from_to_kernel(out, low.as_int(), high.as_int(), g); })
      .tags(Tag::random);
  aten.def(
          "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute([](SymInt n, OptDType d, OptLayout l, OptDevice v, OptBool p) { return randperm_rule(n, d, l, v, p); },
               [](SymInt, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { randperm_kernel(out, nullptr); })
      .tags(Tag::random, Tag::core);
  aten.def(
          "randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute(
          [](SymInt n, Generator*, OptDType d, OptLayout l, OptDevice v, OptBool p) { return randperm_rule(n, d, l, v, p); },
          [](SymInt, Generator* g, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { randperm_kernel(out, g); })
      .tags(Tag::random);
  aten.def("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, Generator*) {},
              [](const Tensor& self, double p, Generator* g) { bernoulli_kernel(self, p, g); })
      .tags(Tag::random);
  aten.def("bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, const Tensor&, Generator*) {},
              [](const Tensor& self, const Tensor& p, Generator* g) { bernoulli_kernel(self, p, g); })
      .tags(Tag::random);
  aten.def("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, const Tensor&,
                  Generator*) { return rule::like("bernoulli.Tensor", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, const Tensor& p, Generator* g, const Tensor& out) { bernoulli_kernel(out, p, g); })
      .tags(Tag::random);
  aten.def("normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, double, Generator*) {},
              [](const Tensor& self, double mean, double std, Generator* g) { normal_kernel(self, mean, std, g); })
      .tags(Tag::random);
  aten.def("normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor")
      .compute(
          [](const Tensor& self, double, double, Generator*) {
            return rule::like("normal_functional", self, {}, {}, {}, {}, {});
          },
          [](const Tensor&, double mean, double std, Generator* g, const Tensor& out) { normal_kernel(out, mean, std, g); })
      .tags(Tag::random);
  aten.def("uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, double, Generator*) {},
              [](const Tensor& self, double from, double to, Generator* g) { uniform_kernel(self, from, to, g); })
      .tags(Tag::random);
  aten.def("uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor")
      .compute(
          [](const Tensor& self, double, double, Generator*) { return rule::like("uniform", self, {}, {}, {}, {}, {}); },
          [](const Tensor&, double from, double to, Generator* g, const Tensor& out) { uniform_kernel(out, from, to, g); })
      .tags(Tag::random);
  aten.def("exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, Generator*) {},
              [](const Tensor& self, double lambd, Generator* g) { exponential_kernel(self, lambd, g); })
      .tags(Tag::random);
  aten.def("exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, double, Generator*) { return rule::like("exponential", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, double lambd, Generator* g, const Tensor& out) { exponential_kernel(out, lambd, g); })
      .tags(Tag::random);
  aten.def("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, Generator*) {},
              [](const Tensor& self, double p, Generator* g) { geometric_kernel(self, p, g); })
      .tags(Tag::random);
  aten.def("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, double, Generator*) { return rule::like("geometric", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, double p, Generator* g, const Tensor& out) { geometric_kernel(out, p, g); })
      .tags(Tag::random);
  aten.def("cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, double, Generator*) {},
              [](const Tensor& self, double median, double sigma, Generator* g) { cauchy_kernel(self, median, sigma, g); })
      .tags(Tag::random);
  aten.def("cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, double, double, Generator*) { return rule::like("cauchy", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, double median, double sigma, Generator* g, const Tensor& out) {
                 cauchy_kernel(out, median, sigma, g);
               })
      .tags(Tag::random);
  aten.def("log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, double, double, Generator*) {},
              [](const Tensor& self, double mean, double std, Generator* g) { log_normal_kernel(self, mean, std, g); })
      .tags(Tag::random);
  aten.def("log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor")
      .compute(
          [](const Tensor& self, double, double, Generator*) { return rule::like("log_normal", self, {}, {}, {}, {}, {}); },
          [](const Tensor&, double mean, double std, Generator* g, const Tensor& out) {
            log_normal_kernel(out, mean, std, g);
          })
      .tags(Tag::random);
  aten.def("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, int64_t, std::optional<int64_t>, Generator*) {},
              [](const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* g) {
                random_from_to_kernel(self, from, to, g);
              })
      .tags(Tag::random);
  aten.def("random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, int64_t, std::optional<int64_t>,
                  Generator*) { return rule::like("random.from", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, int64_t from, std::optional<int64_t> to, Generator* g, const Tensor& out) {
                 random_from_to_kernel(out, from, to, g);
               })
      .tags(Tag::random);
  aten.def("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, int64_t, Generator*) {},
              [](const Tensor& self, int64_t to, Generator* g) { random_from_to_kernel(self, 0, to, g); })
      .tags(Tag::random);
  aten.def("random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, int64_t, Generator*) { return rule::like("random.to", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, int64_t to, Generator* g, const Tensor& out) { random_from_to_kernel(out, 0, to, g); })
      .tags(Tag::random);
  aten.def("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)")
      .mutate([](const Tensor&, Generator*) {}, [](const Tensor& self, Generator* g) { random_kernel(self, g); })
      .tags(Tag::random);
  aten.def("random(Tensor self, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, Generator*) { return rule::like("random", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, Generator* g, const Tensor& out) { random_kernel(out, g); })
      .tags(Tag::random);
  aten.def("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self,
                  Generator*) { return rule::like("bernoulli", self, {}, {}, {}, {}, MemoryFormat::contiguous); },
               [](const Tensor& self, Generator* g, const Tensor& out) { bernoulli_kernel(out, self, g); })
      .out("bernoulli.out", Tag::left_whole)
      .tags(Tag::any_out, Tag::random);
  aten.def("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor")
      .compute([](const Tensor& self, double,
                  Generator*) { return rule::like("bernoulli", self, {}, {}, {}, {}, MemoryFormat::contiguous); },
               [](const Tensor&, double p, Generator* g, const Tensor& out) { bernoulli_kernel(out, p, g); })
      .tags(Tag::random);
  aten.def("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor")
      .compute(multinomial_rule, [](const Tensor& self, SymInt, bool replacement, Generator* g,
                                    const Tensor& out) { multinomial_kernel(out, self, replacement, g); })
      .out("multinomial.out")
      .tags(Tag::random);
  aten.def("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite(normal_of)
      .tags(Tag::random);
  aten.def("normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](const Tensor& mean, double std, Generator* g) {
        return empty_like(mean, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous)
            .normal_(0, std, g)
            .add_(mean);
      })
      .tags(Tag::random);
  aten.def("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](double mean, const Tensor& std, Generator* g) {
        check_std(std);
        return empty_like(std, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous)
            .normal_(0, 1, g)
            .mul_(std)
            .add_(Scalar(mean));
      })
      .tags(Tag::random);
  aten.def(
          "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
          "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](double mean, double std, SymIntList size, Generator* g, OptDType d, OptLayout l, OptDevice v,
                    OptBool p) { return empty(size, d, l, v, p).normal_(mean, std, g); })
      .tags(Tag::random);
}

}  // namespace calque

// Assertions that traced programs carry, and the operators that read a tensor's sizes.
#include <limits>

#include "calque/base/error.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/ternary.h"
#include "calque/sym/shape_env.h"
#include "op/stanza.h"

namespace calque {
namespace {

void expect_equal(const char* what, SymIntList expected, SymIntList found) {
  bool same = expected.size() == found.size();
  for (size_t i = 0; same && i < expected.size(); ++i) same = check(expected[i] == found[i]);
  if (!same)
    throw UserError(std::string("_assert_tensor_metadata: Tensor ") + what + " mismatch! Expected: " + str(expected) +
                    ", Got: " + str(found));
}

void assert_metadata(const Tensor& a, std::optional<SymIntList> size, std::optional<SymIntList> stride,
                     std::optional<DType> dtype, std::optional<Device> device, std::optional<Layout> layout) {
  if (size) expect_equal("sizes", *size, a.sym_sizes());
  if (stride) expect_equal("strides", *stride, a.sym_strides());
  if (dtype && *dtype != a.dtype())
    throw UserError("_assert_tensor_metadata: Tensor dtype mismatch! Expected: " + std::string(name(*dtype)) +
                    ", Got: " + std::string(name(a.dtype())));
  if (device && !(*device == a.device()))
    throw UserError("_assert_tensor_metadata: Tensor device mismatch! Expected: " + device->str() +
                    ", Got: " + a.device().str());
  if (layout && *layout != a.layout())
    throw UserError("_assert_tensor_metadata: Tensor layout mismatch! Expected another layout than strided");
}

void assert_async(const Tensor& self, std::string_view message) {
  const int64_t n = self.numel();
  if (n != 1)
    throw UserError(std::string("_assert_async: Boolean value of Tensor with ") + (n ? "more than one value" : "no values") +
                    " is ambiguous");
  if (!is_nonzero(self)) throw UserError(std::string(message));
}
constexpr std::string_view plain_message = "_assert_async: Expected Tensor with single nonzero value, but got zero";

void assert_scalar(const Scalar& self, std::string_view message) {
  const bool holds = !self.is_symbolic() || !self.is_integral(true) ? self.to_bool()
                     : self.is_boolean()                            ? check(self.sym_bool())
                                                                    : check(self.sym_int() != 0);
  if (!holds) throw UserError(std::string(message));
}

void constrain(const char* op, const Scalar& size, int64_t lower, int64_t upper) {
  if (size.is_complex() || size.is_boolean()) throw UserError(std::string(op) + ": Constraining SymFloat or Symbool is nyi");
  if (lower > upper)
    throw UserError(std::string(op) + ": Max must be greater than or equal to min. Got min=" + std::to_string(lower) +
                    " max=" + std::to_string(upper));
  if (size.is_symbolic()) {
    if (const auto env = env_of(size.sym_int())) env->constrain_range(size.sym_int(), {lower, upper});
    return;
  }
  const int64_t value = size.to_int();
  if (value < lower || value > upper)
    throw UserError(std::string(op) + ": Invalid value range for " + std::to_string(value) + " between [" +
                    std::to_string(lower) + ", " + std::to_string(upper) + "].");
}
void constrain_range(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max) {
  constrain("sym_constrain_range", size, min.value_or(std::numeric_limits<int64_t>::min()),
            max.value_or(std::numeric_limits<int64_t>::max()));
}
// A size that is compiled for takes the value 2 at least, so that a bound below it leaves nothing.
void constrain_size(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max) {
  if (max && *max <= 2)
    throw UserError("sym_constrain_range_for_size: Max value to constrain_range_for_size must be greater than 2. got: " +
                    std::to_string(*max));
  constrain("sym_constrain_range_for_size", size, min.value_or(0), max.value_or(std::numeric_limits<int64_t>::max()));
}

// The functional forms hand their token on, so that what depends on it comes after the check.
Tensor functional_range(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max, const Tensor& token) {
  constrain_range(size, min, max);
  return clone(token);
}
Tensor functional_size(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max, const Tensor& token) {
  constrain_size(size, min, max);
  return clone(token);
}
Tensor functional_scalar(const Scalar& self, std::string_view message, const Tensor& token) {
  assert_scalar(self, message);
  return clone(token);
}

// Elsewhere a 0-d tensor takes 0 and -1; its sizes and strides have no such entry.
const Tensor& need_dims(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) throw UserError("Dimension specified as " + std::to_string(dim) + " but tensor has no dimensions");
  return self;
}

}  // namespace

void register_asserts(Library& aten);
void register_asserts(Library& aten) {
  aten.def(
          "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? "
          "device=None, Layout? layout=None) -> ()")
      .own(assert_metadata, assert_metadata)
      .tags(Tag::side_effect)
      .no_gradient();
  aten.def("_assert_async(Tensor self) -> ()")
      .own([](const Tensor&) {}, [](const Tensor& self) { assert_async(self, plain_message); })
      .tags(Tag::side_effect)
      .no_gradient();
  aten.def("_assert_async.msg(Tensor self, str assert_msg) -> ()")
      .own([](const Tensor&, std::string_view) {}, assert_async)
      .tags(Tag::side_effect)
      .no_gradient();
  aten.def("_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor")
      .own([](const Tensor&, std::string_view, const Tensor& token) { return clone(token); },
           [](const Tensor& self, std::string_view message, const Tensor& token) {
             assert_async(self, message);
             return clone(token);
           })
      .tags(Tag::side_effect);
  aten.def("_assert_scalar(Scalar self, str assert_msg) -> ()").own(assert_scalar, assert_scalar).tags(Tag::side_effect);
  aten.def("_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor")
      .own(functional_scalar, functional_scalar)
      .tags(Tag::side_effect);
  aten.def("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()")
      .own(constrain_range, constrain_range)
      .tags(Tag::side_effect);
  aten.def("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()")
      .own(constrain_size, constrain_size)
      .tags(Tag::side_effect);
  aten.def("_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor")
      .own(functional_range, functional_range)
      .tags(Tag::side_effect);
  aten.def("_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor")
      .own(functional_size, functional_size)
      .tags(Tag::side_effect);
  aten.def(
          "_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
          "MemoryFormat? memory_format=None) -> Tensor")
      .tags(Tag::own_composite)
      .composite([](std::optional<DType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory, std::optional<MemoryFormat>) {
        return empty(SymIntList(), dtype, layout, device, pin_memory, std::nullopt);
      });

  aten.def("sym_size.int(Tensor self, int dim) -> SymInt")
      .tags(Tag::reads_geometry, Tag::repeatable)
      .python("torch.Tensor.size")
      .composite([](const Tensor& self, int64_t dim) { return need_dims(self, dim).sym_size(dim); })
      .tags(Tag::core);
  aten.def("sym_stride.int(Tensor self, int dim) -> SymInt")
      .python("torch.Tensor.stride")
      .composite([](const Tensor& self, int64_t dim) { return need_dims(self, dim).sym_stride(dim); })
      .tags(Tag::reads_geometry, Tag::core);
  aten.def("sym_numel(Tensor self) -> SymInt")
      .tags(Tag::reads_geometry, Tag::own_composite)
      .python("torch.Tensor.numel")
      .composite([](const Tensor& self) { return self.sym_numel(); })
      .tags(Tag::core);
  aten.def("sym_storage_offset(Tensor self) -> SymInt")
      .tags(Tag::reads_geometry, Tag::own_composite)
      .python("torch.Tensor.storage_offset")
      .composite([](const Tensor& self) { return self.sym_storage_offset(); })
      .tags(Tag::core);
  aten.def("sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool")
      .composite([](const Tensor& self, MemoryFormat format) {
        return SymBool(self.is_contiguous(format == MemoryFormat::preserve ? MemoryFormat::contiguous : format));
      });
}

}  // namespace calque

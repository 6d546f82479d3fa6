#include "calque/tensor/dtype.h"

#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "calque/base/error.h"
#include "calque/tensor/default_dtype.h"
#include "calque/tensor/finfo.h"

namespace calque {
namespace {

constexpr std::string_view names[] = {
#define X(name, type, category, number) #name,
    CALQUE_DTYPES(X)
#undef X
};

constexpr int torch_numbers[] = {
#define X(name, type, category, number) number,
    CALQUE_DTYPES(X)
#undef X
};

// Python's other names for the same types.
constexpr std::pair<std::string_view, DType> aliases[] = {
    {"float", DType::float32}, {"double", DType::float64}, {"half", DType::float16},     {"long", DType::int64},
    {"int", DType::int32},     {"short", DType::int16},    {"cfloat", DType::complex64}, {"cdouble", DType::complex128},
};

[[noreturn]] void refuse(DType a, DType b, std::string_view why) {
  throw UserError("cannot promote " + std::string(name(a)) + " and " + std::string(name(b)) + ": " + std::string(why) +
                  "; cast one of them explicitly");
}

std::atomic<DType> current_default{DType::float32};

}  // namespace

bool is_signed(DType d) {
  return d != DType::bool_ && d != DType::uint8 && !is_barebones_unsigned(d) && d != DType::float8_e8m0fnu;
}

std::string_view name(DType d) { return d == DType::bool_ ? "bool" : names[static_cast<size_t>(d)]; }

std::optional<DType> dtype_from_name(std::string_view s) {
  if (s.starts_with("torch.")) s.remove_prefix(6);
  for (DType d : all_dtypes)
    if (name(d) == s) return d;
  for (const auto& [alias, d] : aliases)
    if (alias == s) return d;
  return std::nullopt;
}

double largest_finite(DType d) {
  switch (d) {
    case DType::float16: return 65504;
    case DType::bfloat16: return 0x1.fep127;
    case DType::float32:
    case DType::complex64: return std::numeric_limits<float>::max();
    case DType::float64:
    case DType::complex128: return std::numeric_limits<double>::max();
    case DType::float8_e4m3fn: return 448;
    case DType::float8_e4m3fnuz: return 240;
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz: return 57344;
    case DType::float8_e8m0fnu: return 0x1p127;
    case DType::bool_:
    case DType::uint8:
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64: break;
  }
  throw UserError("finfo: " + std::string(name(d)) + " is no floating-point dtype; cast the tensor to one first");
}

double lowest_finite(DType d) { return d == DType::float8_e8m0fnu ? 0x1p-127 : -largest_finite(d); }

int torch_number(DType d) { return torch_numbers[static_cast<size_t>(d)]; }

std::optional<DType> dtype_from_torch_number(int number) {
  for (DType d : all_dtypes)
    if (torch_number(d) == number) return d;
  return std::nullopt;
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) refuse(a, b, "float8 types do not promote");
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == DType::complex128 || b == DType::complex128 || a == DType::float64 || b == DType::float64;
    return wide ? DType::complex128 : DType::complex64;
  }
  if (is_floating(a) && is_floating(b)) {
    if (a == DType::float64 || b == DType::float64) return DType::float64;
    return DType::float32;  // float32 with anything narrower, or float16 with bfloat16
  }
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (a == DType::bool_) return b;
  if (b == DType::bool_) return a;
  if (is_barebones_unsigned(a) || is_barebones_unsigned(b)) {
    // PyTorch lets a wide unsigned type meet only uint8 (and bool and floats, above).
    if (a == DType::uint8) return b;
    if (b == DType::uint8) return a;
    if (is_barebones_unsigned(a) && is_barebones_unsigned(b)) return item_size(a) > item_size(b) ? a : b;
    refuse(a, b, "uint16, uint32 and uint64 do not promote with signed integers");
  }
  // int8 and uint8 meet in int16; otherwise the wider one holds both.
  if (item_size(a) == 1 && item_size(b) == 1) return DType::int16;
  return item_size(a) > item_size(b) ? a : b;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to)) return false;
  if (from != DType::bool_ && to == DType::bool_) return false;
  return true;
}

DType to_real(DType d) {
  if (d == DType::complex64) return DType::float32;
  if (d == DType::complex128) return DType::float64;
  return d;
}

static DType checked_default(DType d) {
  if (!is_floating(d) || is_float8(d))
    throw UserError("set_default_dtype: expected a floating point dtype, found " + std::string(name(d)));
  return d;
}

DType default_dtype() {
  const std::optional<DType>& scoped = thread_context().default_dtype;
  return scoped ? *scoped : current_default.load(std::memory_order_relaxed);
}

void set_default_dtype(DType d) { current_default.store(checked_default(d), std::memory_order_relaxed); }

DefaultDTypeScope::DefaultDTypeScope(DType dtype) : scope_(checked_default(dtype)) {}

}  // namespace calque

#include "cli/json_text.h"

#include <cmath>

#include <fmt/format.h>

#include "calque/op/aten/view_metadata.h"

namespace calque::cli {
namespace {

OrderedJson number_json(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

// Elements of a contiguous tensor of this kind, row by row.
template <class T>
OrderedJson nested_json(const T* values, std::span<const int64_t> sizes) {
  if (sizes.empty()) {
    if constexpr (std::is_same_v<T, double>)
      return number_json(*values);
    else
      return *values;
  }
  OrderedJson out = OrderedJson::array();
  int64_t step = 1;
  for (const int64_t size : sizes.subspan(1)) step *= size;
  for (int64_t i = 0; i < sizes[0]; ++i) out.push_back(nested_json(values + i * step, sizes.subspan(1)));
  return out;
}

OrderedJson values_json(const Tensor& tensor) {
  const std::vector<int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
  if (is_complex(tensor.dtype())) {
    const Tensor parts = view_as_real(tensor).to(DType::float64).contiguous();
    const std::vector<int64_t> all(parts.sizes().begin(), parts.sizes().end());
    return nested_json(parts.data_as<double>(), all);
  }
  if (is_floating(tensor.dtype())) return nested_json(tensor.to(DType::float64).contiguous().data_as<double>(), sizes);
  if (tensor.dtype() == DType::bool_) return nested_json(tensor.contiguous().data_as<bool>(), sizes);
  return nested_json(tensor.to(DType::int64).contiguous().data_as<int64_t>(), sizes);
}

}  // namespace

OrderedJson to_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return nullptr;
    case Value::Kind::boolean: return value.to_bool();
    case Value::Kind::integer: return value.to_int();
    case Value::Kind::floating: return number_json(value.to_float());
    case Value::Kind::string: return value.to_string();
    case Value::Kind::tensor: return values_json(value.to_tensor());
    case Value::Kind::list:
    case Value::Kind::tuple: {
      OrderedJson out = OrderedJson::array();
      for (const Value& item : value.to_items()) out.push_back(to_json(item));
      return out;
    }
    case Value::Kind::dict: {
      OrderedJson out = OrderedJson::object();
      for (const auto& [key, item] : value.to_dict().items)
        out[key.kind() == Value::Kind::string ? key.to_string() : key.str()] = to_json(item);
      return out;
    }
    case Value::Kind::complex:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::structure: break;
  }
  return value.str();
}

OrderedJson tensor_json(const Tensor& tensor, int64_t most) {
  OrderedJson out;
  out["dtype"] = name(tensor.dtype());
  out["shape"] = std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end());
  out["values"] = tensor.numel() <= most ? values_json(tensor) : OrderedJson(nullptr);
  return out;
}

void print_json(const OrderedJson& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace calque::cli

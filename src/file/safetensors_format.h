// What the reader and the writer of safetensors files share: the dtypes of the format and its limits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "calque/tensor/dtype.h"

namespace calque {

inline constexpr uint64_t safetensors_max_header = 100'000'000;
inline constexpr size_t safetensors_max_dims = 64;  // as many as PyTorch's operators and numpy take
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

struct SafetensorsDType {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;
};

// In ascending rank: a file has its tensors in descending rank, so that each is aligned.
inline constexpr std::array safetensors_dtypes = {
    SafetensorsDType{"BOOL", 8, DType::bool_},
    SafetensorsDType{"F4", 4, std::nullopt},
    SafetensorsDType{"F6_E2M3", 6, std::nullopt},
    SafetensorsDType{"F6_E3M2", 6, std::nullopt},
    SafetensorsDType{"U8", 8, DType::uint8},
    SafetensorsDType{"I8", 8, DType::int8},
    SafetensorsDType{"F8_E5M2", 8, DType::float8_e5m2},
    SafetensorsDType{"F8_E4M3", 8, DType::float8_e4m3fn},
    SafetensorsDType{"F8_E8M0", 8, DType::float8_e8m0fnu},
    SafetensorsDType{"F8_E4M3FNUZ", 8, DType::float8_e4m3fnuz},
    SafetensorsDType{"F8_E5M2FNUZ", 8, DType::float8_e5m2fnuz},
    SafetensorsDType{"I16", 16, DType::int16},
    SafetensorsDType{"U16", 16, DType::uint16},
    SafetensorsDType{"F16", 16, DType::float16},
    SafetensorsDType{"BF16", 16, DType::bfloat16},
    SafetensorsDType{"I32", 32, DType::int32},
    SafetensorsDType{"U32", 32, DType::uint32},
    SafetensorsDType{"F32", 32, DType::float32},
    SafetensorsDType{"C64", 64, DType::complex64},
    SafetensorsDType{"F64", 64, DType::float64},
    SafetensorsDType{"I64", 64, DType::int64},
    SafetensorsDType{"U64", 64, DType::uint64},
};

}  // namespace calque

// Devices, layouts and memory formats: small value types with PyTorch's names. A `cuda` device is a claim that only
// fake tensors can make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace calque {

enum class DeviceType : uint8_t { cpu, meta, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = -1;  // -1: none given
  constexpr Device() = default;
  constexpr Device(DeviceType t, int8_t i = -1) : type(t), index(i) {}
  explicit Device(std::string_view text);  // "cpu", "cuda:0", "meta"; UserError otherwise
  bool operator==(const Device&) const = default;
  std::string str() const;
};

enum class Layout : uint8_t { strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, mkldnn, jagged };
enum class MemoryFormat : uint8_t { contiguous, preserve, channels_last, channels_last_3d };

std::string_view name(Layout l);        // "torch.strided"
std::string_view name(MemoryFormat f);  // "torch.contiguous_format"

}  // namespace calque

#include "calque/tensor/device.h"

#include <charconv>

#include "calque/base/error.h"

namespace calque {
namespace {

constexpr std::string_view type_names[] = {"cpu", "meta", "cuda"};

}  // namespace

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view head = text.substr(0, colon);
  for (size_t i = 0; i < std::size(type_names); ++i) {
    if (head != type_names[i]) continue;
    type = static_cast<DeviceType>(i);
    if (colon == std::string_view::npos) return;
    const std::string_view digits = text.substr(colon + 1);
    int value = -1;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status == std::errc{} && end == digits.data() + digits.size() && value >= 0 && value < 128) {
      index = static_cast<int8_t>(value);
      return;
    }
    break;
  }
  throw UserError("invalid device '" + std::string(text) + "': expected cpu, meta or cuda, optionally with ':index'");
}

std::string Device::str() const {
  std::string s(type_names[static_cast<size_t>(type)]);
  if (index >= 0) s += ":" + std::to_string(index);
  return s;
}

std::string_view name(Layout l) {
  switch (l) {
    case Layout::strided: return "torch.strided";
    case Layout::sparse_coo: return "torch.sparse_coo";
    case Layout::sparse_csr: return "torch.sparse_csr";
    case Layout::sparse_csc: return "torch.sparse_csc";
    case Layout::sparse_bsr: return "torch.sparse_bsr";
    case Layout::sparse_bsc: return "torch.sparse_bsc";
    case Layout::mkldnn: return "torch._mkldnn";
    case Layout::jagged: return "torch.jagged";
  }
  throw InternalError("layout outside its enumeration");
}

std::string_view name(MemoryFormat f) {
  switch (f) {
    case MemoryFormat::contiguous: return "torch.contiguous_format";
    case MemoryFormat::preserve: return "torch.preserve_format";
    case MemoryFormat::channels_last: return "torch.channels_last";
    case MemoryFormat::channels_last_3d: return "torch.channels_last_3d";
  }
  throw InternalError("memory format outside its enumeration");
}

}  // namespace calque

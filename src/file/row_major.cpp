#include "file/row_major.h"

#include <algorithm>
#include <cstring>

namespace calque {
namespace {

template <size_t item>
void gather(std::byte* out, const std::byte* in, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(out + static_cast<size_t>(i) * item, in + i * stride, item);
}

void gather(std::byte* out, const std::byte* in, int64_t count, int64_t stride, size_t item) {
  switch (item) {
    case 1: return gather<1>(out, in, count, stride);
    case 2: return gather<2>(out, in, count, stride);
    case 4: return gather<4>(out, in, count, stride);
    case 8: return gather<8>(out, in, count, stride);
    case 16: return gather<16>(out, in, count, stride);
    default: throw InternalError("row_major: element size " + std::to_string(item));
  }
}

}  // namespace

RowMajorReader::RowMajorReader(const Tensor& tensor)
    : tensor_(tensor),
      data_(static_cast<const std::byte*>(tensor.data())),
      item_(static_cast<size_t>(tensor.element_size())),
      remaining_(static_cast<size_t>(tensor.numel())),
      contiguous_(tensor.is_contiguous()) {
  if (contiguous_) return;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) == 1) continue;
    const int64_t stride = tensor.stride(d) * tensor.element_size();
    // A dimension that continues the one before it joins it.
    if (!sizes_.empty() && strides_.back() == stride * tensor.size(d)) {
      sizes_.back() *= tensor.size(d);
      strides_.back() = stride;
    } else {
      sizes_.push_back(tensor.size(d));
      strides_.push_back(stride);
    }
  }
  if (sizes_.empty()) {
    sizes_.push_back(1);
    strides_.push_back(0);
  }
  index_.resize(sizes_.size());
  std::fill(index_.begin(), index_.end(), 0);
}

const void* RowMajorReader::next(void* buffer, size_t count) {
  count = std::min(count, remaining_);
  remaining_ -= count;
  if (contiguous_) {
    const void* here = data_ + position_ * item_;
    position_ += count;
    return here;
  }
  auto* out = static_cast<std::byte*>(buffer);
  const size_t last = sizes_.size() - 1;
  for (size_t done = 0; done < count;) {
    const std::byte* row = data_;
    for (size_t d = 0; d <= last; ++d) row += index_[d] * strides_[d];
    const int64_t n = std::min(sizes_[last] - index_[last], static_cast<int64_t>(count - done));
    gather(out + done * item_, row, n, strides_[last], item_);
    done += static_cast<size_t>(n);
    index_[last] += n;
    for (size_t d = last; d > 0 && index_[d] == sizes_[d]; --d) {
      index_[d] = 0;
      ++index_[d - 1];
    }
  }
  return buffer;
}

}  // namespace calque

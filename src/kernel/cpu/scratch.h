// Memory that a thread keeps for its kernels between calls, so that a call allocates nothing. One buffer per purpose and
// thread; a request returns uninitialised bytes, 64-byte aligned, that stay valid until the same purpose is asked for again.
#pragma once

#include <cstddef>

namespace calque {

enum class Scratch { packed, block, attention, image, weight, output, reduction, count };

void* scratch_bytes(Scratch purpose, size_t bytes);

template <class T>
T* scratch(Scratch purpose, size_t numbers) {
  return static_cast<T*>(scratch_bytes(purpose, numbers * sizeof(T)));
}

}  // namespace calque

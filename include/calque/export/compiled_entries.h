// What a .pt2 archive made by `calque compile` holds beside a program, in entries that PyTorch ignores: what a plan made of the
// program's state, and for which machine. Only run/ knows what it says (run/stored_weights.h); nothing here is checked but that it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calque/tensor/storage.h"

namespace calque {

struct CompiledEntries {
  struct Block {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  std::string plan;           // JSON
  std::vector<Block> blocks;  // mapped, numbered as the plan has them
  // Of the program's state as it was read: each storage with the checksum that the archive states for it.
  std::vector<std::pair<Ref<Storage>, uint32_t>> checksums = {};
};

}  // namespace calque

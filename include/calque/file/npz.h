// NumPy's .npz files: a zip archive of .npy files, each an array under its name, as numpy.savez and numpy.savez_compressed write them.
// Written are stored entries, which numpy.load and numpy's memory map read.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

// Sorted by name. UserError (bad_file) naming the file and the array; arrays of objects are refused, as in npy.h.
NamedArrays load_npz(const std::string& path);
NamedArrays read_npz(std::span<const std::byte> bytes, const std::string& name);

// The file is written whole or not at all. UserError for a name that is empty, occurs twice or leads out of the archive.
void save_npz(const std::string& path, const NamedArrays& arrays);
std::vector<std::byte> serialize_npz(const NamedArrays& arrays);

}  // namespace calque

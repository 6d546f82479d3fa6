// NumPy's .npy files: a short header that says dtype, sizes and order, then the elements of one tensor. Versions 1 to 3 are read, in
// C and in Fortran order and of either byte order; written is version 1.0, in C order, as numpy.save writes it. Arrays of objects are
// pickles: they are refused, and so are texts, structures and dates.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

// UserError (bad_file) naming the file, what was expected and what was found.
Tensor load_npy(const std::string& path);
Tensor read_npy(std::span<const std::byte> bytes, const std::string& name);  // `name` is what errors call it

// The file is written whole or not at all. Bfloat16 is written as float32, which holds its values: NumPy has no such dtype.
// UserError for 8-bit floats and fake tensors.
void save_npy(const std::string& path, const Tensor& tensor);
std::vector<std::byte> serialize_npy(const Tensor& tensor);

}  // namespace calque

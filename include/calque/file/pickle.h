// Files of torch.save, read and written without Python: the zip form, and the older one without a zip for reading. A
// pickle is a program; only opcodes that make plain data are followed, and of the functions it may name only those that
// rebuild tensors. Whatever else it asks for is a UserError (bad_file) that names it. Tensors are views of the bytes given;
// they keep `owner` alive. Those of a file that a big-endian machine wrote are copies, with their bytes in this machine's order.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calque/file/safetensors.h"
#include "calque/op/value.h"

namespace calque {

struct PickleOptions {
  // Objects of classes that are not known become structures with the class's name and what the object was made of,
  // instead of an error. Functions stay refused.
  bool keep_objects = false;
};

// The whole content. Tensors that were on another device are on the cpu; where a fake mode is on they are its own.
Value load_pickle(const std::string& path, const PickleOptions& options = {});
Value read_pickle(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, const std::string& what,
                  const PickleOptions& options = {});
// A checkpoint: names and tensors (a dict), in the file's order.
NamedTensors load_pickle_tensors(const std::string& path);

// The file that torch.save would write for it; storage that several tensors share is written once. Structures are written
// as dicts where their fields have names, as tuples otherwise. UserError for what has no plain form, and for tensors
// without data.
std::string write_pickle(const Value& value);
// The same into a file, storage by storage, whole or not at all.
void save_pickle(const std::string& path, const Value& value, bool sync = true);

}  // namespace calque

#include "cli/tensor_file.h"

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/file/npy.h"
#include "hub/near_names.h"

namespace calque::cli {
namespace {

std::string stem(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

TensorFile TensorFile::open(const std::string& path) {
  if (path.ends_with(".npz")) return {path, load_npz(path)};
  if (path.ends_with(".npy")) return {path, NamedArrays{{stem(path), load_npy(path)}}};
  return {path, SafetensorsFile::open(path)};
}

std::vector<std::string> TensorFile::names() const {
  if (const auto* file = std::get_if<SafetensorsFile>(&content_)) return file->names();
  std::vector<std::string> out;
  for (const auto& [name, tensor] : std::get<NamedArrays>(content_)) out.push_back(name);
  return out;
}

Tensor TensorFile::tensor(const std::string& name) const {
  if (const auto* file = std::get_if<SafetensorsFile>(&content_)) return file->tensor(name);
  const NamedArrays& arrays = std::get<NamedArrays>(content_);
  const auto at = std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == name; });
  if (at == arrays.end()) throw UserError(path_ + ": expected an array '" + name + "', found none of that name");
  return at->second;
}

Tensor input_tensor(const std::string& command, const std::string& taker, const TensorFile& file, const std::string& name) {
  const std::vector<std::string> names = file.names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return file.tensor(name).clone();  // who takes it may write it
  throw UserError(command + ": " + taker + " takes '" + name + "', which " + file.path() + " does not hold; it holds " +
                  (names.empty() ? "nothing" : join(names, ", ")) + did_you_mean(name, names));
}

const std::vector<std::string>& tensor_file_endings() {
  static const std::vector<std::string> endings = {".safetensors", ".npz", ".npy"};
  return endings;
}

void save_tensors(const std::string& path, const NamedTensors& tensors, const std::optional<SafetensorsMetadata>& others) {
  const bool npz = path.ends_with(".npz"), npy = path.ends_with(".npy");
  if (!npz && !npy) return save_safetensors(path, tensors, others, true, SharedTensors::written_each);
  if (others && !others->empty())
    throw UserError(path + ": expected tensors alone in a numpy file, found '" + others->begin()->first +
                    "', which is none; write .safetensors");
  if (npy && tensors.size() != 1)
    throw UserError(path + ": expected one tensor for a .npy file, found " + std::to_string(tensors.size()) +
                    "; write .npz");
  if (npy) return save_npy(path, tensors[0].second);
  save_npz(path, tensors);
}

}  // namespace calque::cli

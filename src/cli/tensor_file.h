// TensorFile: named tensors as a command takes and gives them: .safetensors, .npz, or .npy, whose one array is called after the file.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "calque/file/npz.h"
#include "calque/file/safetensors.h"

namespace calque::cli {

class TensorFile {
 public:
  static TensorFile open(const std::string& path);  // UserError (bad_file)
  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  Tensor tensor(const std::string& name) const;

 private:
  TensorFile(std::string path, std::variant<SafetensorsFile, NamedArrays> content)
      : path_(std::move(path)), content_(std::move(content)) {}
  std::string path_;
  std::variant<SafetensorsFile, NamedArrays> content_;
};

// A copy of the tensor that `taker` ("the program") takes; UserError, which begins with the command's name, where the file has none so named.
Tensor input_tensor(const std::string& command, const std::string& taker, const TensorFile& file, const std::string& name);

// The endings that save_tensors knows.
const std::vector<std::string>& tensor_file_endings();
// By the ending. `others`, which is no tensor, has a place in safetensors alone: UserError for the others, as for .npy of several.
void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::optional<SafetensorsMetadata>& others = {});

}  // namespace calque::cli

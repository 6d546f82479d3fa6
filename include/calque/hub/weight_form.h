// How the names and tensors of a checkpoint differ from those of its model: files keep older names, or have a tensor for each
// expert where the model has one for all. transformers reads and writes such files in the form of the hub, and so does Calque:
// loading brings a file's tensors into the model's form, saving brings them back. A file in the model's form opens too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calque/file/safetensors.h"

namespace calque {

struct WeightForm {
  // A part of a file's names and what the model has in its place; one that begins with ^ stands at the beginning.
  std::vector<std::pair<std::string, std::string>> renamed = {};
  std::vector<std::pair<std::string, std::string>> old = {};  // the same of older files, which nobody writes any more
  // A tensor of the model, by the end of its name, and the parts of a file that it is made of. For each number in the place of *
  // the parts are concatenated; the results are stacked by number.
  struct Joined {
    std::string whole;               // "mlp.experts.gate_up_proj"
    std::vector<std::string> parts;  // "mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"
  };
  std::vector<Joined> joined = {};

  bool empty() const { return renamed.empty() && old.empty() && joined.empty(); }
  // Numbers that are not complete, or parts of other sizes, stay as they are: a report of keys names them. Without `values` the
  // joined tensors have sizes and dtypes alone.
  NamedTensors of_model(const NamedTensors& of_file, bool values = true) const;
  NamedTensors of_file(const NamedTensors& of_model) const;
};

// A model whose files have another form.
class OwnWeightForm {
 public:
  virtual ~OwnWeightForm() = default;
  virtual WeightForm weight_form() const = 0;
};

}  // namespace calque

// What a checkpoint has otherwise than its model: names of old, and experts one by one where the model has them in one tensor.
// transformers reads and writes such files in the form of the hub, and so does Calque: loading brings a file's tensors into the
// model's form, saving brings them back. A file in the model's form opens too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calque/file/safetensors.h"

namespace calque {

struct WeightForm {
  // A part of a file's names and what the model has in its place; one that begins with ^ stands at the beginning.
  std::vector<std::pair<std::string, std::string>> renamed = {};
  // A tensor of the model, by the end of its name, and those of a file that it is made of: of each number * the parts one after
  // the other, and these one upon the other.
  struct Joined {
    std::string whole;               // "mlp.experts.gate_up_proj"
    std::vector<std::string> parts;  // "mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"
  };
  std::vector<Joined> joined = {};

  bool empty() const { return renamed.empty() && joined.empty(); }
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

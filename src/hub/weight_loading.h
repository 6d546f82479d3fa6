// Tensors of a checkpoint into a model that was made under a MetaParametersScope: names are matched (prefixes of base
// models, older spellings), what fits is taken over without a copy where its dtype is right, what is missing is
// initialised, tied weights become one. Private to hub/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calque/hub/checkpoint.h"
#include "calque/hub/key_report.h"
#include "calque/hub/pretrained_model.h"

namespace calque {

struct WeightOptions {
  DType dtype = DType::float32;
  bool ignore_mismatched_sizes = false;
  bool strict = false;
  bool init_missing = true;  // false: only reports; what is missing stays without data
  bool values = true;        // false: tensors have sizes and dtypes, and no values are read, compared or initialised
  std::vector<std::pair<std::string, std::string>> key_mapping = {};  // regular expression, replacement
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

LoadReport load_weights(PretrainedModel& model, const Checkpoint& checkpoint, const WeightOptions& options);

}  // namespace calque

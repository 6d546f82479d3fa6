// What attention of BERT's kind is made of: Linear layers `query`, `key` and `value`, and dropout of the weights. A family derives
// from it and says how they attend.
#pragma once

#include "attention.h"
#include "calque/hub/config.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"

namespace calque {

struct QueryKeyValue : Module {
  explicit QueryKeyValue(const Config& c);

  int64_t heads, size;
  Child<Linear> query, key, value;
  Child<Dropout> dropout;
};

}  // namespace calque

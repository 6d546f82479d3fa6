// What adapters ask of modules of the zoo that Module itself does not say.
#pragma once

#include "calque/op/tensor.h"

namespace calque {

// An Embedding whose forward multiplies what it looks up by a number.
struct ScaledEmbeddings {
  virtual ~ScaledEmbeddings() = default;
  virtual Tensor scale_of_embeddings() const = 0;
};

// Weights of experts in one tensor: (experts, in, out) where they are transposed, else (experts, out, in).
struct StackedExperts {
  virtual ~StackedExperts() = default;
  virtual bool is_transposed() const = 0;
};

}  // namespace calque

// same(): do two results agree, however they are nested? Lists, tuples, dicts, structures and model outputs are walked together, a
// float64 reference beside them where there is one; tensors are judged by compare_tensors (file/compare.h), everything else has
// to be equal. What comes back names the path of the first difference. The rules are those of PyTorch's torch._dynamo.utils.same.
#pragma once

#include <string>

#include "calque/file/compare.h"
#include "calque/op/value.h"

namespace calque {

struct SameResult {
  bool same = true;
  std::string path;         // of the first difference: ".logits", "[0]['a']"; "" when the whole differs
  std::string reason;       // which rule decided there
  TensorComparison tensor;  // its figures, where two tensors were compared
  explicit operator bool() const { return same; }
};

// `reference` is nested as `a` is, or None: then `a` stands in for it. Structures that cannot be compared (a list beside a
// tensor, dicts of other keys) are a UserError, as is a tensor without data; lists of other lengths only differ. Of a
// QuestionAnsweringModelOutput with a loss the loss alone is compared: its positions are prone to noise.
SameResult same(const Value& a, const Value& b, const Value& reference = {}, const SameOptions& options = {});

}  // namespace calque

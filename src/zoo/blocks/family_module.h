// A module whose class name is the family's prefix ("transformers.models.bert.modeling_bert.Bert") and its own part
// ("SelfAttention"), for blocks that several families share.
#pragma once

#include <string>
#include <utility>

#include "calque/nn/typed.h"

namespace calque {

template <class D>
struct FamilyModule : Typed<D> {
  explicit FamilyModule(std::string family) : family(std::move(family)) {}
  std::string type_name() const override { return family + D::part; }
  std::string family;
};

}  // namespace calque

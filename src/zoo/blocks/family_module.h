// Blocks that several families share: a module's class name is given when it is made, whole, or as the family's prefix
// ("transformers.models.bert.modeling_bert.Bert") before a part of its own ("SelfAttention"). A base holds it, so that it is
// there when the first child or parameter is registered.
#pragma once

#include <string>
#include <utility>

#include "calque/nn/typed.h"

namespace calque {

template <class D, class Base = Module>
struct NamedModule : Typed<D, Base> {
  template <class... Given>
  explicit NamedModule(std::string name, Given&&... given)
      : Typed<D, Base>(std::forward<Given>(given)...), name(std::move(name)) {}
  std::string type_name() const override { return name; }
  std::string name;
};

template <class D, class Base = Module>
struct FamilyModule : Typed<D, Base> {
  template <class... Given>
  explicit FamilyModule(std::string family, Given&&... given)
      : Typed<D, Base>(std::forward<Given>(given)...), family(std::move(family)) {}
  std::string type_name() const override { return family + D::part; }
  std::string family;
};

}  // namespace calque

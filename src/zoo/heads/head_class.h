// Heads as classes of a family, made where they are registered: a head template, the family's model and the class's name are
// all that such a class is. A class that has more to it is written out, and registered with model_class.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/hub/registry.h"

namespace calque {

template <size_t N>
struct ClassPart {  // "ForMaskedLM"
  consteval ClassPart(const char (&part)[N]) { std::copy_n(part, N, text.begin()); }
  std::array<char, N> text;
};

// Family has Model, Pretrained and the array `name`: the module and the prefix of its classes,
// "transformers.models.bert.modeling_bert.Bert".
template <class Family, template <class, class, class> class Head, ClassPart part>
struct FamilyHead : Head<FamilyHead<Family, Head, part>, typename Family::Model, typename Family::Pretrained> {
  using Made = Head<FamilyHead, typename Family::Model, typename Family::Pretrained>;
  using Made::Made;

  static consteval auto joined() {
    constexpr size_t prefix = std::size(Family::name) - 1;
    std::array<char, prefix + part.text.size()> out{};
    std::copy_n(std::begin(Family::name), prefix, out.begin());
    std::copy(part.text.begin(), part.text.end(), out.begin() + prefix);
    return out;
  }
  static constexpr auto full_name = joined();
  static constexpr const char* torch_type = full_name.data();
};

// `arguments` follow the config in the head's constructor; a function of the config stands for its result.
template <class Family, template <class, class, class> class Head, ClassPart part, class... Arguments>
ModelClass head_class(std::vector<std::string> tasks, Arguments... arguments) {
  using M = FamilyHead<Family, Head, part>;
  const std::string name = M::torch_type;
  const auto make = [arguments...](const Config& config) {
    const auto value = [&](const auto& argument) {
      if constexpr (std::is_invocable_v<decltype(argument), const Config&>)
        return argument(config);
      else
        return argument;
    };
    return finished_model(std::make_shared<M>(config, value(arguments)...));
  };
  return {name.substr(name.rfind('.') + 1), std::move(tasks), make};
}

}  // namespace calque

#include "calque/nn/functional_call.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace calque {
namespace {

std::string quoted(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

// Every name under which a module holds a tensor, by tensor.
std::unordered_map<const TensorImpl*, std::vector<std::string>> tied_names(const Module& module) {
  std::unordered_map<const TensorImpl*, std::vector<std::string>> names;
  for (const auto& tensors : {module.named_parameters("", true, false), module.named_buffers("", true, false)})
    for (const auto& [name, tensor] : tensors) names[&tensor.impl()].push_back(name);
  return names;
}

}  // namespace

FunctionalCall::FunctionalCall(Module& module, const StateDict& parameters_and_buffers, FunctionalCallOptions options) {
  std::map<std::string, Tensor> given(parameters_and_buffers.begin(), parameters_and_buffers.end());
  if (options.tie_weights) {
    for (auto& [impl, names] : tied_names(module)) {
      if (names.size() < 2) continue;
      const Tensor* first = nullptr;
      for (const std::string& name : names) {
        const Tensor* tensor = parameters_and_buffers.find(name);
        if (!tensor) continue;
        if (first && !first->is_same(*tensor)) {
          std::sort(names.begin(), names.end());
          throw UserError("functional_call got multiple values for keys [" + quoted(names) +
                          "], which are tied. Consider using tie_weights=False");
        }
        first = tensor;
      }
      if (!first) continue;
      for (const std::string& name : names) given[name] = *first;
    }
  }
  if (options.strict) {
    std::set<std::string> known;
    for (const auto& tensors : {module.named_parameters("", true, false), module.named_buffers("", true, false)})
      for (const auto& [name, tensor] : tensors) known.insert(name);
    std::vector<std::string> unexpected, missing;
    for (const auto& [name, tensor] : given)
      if (!known.contains(name)) unexpected.push_back(name);
    for (const std::string& name : known)
      if (!given.contains(name)) missing.push_back(name);
    std::string text;
    if (!unexpected.empty()) text += "\n\tUnexpected key(s): " + quoted(unexpected) + ".";
    if (!missing.empty()) text += "\n\tMissing key(s): " + quoted(missing) + ".";
    if (!text.empty()) throw UserError("Error(s) in reparametrizing for " + module.class_name() + ":" + text);
  }
  // All slots are found before the first is changed.
  std::vector<std::pair<TensorSlot*, Tensor>> exchange;
  for (const auto& [name, tensor] : given) {
    const auto [parent, last] = module.split_path(name);
    if (TensorSlot* slot = parent->find_slot(last)) exchange.emplace_back(slot, tensor);
  }
  own_.reserve(exchange.size());
  for (auto& [slot, tensor] : exchange) own_.emplace_back(slot, std::exchange(slot->tensor, tensor));
}

FunctionalCall::~FunctionalCall() {
  // Backwards: a slot of a module with several names was exchanged once for each of them.
  for (auto it = own_.rbegin(); it != own_.rend(); ++it) it->first->tensor = std::move(it->second);
}

Value functional_call(Module& module, const StateDict& parameters_and_buffers, Values args, Kwargs kwargs,
                      FunctionalCallOptions options) {
  const FunctionalCall exchanged(module, parameters_and_buffers, options);
  return module.call(std::move(args), std::move(kwargs));
}

}  // namespace calque

#include "calque/nn/container.h"

#include <typeinfo>

#include "base/join.h"
#include "nn/text.h"

namespace calque {

// A class derived from a container has its own name and says itself how it is copied.
#define CALQUE_CONTAINER(NAME)                                                                        \
  std::string NAME::type_name() const {                                                               \
    return typeid(*this) == typeid(NAME) ? "torch.nn.modules.container." #NAME : Module::type_name(); \
  }                                                                                                   \
  std::shared_ptr<Module> NAME::copy_self() const {                                                   \
    if (typeid(*this) == typeid(NAME)) return std::make_shared<NAME>(*this);                          \
    return Module::copy_self();                                                                       \
  }
CALQUE_CONTAINER(ModuleList)
CALQUE_CONTAINER(Sequential)
CALQUE_CONTAINER(ModuleDict)
CALQUE_CONTAINER(ParameterList)
CALQUE_CONTAINER(ParameterDict)
#undef CALQUE_CONTAINER

// ---- lists of modules -----------------------------------------------------------------------------------------------

size_t ModuleSequence::position(int64_t index) const {
  const auto count = static_cast<int64_t>(size());
  if (index < -count || index >= count)
    throw UserError(class_name() + ": index " + std::to_string(index) + " is out of range");
  return static_cast<size_t>(index < 0 ? index + count : index);
}

std::shared_ptr<Module> ModuleSequence::ptr(int64_t index) const {
  const ModuleSlot& slot = *module_slots()[position(index)];
  thread_context().reached_slot = slot.number;
  return slot.module;
}

void ModuleSequence::wrong_class(int64_t index) const {
  throw UserError(class_name() + ": the module at " + std::to_string(index) + " is a " + (*this)[index].type_name() +
                  ", another class was asked for");
}

void ModuleSequence::append(std::shared_ptr<Module> module) { register_module(std::to_string(size()), std::move(module)); }

void ModuleSequence::set(int64_t index, std::shared_ptr<Module> module) {
  register_module(module_slots()[position(index)]->name, std::move(module));
}

void ModuleSequence::insert(int64_t index, std::shared_ptr<Module> module) {
  const auto count = static_cast<int64_t>(size());
  if (index < -count || index > count)
    throw UserError(class_name() + ": index " + std::to_string(index) + " is out of range");
  const auto at = static_cast<size_t>(index < 0 ? index + count : index);
  append(nullptr);
  for (size_t i = size() - 1; i > at; --i) register_module(module_slots()[i]->name, module_slots()[i - 1]->module);
  register_module(module_slots()[at]->name, std::move(module));
}

void ModuleSequence::erase(int64_t index) {
  for (size_t i = position(index); i + 1 < size(); ++i)
    register_module(module_slots()[i]->name, module_slots()[i + 1]->module);
  delete_attribute(std::string(module_slots().back()->name));
}

ModuleList::ModuleList(std::vector<std::shared_ptr<Module>> modules) {
  for (auto& module : modules) append(std::move(module));
}

std::string ModuleList::str() const {
  if (empty()) return class_name() + "()";
  std::string out = class_name() + "(";
  for (size_t first = 0; first < size();) {
    const std::string text = (*this)[static_cast<int64_t>(first)].str();
    size_t last = first;
    while (last + 1 < size() && (*this)[static_cast<int64_t>(last + 1)].str() == text) ++last;
    std::string line = "(" + std::to_string(first);
    line += first == last ? "): " : "-" + std::to_string(last) + "): " + std::to_string(last - first + 1) + " x ";
    out += "\n  " + nn_detail::indented(line + text);
    first = last + 1;
  }
  return out + "\n)";
}

Sequential::Sequential(std::vector<std::shared_ptr<Module>> modules) {
  for (auto& module : modules) append(std::move(module));
}

Sequential::Sequential(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules) {
  for (auto& [name, module] : modules) register_module(std::move(name), std::move(module));
}

Value Sequential::forward_values(const Values& args, const Kwargs& kwargs) {
  const Value* input = nullptr;
  bind_arguments(args, kwargs, std::span<const Value*>(&input, 1));
  if (!input) nn_detail::missing_argument(*this, 0);
  Value value = *input;
  for (const auto& slot : module_slots()) {
    thread_context().reached_slot = slot->number;
    value = slot->module->call({std::move(value)});
  }
  return value;
}

ModuleDict::ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules) {
  for (auto& [name, module] : modules) register_module(std::move(name), std::move(module));
}

// ---- parameters -----------------------------------------------------------------------------------------------------

static std::string parameter_lines(const Module& module, bool by_dtype) {
  std::string out;
  for (const auto& slot : module.parameter_slots()) {
    const std::string sizes = join(slot->tensor.sym_sizes(), "x", [](const SymInt& size) { return size.str(); });
    out += (out.empty() ? "  (" : "\n  (") + slot->name + "): Parameter containing: [" +
           (by_dtype ? "torch." + std::string(name(slot->tensor.dtype())) : nn_detail::legacy_type(slot->tensor.dtype())) +
           " of size " + sizes + "]";
  }
  return out;
}

ParameterList::ParameterList(const std::vector<Tensor>& values) {
  for (const Tensor& value : values) append(value);
}

std::string ParameterList::extra_repr() const { return parameter_lines(*this, true); }

const Tensor& ParameterList::operator[](int64_t index) const {
  const auto count = static_cast<int64_t>(size());
  if (index < -count || index >= count)
    throw UserError(class_name() + ": index " + std::to_string(index) + " is out of range");
  return parameter_slots()[static_cast<size_t>(index < 0 ? index + count : index)]->tensor;
}

void ParameterList::append(const Tensor& value) { register_parameter(std::to_string(size()), value); }

ParameterDict::ParameterDict(const std::vector<std::pair<std::string, Tensor>>& values) {
  for (const auto& [key, value] : values) register_parameter(key, value);
}

std::string ParameterDict::extra_repr() const { return parameter_lines(*this, false); }

}  // namespace calque

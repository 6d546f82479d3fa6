// Modules that hold others: Sequential (calls them in turn), ModuleList, ModuleDict, ParameterList, ParameterDict.
// Children of lists are named by their position. Items may be any module; a typed view of them is `items<M>()`.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/nn/typed.h"

namespace calque {

namespace nn_detail {
// A module made on the spot, which may be moved from.
template <class M>
concept ModuleMadeHere = std::derived_from<M, Module> && !std::is_reference_v<M>;

template <ModuleMadeHere... M>
std::vector<std::shared_ptr<Module>> shared_modules(M&&... modules) {
  return {shared_module(std::unique_ptr<Module>(new M(std::move(modules))))...};
}
}  // namespace nn_detail

// A list of modules under "0", "1", ...; negative positions count from the end.
struct ModuleSequence : Module {
  size_t size() const { return module_slots().size(); }
  bool empty() const { return size() == 0; }
  Module& operator[](int64_t index) const { return *ptr(index); }
  std::shared_ptr<Module> ptr(int64_t index) const;  // UserError "index 3 is out of range"
  // The item as a class it has; UserError otherwise.
  template <class M>
  M& at(int64_t index) const {
    M* found = dynamic_cast<M*>(&(*this)[index]);
    if (!found) wrong_class(index);
    return *found;
  }
  template <class M>
  std::vector<M*> items() const {
    std::vector<M*> out;
    for (size_t i = 0; i < size(); ++i) out.push_back(&at<M>(static_cast<int64_t>(i)));
    return out;
  }
  void append(std::shared_ptr<Module> module);
  // Makes the item and returns it.
  template <class M, class... A>
  M& emplace(A&&... args) {
    M* module = new M(std::forward<A>(args)...);
    append(nn_detail::shared_module(std::unique_ptr<Module>(module)));
    return *module;
  }
  void set(int64_t index, std::shared_ptr<Module> module);
  void insert(int64_t index, std::shared_ptr<Module> module);
  void erase(int64_t index);  // those behind move up

 private:
  [[noreturn]] void wrong_class(int64_t index) const;
  size_t position(int64_t index) const;
};

struct ModuleList : ModuleSequence {
  ModuleList() = default;
  explicit ModuleList(std::vector<std::shared_ptr<Module>> modules);
  template <nn_detail::ModuleMadeHere First, nn_detail::ModuleMadeHere... M>
    requires(sizeof...(M) > 0 || !std::same_as<First, ModuleList>)
  explicit ModuleList(First&& first, M&&... modules)
      : ModuleList(nn_detail::shared_modules(std::forward<First>(first), std::forward<M>(modules)...)) {}
  std::string type_name() const override;
  std::string str() const override;  // repeated items once, with their number

 protected:
  std::shared_ptr<Module> copy_self() const override;
};

// Takes and gives what its first and last module do; a result that is a tuple is one argument of the next.
struct Sequential : ModuleSequence {
  Sequential() = default;
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules);
  // Sequential(Linear(3, 8), ReLU()).
  template <nn_detail::ModuleMadeHere First, nn_detail::ModuleMadeHere... M>
    requires(sizeof...(M) > 0 || !std::same_as<First, Sequential>)
  explicit Sequential(First&& first, M&&... modules)
      : Sequential(nn_detail::shared_modules(std::forward<First>(first), std::forward<M>(modules)...)) {}
  explicit Sequential(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules);  // under other names
  std::string type_name() const override;
  std::vector<std::string> argument_names() const override { return {"input"}; }
  Value forward_values(const Values& args, const Kwargs& kwargs) override;
  Tensor operator()(const Tensor& input) { return call({input}).to_tensor(); }

 protected:
  std::shared_ptr<Module> copy_self() const override;
};

struct ModuleDict : Module {
  ModuleDict() = default;
  explicit ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules);
  std::string type_name() const override;
  size_t size() const { return module_slots().size(); }
  bool contains(std::string_view key) const { return find_submodule(key) != nullptr; }
  Module& operator[](std::string_view key) const { return get_submodule(key); }
  void set(std::string key, std::shared_ptr<Module> module) { register_module(std::move(key), std::move(module)); }

 protected:
  std::shared_ptr<Module> copy_self() const override;
};

struct ParameterList : Module {
  ParameterList() = default;
  explicit ParameterList(const std::vector<Tensor>& values);
  std::string type_name() const override;
  std::string extra_repr() const override;
  size_t size() const { return parameter_slots().size(); }
  const Tensor& operator[](int64_t index) const;
  void append(const Tensor& value);

 protected:
  std::shared_ptr<Module> copy_self() const override;
};

struct ParameterDict : Module {
  ParameterDict() = default;
  explicit ParameterDict(const std::vector<std::pair<std::string, Tensor>>& values);
  std::string type_name() const override;
  std::string extra_repr() const override;
  size_t size() const { return parameter_slots().size(); }
  const Tensor& operator[](std::string_view key) const { return get_parameter(key); }
  void set(std::string key, const Tensor& value) { register_parameter(std::move(key), value); }

 protected:
  std::shared_ptr<Module> copy_self() const override;
};

}  // namespace calque

// Module: parameters, buffers and child modules under names, in the order of registration, and a call. PyTorch's
// nn.Module: same names, order, texts. A module is held by shared_ptr and owns its slots; handles (Parameter, Buffer,
// Child in nn/typed.h) point into them, so that a tensor or child replaced in the module is what its forward sees.
// A module may be moved (a function that makes one returns it); copying is explicit (deep_copy), and a C++ copy is a UserError.
// A module with state that lies plainly among the members of another is a UserError when the other is called first: it was meant
// to be a child. A module must not be changed while another thread runs it. Write modules with Typed (nn/typed.h); derive from Module itself only where arguments are not known in advance.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/nn/observer.h"
#include "calque/nn/state_dict.h"
#include "calque/op/value.h"

namespace calque {

template <class M>
class Child;
struct ForwardSignature;
struct ModuleHooks;

// Where a module keeps one of its tensors; lives as long as the module.
struct TensorSlot {
  std::string name;
  Tensor tensor;  // undefined for None
  bool is_parameter = false;
  bool persistent = true;
  bool is_constant = false;
};

// Where a module keeps one of its children.
namespace nn_detail {
uint64_t next_slot_number();
}  // namespace nn_detail

struct ModuleSlot {
  std::string name;
  std::shared_ptr<Module> module;                   // null for None
  uint64_t changes = 0;                             // how often it was replaced
  uint64_t number = nn_detail::next_slot_number();  // no other slot of the process has it, also not a later one
};

// A module's view of one of its own tensors. Reads as the tensor; assigning replaces the tensor in the module.
class TensorMember {
 public:
  operator const Tensor&() const { return slot_->tensor; }
  const Tensor& operator*() const { return slot_->tensor; }
  const Tensor* operator->() const { return &slot_->tensor; }
  bool defined() const { return slot_->tensor.defined(); }

 protected:
  explicit TensorMember(TensorSlot& slot) : slot_(&slot) {}
  TensorMember(const TensorMember& other);  // of the same slot; while a module is copied, of the copy's
  TensorMember(TensorMember&& other) noexcept = default;
  TensorMember& operator=(const TensorMember& other);
  TensorSlot* slot_;
};

class Parameter : public TensorMember {
 public:
  explicit Parameter(TensorSlot& slot) : TensorMember(slot) {}
  Parameter& operator=(const Tensor& tensor);
};

class Buffer : public TensorMember {
 public:
  explicit Buffer(TensorSlot& slot) : TensorMember(slot) {}
  Buffer& operator=(const Tensor& tensor);
};

// A tensor that belongs to a module's code, not to its state: PyTorch's plain tensor attribute. It is in no state dict and
// no conversion reaches it; an exported program finds it under its name.
class Constant : public TensorMember {
 public:
  explicit Constant(TensorSlot& slot) : TensorMember(slot) {}
  Constant& operator=(const Tensor& tensor);
};

// Takes a hook away again. It may outlive the module, and may be dropped without removing.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<ModuleHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  void remove();

 private:
  std::weak_ptr<ModuleHooks> hooks_;
  uint64_t id_ = 0;
};

class Module : public std::enable_shared_from_this<Module> {
 public:
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
  using NamedModules = std::vector<std::pair<std::string, Module*>>;

  Module() = default;
  // What is moved keeps its tensors and children, and handles to them stay good. What it was moved from is empty.
  Module(Module&& other) noexcept;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  // ---- what it is ---------------------------------------------------------------------------------------------------
  // PyTorch's qualified class name, "torch.nn.modules.linear.Linear"; by default the C++ type's, with dots.
  virtual std::string type_name() const;
  std::string class_name() const;  // its last part
  virtual std::string extra_repr() const { return ""; }
  virtual std::string str() const;  // as PyTorch prints it
  // The names of forward's arguments, for keyword calls and exported programs.
  virtual std::vector<std::string> argument_names() const { return {}; }
  // What is known of their kinds and of the result's structure (nn/signature.h).
  virtual ForwardSignature forward_signature() const;
  // Null, or the module that this one stands in front of (an adapter's base layer): a Child that is asked for members shows those.
  virtual Module* wrapped_module() const { return nullptr; }

  // ---- registration -------------------------------------------------------------------------------------------------
  // A name taken by the same kind is replaced, by another kind a UserError. An undefined tensor or null module is
  // None. The tensor itself is kept, so one tensor under two names stays one; a parameter comes to require gradients.
  Parameter register_parameter(std::string name, const Tensor& tensor, bool requires_grad = true);
  Buffer register_buffer(std::string name, const Tensor& tensor, bool persistent = true);
  Constant register_constant(std::string name, const Tensor& tensor);
  void register_module(std::string name, std::shared_ptr<Module> module);
  // Makes a child and registers it (nn/typed.h).
  template <class M, class... A>
  Child<M> child(std::string_view name, A&&... args);
  template <class M>
  Child<M> child_module(std::string_view name, std::shared_ptr<M> module);
  // A parameter, buffer, constant or child of this module. What pointed to it sees None from now on.
  void delete_attribute(std::string_view name);

  // ---- lookup by dotted path; "" is the module itself ---------------------------------------------------------------
  // find gives null, get throws PyTorch's text.
  Module* find_submodule(std::string_view path) const;
  Module& get_submodule(std::string_view path) const;
  std::shared_ptr<Module> get_submodule_ptr(std::string_view path) const;  // UserError for ""
  void set_submodule(std::string_view path, std::shared_ptr<Module> module, bool strict = false);
  void delete_submodule(std::string_view path);
  const Tensor& get_parameter(std::string_view path) const;
  const Tensor& get_buffer(std::string_view path) const;
  // Parameter, buffer or constant; null when there is none (or it is None).
  const Tensor* find_tensor(std::string_view path) const;
  void set_tensor(std::string_view path, const Tensor& tensor);  // replaces one that is there

  // ---- traversal, in PyTorch's order --------------------------------------------------------------------------------
  NamedTensors named_parameters(const std::string& prefix = "", bool recurse = true, bool remove_duplicate = true) const;
  NamedTensors named_buffers(const std::string& prefix = "", bool recurse = true, bool remove_duplicate = true) const;
  NamedTensors named_constants(const std::string& prefix = "", bool recurse = true, bool remove_duplicate = true) const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  // The module itself first. The pointers are good as long as the tree is not changed.
  NamedModules named_modules(const std::string& prefix = "", bool remove_duplicate = true);
  NamedModules named_children() const;  // each child once
  std::vector<Module*> modules();
  std::vector<Module*> children() const;
  // Every slot as registered, None and duplicates included.
  const std::vector<std::unique_ptr<ModuleSlot>>& module_slots() const { return children_; }
  const std::vector<std::unique_ptr<TensorSlot>>& parameter_slots() const { return parameters_; }
  const std::vector<std::unique_ptr<TensorSlot>>& buffer_slots() const { return buffers_; }
  const std::vector<std::unique_ptr<TensorSlot>>& constant_slots() const { return constants_; }

  // ---- state --------------------------------------------------------------------------------------------------------
  StateDict state_dict(const std::string& prefix = "");
  // Copies into the tensors that are there, or with `assign` takes the given ones instead. Everything is checked
  // before anything is written; the UserError lists all that does not fit.
  IncompatibleKeys load_state_dict(const StateDict& state, bool strict = true, bool assign = false);
  virtual int64_t version() const { return 1; }

  bool training() const { return training_; }
  Module& train(bool mode = true);
  Module& eval() { return train(false); }
  Module& apply(const std::function<void(Module&)>& fn);  // children first
  Module& requires_grad_(bool requires_grad = true);
  // Floating-point and complex tensors to `dtype`, all to `device`. Parameters keep their identity.
  Module& to(std::optional<DType> dtype, std::optional<Device> device = std::nullopt);
  Module& to(Device device) { return to(std::nullopt, device); }
  Module& to_empty(Device device);
  // Every parameter's data and every buffer replaced by fn of it, children first.
  Module& convert_tensors(const std::function<Tensor(const Tensor&)>& fn);

  // Modules, tensors and storages that are shared stay shared among the copies. Hooks are copied, their handles not.
  // `copy_tensor`, asked once for each tensor, says what stands for it in the copy.
  std::shared_ptr<Module> deep_copy(const std::function<Tensor(const Tensor&)>& copy_tensor = {}) const;

  // ---- calling ------------------------------------------------------------------------------------------------------
  // Observers, hooks, forward.
  Value call(Values args, Kwargs kwargs = {});
  // The module's computation alone.
  virtual Value forward_values(const Values& args, const Kwargs& kwargs);

  struct Call {
    Values args;
    Kwargs kwargs;
  };
  using ForwardPreHook = std::function<std::optional<Call>(Module&, const Values&, const Kwargs&)>;
  using ForwardHook = std::function<std::optional<Value>(Module&, const Values&, const Kwargs&, const Value& result)>;
  using StateDictPreHook = std::function<void(Module&, const std::string& prefix)>;
  using StateDictHook = std::function<void(Module&, StateDict&, const std::string& prefix)>;
  using LoadPreHook = std::function<void(Module&, StateDict&, const std::string& prefix, IncompatibleKeys&,
                                         std::vector<std::string>& errors)>;
  using LoadPostHook = std::function<void(Module&, IncompatibleKeys&)>;

  bool is_watched() const { return hooks_ || module_observers_active(); }  // a call is not forward alone
  HookHandle register_forward_pre_hook(ForwardPreHook hook, bool prepend = false);
  // With `always_call` the hook also runs when forward throws: it then gets None as the result, and its own exception becomes a
  // warning.
  HookHandle register_forward_hook(ForwardHook hook, bool prepend = false, bool always_call = false);
  HookHandle register_state_dict_pre_hook(StateDictPreHook hook);
  HookHandle register_state_dict_post_hook(StateDictHook hook);
  HookHandle register_load_state_dict_pre_hook(LoadPreHook hook);
  HookHandle register_load_state_dict_post_hook(LoadPostHook hook);

 protected:
  // Only within deep_copy(): slots are copied, handles in the derived class find theirs.
  Module(const Module& other);
  // A new object of the same class made by its copy constructor; Typed defines it.
  virtual std::shared_ptr<Module> copy_self() const;
  // Before this module's own tensors are looked up: what older checkpoints lack is added here.
  virtual void upgrade_state(StateDict& state, const std::string& prefix, std::optional<int64_t> version);
  // Arguments by position and keyword into the places of argument_names(); a place not given stays null.
  void bind_arguments(const Values& args, const Kwargs& kwargs, std::span<const Value*> places) const;
  ModuleSlot& module_slot(std::string_view name) const;  // InternalError when missing
  ModuleSlot& add_child(std::string_view name, std::shared_ptr<Module> module);

 private:
  template <class M>
  friend class Child;
  friend class FunctionalCall;
  friend struct PlainMembers;
  struct Loading;
  ModuleHooks& hooks();
  static void replace(ModuleSlot& slot, std::shared_ptr<Module> module);
  void check_name(const char* kind, const std::string& name, const void* own_slot) const;
  TensorSlot* find_slot(std::string_view name) const;
  std::pair<Module*, std::string_view> split_path(std::string_view path) const;  // parent and last name
  NamedTensors named_tensors(std::vector<std::unique_ptr<TensorSlot>> Module::*member, const std::string& prefix,
                             bool recurse, bool remove_duplicate) const;
  void save_state(StateDict& out, const std::string& prefix);
  void load_state(Loading& loading, const std::string& prefix);
  void finish_loading(IncompatibleKeys& keys);
  Value call_with_hooks(Values args, Kwargs kwargs);

  bool training_ = true;
  mutable bool noted_ = false;  // as one that holds state
  mutable std::atomic<bool> looked_for_plain_members_ = false;
  std::vector<std::unique_ptr<TensorSlot>> parameters_;
  std::vector<std::unique_ptr<TensorSlot>> buffers_;
  std::vector<std::unique_ptr<TensorSlot>> constants_;
  std::vector<std::unique_ptr<ModuleSlot>> children_;
  // What was deleted: handles may still point here.
  std::vector<std::unique_ptr<TensorSlot>> deleted_tensors_;
  std::vector<std::unique_ptr<ModuleSlot>> deleted_modules_;
  std::shared_ptr<ModuleHooks> hooks_;  // null until there is one
};

// The copy as the class it is.
template <class M>
std::shared_ptr<M> deep_copy(const M& module, const std::function<Tensor(const Tensor&)>& copy_tensor = {}) {
  return std::static_pointer_cast<M>(module.Module::deep_copy(copy_tensor));
}

namespace nn_detail {
// The slot itself; while a module is copied, the one that stands for it in the copy.
ModuleSlot& copied_slot(ModuleSlot& original);
}  // namespace nn_detail

}  // namespace calque

#include "calque/nn/module.h"

#include <atomic>
#include <typeinfo>
#include <unordered_set>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>

#include <cstdlib>
#endif

#include "base/join.h"
#include "calque/nn/meta_parameters.h"
#include "calque/nn/typed.h"
#include "nn/hooks.h"
#include "nn/plain_members.h"
#include "nn/text.h"

namespace calque {
namespace {

std::string readable_type(const char* mangled) {
#if __has_include(<cxxabi.h>)
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : mangled;
#else
  return mangled;
#endif
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

template <class Slot>
Slot* find_in(const std::vector<std::unique_ptr<Slot>>& slots, std::string_view name) {
  for (const auto& slot : slots)
    if (slot->name == name) return slot.get();
  return nullptr;
}

template <class Slot>
std::unique_ptr<Slot> take_from(std::vector<std::unique_ptr<Slot>>& slots, std::string_view name) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i]->name != name) continue;
    std::unique_ptr<Slot> taken = std::move(slots[i]);
    slots.erase(slots.begin() + static_cast<ptrdiff_t>(i));
    return taken;
  }
  return nullptr;
}

}  // namespace

uint64_t nn_detail::next_slot_number() {
  static std::atomic<uint64_t> last{0};  // 0 is no slot's
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::string nn_detail::indented(const std::string& text) {
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    if (at > 0) {
      out += '\n';
      if (line.find_first_not_of(" \t\r") != std::string_view::npos)
        out += "  ";
      else {
        at = end + 1;
        continue;
      }
    }
    out += line;
    at = end + 1;
  }
  return out;
}

std::string nn_detail::legacy_type(DType dtype) {
  static constexpr std::pair<DType, const char*> names[] = {{DType::float32, "Float"},
                                                            {DType::float64, "Double"},
                                                            {DType::float16, "Half"},
                                                            {DType::bfloat16, "BFloat16"},
                                                            {DType::int64, "Long"},
                                                            {DType::int32, "Int"},
                                                            {DType::int16, "Short"},
                                                            {DType::int8, "Char"},
                                                            {DType::uint8, "Byte"},
                                                            {DType::bool_, "Bool"},
                                                            {DType::complex64, "ComplexFloat"},
                                                            {DType::complex128, "ComplexDouble"}};
  for (const auto& [of, text] : names)
    if (of == dtype) return "torch." + std::string(text) + "Tensor";
  return "torch." + std::string(name(dtype));
}

Module::Module(Module&& other) noexcept
    : std::enable_shared_from_this<Module>(),
      training_(other.training_),
      parameters_(std::move(other.parameters_)),
      buffers_(std::move(other.buffers_)),
      constants_(std::move(other.constants_)),
      children_(std::move(other.children_)),
      deleted_tensors_(std::move(other.deleted_tensors_)),
      deleted_modules_(std::move(other.deleted_modules_)),
      hooks_(std::move(other.hooks_)) {
  PlainMembers::move(other, *this);
}

Module::~Module() { PlainMembers::forget(*this); }

// ---- what it is -----------------------------------------------------------------------------------------------------

std::string Module::type_name() const {
  std::string name = readable_type(typeid(*this).name());
  replace_all(name, "(anonymous namespace)::", "");
  replace_all(name, "::", ".");
  return name;
}

std::string Module::class_name() const {
  std::string name = type_name();
  const size_t arguments = name.find('<');
  const size_t dot = name.rfind('.', arguments);
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::string Module::str() const {
  std::vector<std::string> lines;
  const std::string extra = extra_repr();
  if (!extra.empty()) {
    size_t at = 0;
    for (size_t end = extra.find('\n'); end != std::string::npos; end = extra.find('\n', at)) {
      lines.push_back(extra.substr(at, end - at));
      at = end + 1;
    }
    lines.push_back(extra.substr(at));
  }
  if (lines.size() == 1 && children_.empty()) return class_name() + "(" + lines[0] + ")";
  for (const auto& child : children_)
    lines.push_back("(" + child->name + "): " + (child->module ? nn_detail::indented(child->module->str()) : "None"));
  std::string out = class_name() + "(";
  for (const std::string& line : lines) out += "\n  " + line;
  return out + (lines.empty() ? ")" : "\n)");
}

// ---- registration ---------------------------------------------------------------------------------------------------

void Module::check_name(const char* kind, const std::string& name, const void* own_slot) const {
  // Classes that keep their name as a member may still be under construction: it is asked for when something is wrong.
  const auto refused = [&](const std::string& why) { throw UserError(class_name() + ": " + why); };
  if (name.find('.') != std::string::npos) refused(std::string(kind) + " name can't contain \".\", got: " + name);
  if (name.empty()) refused(std::string(kind) + " name can't be empty string \"\"");
  if (own_slot) return;
  if (find_slot(name) || find_in(children_, name)) refused("attribute '" + name + "' already exists");
}

Parameter Module::register_parameter(std::string name, const Tensor& tensor, bool requires_grad) {
  TensorSlot* slot = find_in(parameters_, name);
  check_name("parameter", name, slot);
  if (tensor.defined()) {
    if (!tensor.is_leaf())
      throw UserError(class_name() + ": cannot assign non-leaf Tensor to parameter '" + name +
                      "': a parameter is not the result of other tensors that require gradients (use detach())");
    if (requires_grad) tensor.set_requires_grad();
  }
  if (!slot) {
    PlainMembers::note(*this);
    parameters_.push_back(std::make_unique<TensorSlot>());
    slot = parameters_.back().get();
    slot->name = std::move(name);
    slot->is_parameter = true;
  }
  slot->tensor = tensor;
  if (MetaParametersScope::active() && tensor.defined() && tensor.device().type != DeviceType::meta && !tensor.is_fake()) {
    Meta meta = tensor.meta();
    meta.device = Device(DeviceType::meta);
    slot->tensor = make_tensor(meta);
    slot->tensor.set_requires_grad(tensor.requires_grad());
  }
  return Parameter(*slot);
}

Buffer Module::register_buffer(std::string name, const Tensor& tensor, bool persistent) {
  TensorSlot* slot = find_in(buffers_, name);
  check_name("buffer", name, slot);
  if (!slot) {
    PlainMembers::note(*this);
    buffers_.push_back(std::make_unique<TensorSlot>());
    slot = buffers_.back().get();
    slot->name = std::move(name);
  }
  slot->tensor = tensor;
  slot->persistent = persistent;
  return Buffer(*slot);
}

Constant Module::register_constant(std::string name, const Tensor& tensor) {
  TensorSlot* slot = find_in(constants_, name);
  check_name("constant", name, slot);
  if (!slot) {
    PlainMembers::note(*this);
    constants_.push_back(std::make_unique<TensorSlot>());
    slot = constants_.back().get();
    slot->name = std::move(name);
    slot->is_constant = true;
    slot->persistent = false;
  }
  slot->tensor = tensor;
  return Constant(*slot);
}

void Module::replace(ModuleSlot& slot, std::shared_ptr<Module> module) {
  slot.module = std::move(module);
  ++slot.changes;
}

void Module::register_module(std::string name, std::shared_ptr<Module> module) {
  ModuleSlot* slot = find_in(children_, name);
  check_name("module", name, slot);
  if (!slot) {
    PlainMembers::note(*this);
    children_.push_back(std::make_unique<ModuleSlot>());
    slot = children_.back().get();
    slot->name = std::move(name);
  }
  replace(*slot, std::move(module));
}

void Module::delete_attribute(std::string_view name) {
  for (auto* slots : {&parameters_, &buffers_, &constants_}) {
    if (auto slot = take_from(*slots, name)) {
      slot->tensor = Tensor();
      deleted_tensors_.push_back(std::move(slot));
      return;
    }
  }
  auto slot = take_from(children_, name);
  if (!slot) throw UserError(class_name() + " has no attribute `" + std::string(name) + "`");
  replace(*slot, nullptr);
  deleted_modules_.push_back(std::move(slot));
}

Parameter& Parameter::operator=(const Tensor& tensor) {
  if (tensor.defined() && slot_->tensor.defined() && slot_->tensor.requires_grad()) tensor.set_requires_grad();
  slot_->tensor = tensor;
  return *this;
}

Buffer& Buffer::operator=(const Tensor& tensor) {
  slot_->tensor = tensor;
  return *this;
}

Constant& Constant::operator=(const Tensor& tensor) {
  slot_->tensor = tensor;
  return *this;
}

TensorMember& TensorMember::operator=(const TensorMember& other) {
  slot_->tensor = other.slot_->tensor;
  return *this;
}

// ---- lookup ---------------------------------------------------------------------------------------------------------

TensorSlot* Module::find_slot(std::string_view name) const {
  if (TensorSlot* slot = find_in(parameters_, name)) return slot;
  if (TensorSlot* slot = find_in(buffers_, name)) return slot;
  return find_in(constants_, name);
}

ModuleSlot& Module::module_slot(std::string_view name) const {
  ModuleSlot* slot = find_in(children_, name);
  internal_assert(slot != nullptr, "a module's slot is missing");
  return *slot;
}

ModuleSlot& Module::add_child(std::string_view name, std::shared_ptr<Module> module) {
  register_module(std::string(name), std::move(module));
  return module_slot(name);
}

Module* Module::find_submodule(std::string_view path) const {
  const Module* module = this;
  while (module && !path.empty()) {
    const size_t dot = path.find('.');
    const ModuleSlot* slot = find_in(module->children_, path.substr(0, dot));
    module = slot ? slot->module.get() : nullptr;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return const_cast<Module*>(module);
}

Module& Module::get_submodule(std::string_view path) const {
  const Module* module = this;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string name(path.substr(0, dot));
    const ModuleSlot* slot = find_in(module->children_, name);
    if (!slot && !module->find_slot(name)) throw UserError(module->class_name() + " has no attribute `" + name + "`");
    if (!slot || !slot->module) throw UserError("`" + name + "` is not an nn.Module");
    thread_context().reached_slot = slot->number;
    module = slot->module.get();
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return const_cast<Module&>(*module);
}

std::shared_ptr<Module> Module::get_submodule_ptr(std::string_view path) const {
  if (path.empty()) throw UserError(class_name() + ": get_submodule_ptr needs a name");
  get_submodule(path);
  const auto [parent, name] = split_path(path);
  return parent->module_slot(name).module;
}

std::pair<Module*, std::string_view> Module::split_path(std::string_view path) const {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {const_cast<Module*>(this), path};
  return {&get_submodule(path.substr(0, dot)), path.substr(dot + 1)};
}

void Module::set_submodule(std::string_view path, std::shared_ptr<Module> module, bool strict) {
  if (path.empty()) throw UserError("Cannot set the submodule without a target name!");
  if (!module) throw UserError(class_name() + ": set_submodule of `" + std::string(path) + "` needs a module, found none");
  const auto [parent, last] = split_path(path);
  const std::string name(last);
  ModuleSlot* slot = find_in(parent->children_, name);
  if (!slot && parent->find_slot(name)) throw UserError("`" + name + "` is not an nn.Module");
  if (strict && !slot) throw UserError(parent->class_name() + " has no attribute `" + name + "`");
  if (slot && !slot->module) throw UserError("`" + name + "` is not an nn.Module");
  parent->register_module(name, std::move(module));
}

void Module::delete_submodule(std::string_view path) {
  get_submodule(path);
  const auto [parent, name] = split_path(path);
  parent->delete_attribute(name);
}

const Tensor& Module::get_parameter(std::string_view path) const {
  const auto [parent, name] = split_path(path);
  const TensorSlot* slot = parent->find_slot(name);
  if (!slot && !find_in(parent->children_, name))
    throw UserError(parent->class_name() + " has no attribute `" + std::string(name) + "`");
  if (!slot || !slot->is_parameter || !slot->tensor.defined())
    throw UserError("`" + std::string(name) + "` is not an nn.Parameter");
  return slot->tensor;
}

const Tensor& Module::get_buffer(std::string_view path) const {
  const auto [parent, name] = split_path(path);
  const TensorSlot* slot = parent->find_slot(name);
  if (!slot && !find_in(parent->children_, name))
    throw UserError(parent->class_name() + " has no attribute `" + std::string(name) + "`");
  if (!slot || slot->is_parameter || slot->is_constant) throw UserError("`" + std::string(name) + "` is not a buffer");
  return slot->tensor;
}

const Tensor* Module::find_tensor(std::string_view path) const {
  const size_t dot = path.rfind('.');
  const Module* parent = dot == std::string_view::npos ? this : find_submodule(path.substr(0, dot));
  const TensorSlot* slot = parent ? parent->find_slot(dot == std::string_view::npos ? path : path.substr(dot + 1)) : nullptr;
  return slot && slot->tensor.defined() ? &slot->tensor : nullptr;
}

void Module::set_tensor(std::string_view path, const Tensor& tensor) {
  const auto [parent, name] = split_path(path);
  TensorSlot* slot = parent->find_slot(name);
  if (!slot) throw UserError(parent->class_name() + " has no attribute `" + std::string(name) + "`");
  slot->tensor = tensor;
}

// ---- traversal ------------------------------------------------------------------------------------------------------

static void collect_modules(Module& module, const std::string& prefix, bool remove_duplicate,
                            std::unordered_set<const Module*>& seen, Module::NamedModules& out) {
  if (remove_duplicate && !seen.insert(&module).second) return;
  out.emplace_back(prefix, &module);
  for (const auto& child : module.module_slots())
    if (child->module) collect_modules(*child->module, dotted(prefix, child->name), remove_duplicate, seen, out);
}

Module::NamedModules Module::named_modules(const std::string& prefix, bool remove_duplicate) {
  NamedModules out;
  std::unordered_set<const Module*> seen;
  collect_modules(*this, prefix, remove_duplicate, seen, out);
  return out;
}

Module::NamedModules Module::named_children() const {
  NamedModules out;
  std::unordered_set<const Module*> seen;
  for (const auto& child : children_)
    if (child->module && seen.insert(child->module.get()).second) out.emplace_back(child->name, child->module.get());
  return out;
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> out;
  for (const auto& [name, module] : named_modules()) out.push_back(module);
  return out;
}

std::vector<Module*> Module::children() const {
  std::vector<Module*> out;
  for (const auto& [name, module] : named_children()) out.push_back(module);
  return out;
}

Module::NamedTensors Module::named_tensors(std::vector<std::unique_ptr<TensorSlot>> Module::*member,
                                           const std::string& prefix, bool recurse, bool remove_duplicate) const {
  NamedModules modules{{prefix, const_cast<Module*>(this)}};
  if (recurse) modules = const_cast<Module*>(this)->named_modules(prefix, remove_duplicate);
  NamedTensors out;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [path, module] : modules) {
    for (const auto& slot : module->*member) {
      if (!slot->tensor.defined()) continue;
      if (remove_duplicate && !seen.insert(&slot->tensor.impl()).second) continue;
      out.emplace_back(dotted(path, slot->name), slot->tensor);
    }
  }
  return out;
}

Module::NamedTensors Module::named_parameters(const std::string& prefix, bool recurse, bool remove_duplicate) const {
  return named_tensors(&Module::parameters_, prefix, recurse, remove_duplicate);
}

Module::NamedTensors Module::named_buffers(const std::string& prefix, bool recurse, bool remove_duplicate) const {
  return named_tensors(&Module::buffers_, prefix, recurse, remove_duplicate);
}

Module::NamedTensors Module::named_constants(const std::string& prefix, bool recurse, bool remove_duplicate) const {
  return named_tensors(&Module::constants_, prefix, recurse, remove_duplicate);
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  std::vector<Tensor> out;
  for (auto& [name, tensor] : named_parameters("", recurse)) out.push_back(std::move(tensor));
  return out;
}

std::vector<Tensor> Module::buffers(bool recurse) const {
  std::vector<Tensor> out;
  for (auto& [name, tensor] : named_buffers("", recurse)) out.push_back(std::move(tensor));
  return out;
}

Module& Module::train(bool mode) {
  training_ = mode;
  for (Module* child : children()) child->train(mode);
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& fn) {
  for (Module* child : children()) child->apply(fn);
  fn(*this);
  return *this;
}

Module& Module::requires_grad_(bool requires_grad) {
  for (const Tensor& parameter : parameters()) parameter.set_requires_grad(requires_grad);
  return *this;
}

}  // namespace calque

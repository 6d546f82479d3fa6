// What a module holds: state dicts in and out, conversion to other dtypes and devices.
#include <algorithm>

#include "calque/base/warning.h"
#include "calque/nn/module.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/owner.h"
#include "nn/hooks.h"

namespace calque {

// ---- StateDict ------------------------------------------------------------------------------------------------------

StateDict::StateDict(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

StateDict::StateDict(std::vector<Item> items) {
  for (Item& item : items) set(std::move(item.first), std::move(item.second));
}

void StateDict::set(std::string name, Tensor tensor) {
  const auto [at, fresh] = position_.try_emplace(name, items_.size());
  if (fresh)
    items_.emplace_back(std::move(name), std::move(tensor));
  else
    items_[at->second].second = std::move(tensor);
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto at = position_.find(name);
  return at == position_.end() ? nullptr : &items_[at->second].second;
}

const Tensor& StateDict::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (!tensor) throw UserError("the state dict has no key \"" + std::string(name) + "\"");
  return *tensor;
}

bool StateDict::erase(std::string_view name) {
  const auto at = position_.find(name);
  if (at == position_.end()) return false;
  const size_t position = at->second;
  position_.erase(at);
  items_.erase(items_.begin() + static_cast<ptrdiff_t>(position));
  index_from(position);
  return true;
}

void StateDict::rename(std::string_view name, std::string to) {
  const auto at = position_.find(name);
  if (at == position_.end()) throw UserError("the state dict has no key \"" + std::string(name) + "\" to rename");
  if (contains(to)) throw UserError("the state dict has a key \"" + to + "\" already");
  const size_t position = at->second;
  position_.erase(at);
  position_.emplace(to, position);
  items_[position].first = std::move(to);
}

std::vector<const StateDict::Item*> StateDict::items_under(std::string_view prefix) const {
  std::vector<const Item*> out;
  for (auto at = position_.lower_bound(prefix); at != position_.end() && at->first.starts_with(prefix); ++at)
    out.push_back(&items_[at->second]);
  std::sort(out.begin(), out.end());
  return out;
}

void StateDict::index_from(size_t first) {
  for (size_t i = first; i < items_.size(); ++i) position_.find(items_[i].first)->second = i;
}

// ---- out ------------------------------------------------------------------------------------------------------------

StateDict Module::state_dict(const std::string& prefix) {
  StateDict out;
  save_state(out, prefix);
  return out;
}

void Module::save_state(StateDict& out, const std::string& prefix) {
  out.versions[prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1)] = version();
  if (hooks_)
    for (const auto& entry : hooks_->state_dict_pre) entry.hook(*this, prefix);
  for (const auto& slot : parameters_)
    if (slot->tensor.defined()) out.set(prefix + slot->name, slot->tensor);
  for (const auto& slot : buffers_)
    if (slot->persistent && slot->tensor.defined()) out.set(prefix + slot->name, slot->tensor);
  for (const auto& child : children_)
    if (child->module) child->module->save_state(out, prefix + child->name + ".");
  if (hooks_)
    for (const auto& entry : hooks_->state_dict_post) entry.hook(*this, out, prefix);
}

// ---- in -------------------------------------------------------------------------------------------------------------

struct Module::Loading {
  StateDict state;
  IncompatibleKeys keys;
  std::vector<std::string> errors;
  std::vector<std::pair<TensorSlot*, Tensor>> found;
  std::vector<Module*> visited;  // children before their parents
  bool has_post_hooks = false;
  bool assign = false;
};

void Module::upgrade_state(StateDict&, const std::string&, std::optional<int64_t>) {}

void Module::load_state(Loading& loading, const std::string& prefix) {
  StateDict& state = loading.state;
  const auto version =
      state.versions.find(prefix.empty() ? std::string_view() : std::string_view(prefix).substr(0, prefix.size() - 1));
  upgrade_state(state, prefix, version == state.versions.end() ? std::nullopt : std::optional<int64_t>(version->second));
  if (hooks_) {
    for (const auto& entry : hooks_->load_pre) entry.hook(*this, state, prefix, loading.keys, loading.errors);
    loading.has_post_hooks = loading.has_post_hooks || !hooks_->load_post.empty();
  }
  const auto find = [&](TensorSlot& slot) {
    if (!slot.tensor.defined() || !slot.persistent) return;
    const std::string key = prefix + slot.name;
    const Tensor* given = state.find(key);
    if (!given) {
      loading.keys.missing_keys.push_back(key);
      return;
    }
    Tensor tensor = *given;
    // Scalars were once saved as lists of one.
    if (slot.tensor.dim() == 0 && tensor.dim() == 1 && guard_or(tensor.sym_size(0) == 1, false))
      tensor = tensor.select(0, 0);
    const std::string found = calque::str(tensor.sym_sizes());
    const std::string expected = calque::str(slot.tensor.sym_sizes());
    if (found != expected) {
      loading.errors.push_back("size mismatch for " + key + ": copying a param with shape torch.Size(" + found +
                               ") from checkpoint, the shape in current model is torch.Size(" + expected + ").");
      return;
    }
    if (!loading.assign && slot.tensor.device().type == DeviceType::meta && tensor.device().type != DeviceType::meta) {
      warn("for " + key +
           ": copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
           "no-op. (Did you mean to pass "
           "assign=true to take the tensors of the state dict instead of copying them in place?)");
    }
    loading.found.emplace_back(&slot, std::move(tensor));
  };
  for (const auto& slot : parameters_) find(*slot);
  for (const auto& slot : buffers_) find(*slot);
  const auto own = [&](std::string_view name) {
    const TensorSlot* slot = find_slot(name);
    return slot && slot->tensor.defined() && slot->persistent;
  };
  for (const StateDict::Item* item : state.items_under(prefix)) {
    const std::string_view rest = std::string_view(item->first).substr(prefix.size());
    const size_t dot = rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    bool known = dot == std::string_view::npos && own(name);
    if (dot != std::string_view::npos)
      for (const auto& child : children_) known = known || child->name == name;
    if (!known) loading.keys.unexpected_keys.push_back(item->first);
  }
  for (const auto& child : children_)
    if (child->module) child->module->load_state(loading, prefix + child->name + ".");
  loading.visited.push_back(this);
}

void Module::finish_loading(IncompatibleKeys& keys) {
  if (!hooks_) return;
  for (const auto& entry : hooks_->load_post) entry.hook(*this, keys);
}

static std::string quoted_keys(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "\"" : ", \"") + key + "\"";
  return out;
}

IncompatibleKeys Module::load_state_dict(const StateDict& state, bool strict, bool assign) {
  Loading loading;
  loading.state = state;
  loading.assign = assign;
  load_state(loading, "");
  const auto complete = [&] {
    return !strict || (loading.keys.missing_keys.empty() && loading.keys.unexpected_keys.empty());
  };
  // Only hooks that come after the copying can make an incomplete state good.
  if (loading.errors.empty() && (complete() || loading.has_post_hooks)) {
    const GradModeScope no_grad(false);
    for (auto& [slot, tensor] : loading.found) {
      if (!assign) {
        slot->tensor.copy_(tensor);
        continue;
      }
      if (slot->is_parameter && tensor.requires_grad() != slot->tensor.requires_grad()) {
        Tensor own = tensor.detach();
        own.set_requires_grad(slot->tensor.requires_grad());
        tensor = own;
      }
      slot->tensor = tensor;
    }
    for (Module* module : loading.visited) module->finish_loading(loading.keys);
  }
  if (!complete() || !loading.errors.empty()) {
    std::string text = "Error(s) in loading state_dict for " + class_name() + ":";
    if (strict && !loading.keys.missing_keys.empty())
      text += "\n\tMissing key(s) in state_dict: " + quoted_keys(loading.keys.missing_keys) + ". ";
    if (strict && !loading.keys.unexpected_keys.empty())
      text += "\n\tUnexpected key(s) in state_dict: " + quoted_keys(loading.keys.unexpected_keys) + ". ";
    for (const std::string& error : loading.errors) text += "\n\t" + error;
    throw UserError(text);
  }
  return loading.keys;
}

// ---- conversion -----------------------------------------------------------------------------------------------------

// The tensor keeps its identity and gets the sizes, bytes, dtype and device of another: `parameter.data = ...`.
static void set_data(const Tensor& tensor, const Tensor& data) {
  TensorImpl& to = tensor.impl();
  const TensorImpl& from = data.impl();
  to.take_layout(from);
  to.storage = from.storage;
  to.special = from.special;
  to.is_view = from.is_view;
  to.extra = extra_for_copy(from);
}

Module& Module::convert_tensors(const std::function<Tensor(const Tensor&)>& fn) {
  for (Module* child : children()) child->convert_tensors(fn);
  const GradModeScope no_grad(false);
  for (const auto& slot : parameters_) {
    if (!slot->tensor.defined()) continue;
    const Tensor now = fn(slot->tensor);
    if (!now.is_same(slot->tensor)) set_data(slot->tensor, now);
  }
  for (const auto& slot : buffers_)
    if (slot->tensor.defined()) slot->tensor = fn(slot->tensor);
  return *this;
}

Module& Module::to(std::optional<DType> dtype, std::optional<Device> device) {
  if (dtype && !is_floating(*dtype) && !is_complex(*dtype))
    throw UserError("nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch." +
                    std::string(name(*dtype)));
  return convert_tensors([&](const Tensor& t) {
    const bool casts = dtype && (is_floating(t.dtype()) || is_complex(t.dtype()));
    const DType to_dtype = casts ? *dtype : t.dtype();
    const Device to_device = device ? *device : t.device();
    if (to_dtype == t.dtype() && to_device == t.device()) return t;
    if (t.device().type == DeviceType::meta && to_device.type != DeviceType::meta) {
      throw UserError(
          "Cannot copy out of meta tensor; no data! Please use to_empty() instead of to() when moving module from meta to a "
          "different device.");
    }
    if (to_device.type == DeviceType::meta) return empty_like(t, to_dtype, std::nullopt, to_device);  // nothing to copy into
    return calque::to(t, to_device, to_dtype);
  });
}

Module& Module::to_empty(Device device) {
  return convert_tensors([&](const Tensor& t) { return empty_like(t, std::nullopt, std::nullopt, device); });
}

}  // namespace calque

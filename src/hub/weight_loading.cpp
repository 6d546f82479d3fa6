#include "hub/weight_loading.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <regex>
#include <unordered_map>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/file/mapped_file.h"
#include "calque/hub/weight_form.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/ternary.h"
#include "hub/weight_init.h"

namespace calque {

namespace {

struct LoadTarget {
  std::string name;
  TensorSlot* slot;
  bool loaded = false;
  bool mismatched = false;
};

// Where the model keeps what a checkpoint may bring, and the names of its other buffers.
struct LoadTargets {
  std::vector<LoadTarget> all;  // in the state dict's order
  std::unordered_map<std::string, size_t> position;
  std::unordered_set<std::string> other_buffers;

  LoadTarget* find(const std::string& name) {
    const auto at = position.find(name);
    return at == position.end() ? nullptr : &all[at->second];
  }
  bool missing(const std::string& name) const {
    const auto at = position.find(name);
    return at == position.end() || !all[at->second].loaded;
  }
};

void collect_targets(const Module& module, const std::string& prefix, LoadTargets& out) {
  const auto add = [&](const std::unique_ptr<TensorSlot>& slot) {
    if (!slot->tensor.defined()) return;
    if (!slot->persistent) {
      out.other_buffers.insert(prefix + slot->name);
      return;
    }
    out.position.emplace(prefix + slot->name, out.all.size());
    out.all.push_back({prefix + slot->name, slot.get()});
  };
  for (const auto& slot : module.parameter_slots()) add(slot);
  for (const auto& slot : module.buffer_slots()) add(slot);
  for (const auto& child : module.module_slots())
    if (child->module) collect_targets(*child->module, prefix + child->name + ".", out);
}

void replace_every(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Spellings of older checkpoints. A key is tried as it is first.
std::vector<std::string> spellings(const std::string& key) {
  static constexpr std::pair<std::string_view, std::string_view> older[] = {
      {"gamma", "weight"},
      {"beta", "bias"},
      {".weight_g", ".parametrizations.weight.original0"},
      {".weight_v", ".parametrizations.weight.original1"},
      {".parametrizations.weight.original0", ".weight_g"},
      {".parametrizations.weight.original1", ".weight_v"},
      {"encoder.layer.", "encoder.layers."},  // AltCLIP is written either way
      {"encoder.layers.", "encoder.layer."},
  };
  std::vector<std::string> out{key};
  for (const auto& [from, to] : older) {
    if (key.find(from) == std::string::npos) continue;
    out.push_back(key);
    replace_every(out.back(), from, to);
  }
  return out;
}

// Which tensor of the checkpoint goes where. Files of a base model and of a model with a head differ by the base model's
// prefix; which of the two a file is, is decided for the file as a whole, since a head may have names that the base has too.
class KeyMatcher {
 public:
  KeyMatcher(PretrainedModel& model, LoadTargets& targets, const Checkpoint& checkpoint, const WeightOptions& options)
      : targets_(targets) {
    std::vector<std::pair<std::regex, std::string>> mapping;
    for (const auto& [pattern, replacement] : options.key_mapping) mapping.emplace_back(std::regex(pattern), replacement);
    for (const auto& [key, tensor] : checkpoint.tensors()) {
      keys_.push_back(key);
      for (const auto& [pattern, replacement] : mapping)
        keys_.back() = std::regex_replace(keys_.back(), pattern, replacement);
    }
    if (model.base_model_prefix().empty()) return;
    prefix_ = model.base_model_prefix() + ".";
    const auto starts = [&](const auto& name) { return name.starts_with(prefix_); };
    const bool has = std::any_of(keys_.begin(), keys_.end(), starts);
    const bool expects =
        std::any_of(targets.all.begin(), targets.all.end(), [&](const LoadTarget& target) { return starts(target.name); });
    strips_ = has && !expects;
    adds_ = expects && !has;
  }

  // For each key of the checkpoint its target, or null.
  std::vector<LoadTarget*> match(const Checkpoint& checkpoint) {
    std::vector<LoadTarget*> out(keys_.size());
    std::unordered_set<const LoadTarget*> taken;
    const auto take = [&](size_t i, LoadTarget* target) {
      out[i] = target;
      if (target) taken.insert(target);
    };
    for (size_t i = 0; i < keys_.size(); ++i)
      take(i, find_with(keys_[i], strips_ ? Form::stripped : adds_ ? Form::added : Form::plain));
    for (size_t i = 0; i < keys_.size(); ++i) {
      for (const Form form : {Form::plain, Form::stripped, Form::added}) {
        if (out[i]) break;
        LoadTarget* target = find_with(keys_[i], form);
        if (target && !taken.contains(target)) take(i, target);
      }
      // A base model's keys without its prefix, beside keys that only the head has: nothing writes such a file.
      if (adds_ && out[i] && !out[i]->name.starts_with(prefix_) && any_added(out))
        throw UserError(ErrorKind::bad_file,
                        "the state dictionary of the model you are trying to load is corrupted: " + checkpoint.where() +
                            " has the keys of the base model without the prefix \"" + prefix_ + "\", and beside them \"" +
                            checkpoint.tensors()[i].first +
                            "\" of the model with a head. Are you sure it was properly saved?");
    }
    return out;
  }
  // Does the key name a buffer that models compute themselves?
  bool is_other_buffer(const std::string& key) const {
    if (targets_.other_buffers.contains(key) || targets_.other_buffers.contains(prefix_ + key)) return true;
    return !prefix_.empty() && key.starts_with(prefix_) && targets_.other_buffers.contains(key.substr(prefix_.size()));
  }

 private:
  enum class Form { plain, stripped, added };

  LoadTarget* find_with(const std::string& key, Form form) const {
    if (form != Form::plain && prefix_.empty()) return nullptr;
    if (form == Form::stripped && !key.starts_with(prefix_)) return nullptr;
    for (const std::string& name : spellings(form == Form::added      ? prefix_ + key
                                             : form == Form::stripped ? key.substr(prefix_.size())
                                                                      : key))
      if (LoadTarget* target = targets_.find(name)) return target;
    return nullptr;
  }
  bool any_added(const std::vector<LoadTarget*>& found) const {
    return std::any_of(found.begin(), found.end(),
                       [&](const LoadTarget* target) { return target && target->name.starts_with(prefix_); });
  }

  LoadTargets& targets_;
  std::vector<std::string> keys_;
  std::string prefix_;
  bool strips_ = false, adds_ = false;
};

bool has_part(const std::string& name, const std::vector<std::string>& parts) {
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    for (const std::string& part : parts)
      if (name.compare(at, end - at, part) == 0) return true;
    at = end + 1;
  }
  return false;
}

DType wanted_dtype(const PretrainedModel& model, const LoadTarget& target, const WeightOptions& options) {
  const DType own = target.slot->tensor.dtype();
  if (!is_floating(own) || options.dtype != DType::float16) return own;
  return has_part(target.name, model.keep_in_fp32_modules()) ? DType::float32 : own;
}

void put_tensor(TensorSlot& slot, Tensor tensor) {
  if (slot.is_parameter && tensor.requires_grad() != slot.tensor.requires_grad()) {
    tensor = tensor.detach();
    tensor.set_requires_grad(slot.tensor.requires_grad());
  }
  slot.tensor = std::move(tensor);
}

bool same_list(IntList a, IntList b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// Memory for parameters whose values nobody asks for: one run of zeros that all of them share and that never becomes resident.
class Placeholders {
 public:
  explicit Placeholders(const LoadTargets& targets) {
    size_t bytes = 1;
    for (const LoadTarget& target : targets.all)
      bytes = std::max(bytes, needed(target.slot->tensor.sizes(), DType::float64));
    zeros_ = MappedFile::zeros(bytes);
  }
  Tensor of(IntList sizes, DType dtype) const {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    // Storage has one pointer type for all; read_only keeps writers out.
    auto* data = const_cast<std::byte*>(zeros_->bytes().data());
    return from_storage(Storage::borrow(data, needed(sizes, dtype), zeros_, /*read_only=*/true), dtype, sizes, strides, 0);
  }

 private:
  static size_t needed(IntList sizes, DType dtype) {
    size_t count = item_size(dtype);
    for (const int64_t size : sizes) count *= static_cast<size_t>(size);
    return count;
  }
  std::shared_ptr<const MappedFile> zeros_;
};

bool without_data(const Tensor& tensor) { return tensor.device().type == DeviceType::meta; }

// ---- ties -----------------------------------------------------------------------------------------------------------

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  if (without_data(a) || without_data(b) || a.dtype() != b.dtype() || !same_list(a.sizes(), b.sizes())) return false;
  if (a.data() == b.data() && same_list(a.strides(), b.strides())) return true;
  return a.is_contiguous() && b.is_contiguous() ? std::memcmp(a.data(), b.data(), a.nbytes()) == 0 : equal(a, b);
}

// Transformers 4 kept the bias of a head's decoder as the head's own and wrote it once; where they are not tied the decoder has
// one of its own today.
void take_head_biases(const PretrainedModel& model, LoadTargets& targets) {
  constexpr std::string_view decoder = "decoder.";
  const PretrainedModel::TiedWeights ties = model.tied_weights();
  for (LoadTarget& target : targets.all) {
    if (target.loaded || target.mismatched || !target.name.ends_with(".decoder.bias")) continue;
    if (std::any_of(ties.begin(), ties.end(), [&](const auto& tie) { return tie.first == target.name; })) continue;
    std::string own = target.name;
    own.erase(own.size() - decoder.size() - std::string_view("bias").size(), decoder.size());
    const LoadTarget* head = targets.find(own);
    if (!head || !head->loaded || !same_list(head->slot->tensor.sizes(), target.slot->tensor.sizes())) continue;
    put_tensor(*target.slot, head->slot->tensor.clone());
    target.loaded = true;
  }
}

// Before anything is initialised: which parameter each tied one will be, by what the checkpoint had. Without values two of the same
// sizes are taken to be the same.
PretrainedModel::TiedWeights plan_ties(PretrainedModel& model, const LoadTargets& targets, bool values) {
  PretrainedModel::TiedWeights out;
  const PretrainedModel::TiedWeights declared = model.tied_weights();
  for (size_t i = 0; i < declared.size(); ++i) {
    auto [name, source] = declared[i];
    const bool has_name = !targets.missing(name), has_source = !targets.missing(source);
    if (has_name && has_source) {
      const Tensor &one = model.get_parameter(name), &other = model.get_parameter(source);
      if (values ? !same_values(one, other) : !same_list(one.sizes(), other.sizes())) {
        warn("the model's config ties " + name + " to " + source +
             ", but the checkpoint has both with different values, so they are not tied; set tie_word_embeddings=false in "
             "the config");
        if (model.config().flag("tie_word_embeddings")) model.config().set("tie_word_embeddings", false);
        continue;
      }
    } else if (has_name) {
      std::swap(name, source);
    } else if (!has_source) {
      // Another that is tied to the same source may be there.
      for (size_t j = 0; j < declared.size(); ++j)
        if (j != i && declared[j].second == source && !targets.missing(declared[j].first)) {
          source = declared[j].first;
          break;
        }
    }
    out.emplace_back(name, source);
  }
  return out;
}

// ---- what is missing ------------------------------------------------------------------------------------------------

bool mark_with_missing(const Module& module, const std::unordered_set<const TensorSlot*>& missing,
                       std::unordered_set<const Module*>& out) {
  bool any = false;
  for (const auto& slot : module.parameter_slots()) any = any || missing.contains(slot.get());
  for (const auto& child : module.module_slots())
    if (child->module) any = mark_with_missing(*child->module, missing, out) || any;
  if (any) out.insert(&module);
  return any;
}

// Parameters without data get some, as the model initialises them. All others are out of reach meanwhile: an initialiser may
// write to every parameter of its module and of its children.
void init_missing(PretrainedModel& model, LoadTargets& targets, const PretrainedModel::TiedWeights& ties,
                  const WeightOptions& options) {
  std::unordered_set<std::string> tied;
  for (const auto& [name, source] : ties) tied.insert(name);
  std::unordered_set<const TensorSlot*> missing;
  for (LoadTarget& target : targets.all)
    if (target.slot->is_parameter && !target.loaded && !tied.contains(target.name) && without_data(target.slot->tensor))
      missing.insert(target.slot);
  if (missing.empty()) return;
  std::unordered_set<const Module*> wanted;
  mark_with_missing(model, missing, wanted);

  std::vector<std::pair<TensorSlot*, Tensor>> aside;
  for (LoadTarget& target : targets.all) {
    if (!target.slot->is_parameter) continue;
    const Tensor now = target.slot->tensor;
    const DType dtype = wanted_dtype(model, target, options);
    if (missing.contains(target.slot)) {
      put_tensor(*target.slot, empty(now.sym_sizes(), dtype));
    } else if (!without_data(now)) {
      aside.emplace_back(target.slot, now);
      put_tensor(*target.slot, empty(now.sym_sizes(), dtype, std::nullopt, Device(DeviceType::meta)));
    }
  }
  const GradModeScope no_grad(false);
  try {
    init_modules(model, model, [&](const Module& module) { return wanted.contains(&module); });
  } catch (...) {
    for (auto& [slot, tensor] : aside) slot->tensor = tensor;
    throw;
  }
  for (auto& [slot, tensor] : aside) slot->tensor = tensor;
}

// ---- the report -----------------------------------------------------------------------------------------------------

void leave_out(std::vector<std::string>& keys, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const std::regex expression(pattern);
    std::erase_if(keys, [&](const std::string& key) { return std::regex_search(key, expression); });
  }
}

std::string sizes_text(const std::vector<int64_t>& sizes) { return "torch.Size(" + str(IntList(sizes)) + ")"; }

void refuse_if_wrong(const PretrainedModel& model, const LoadReport& report, const WeightOptions& options) {
  std::string errors;
  if (!options.ignore_mismatched_sizes)
    for (const MismatchedKey& one : report.mismatched_keys)
      errors += "\n\tsize mismatch for " + one.key + ": copying a param with shape " + sizes_text(one.found) +
                " from checkpoint, the shape in current model is " + sizes_text(one.expected) + ".";
  if (!errors.empty())
    errors += "\n\tYou may consider adding ignore_mismatched_sizes=true to from_pretrained if appropriate.";
  if (options.strict && !(report.missing_keys.empty() && report.unexpected_keys.empty())) errors += "\n" + report.table();
  if (!errors.empty())
    throw UserError(ErrorKind::bad_file, "Error(s) in loading state_dict for " + model.class_name() + ":" + errors);
}

}  // namespace

LoadReport load_weights(PretrainedModel& model, const Checkpoint& given, const WeightOptions& options) {
  const auto* own = dynamic_cast<const OwnWeightForm*>(&model.base_model());
  const WeightForm form = own ? own->weight_form() : WeightForm{};
  const Checkpoint checkpoint =
      form.empty() ? given : Checkpoint::of(form.of_model(given.tensors(), options.values), given.where());
  LoadTargets targets;
  collect_targets(model, "", targets);
  KeyMatcher matcher(model, targets, checkpoint, options);
  LoadReport report;

  std::vector<std::pair<LoadTarget*, const Tensor*>> found;
  const std::vector<LoadTarget*> matched = matcher.match(checkpoint);
  for (size_t i = 0; i < matched.size(); ++i) {
    const auto& [key, tensor] = checkpoint.tensors()[i];
    if (matched[i])
      found.emplace_back(matched[i], &tensor);
    else if (!matcher.is_other_buffer(key))
      report.unexpected_keys.push_back(key);
  }

  const std::optional<Placeholders> placeholders = options.values ? std::nullopt : std::optional<Placeholders>(targets);
  const GradModeScope no_grad(false);
  uint64_t taken = 0;
  for (auto& [target, given] : found) {
    if (options.progress) options.progress(taken++, found.size());
    Tensor tensor = *given;
    // Scalars were once saved as lists of one.
    if (target->slot->tensor.dim() == 0 && tensor.dim() == 1 && tensor.size(0) == 1) tensor = tensor.select(0, 0);
    if (!same_list(tensor.sizes(), target->slot->tensor.sizes())) {
      const IntList is = tensor.sizes(), should = target->slot->tensor.sizes();
      report.mismatched_keys.push_back({target->name, {is.begin(), is.end()}, {should.begin(), should.end()}});
      target->mismatched = true;
      continue;
    }
    const DType dtype = wanted_dtype(model, *target, options);
    if (options.values && tensor.dtype() != dtype) tensor = tensor.to(dtype);
    put_tensor(*target->slot, options.values ? tensor.contiguous() : placeholders->of(tensor.sizes(), dtype));
    target->loaded = true;
  }

  take_head_biases(model, targets);
  const PretrainedModel::TiedWeights ties = plan_ties(model, targets, options.values);
  std::unordered_set<std::string> tied_to_loaded;
  for (const auto& [name, source] : ties)
    if (!targets.missing(source)) tied_to_loaded.insert(name);
  for (const LoadTarget& target : targets.all)
    if (!target.loaded && !target.mismatched && !tied_to_loaded.contains(target.name))
      report.missing_keys.push_back(target.name);
  leave_out(report.missing_keys, model.keys_to_ignore_on_load_missing());
  leave_out(report.unexpected_keys, model.keys_to_ignore_on_load_unexpected());
  // Buffers that older versions wrote for every layer.
  leave_out(report.unexpected_keys, {R"(rotary_emb\.inv_freq$)", R"((^|\.)position_ids$)"});
  refuse_if_wrong(model, report, options);

  if (!options.values) {
    for (LoadTarget& target : targets.all)
      if (!target.loaded && without_data(target.slot->tensor))
        put_tensor(*target.slot, placeholders->of(target.slot->tensor.sizes(), wanted_dtype(model, target, options)));
  } else if (options.init_missing) {
    init_missing(model, targets, ties, options);
  }
  for (const auto& [name, source] : ties) model.set_tensor(name, model.get_parameter(source));
  // What a constructor gave a value of its own, and the checkpoint did not have.
  for (LoadTarget& target : targets.all) {
    const DType dtype = wanted_dtype(model, target, options);
    if (!target.loaded && !without_data(target.slot->tensor) && target.slot->is_parameter &&
        target.slot->tensor.dtype() != dtype)
      put_tensor(*target.slot, target.slot->tensor.to(dtype));
  }
  return report;
}

}  // namespace calque

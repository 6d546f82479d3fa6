#include "calque/hub/prune.h"

#include <algorithm>
#include <cstring>

#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/empty.h"

namespace calque {

PrunedHeads pruned_heads(const Config& config) {
  PrunedHeads out;
  const Value* found = config.find("pruned_heads");
  if (!found || found->is_none()) return out;
  const auto wrong = [&] {
    return UserError(ErrorKind::bad_file,
                     config.where() + ": \"pruned_heads\" is " + found->str() + ", expected lists of heads by layer");
  };
  if (found->kind() != Value::Kind::dict) throw wrong();
  for (const auto& [key, heads] : found->to_dict().items) {
    int64_t layer = 0;
    if (key.kind() == Value::Kind::integer) {
      layer = key.to_int();
    } else {
      const std::string text(key.to_string());
      if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) throw wrong();
      layer = std::stoll(text);
    }
    if (heads.kind() != Value::Kind::list) throw wrong();
    for (const Value& head : heads.to_items()) {
      if (head.kind() != Value::Kind::integer) throw wrong();
      out[layer].push_back(head.to_int());
    }
    std::sort(out[layer].begin(), out[layer].end());
  }
  return out;
}

static void note(PretrainedModel& model, const PrunedHeads& all) {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [layer, heads] : all) items.emplace_back(std::to_string(layer), list(Values(heads.begin(), heads.end())));
  const Value value = dict(std::move(items));
  for (Module* module : model.modules())
    if (auto* part = dynamic_cast<PretrainedModel*>(module)) part->config().set("pruned_heads", value);
}

void prune_heads(PretrainedModel& model, const PrunedHeads& heads) {
  const GradModeScope no_grad(false);
  PrunedHeads all = pruned_heads(model.config());
  for (const auto& [layer, asked] : heads) {
    if (layer < 0 || layer >= model.config().integer("num_hidden_layers"))
      throw UserError("prune_heads: layer " + std::to_string(layer) + "; the model has " +
                      std::to_string(model.config().integer("num_hidden_layers")));
    model.base_model().prune_layer_heads(layer, asked);
    std::set<int64_t> both(all[layer].begin(), all[layer].end());
    both.insert(asked.begin(), asked.end());
    all[layer].assign(both.begin(), both.end());
  }
  note(model, all);
}

void prune_attention_heads(Module& attention, const std::vector<int64_t>& heads) {
  auto* prunable = dynamic_cast<PrunableAttention*>(&attention);
  if (!prunable) throw UserError("prune_attention_heads: heads cannot be pruned from a " + attention.class_name());
  const GradModeScope no_grad(false);
  prunable->prune_heads(heads);
}

void PretrainedModel::prune_layer_heads(int64_t layer, const std::vector<int64_t>& heads) {
  int64_t at = 0;
  for (Module* module : modules())
    if (auto* attention = dynamic_cast<PrunableAttention*>(module);
        attention && attention->is_self_attention() && at++ == layer)
      return attention->prune_heads(heads);
  throw UserError(at == 0 ? class_name() + ": heads cannot be pruned from this class"
                          : class_name() + ": there is no layer " + std::to_string(layer) + " to prune heads from");
}

std::shared_ptr<PretrainedModel> finished_model(std::shared_ptr<PretrainedModel> model) {
  const GradModeScope no_grad(false);
  for (const auto& [layer, heads] : pruned_heads(model->config()))
    if (!heads.empty()) model->base_model().prune_layer_heads(layer, heads);
  if (model->checkpoints_layers_ && model->supports_gradient_checkpointing()) model->gradient_checkpointing_enable();
  return model;
}

PruneableHeads find_pruneable_heads_and_indices(const std::vector<int64_t>& heads, int64_t count, int64_t head_size,
                                                const std::set<int64_t>& gone) {
  PruneableHeads out;
  std::vector<bool> stays(static_cast<size_t>(count), true);
  for (const int64_t head : heads) {
    if (gone.count(head)) continue;
    const int64_t at = head - static_cast<int64_t>(std::distance(gone.begin(), gone.lower_bound(head)));
    if (at < 0 || at >= count)
      throw UserError("prune_heads: head " + std::to_string(head) + "; the layer had " +
                      std::to_string(count + static_cast<int64_t>(gone.size())));
    out.heads.insert(head);
    stays[static_cast<size_t>(at)] = false;
  }
  for (int64_t head = 0; head < count; ++head)
    for (int64_t i = 0; stays[static_cast<size_t>(head)] && i < head_size; ++i) out.index.push_back(head * head_size + i);
  return out;
}

static Tensor index_tensor(const std::vector<int64_t>& index) {
  const Tensor out = empty({static_cast<int64_t>(index.size())}, DType::int64);
  if (!index.empty()) std::memcpy(out.mutable_data(), index.data(), index.size() * sizeof(int64_t));
  return out;
}

static Tensor kept_entries(const Tensor& tensor, const Tensor& index, int64_t dim) {
  const GradModeScope no_grad(false);
  Tensor out = tensor.detach().index_select(dim, index).clone();
  out.set_requires_grad(tensor.requires_grad());
  return out;
}

void prune_linear_layer(Linear& layer, const std::vector<int64_t>& index, int64_t dim) {
  const Tensor kept = index_tensor(index);
  layer.weight = kept_entries(layer.weight, kept, dim);
  if (layer.bias.defined() && dim == 0) layer.bias = kept_entries(layer.bias, kept, 0);
  (dim == 0 ? layer.out_features : layer.in_features) = static_cast<int64_t>(index.size());
}

void prune_attention(const std::vector<int64_t>& heads, int64_t& count, int64_t head_size, std::set<int64_t>& gone,
                     std::initializer_list<Linear*> projections, Linear& output) {
  const PruneableHeads found = find_pruneable_heads_and_indices(heads, count, head_size, gone);
  if (found.heads.empty()) return;
  for (Linear* layer : projections) prune_linear_layer(*layer, found.index);
  prune_linear_layer(output, found.index, 1);
  count -= static_cast<int64_t>(found.heads.size());
  gone.insert(found.heads.begin(), found.heads.end());
}

void prune_layer(Module& layer, const std::vector<int64_t>& index, std::optional<int64_t> dim) {
  if (auto* linear = dynamic_cast<Linear*>(&layer)) return prune_linear_layer(*linear, index, dim.value_or(0));
  if (layer.class_name() != "Conv1D")
    throw UserError("Can't prune layer of class " + layer.type_name() + "; expected a Linear or a Conv1D");
  const Tensor kept = index_tensor(index);
  layer.set_tensor("weight", kept_entries(layer.get_parameter("weight"), kept, dim.value_or(1)));
  if (dim.value_or(1) == 1) layer.set_tensor("bias", kept_entries(layer.get_parameter("bias"), kept, 0));
}

}  // namespace calque

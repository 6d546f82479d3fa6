#include "hub/adapter/saved_module.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/adaptable.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/make.h"

namespace calque::adapter {

bool SavedModule::has_adapter(const std::string& name) const {
  const std::vector<std::string> all = adapters();
  return std::ranges::find(all, name) != all.end();
}

std::string SavedModule::one_of(const std::vector<std::string>& names) const {
  std::vector<std::string> here;
  for (const std::string& name : names)
    if (has_adapter(name)) here.push_back(name);
  if (here.size() > 1)
    throw UserError("only one adapter can be active in a module that it trains as a whole, found " + join(here, ", "));
  return here.empty() ? "" : here[0];
}

// ---- whole modules ------------------------------------------------------------------------------------------------------

WholeModule::WholeModule(std::shared_ptr<Module> original)
    : original_(child_module<Module>("original_module", std::move(original))),
      copies_(child<ModuleDict>("modules_to_save")) {}

Module& WholeModule::now() const {
  if (enabled_ && !active_.empty())
    if (Module* copy = copies_->find_submodule(active_)) return *copy;
  return *original_.module();
}

Value WholeModule::forward_values(const Values& args, const Kwargs& kwargs) {
  Module& module = now();
  if (&module == original_.module()) return nn_detail::reach(*module_slots()[0]).call(args, kwargs);
  return reached(*copies_, active_).call(args, kwargs);
}

void WholeModule::add(const std::string& adapter) {
  std::shared_ptr<Module> copy = original_.module()->deep_copy();
  adapter::set_requires_grad(*copy, true);
  copies_->set(adapter, std::move(copy));
}

std::vector<std::string> WholeModule::adapters() const {
  std::vector<std::string> out;
  for (const auto& slot : copies_->module_slots()) out.push_back(slot->name);
  return out;
}

void WholeModule::set_active(const std::vector<std::string>& names, bool trains) {
  active_ = one_of(names);
  for (const auto& slot : copies_->module_slots())
    adapter::set_requires_grad(*slot->module, trains && slot->name == active_);
}

void WholeModule::delete_adapter(const std::string& name) {
  if (!has_adapter(name)) return;
  copies_->delete_attribute(name);
  if (active_ == name) active_.clear();
}

std::vector<std::pair<std::string, std::string>> WholeModule::state_names(const std::string& adapter) const {
  std::vector<std::pair<std::string, std::string>> out;
  if (has_adapter(adapter))
    for (const auto& [name, tensor] : copies_->get_submodule(adapter).state_dict())
      out.emplace_back(name, "modules_to_save." + adapter + "." + name);
  return out;
}

std::shared_ptr<Module> WholeModule::unloaded(bool, const std::vector<std::string>&, bool) {
  return active_.empty() ? module_slots()[0]->module : copies_->get_submodule_ptr(active_);
}

// ---- rows of tokens -----------------------------------------------------------------------------------------------------

namespace {

// PEFT's BufferDict.
struct BufferDict : Module {
  std::string type_name() const override { return "peft.tuners._buffer_dict.BufferDict"; }

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new BufferDict(*this)); }

 public:
  BufferDict() = default;
};

}  // namespace

class TokenRows final : public TunerLayer {
 public:
  TokenRows(std::shared_ptr<Module> base, const TokenRows* tied)
      : TunerLayer(std::move(base)),
        rows_(tied ? tied->rows_ : std::make_shared<std::map<std::string, std::vector<int64_t>>>()),
        delta_(child_module<ParameterDict>("trainable_tokens_delta",
                                           tied ? tied->shared<ParameterDict>(1) : std::make_shared<ParameterDict>())),
        originals_(child_module<BufferDict>("trainable_tokens_original",
                                            tied ? tied->shared<BufferDict>(2) : std::make_shared<BufferDict>())) {}
  std::string type_name() const override { return "peft.tuners.trainable_tokens.layer.TrainableTokensLayer"; }

  std::vector<std::string> adapters() const override {
    std::vector<std::string> out;
    for (const auto& slot : delta_->parameter_slots()) out.push_back(slot->name);
    return out;
  }
  const std::vector<int64_t>& rows(const std::string& adapter) const { return rows_->at(adapter); }

  void add(const std::string& adapter, const std::vector<int64_t>& rows) {
    const GradModeScope no_grad(false);
    const Tensor& weight = innermost().get_parameter("weight");
    for (const int64_t row : rows)
      if (row < 0 || row >= weight.size(0))
        throw UserError("trainable_token_indices: there is no token " + std::to_string(row) + "; the vocabulary has " +
                        std::to_string(weight.size(0)));
    const Tensor original = weight.detach().index_select(0, tensor(rows));
    (*rows_)[adapter] = rows;
    delta_->set(adapter, original.clone());
    originals_->register_buffer(adapter, original.clone(), false);
  }

  Tensor merged_weight(const std::vector<std::string>& names) const {
    Tensor weight = innermost().get_parameter("weight");
    std::set<int64_t> taken;
    for (const std::string& name : names) {
      if (!has_adapter(name)) continue;
      for (const int64_t row : rows(name))
        if (!taken.insert(row).second)
          throw UserError("Token indices of adapter " + name +
                          " are already defined and would result in undefined merging "
                          "behavior. Only disjunct token indices are currently supported.");
      weight = weight.index_copy(0, tensor(rows(name)), (*delta_)[name].to(weight.dtype()));
    }
    return weight;
  }

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new TokenRows(*this)); }
  template <class M>
  std::shared_ptr<M> shared(size_t slot) const {
    return std::static_pointer_cast<M>(module_slots()[slot]->module);
  }

  Value call_adapted(const Values& args, const Kwargs& kwargs) override {
    if (std::ranges::none_of(active_, [&](const std::string& name) { return has_adapter(name); }))
      return nn_detail::reach(*module_slots()[0]).call(args, kwargs);
    const Tensor weight = merged_weight(active_);
    const Tensor& x = input(args, kwargs);
    const auto* table = dynamic_cast<const Embedding*>(&innermost());
    if (!table) return linear(x, weight);
    const EmbeddingOptions& o = table->options;
    const Tensor found =
        functional::embedding(x, weight, o.padding_idx, o.max_norm, o.norm_type, o.scale_grad_by_freq, o.sparse);
    const auto* scales = dynamic_cast<const ScaledEmbeddings*>(table);
    return scales ? found * scales->scale_of_embeddings().to(found.dtype()) : found;
  }
  void merge_one(const std::string& name, bool safe) override {
    const Tensor merged = merged_weight({name});
    if (safe) check_merged(merged, name);
    set_values(innermost().get_parameter("weight"), merged);
  }
  void unmerge_one(const std::string& name) override {
    const Tensor& weight = innermost().get_parameter("weight");
    set_values(weight, weight.index_copy(0, tensor(rows(name)), originals_->get_buffer(name).to(weight.dtype())));
  }

  std::shared_ptr<std::map<std::string, std::vector<int64_t>>> rows_;  // one for all that are tied
  Child<ParameterDict> delta_;
  Child<BufferDict> originals_;
};

TokensModule::TokensModule(std::shared_ptr<Module> original, const TokensModule* tied)
    : token_adapter_(child_module<Module>("token_adapter",
                                          std::make_shared<TokenRows>(std::move(original), tied ? &tied->rows() : nullptr))),
      tied_(tied != nullptr) {}

TokenRows& TokensModule::rows() const { return static_cast<TokenRows&>(*token_adapter_.module()); }
std::vector<std::string> TokensModule::argument_names() const { return rows().argument_names(); }
ForwardSignature TokensModule::forward_signature() const { return rows().forward_signature(); }
Module* TokensModule::wrapped_module() const { return &rows(); }
std::vector<std::string> TokensModule::adapters() const { return rows().adapters(); }
std::vector<int64_t> TokensModule::rows_of(const std::string& adapter) const { return rows().rows(adapter); }

Value TokensModule::forward_values(const Values& args, const Kwargs& kwargs) {
  return nn_detail::reach(*module_slots()[0]).call(args, kwargs);
}

void TokensModule::add(const std::string& adapter, const std::vector<int64_t>& tokens) {
  if (!tied_) rows().add(adapter, tokens);
}

void TokensModule::set_active(const std::vector<std::string>& names, bool trains) {
  active_ = one_of(names);
  rows().set_active(active_.empty() ? std::vector<std::string>() : std::vector<std::string>{active_}, trains);
}

void TokensModule::enable(bool enabled) {
  enabled_ = enabled;
  rows().enable(enabled);
}

void TokensModule::delete_adapter(const std::string& name) {
  if (has_adapter(name)) rows().delete_adapter(name);
  if (active_ == name) active_.clear();
}

std::vector<std::pair<std::string, std::string>> TokensModule::state_names(const std::string& adapter) const {
  if (tied_ || !has_adapter(adapter)) return {};
  return {{"token_adapter.trainable_tokens_delta", "token_adapter.trainable_tokens_delta." + adapter}};
}

std::shared_ptr<Module> TokensModule::unloaded(bool merge, const std::vector<std::string>& names, bool safe) {
  if (merge) rows().merge(names, safe);
  return rows().base_layer_ptr();
}

void TokensModule::merge(const std::vector<std::string>& names, bool safe) { rows().merge(names, safe); }
void TokensModule::unmerge() { rows().unmerge(); }

}  // namespace calque::adapter

#include "hub/adapter/inject.h"

#include <algorithm>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/resize.h"
#include "hub/adapter/ia3_layer.h"
#include "hub/adapter/lora_layer.h"
#include "hub/adapter/prompt.h"
#include "hub/adapter/targets.h"

namespace calque::adapter {

std::vector<std::pair<std::string, TunerLayer*>> tuner_layers(PretrainedModel& model) {
  std::set<const Module*> answered;
  std::vector<std::pair<std::string, TunerLayer*>> out;
  for (const auto& [name, module] : model.named_modules()) {
    if (auto* saved = dynamic_cast<SavedModule*>(module)) {
      const std::vector<Module*> inside = saved->modules();
      answered.insert(inside.begin(), inside.end());
    } else if (auto* layer = dynamic_cast<TunerLayer*>(module); layer && !answered.contains(module)) {
      out.emplace_back(name, layer);
    }
  }
  return out;
}

void set_book(PretrainedModel& model, AdapterBook book) {
  model.adapters = book.configs.empty() ? nullptr : std::make_shared<const AdapterBook>(std::move(book));
}
AdapterBook book_of(const PretrainedModel& model) { return model.adapters ? *model.adapters : AdapterBook{}; }

std::shared_ptr<Module> module_at(PretrainedModel& model, const std::string& path) { return model.get_submodule_ptr(path); }

namespace {

// What the configuration leaves to the model.
AdapterConfig completed(PretrainedModel& model, AdapterConfig config) {
  const std::string model_type = model.config().model_type();
  const auto fill = [&](const char* setting, bool feedforward) {
    if (config.has(setting)) return;
    const auto usual = usual_targets(config.type(), model_type, feedforward);
    if (usual) config.set(setting, list(Values(usual->begin(), usual->end())));
    if (usual || (config.type() == AdapterType::lora && config.has("target_parameters"))) return;
    throw UserError(config.where() + ": \"" + setting + "\" is missing, and there is no usual choice for " + model_type +
                    "; name modules (as `calque info` prints their weights), or \"all-linear\"");
  };
  fill("target_modules", false);
  if (config.type() == AdapterType::ia3) fill("feedforward_modules", true);

  AdapterConfig::Names targets = config.names("target_modules");
  std::string lower = targets.pattern.value_or("");
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "all-linear") {
    targets.list = all_linear_names(model, config);
    config.set("target_modules", list(Values(targets.list.begin(), targets.list.end())));
  }
  // Long lists cost every other module a comparison, and a page of the file.
  constexpr size_t long_list = 20;
  if (config.type() != AdapterType::lora || targets.list.size() < long_list) return config;
  std::vector<std::string> others;
  const auto is_target = [&](const std::string& name) {
    return std::ranges::any_of(targets.list, [&](const std::string& t) { return name == t || name.ends_with("." + t); });
  };
  for (const auto& [name, module] : model.named_modules())
    if (!is_target(name)) others.push_back(name);
  const std::vector<std::string> shorter = shortest_names(targets.list, others);
  if (shorter.size() < targets.list.size()) config.set("target_modules", list(Values(shorter.begin(), shorter.end())));
  return config;
}

// Heads that tasks have are trained as a whole.
AdapterConfig with_head(AdapterConfig config) {
  const std::string task = config.text("task_type");
  std::vector<std::string> heads;
  if (task == "SEQ_CLS" || task == "TOKEN_CLS") heads = {"classifier", "score"};
  if (task == "QUESTION_ANS") heads = {"qa_outputs"};
  if (heads.empty()) return config;
  std::vector<std::string> saved = config.names("modules_to_save").list;
  for (const std::string& head : heads)
    if (std::ranges::find(saved, head) == saved.end()) saved.push_back(head);
  config.set("modules_to_save", list(Values(saved.begin(), saved.end())));
  return config;
}

// The names of modules of the base model, without what adapters brought.
std::vector<std::string> base_names(PretrainedModel& model) {
  std::set<const Module*> inner;
  std::vector<std::string> out;
  for (const auto& [name, module] : model.named_modules()) {
    if (name.empty() || inner.contains(module)) continue;
    if (auto* layer = dynamic_cast<TunerLayer*>(module)) {
      for (Module* one : layer->modules())
        if (one != module) inner.insert(one);
    }
    out.push_back(name);
  }
  return out;
}

[[noreturn]] void nothing_targeted(const AdapterConfig& config, size_t excluded, size_t unmatched) {
  const std::string where = config.where() + ": ";
  if (excluded > 0 && unmatched == 0)
    throw UserError(where +
                    "All modules were excluded. This is likely unintended. Check your `target_modules`, "
                    "`exclude_modules` and `modules_to_save` configuration.");
  std::string text =
      where + (excluded == 0 ? "Target modules " + config["target_modules"].str() +
                                   " not found in the base model. Please check the target modules and try again."
                             : "No modules were targeted for adaptation. Check your `target_modules` and "
                               "`exclude_modules` configuration; `modules_to_save` are not targeted either.");
  for (const char* name : {"layers_to_transform", "layers_pattern"})
    if (config.has(name)) text += std::string(" You specified '") + name + "': " + config[name].str() + ".";
  throw UserError(ErrorKind::bad_file, text);
}

LoraSettings lora_settings(const AdapterConfig& config, const std::string& target) {
  const Value* rank = of_pattern(config, "rank_pattern", target);
  const Value* alpha = of_pattern(config, "alpha_pattern", target);
  LoraSettings out;
  out.r = rank ? rank->to_int() : config["r"].to_int();
  out.alpha = alpha ? alpha->to_float() : config["lora_alpha"].to_float();
  out.dropout = config["lora_dropout"].to_float();
  out.rslora = config.flag("use_rslora");
  out.dora = config.flag("use_dora");
  out.bias = config.flag("lora_bias");
  return out;
}

// How a new adapter starts. What is loaded gets its values afterwards.
LoraSettings::Start start_of(const AdapterConfig& config, bool loads) {
  const Value& init = config["init_lora_weights"];
  if (init.kind() == Value::Kind::boolean)
    return init.to_bool() ? LoraSettings::Start::usual : LoraSettings::Start::as_constructed;
  std::string text = init.to_string();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text == "gaussian") return LoraSettings::Start::gaussian;
  for (const char* changes : {"pissa", "olora", "corda", "loftq", "lora_ga"})
    if (text.starts_with(changes))
      throw UserError(config.where() + ": \"init_lora_weights\" is \"" + init.to_string() +
                      "\", which also changes the base weights; Calque does not compute that. In Python "
                      "save_pretrained(folder, path_initial_model_for_weight_conversion=...) writes it as plain LoRA");
  if (loads) return LoraSettings::Start::usual;
  throw UserError(config.where() +
                  ": \"init_lora_weights\" has to be true, false or \"gaussian\" for a new adapter, found \"" +
                  init.to_string() + "\"");
}

// The rank of what is loaded is the configuration's: a layer of another one is not made, however large.
void check_loaded_rank(const AdapterConfig& config, const std::string& target, const Module& base, int64_t r,
                       const FindTensor& loaded) {
  const bool is_table = dynamic_cast<const Embedding*>(&base);
  const std::string name = target + (is_table ? ".lora_embedding_A" : ".lora_A.weight");
  const Tensor* found = loaded(name);
  constexpr int64_t most_without = 1024;
  if (!found && r > most_without)
    throw UserError(ErrorKind::bad_file, config.where() + ": the rank of " + target + " is " + std::to_string(r) +
                                             ", and the adapter's file has no " + name);
  if (found && (found->dim() < 2 || found->size(0) != r))
    throw UserError(ErrorKind::bad_file,
                    config.where() + ": the rank of " + target + " is " + std::to_string(r) + ", but " + name +
                        " in the adapter's file has sizes " + str(found->sizes()) +
                        "; do the configuration (\"r\", \"rank_pattern\") and the file belong together?");
}

class Injection {
 public:
  Injection(PretrainedModel& model, AdapterConfig& config, const std::string& name, const FindTensor& loaded)
      : model_(model), config_(config), name_(name), loaded_(loaded) {}

  void lora(const std::string& path) {
    const std::shared_ptr<Module> target = module_at(model_, path);
    LoraSettings settings = lora_settings(config_, path);
    settings.start = start_of(config_, static_cast<bool>(loaded_));
    auto existing = std::dynamic_pointer_cast<LoraLayer>(target);
    const Module& base = existing ? existing->innermost() : *target;
    if (loaded_) check_loaded_rank(config_, path, base, settings.r, loaded_);
    if (existing) return naming(path, [&] { existing->add(name_, settings); });
    bool fan_in_fan_out = config_.flag("fan_in_fan_out");
    const std::shared_ptr<LoraLayer> layer = make_lora_layer(target, fan_in_fan_out);
    if (!layer) refuse(path, *target, "Linear, Embedding, Conv1d, Conv2d, Conv3d and transformers' Conv1D");
    config_.set("fan_in_fan_out", fan_in_fan_out);
    naming(path, [&] { layer->add(name_, settings); });
    model_.set_submodule(path, layer);
  }

  void ia3(const std::string& path, bool feedforward) {
    const std::shared_ptr<Module> target = module_at(model_, path);
    auto layer = std::dynamic_pointer_cast<Ia3Layer>(target);
    if (!layer) {
      bool fan_in_fan_out = config_.flag("fan_in_fan_out");
      layer = make_ia3_layer(target, feedforward, fan_in_fan_out);
      if (!layer) refuse(path, *target, "Linear, Conv2d, Conv3d and transformers' Conv1D");
      config_.set("fan_in_fan_out", fan_in_fan_out);
      model_.set_submodule(path, layer);
    }
    layer->add(name_);
  }

  // Parameters of modules that stand behind their layers, in the order of the names: that decides which layer is around which.
  size_t parameters() {
    size_t found = 0;
    std::vector<std::string> targets = config_.names("target_parameters").list;
    std::ranges::sort(targets);
    for (const std::string& path : base_names(model_)) {
      const Module* base = model_.find_submodule(path);
      while (const auto* layer = dynamic_cast<const TunerLayer*>(base)) base = &layer->base_layer();
      if (!base) continue;
      std::vector<std::string> names;
      for (const auto& slot : base->parameter_slots())
        if (slot->tensor.defined() && std::ranges::any_of(targets, [&](const std::string& target) {
              const std::string full = path + "." + slot->name;
              return full == target || full.ends_with("." + target);
            }))
          names.push_back(slot->name);
      for (const std::string& name : names) parameter(path, name);
      found += names.size();
    }
    return found;
  }

 private:
  void parameter(const std::string& path, const std::string& name) {
    LoraSettings settings = lora_settings(config_, path + "." + name);
    settings.start = start_of(config_, static_cast<bool>(loaded_));
    const std::shared_ptr<Module> target = module_at(model_, path);
    if (LoraLayer* existing = find_lora_parameter(target.get(), name)) return existing->add(name_, settings);
    const std::shared_ptr<LoraLayer> layer = make_lora_parameter(target, name);
    naming(path, [&] { layer->add(name_, settings); });
    model_.set_submodule(path, layer);
  }

  [[noreturn]] void refuse(const std::string& path, const Module& target, const char* supported) const {
    throw UserError(ErrorKind::bad_file, config_.where() + ": Target module " + path + " is a " + target.class_name() +
                                             ", which is not supported. Supported are " + supported +
                                             "; leave it out of the \"target_modules\"");
  }
  template <class F>
  void naming(const std::string& path, F&& f) const {
    try {
      f();
    } catch (UserError& error) {
      error.prepend(config_.where() + ": " + path + ": ");
      throw;
    }
  }

  PretrainedModel& model_;
  AdapterConfig& config_;
  const std::string& name_;
  const FindTensor& loaded_;
};

std::vector<std::string> targeted(PretrainedModel& model, const AdapterConfig& config) {
  const Targets targets(config);
  std::vector<std::string> out;
  size_t excluded = 0, unmatched = 0;
  for (const std::string& name : base_names(model)) switch (targets.answer(name)) {
      case Answer::yes: out.push_back(name); break;
      case Answer::excluded: ++excluded; break;
      case Answer::no: ++unmatched; break;
    }
  const bool parameters = config.type() == AdapterType::lora && !config.names("target_parameters").list.empty();
  if (out.empty() && !parameters) nothing_targeted(config, excluded, unmatched);
  const AdapterConfig::Names exclude = config.names("exclude_modules");
  if (excluded == 0 && (!exclude.list.empty() || !exclude.pattern.value_or("").empty()))
    warn("You have passed exclude_modules=" + config["exclude_modules"].str() +
         " but no modules were excluded. Please check that exclude_modules was set correctly.");
  return out;
}

// ---- modules beside the layers -------------------------------------------------------------------------------------------

void add_saved_modules(PretrainedModel& model, const AdapterConfig& config, const std::string& adapter) {
  const std::vector<std::string> wanted = config.names("modules_to_save").list;
  if (wanted.empty()) return;
  std::vector<std::string> paths;
  std::set<const Module*> inner;
  for (const auto& [name, module] : model.named_modules()) {
    if (inner.contains(module)) continue;
    if (dynamic_cast<WholeModule*>(module))
      for (Module* one : module->modules()) inner.insert(one);
    if (!name.empty() &&
        std::ranges::any_of(wanted, [&, &name = name](const std::string& end) { return name.ends_with(end); }))
      paths.push_back(name);
  }
  for (const std::string& path : paths) {
    const std::shared_ptr<Module> target = module_at(model, path);
    auto whole = std::dynamic_pointer_cast<WholeModule>(target);
    if (!whole) {
      if (dynamic_cast<const TunerLayer*>(target.get()) || dynamic_cast<const ModuleSequence*>(target.get()) ||
          dynamic_cast<const ModuleDict*>(target.get()))
        throw UserError(config.where() + ": modules_to_save cannot be applied to " + path + ", which is a " +
                        target->class_name() + "; name a module that can be called");
      whole = std::make_shared<WholeModule>(target);
      model.set_submodule(path, whole);
    }
    whole->add(adapter);
  }
}

std::string name_of(PretrainedModel& model, const Module& module) {
  for (const auto& [name, one] : model.named_modules())
    if (one == &module) return name;
  throw InternalError("a module of the model has no name");
}

std::shared_ptr<TokensModule> tokens_at(PretrainedModel& model, const std::string& path, const TokensModule* tied) {
  const std::shared_ptr<Module> target = module_at(model, path);
  if (auto there = std::dynamic_pointer_cast<TokensModule>(target)) return there;
  auto made = std::make_shared<TokensModule>(target, tied);
  model.set_submodule(path, made);
  return made;
}

// The path of a module without what stands before it.
std::string outermost(PretrainedModel& model, std::string path) {
  for (size_t at = path.find(".token_adapter"); at != std::string::npos; at = path.find(".token_adapter")) path.resize(at);
  (void)model;
  return path;
}

void add_token_rows(PretrainedModel& model, const AdapterConfig& config, const std::string& adapter) {
  if (config.type() != AdapterType::lora || !config.has("trainable_token_indices")) return;
  const Value& value = config["trainable_token_indices"];
  std::vector<std::pair<std::string, std::vector<int64_t>>> wanted;
  const std::string embedding = outermost(model, name_of(model, get_input_embeddings(model)));
  if (value.kind() == Value::Kind::dict) {
    for (const auto& [key, rows] : value.to_dict().items) {
      std::vector<int64_t> numbers;
      for (const Value& row : rows.to_items()) numbers.push_back(row.to_int());
      wanted.emplace_back(key.to_string(), std::move(numbers));
    }
  } else {
    wanted.emplace_back(embedding, config.integers("trainable_token_indices"));
  }
  const std::vector<std::string> saved = config.names("modules_to_save").list;
  const Linear* head = get_output_embeddings(model);
  const bool ties = head && model.config().flag("tie_word_embeddings");
  const std::string head_name = head ? outermost(model, name_of(model, *head)) : "";
  std::shared_ptr<TokensModule> source;
  for (const auto& [end, rows] : wanted) {
    if (std::ranges::find(saved, end) != saved.end())
      throw UserError(config.where() + ": the embedding layer " + end +
                      " is in \"modules_to_save\", which trains all of it, and in "
                      "\"trainable_token_indices\"; choose one");
    if (ties && wanted.size() > 1 && head_name.ends_with(end)) continue;  // it follows the embedding
    std::vector<std::string> paths;
    for (const auto& [name, module] : model.named_modules()) {
      const std::string path = outermost(model, name);
      if (!path.empty() && path.ends_with(end) && std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    }
    if (paths.empty())
      throw UserError(config.where() + ": Target modules {'" + end +
                      "'} not found in the base model. Please check the target modules and try again.");
    for (const std::string& path : paths) {
      const std::shared_ptr<TokensModule> made = tokens_at(model, path, nullptr);
      made->add(adapter, rows);
      if (path == embedding) source = made;
    }
  }
  if (ties && source && head_name != embedding) tokens_at(model, head_name, source.get());
}

// Everything but the active adapters is as it is; biases as the configuration says.
void freeze_base(PretrainedModel& model) {
  std::set<const TensorImpl*> kept;
  const auto keep = [&](const Module& module) {
    for (const Tensor& t : module.parameters()) kept.insert(&t.impl());
  };
  for (const auto& [name, layer] : modules_of<TunerLayer>(model))
    for (const Module* container : layer->containers()) keep(*container);
  for (const auto& [name, saved] : modules_of<WholeModule>(model)) keep(model.get_submodule(name + ".modules_to_save"));
  for (const Tensor& t : model.parameters())
    if (!kept.contains(&t.impl()) && t.requires_grad()) t.set_requires_grad(false);
}

void train_biases(PretrainedModel& model, const AdapterConfig& config) {
  if (config.type() != AdapterType::lora) return;
  const std::string bias = config.text("bias");
  if (bias == "all")
    for (const auto& [name, parameter] : model.named_parameters())
      if (name == "bias" || name.ends_with(".bias")) parameter.set_requires_grad(true);
  if (bias == "lora_only")
    for (const auto& [name, layer] : tuner_layers(model))
      if (const Tensor* found = layer->innermost().find_tensor("bias")) found->set_requires_grad(true);
}

// Sixteen bits are too few for steps of an optimizer.
void widen(PretrainedModel& model, const std::string& adapter) {
  for (const auto& [name, layer] : modules_of<TunerLayer>(model))
    for (Module* container : layer->containers()) {
      if (Module* module = container->find_submodule(adapter)) {
        const std::vector<Tensor> parameters = module->parameters();
        if (!parameters.empty() && item_size(parameters[0].dtype()) == 2) module->to(DType::float32);
      }
      for (const auto& slot : container->parameter_slots())
        if (slot->name == adapter && slot->tensor.is_floating_point() && item_size(slot->tensor.dtype()) == 2)
          container->register_parameter(adapter, slot->tensor.detach().to(DType::float32));
    }
}

void check_new_name(const PretrainedModel& model, const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos || name.find('/') != std::string::npos || name == "base_layer")
    throw UserError("an adapter's name must be a part of a path: not empty, without dots and slashes; found \"" + name +
                    "\"");
  for (const auto& [other, config] : book_of(model).configs)
    if (other == name) throw UserError("Adapter with name " + name + " already exists. Please use a different name.");
}

}  // namespace

namespace {

// The adapter's modules. Gives the configuration as it is for this model.
AdapterConfig inject_modules(PretrainedModel& model, AdapterConfig config, const std::string& name,
                             const AdapterOptions& options, const FindTensor& loaded) {
  if (config.is_prompt_learning()) {
    config.set("inference_mode", loaded && !options.trains);
    config = add_prompt(model, config, name, loaded ? loaded("prompt_embeddings") : nullptr);
    add_saved_modules(model, config, name);
  } else {
    config = completed(model, std::move(config));
    const std::vector<std::string> paths = targeted(model, config);
    Injection injection(model, config, name, loaded);
    const AdapterConfig before = config;
    for (const std::string& path : paths) {
      if (config.type() == AdapterType::lora)
        injection.lora(path);
      else
        injection.ia3(path, is_feedforward(before, path));
    }
    if (config.type() == AdapterType::lora && !config.names("target_parameters").list.empty()) {
      const size_t found = injection.parameters();
      if (found == 0 && paths.empty()) nothing_targeted(config, 0, 1);
      if (found == 0)
        warn("target_parameters=" + config["target_parameters"].str() + " were set but no parameter was matched.");
    }
    add_saved_modules(model, config, name);
    add_token_rows(model, config, name);
    if (options.wide) widen(model, name);
  }
  return config;
}

}  // namespace

void inject(PretrainedModel& model, AdapterConfig config, const std::string& name, const AdapterOptions& options,
            const FindTensor& loaded) {
  const GradModeScope no_grad(false);
  check_new_name(model, name);
  const bool first = !model.adapters;
  try {
    config = inject_modules(model, with_head(std::move(config)), name, options, loaded);
  } catch (...) {
    forget(model, name);
    throw;
  }
  AdapterBook book = book_of(model);
  book.configs.emplace_back(name, config);
  set_book(model, std::move(book));
  if (first) freeze_base(model);
  set_adapter(model, {name}, options.trains);
  if (options.trains) train_biases(model, config);
}

}  // namespace calque::adapter

namespace calque {

void add_adapter(PretrainedModel& model, const AdapterConfig& config, const std::string& name,
                 const AdapterOptions& options) {
  adapter::inject(model, config, name, options, {});
}

}  // namespace calque

#include "calque/train/optimizer.h"

#include <algorithm>
#include <unordered_set>

#include "calque/base/warning.h"
#include "calque/file/pickle.h"
#include "calque/grad/autograd.h"
#include "calque/op/aten/like.h"

namespace calque {

// ---- names and values -----------------------------------------------------------------------------------------------

NamedValues::NamedValues(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

const Value* NamedValues::find(std::string_view name) const {
  for (const Item& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

const Value& NamedValues::at(std::string_view name) const {
  if (const Value* value = find(name)) return *value;
  std::string known;
  for (const Item& item : items_) known += (known.empty() ? "" : ", ") + item.first;
  throw UserError("there is no \"" + std::string(name) + "\" among " + (known.empty() ? "no values" : known));
}

bool NamedValues::flag(std::string_view name) const {
  const Value* value = find(name);
  return value && !value->is_none() && value->to_bool();
}

void NamedValues::set(std::string_view name, Value value) {
  for (Item& item : items_)
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  items_.emplace_back(std::string(name), std::move(value));
}

// ---- groups -----------------------------------------------------------------------------------------------------------

ParamGroups::ParamGroups(std::vector<Tensor> params) {
  groups.emplace_back();
  groups.back().params = std::move(params);
}

ParamGroups::ParamGroups(const std::vector<std::pair<std::string, Tensor>>& named_params) {
  ParamGroup& group = groups.emplace_back();
  for (const auto& [name, param] : named_params) {
    group.names.push_back(name);
    group.params.push_back(param);
  }
}

void Optimizer::add_param_groups(ParamGroups groups) {
  if (groups.groups.empty() || (groups.groups.size() == 1 && groups.groups[0].params.empty()))
    throw UserError(name() + ": optimizer got an empty parameter list");
  for (ParamGroup& group : groups.groups) add_param_group(std::move(group));
}

void Optimizer::add_param_group(ParamGroup group) {
  const std::string who = name() + ": ";
  if (!group.names.empty() && group.names.size() != group.params.size())
    throw UserError(who + "all optimizer params should be with/without names: " + std::to_string(group.params.size()) +
                    " parameters, " + std::to_string(group.names.size()) + " names");
  std::unordered_set<const TensorImpl*> known;
  for (const ParamGroup& other : groups_) {
    if (other.names.empty() != group.names.empty())
      throw UserError(who + "all optimizer param groups should be with/without names. cannot add param group " +
                      (group.names.empty() ? "without names" : "with names") + " to the optimizer");
    for (const Tensor& param : other.params) known.insert(&param.impl());
  }
  std::unordered_set<const TensorImpl*> own;
  for (const Tensor& param : group.params) {
    if (!param.defined()) throw UserError(who + "optimizer can only optimize Tensors, but one of the params is None");
    if (!param.is_leaf()) throw UserError(who + "can't optimize a non-leaf Tensor");
    if (known.contains(&param.impl())) throw UserError(who + "some parameters appear in more than one parameter group");
    if (!own.insert(&param.impl()).second) throw UserError(who + "a parameter group has the same parameter twice");
  }
  NamedValues options = defaults_;
  for (const NamedValues::Item& item : group.options.items()) {
    if (!defaults_.find(item.first) && item.first != "initial_lr")
      throw UserError(who + "a parameter group has an option \"" + item.first + "\" that the optimizer does not know");
    options.set(item.first, item.second);
  }
  check(options);
  group.options = std::move(options);
  groups_.push_back(std::move(group));
}

void Optimizer::start_all() {
  for (ParamGroup& group : groups_)
    for (const Tensor& param : group.params)
      if (NamedValues& state = states_[&param.impl()]; state.empty()) start({group, param, {}, state});
}

// ---- steps ------------------------------------------------------------------------------------------------------------

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  if (closure) {
    const GradModeScope recording(true);
    loss = closure();
  }
  const NoGradGuard no_grad;
  std::vector<Target> targets;
  for (ParamGroup& group : groups_)
    for (const Tensor& param : group.params) {
      const Tensor grad = grad_of(param);
      if (!grad.defined()) continue;
      Target target{group, param, grad, states_[&param.impl()]};
      if (target.state.empty()) start(target);
      targets.push_back(target);
    }
  update(targets);
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const ParamGroup& group : groups_) calque::zero_grad(group.params, set_to_none);
}

const NamedValues& Optimizer::state(const Tensor& param) const {
  static const NamedValues none;
  const auto it = states_.find(&param.impl());
  return it == states_.end() ? none : it->second;
}

// ---- state ------------------------------------------------------------------------------------------------------------

Value Optimizer::state_dict() const {
  std::vector<std::pair<Value, Value>> states;
  Values groups;
  int64_t next = 0;
  for (const ParamGroup& group : groups_) {
    std::vector<std::pair<Value, Value>> options;
    for (const NamedValues::Item& item : group.options.items()) options.emplace_back(item.first, item.second);
    if (!group.names.empty()) {
      Values names(group.names.begin(), group.names.end());
      options.emplace_back("param_names", list(std::move(names)));
    }
    Values numbers;
    for (const Tensor& param : group.params) {
      if (const NamedValues& own = state(param); !own.empty()) {
        std::vector<std::pair<Value, Value>> items;
        for (const NamedValues::Item& item : own.items()) items.emplace_back(item.first, item.second);
        states.emplace_back(next, dict(std::move(items)));
      }
      numbers.emplace_back(next++);
    }
    options.emplace_back("params", list(std::move(numbers)));
    groups.push_back(dict(std::move(options)));
  }
  return dict({{"state", dict(std::move(states))}, {"param_groups", list(std::move(groups))}});
}

NamedValues Optimizer::load_state(const Tensor& param, const Value& state, const std::string& where) const {
  NamedValues out;
  if (state.kind() != Value::Kind::dict)
    throw UserError(where + ": expected a dict, found " + std::string(Value::kind_name(state.kind())));
  for (const auto& [key, value] : state.to_dict().items) {
    const std::string& name = key.to_string();
    if (!value.is_tensor()) {
      out.set(name, value);
      continue;
    }
    const Tensor& given = value.to_tensor();
    if (name == "step") {
      out.set(name, given.clone());
    } else if (!states_are_like_parameters()) {
      out.set(name, given.to(param.dtype(), false, true));
    } else if (str(given.sym_sizes()) == str(param.sym_sizes())) {
      out.set(name, zeros_like(param).copy_(given));  // in the parameter's order of memory
    } else {
      throw UserError(where + ", \"" + name + "\": expected sizes " + str(param.sym_sizes()) +
                      " as the parameter's, found " + str(given.sym_sizes()));
    }
  }
  // Older files hold a number.
  if (const Value* step = out.find("step"); step && !step->is_tensor() && defaults_.find("foreach"))
    out.set("step", tensor_of<float>({static_cast<float>(step->to_float())}, {1}).reshape({}));
  return out;
}

void Optimizer::load_state_dict(const Value& state) {
  const NoGradGuard no_grad;
  const std::string who = name() + ".load_state_dict: ";
  if (state.kind() != Value::Kind::dict)
    throw UserError(who + "expected a dict, found " + std::string(Value::kind_name(state.kind())));
  const Value* given_groups = state.to_dict().find("param_groups");
  const Value* given_states = state.to_dict().find("state");
  if (!given_groups || !given_states || !given_groups->is_sequence() || given_states->kind() != Value::Kind::dict)
    throw UserError(who + "expected a dict with \"state\" (a dict) and \"param_groups\" (a list), as state_dict() gives it");
  const Values& saved = given_groups->to_items();
  if (saved.size() != groups_.size())
    throw UserError(who + "loaded state dict has a different number of parameter groups: expected " +
                    std::to_string(groups_.size()) + ", found " + std::to_string(saved.size()));
  std::vector<ParamGroup> groups = groups_;
  std::unordered_map<int64_t, Tensor> by_number;
  for (size_t i = 0; i < saved.size(); ++i) {
    const Value* params = saved[i].to_dict().find("params");
    if (!params || !params->is_sequence() || params->to_items().size() != groups[i].params.size())
      throw UserError(
          who + "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: group " +
          std::to_string(i) + " has " + std::to_string(groups[i].params.size()) + " parameters, the loaded one " +
          (params && params->is_sequence() ? std::to_string(params->to_items().size()) : "none"));
    for (size_t p = 0; p < groups[i].params.size(); ++p) by_number[params->to_items()[p].to_int()] = groups[i].params[p];
    NamedValues options = defaults_;
    for (const auto& [key, value] : saved[i].to_dict().items) {
      if (key.to_string() == "params") continue;
      if (key.to_string() == "param_names") {
        groups[i].names.clear();
        for (const Value& name : value.to_items()) groups[i].names.push_back(name.to_string());
        continue;
      }
      options.set(key.to_string(), value);
    }
    check(options);
    groups[i].options = std::move(options);
  }
  std::unordered_map<const TensorImpl*, NamedValues> states;
  for (const auto& [key, value] : given_states->to_dict().items) {
    const auto it = by_number.find(key.to_int());
    if (it == by_number.end()) throw UserError(who + "state of parameter " + key.str() + ", which is in none of the groups");
    states[&it->second.impl()] = load_state(it->second, value, who + "state of parameter " + key.str());
  }
  groups_ = std::move(groups);
  states_ = std::move(states);
}

void save_optimizer(const Optimizer& optimizer, const std::string& path) { save_pickle(path, optimizer.state_dict()); }

void load_optimizer(Optimizer& optimizer, const std::string& path) {
  try {
    optimizer.load_state_dict(load_pickle(path));
  } catch (const UserError& e) {
    throw UserError(path + ": " + e.what());
  }
}

}  // namespace calque

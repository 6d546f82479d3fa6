#include "head_model.h"

#include "calque/base/error.h"

namespace calque {

namespace {

const char* base_name(const HeadClass& head) { return head.base ? head.base : head.family->base; }

}  // namespace

HeadModel::HeadModel(const HeadClass& head, const Config& config, bool pools, std::span<const ModelArgument> own)
    : PretrainedModel(config),
      type_(std::string(head.family->name) + head.part),
      base_(base_name(head)),
      model(child_module<PretrainedModel>(base_, head.family->make_model(config, pools))),
      arguments_(head.arguments.empty() ? std::vector(own.begin(), own.end())
                                        : std::vector(head.arguments.begin(), head.arguments.end())) {}

void HeadModel::take_by_default(const HeadClass& head, std::vector<ModelArgument> own) {
  if (head.arguments.empty()) arguments_ = std::move(own);
}

std::vector<std::string> HeadModel::keys_to_ignore_on_load_unexpected() const {
  return model->keys_to_ignore_on_load_unexpected();
}

std::vector<std::string> HeadModel::no_split_modules() const { return model->no_split_modules(); }

void HeadModel::init_weights(Module& module) { model->init_weights(module); }

std::vector<ModelArgument> arguments_with(std::span<const ModelArgument> arguments, const ModelArgument& behind,
                                          std::initializer_list<ModelArgument> more) {
  internal_assert(find_argument(arguments, behind.name) != nullptr,
                  "arguments_with: the argument that others are to follow is not there");
  std::vector<ModelArgument> out;
  for (const ModelArgument& argument : arguments) {
    out.push_back(argument);
    if (argument.name == behind.name) out.insert(out.end(), more);
  }
  return out;
}

std::vector<ModelArgument> arguments_without(std::span<const ModelArgument> arguments,
                                             std::initializer_list<ModelArgument> gone) {
  std::vector<ModelArgument> out;
  for (const ModelArgument& argument : arguments)
    if (!find_argument(gone, argument.name)) out.push_back(argument);
  return out;
}

ModelClass head_class(std::initializer_list<std::string_view> tasks, const HeadClass& head,
                      std::unique_ptr<PretrainedModel> (*make)(const HeadClass&, const Config&)) {
  const std::string name = std::string(head.family->name) + head.part;
  return {name.substr(name.rfind('.') + 1), {tasks.begin(), tasks.end()}, [head, make](const Config& config) {
            return finished_model(make(head, config));
          }};
}

}  // namespace calque

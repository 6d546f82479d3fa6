// Model classes that are a base model of their family and a head on top of it. One C++ class serves all families: what makes
// it a class of transformers (its name, its base model, what it takes) is a HeadClass, given where it is registered.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"

namespace calque {

// What the classes of a family with a head have in common. It lives as long as the program.
struct HeadFamily {
  const char* name;  // the module and the prefix of its classes, "transformers.models.bert.modeling_bert.Bert"
  const char* base;  // the base model's name in them, "bert"
  std::unique_ptr<PretrainedModel> (*make_model)(const Config& config, bool pools);
};

template <class M>
std::unique_ptr<PretrainedModel> made_model(const Config& config, [[maybe_unused]] bool pools) {
  if constexpr (std::is_constructible_v<M, const Config&, bool>)
    return std::unique_ptr<PretrainedModel>(new M(config, pools));
  else
    return std::unique_ptr<PretrainedModel>(new M(config));
}

struct HeadClass {
  const HeadFamily* family;
  const char* part;                               // "ForMaskedLM"
  double (*dropout)(const Config&) = nullptr;     // of a classifier, by the configuration
  std::span<const ModelArgument> arguments = {};  // where they are others than those of its kind of heads
  const char* embedding = nullptr;                // of a language model: what its head is tied to, in the base model
  bool bias = false;                              // of a language model's head
  const char* features = "hidden_size";           // the key that has the size of the base model's output
  const char* classifier = "classifier";          // of labels for each token
  const char* base = nullptr;                     // the base model's name, where it is not the family's
};

struct HeadModel : PretrainedModel {
  // `own` is what heads of its kind take.
  HeadModel(const HeadClass& head, const Config& config, bool pools, std::span<const ModelArgument> own);
  std::string type_name() const override { return type_; }
  std::span<const ModelArgument> arguments() const override { return arguments_; }
  std::string base_model_prefix() const override { return base_; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  // These are the same for all classes of a family; the base model answers.
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override;
  std::vector<std::string> no_split_modules() const override;
  bool supports_sdpa() const override { return model->supports_sdpa(); }
  bool supports_gradient_checkpointing() const override { return model->supports_gradient_checkpointing(); }
  void init_weights(Module& module) override;

 private:
  std::string type_, base_;

 public:
  Child<PretrainedModel> model;

 protected:
  HeadModel(const HeadModel&) = default;
  // What heads of its kind take, where that follows from what the base model takes.
  void take_by_default(const HeadClass& head, std::vector<ModelArgument> own);

 private:
  std::vector<ModelArgument> arguments_;
};

// Gives a class its copy: struct TokenClassification : CopiedAs<TokenClassification, HeadModel> { ... }.
template <class D, class Base>
struct CopiedAs : Base {
  using Base::Base;

 protected:
  CopiedAs(const CopiedAs&) = default;
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new D(static_cast<const D&>(*this))));
  }
};

// `more` behind `behind`, which has to be there; without those in `gone`.
std::vector<ModelArgument> arguments_with(std::span<const ModelArgument> arguments, const ModelArgument& behind,
                                          std::initializer_list<ModelArgument> more);
std::vector<ModelArgument> arguments_without(std::span<const ModelArgument> arguments,
                                             std::initializer_list<ModelArgument> gone);

// A class entry for a head that is made from a HeadClass and a Config.
ModelClass head_class(std::initializer_list<std::string_view> tasks, const HeadClass& head,
                      std::unique_ptr<PretrainedModel> (*make)(const HeadClass&, const Config&));
template <class M>
ModelClass head_class(std::initializer_list<std::string_view> tasks, const HeadClass& head) {
  return head_class(tasks, head, [](const HeadClass& given, const Config& config) -> std::unique_ptr<PretrainedModel> {
    return std::unique_ptr<PretrainedModel>(new M(given, config));
  });
}

}  // namespace calque

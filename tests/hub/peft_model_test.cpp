// The two Peft classes of the classes that transformers' tracer covers, beside what it makes of them (tools/golden/adapters_traced.py).
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/hub/hf_tracer.h"
#include "calque/hub/peft_model.h"
#include "calque/op/aten/random.h"
#include "calque/op/operators.h"
#include "calque/tensor/generator.h"
#include "hub/load_support.h"

namespace calque::load_test {
namespace {

nlohmann::json traced_by_transformers() {
  std::ifstream in(golden("adapters") / "traced.json");
  return nlohmann::json::parse(in);
}

std::shared_ptr<PeftModel> wrapped(const nlohmann::json& one) {
  manual_seed(0);
  const std::shared_ptr<PretrainedModel> model =
      one.at("model") == "t5"
          ? from_config(Config::from_json(one.at("config").dump()), {.model_class = "T5ForConditionalGeneration"})
          : from_pretrained(golden("adapters") / "base");
  const std::string task = one.at("class") == "PeftModelForCausalLM" ? "CAUSAL_LM" : "SEQ_2_SEQ_LM";
  add_adapter(*model, AdapterConfig(AdapterType::lora, {{"r", 2}, {"task_type", task}}));
  const GradModeScope no_grad(false);
  for (const auto& [name, parameter] : model->named_parameters())
    if (name.find("lora_B") != std::string::npos) parameter.detach().copy_(randn(parameter.sym_sizes()));
  auto out = std::make_shared<PeftModel>(model);
  out->eval();
  return out;
}

Kwargs inputs_for(const nlohmann::json& one, int64_t rows, int64_t length) {
  Kwargs out;
  for (const std::string name : one.at("inputs"))
    out.emplace_back(name, name == "attention_mask" ? randint(1, 2, {rows, length}, DType::int64)
                                                    : randint(0, 32, {rows, length}, DType::int64));
  return out;
}

// As the trees of modules differ, with adapters or without (hf_fx_gaps.tsv): activations are functions here, and T5's table is called by the
// names that transformers 5 has for it.
std::vector<std::string> called_modules(const nlohmann::json& one) {
  std::vector<std::string> out;
  size_t tables = 0;
  for (const std::string name : one.at("modules")) {
    if (name.ends_with(".act_fn") || name.ends_with(".act")) continue;
    if (name == "base_model.model.shared")
      out.push_back(tables++ == 0 ? "base_model.model.encoder.embed_tokens" : "base_model.model.decoder.embed_tokens");
    else
      out.push_back(name);
  }
  return out;
}

TEST(PeftModels, are_traced_as_transformers_traces_them) {
  for (const nlohmann::json& one : traced_by_transformers()) {
    const auto model = wrapped(one);
    EXPECT_EQ(model->class_name(), one.at("class").get<std::string>());
    EXPECT_TRUE(is_model_supported(*model));
    const auto traced = symbolic_trace(*model, one.at("inputs").get<std::vector<std::string>>());
    std::vector<std::string> placeholders, modules;
    for (const Node* n : traced->graph().nodes()) {
      if (n->kind() == NodeKind::placeholder) placeholders.push_back(n->name());
      if (n->kind() == NodeKind::call_module) modules.push_back(n->target().str());
    }
    EXPECT_EQ(placeholders, one.at("placeholders").get<std::vector<std::string>>());
    EXPECT_EQ(modules, called_modules(one)) << one.at("model");
    // At other sizes than the trace's.
    for (const int64_t length : {3, 7}) {
      const Kwargs inputs = inputs_for(one, 2, length);
      const GradModeScope no_grad(false);
      const ModelOutput plain = ModelOutput::from_value(model->call({}, inputs));
      const ModelOutput graph = ModelOutput::from_value(traced->call({}, inputs));
      for (const std::string name : one.at("outputs")) {
        ASSERT_TRUE(graph.has(name)) << name;
        EXPECT_LT((plain.tensor(name) - graph.tensor(name)).abs().max().item_as<double>(), 1e-5) << name;
      }
    }
  }
}

TEST(PeftModels, have_the_names_of_peft) {
  const auto model = from_pretrained(golden("adapters") / "base");
  load_adapter(*model, golden("adapters") / "lora");
  const Tensor ids =
      SafetensorsFile::open((golden("adapters") / "lora" / "expected.safetensors").string()).tensor("input_ids");
  const GradModeScope no_grad(false);
  const Tensor before = (*model)({{arg::input_ids, ids}}).logits();
  PeftModel wrapper(model);
  EXPECT_EQ(wrapper.type_name(), "peft.peft_model.PeftModelForCausalLM");
  EXPECT_TRUE(wrapper.state_dict().contains("base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight"));
  EXPECT_TRUE(same(wrapper({{arg::input_ids, ids}}).logits(), before));
  EXPECT_EQ(&wrapper.get_base_model(), model.get());
  EXPECT_THAT(error_of([&] { PeftModel plain(from_pretrained(golden("adapters") / "base")); }),
              testing::HasSubstr("has no adapter"));
}

}  // namespace
}  // namespace calque::load_test

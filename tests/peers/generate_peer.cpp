// generate_peer CASES: runs generate on model folders. CASES has one JSON object a line: {"model": folder, "inputs": {name: rows of
// ids, inputs_embeds: rows of embeddings}, "settings": generation settings, "seed": N, "tokenizer": folder or null, "assistant": folder, "assistant_settings": its settings,
// "states": present when hidden states and attentions are asked for}. For each a line of JSON: {"ids": rows, "states": by kind, token and layer
// the sizes and the norm} or {"error": text}.
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/operators.h"

using namespace calque;
using Nlohmann = nlohmann::json;

namespace {

Tensor rows_to_tensor(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<int64_t> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return tensor_of<int64_t>(all, {std::ssize(rows), rows.empty() ? 0 : std::ssize(rows[0])});
}

Tensor embeds_to_tensor(const std::vector<std::vector<std::vector<float>>>& rows) {
  std::vector<float> all;
  for (const auto& row : rows)
    for (const auto& position : row) all.insert(all.end(), position.begin(), position.end());
  const auto& first = rows.at(0);
  return tensor_of<float>(all, {std::ssize(rows), std::ssize(first), std::ssize(first.at(0))});
}

Nlohmann sizes_and_norms(const std::vector<std::vector<Tensor>>& states) {
  Nlohmann out = Nlohmann::array();
  for (const std::vector<Tensor>& token : states) {
    Nlohmann& layers = out.emplace_back(Nlohmann::array());
    for (const Tensor& layer : token) {
      Nlohmann one(std::vector<int64_t>(layer.sizes().begin(), layer.sizes().end()));
      one.push_back((layer * layer).sum().sqrt().item_as<double>());
      layers.push_back(std::move(one));
    }
  }
  return out;
}

Nlohmann run(const Nlohmann& c) {
  static std::map<std::string, std::shared_ptr<PretrainedModel>> models;
  static std::map<std::string, Tokenizer> tokenizers;
  const std::string folder = c.at("model");
  const auto load = [](const std::string& from) {
    std::shared_ptr<PretrainedModel>& model = models[from];
    if (!model) model = from_pretrained(from, {.dtype = DType::float32});
    return model;
  };
  const std::shared_ptr<PretrainedModel> model = load(folder);
  ModelInputs inputs;
  for (const auto& [name, rows] : c.at("inputs").items())
    if (name == "inputs_embeds")
      inputs.set(arg::inputs_embeds, embeds_to_tensor(rows.get<std::vector<std::vector<std::vector<float>>>>()));
    else
      inputs.set(name, rows_to_tensor(rows.get<std::vector<std::vector<int64_t>>>()));
  Generator generator(c.at("seed").get<uint64_t>());
  GenerateOptions options;
  options.generator = &generator;
  if (const Nlohmann& name = c.at("tokenizer"); !name.is_null()) {
    const auto found = tokenizers.find(name);
    options.tokenizer = found != tokenizers.end()
                            ? &found->second
                            : &tokenizers.emplace(name, Tokenizer::from_file(name.get<std::string>())).first->second;
  }
  std::shared_ptr<PretrainedModel> assistant;
  if (c.contains("assistant")) {
    assistant = load(c.at("assistant"));
    options.assistant = assistant.get();
    options.assistant_config = GenerationConfig::from_json(c.at("assistant_settings").dump());
  }
  GenerationConfig settings = GenerationConfig::from_json(c.at("settings").dump());
  const bool states = c.contains("states");
  if (states) settings.return_dict_in_generate = settings.output_hidden_states = settings.output_attentions = true;
  const ModelGenerateOutput result = generate(*model, inputs, settings, options);
  const Tensor ids = result.sequences.contiguous();
  Nlohmann out = {{"ids", Nlohmann::array()}};
  for (int64_t r = 0; r < ids.size(0); ++r) {
    const int64_t* row = ids.data_as<int64_t>() + r * ids.size(1);
    out["ids"].push_back(std::vector<int64_t>(row, row + ids.size(1)));
  }
  if (states)
    for (const auto* kind : {&result.hidden_states, &result.attentions, &result.cross_attentions})
      out["states"].push_back(sizes_and_norms(*kind));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream cases(argv[1]);
  for (std::string line; std::getline(cases, line);) {
    Nlohmann out;
    try {
      out = run(Nlohmann::parse(line));
    } catch (const std::exception& error) {
      out["error"] = error.what();
    }
    std::cout << out.dump() << "\n";
  }
}

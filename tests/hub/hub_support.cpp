#include "hub/hub_support.h"

#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "calque/hub/registry.h"
#include "calque/op/operators.h"
#include "calque/tensor/generator.h"
#include "support/paths.h"

namespace calque::hub_test {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return fs::path(test::source_folder()) / "tests/hub/golden" / name; }

std::shared_ptr<PretrainedModel> tiny_llama(const std::string& model_class, bool tied, uint64_t seed) {
  manual_seed(seed);
  const Config config =
      Config::from_json(R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "pad_token_id": 0,
    "tie_word_embeddings": )" +
                        std::string(tied ? "true" : "false") + "}");
  std::shared_ptr<PretrainedModel> model = model_registry().find_class(model_class)->make(config);
  model->init_all_weights();
  model->eval();
  return model;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(), b.sizes().end()))
    return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

std::string difference(Module& a, Module& b) {
  const StateDict x = a.state_dict(), y = b.state_dict();
  std::string out;
  for (const auto& [name, tensor] : x) {
    const Tensor* other = y.find(name);
    if (!other)
      out += name + " is missing; ";
    else if (!same_bits(tensor, *other))
      out += name + " differs; ";
  }
  for (const auto& [name, tensor] : y)
    if (!x.contains(name)) out += name + " is extra; ";
  return out;
}

}  // namespace calque::hub_test

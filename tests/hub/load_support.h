// What the tests of loading share: small models with a base and heads, folders, golden files, warnings that were given.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/warning.h"
#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/nn/linear.h"
#include "support/error_support.h"
#include "support/folder_support.h"

namespace calque::load_test {

using namespace test;

std::filesystem::path golden(const std::string& name);  // tests/hub/golden/<name>

class Folder : public TemporaryFolder {
 public:
  void tensors(const std::string& name, const NamedTensors& tensors,
               const std::optional<SafetensorsMetadata>& metadata = SafetensorsMetadata{{"format", "pt"}}) const;
  void pickle(const std::string& name, const NamedTensors& tensors) const;
};

// A copy with some left out or others in their place.
NamedTensors tensors_of(Module& module);
NamedTensors without(const NamedTensors& tensors, const std::vector<std::string>& names);

class Warnings {  // those given while it lives
 public:
  Warnings();
  ~Warnings();
  const std::vector<std::string>& all() const { return all_; }
  bool any(std::string_view part) const;

 private:
  std::vector<std::string> all_;
  WarningSink before_;
};

// Sets a variable of the environment, puts it back.
class Environment {
 public:
  Environment(std::string name, const std::optional<std::string>& value);
  ~Environment();

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// ---- models: architecture "calque-test", after those that transformers tests itself with -----------------------------
// BaseModel: linear and linear_2, 5 by 5. TiedBaseModel: linear_2.weight is linear.weight. HeadModel: base.*, linear,
// linear2; prefix "base". TiedHeadModel: base.*, decoder whose weight is base.linear.weight. BufferModel: a persistent
// and a non-persistent buffer; "kept" stays float32 in float16. ScaledModel: a parameter of its own and no initialiser for it.
void register_test_models();
std::shared_ptr<PretrainedModel> new_model(const std::string& name, const std::string& extra_json = "");
Config test_config(const std::string& architecture, const std::string& extra_json = "");
// config.json and model.safetensors of a model.
void save_test_model(PretrainedModel& model, const std::filesystem::path& folder);

bool same(const Tensor& a, const Tensor& b);  // shape, dtype, bytes

}  // namespace calque::load_test

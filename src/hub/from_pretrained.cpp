#include "calque/hub/from_pretrained.h"

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/hub/registry.h"

namespace calque {

std::shared_ptr<PretrainedModel> from_pretrained(const std::filesystem::path& folder, const LoadOptions& options) {
  Config config = Config::from_file(folder);
  if (!options.attention.empty()) config.attention_implementation = options.attention;
  std::string name = options.model_class;
  if (name.empty()) {
    const std::vector<std::string> names = config.architectures();
    if (names.empty()) throw UserError(ErrorKind::bad_file, config.where() + ": \"architectures\" is missing; name a class");
    name = names.front();
  }
  const ModelClass* found = model_registry().find_class(name);
  if (!found) throw UserError(ErrorKind::bad_file, config.where() + ": no model class " + name);
  std::shared_ptr<PretrainedModel> model = found->make(config);
  const SafetensorsFile file = SafetensorsFile::open((folder / "model.safetensors").string());
  StateDict state;
  for (const auto& [key, tensor] : file.tensors())
    state.set(key, tensor);
  model->load_state_dict(state, false, true);
  model->tie_weights();
  if (options.dtype) model->to(*options.dtype);
  model->eval();
  return model;
}

}  // namespace calque

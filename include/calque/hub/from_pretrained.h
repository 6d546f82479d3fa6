// from_pretrained: a model from a folder as Hugging Face writes it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "calque/hub/pretrained_model.h"

namespace calque {

struct LoadOptions {
  std::string model_class;      // by default the first of the config's architectures
  std::optional<DType> dtype;   // unset: as the weights are
  std::string attention;        // "eager" or "sdpa"; by default sdpa
};

// In eval mode. UserErrors name the folder and what was looked for.
std::shared_ptr<PretrainedModel> from_pretrained(const std::filesystem::path& folder, const LoadOptions& options = {});

}  // namespace calque

// A model for a task, with its tokenizer where it reads text: the class that the folder names, which has to be one for the task.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calque/hub/from_pretrained.h"
#include "calque/text/tokenizer.h"

namespace calque {

struct TaskModel {
  std::shared_ptr<PretrainedModel> model;
  Tokenizer tokenizer;
  std::string task;  // which of those asked for
};

struct ModelForTask {
  std::shared_ptr<PretrainedModel> model;
  std::string task;
};

// `tasks` are names of the registry ("masked-lm"). UserError for a class of another task, which says what it does and which of the
// architecture's classes would do.
TaskModel load_for_task(const std::filesystem::path& folder, const LoadOptions& options,
                        std::span<const std::string_view> tasks, std::string_view command);

// The same without a tokenizer.
ModelForTask load_model_for_task(const std::filesystem::path& folder, const LoadOptions& options,
                                 std::span<const std::string_view> tasks, std::string_view command);

// By id, as id2label says.
std::vector<std::string> labels_of(const Config& config);

}  // namespace calque

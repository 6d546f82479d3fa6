#include "task/load.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/adapters.h"
#include "calque/hub/registry.h"

namespace calque {
namespace {

// The first of the tasks that the class is for.
const std::string* task_of(const ModelClass& one, std::span<const std::string_view> tasks) {
  for (const std::string& task : one.tasks)
    if (std::ranges::find(tasks, task) != tasks.end()) return &task;
  return nullptr;
}

[[noreturn]] void wrong_class(const Config& config, const ModelClass& found, std::span<const std::string_view> tasks,
                              std::string_view command) {
  // Where features alone are taken too, that is no task to look for a model by.
  if (tasks.size() > 1 && tasks.back() == "default") tasks = tasks.first(tasks.size() - 1);
  std::vector<std::string> fitting, others;
  for (const auto& architecture : model_registry().architectures()) {
    const bool own = architecture->model_type == config.model_type();
    const size_t before = fitting.size();
    for (const ModelClass& one : architecture->classes)
      if (own && task_of(one, tasks)) fitting.push_back(one.name);
    const bool fits = std::ranges::any_of(architecture->classes, [&](const ModelClass& one) { return task_of(one, tasks); });
    if (fits && fitting.size() == before) others.push_back(architecture->model_type);
  }
  std::ranges::sort(others);
  const std::string wanted = join(tasks, " or ", [](std::string_view task) { return std::string(task); });
  throw UserError(
      fmt::format("{} needs a model for {}, but {} is for {}; {}", command, wanted, found.name,
                  join(found.tasks, ", ", [](const std::string& task) { return task == "default" ? "features" : task; }),
                  fitting.empty() ? "take a model of another architecture: " + join(others, ", ")
                                  : "take a model trained for it, of the class " + join(fitting, " or ")));
}

}  // namespace

ModelForTask load_model_for_task(const std::filesystem::path& folder, const LoadOptions& given,
                                 std::span<const std::string_view> tasks, std::string_view command) {
  const Config config = config_from_pretrained(folder, given);
  LoadOptions options = given;
  if (options.model_class.empty()) {
    if (const std::vector<std::string> names = config.architectures(); !names.empty())
      options.model_class = names.front();
    else
      options.task = tasks.front();
  }
  std::string task(tasks.front());
  if (const ModelClass* found = model_registry().find_class(options.model_class)) {
    const std::string* its = task_of(*found, tasks);
    if (!its) wrong_class(config, *found, tasks, command);
    task = *its;
  }
  return {from_pretrained(folder, options), task};
}

TaskModel load_for_task(const std::filesystem::path& folder, const LoadOptions& options,
                        std::span<const std::string_view> tasks, std::string_view command) {
  ModelForTask found = load_model_for_task(folder, options, tasks, command);
  return {std::move(found.model), Tokenizer::from_file(tokenizer_folder(ModelFiles(folder.string()).folder())),
          std::move(found.task)};
}

std::vector<std::string> labels_of(const Config& config) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < config.num_labels(); ++i) out.push_back(fmt::format("LABEL_{}", i));
  const Value* labels = config.find("id2label");
  if (!labels || labels->kind() != Value::Kind::dict) return out;
  for (const auto& [id, label] : labels->to_dict().items)
    if (id.kind() == Value::Kind::integer && id.to_int() >= 0 && id.to_int() < std::ssize(out))
      out[static_cast<size_t>(id.to_int())] = label.to_string();
  return out;
}

}  // namespace calque

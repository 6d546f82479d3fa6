// The commands that compute gradients: calque train and calque grad.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace CLI {
class App;
}

namespace calque::cli {

struct TrainCommandOptions {
  std::string model, data, eval_data, output;
  std::string model_class, dtype, attention, task;
  std::string lora;
  std::string optimizer = "adamw", schedule = "linear", curve;
  int64_t steps = 100, accumulate = 1, warmup = 0, save_every = 0, eval_every = 0, log_every = 10;
  size_t batch_size = 8;
  std::optional<size_t> max_length;
  double lr = 5e-5, weight_decay = 0.0, max_grad_norm = 1.0;
  uint64_t seed = 42;
  bool bfloat16 = false, resume = false, json = false;
};
void run_train(const TrainCommandOptions& options);
std::vector<std::string> optimizer_names();

struct GradCommandOptions {
  std::string model, inputs, outputs;
  std::string model_class, dtype, attention;
  bool train = false, json = false;
};
void run_grad(const GradCommandOptions& options);

void add_train_commands(CLI::App& app);

}  // namespace calque::cli

// The training loop: batches, gradients added up over several of them, clipping, a step of optimizer and schedule, evaluation, and
// checkpoints from which training goes on with the same bits.
//
//   make_trainable(*model);
//   AdamW optimizer(trainable_groups(*model, 0.01), {.lr = 5e-5});
//   auto schedule = get_scheduler("linear", optimizer, 10, 100);
//   Trainer trainer(*model, data, optimizer, *schedule, {.batch_size = 8});
//   for (int i = 0; i < 100; ++i) std::cout << trainer.step().loss << "\n";
//
// It keeps references to what it is given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calque/hub/pretrained_model.h"
#include "calque/train/data.h"
#include "calque/train/schedule.h"

namespace calque {

// Training mode; parameters that lie in a mapped file become copies in memory. UserError for weights that no gradient reaches
// (quantised ones).
void make_trainable(PretrainedModel& model);
// Two groups: matrices, which decay, and vectors (biases, norms), which do not.
ParamGroups trainable_groups(PretrainedModel& model, double weight_decay);

struct TrainOptions {
  size_t batch_size = 8;
  int64_t accumulate = 1;      // batches a step; the loss is the mean of theirs
  double max_grad_norm = 1.0;  // 0: as they are
  bool bfloat16 = false;       // the forward under autocast
  uint64_t seed = 42;
};

struct TrainStep {
  int64_t step = 0;  // from 1 on
  double loss = 0, grad_norm = 0, lr = 0;
  int64_t tokens = 0;
};
struct Evaluation {
  int64_t step = 0;
  double loss = 0;
};

class Trainer {
 public:
  Trainer(PretrainedModel& model, const TrainData& data, Optimizer& optimizer, LRScheduler& schedule,
          const TrainOptions& options);

  TrainStep step();  // UserError where the loss is no number
  int64_t steps_done() const { return steps_.empty() ? 0 : steps_.back().step; }
  // The mean loss of a token (of a text, for classification), without dropout.
  Evaluation evaluate(const TrainData& data);
  const std::vector<TrainStep>& steps() const { return steps_; }
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }

  // A model folder that also has optimizer.pt, scheduler.pt, rng_state.pt and trainer_state.json; whole or not at all.
  // `companions_of`: the folder of the model, whose tokenizer is written with it.
  void save(const std::filesystem::path& folder, const std::optional<std::filesystem::path>& companions_of = std::nullopt);
  // Goes on from there. UserError where the data, the batches or the seed were others: the bits would not be the same.
  void load(const std::filesystem::path& folder);

 private:
  std::vector<size_t> next_batch();
  double train_on(const std::vector<size_t>& rows);
  std::string state_json() const;

  PretrainedModel& model_;
  const TrainData& data_;
  Optimizer& optimizer_;
  LRScheduler& schedule_;
  TrainOptions options_;
  std::vector<Tensor> parameters_;
  int64_t epoch_ = -1, at_ = 0;  // at_: batches of the epoch that were taken
  std::vector<std::vector<size_t>> batches_;
  std::vector<TrainStep> steps_;
  std::vector<Evaluation> evaluations_;
};

// The last of the folders checkpoint-N that Trainer::save wrote there; empty where there is none.
std::filesystem::path last_checkpoint(const std::filesystem::path& folder);

// The losses over the steps as a picture.
std::string loss_curve_svg(const std::vector<TrainStep>& steps, const std::vector<Evaluation>& evaluations,
                           const std::string& title);

}  // namespace calque

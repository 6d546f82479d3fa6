// Learning rates over time: torch.optim.lr_scheduler and transformers' get_scheduler, with their values to the bit. A schedule sets
// the learning rate of each group when it is made and at each step(), which follows the optimizer's:
//
//   auto schedule = linear_schedule_with_warmup(optimizer, 100, 1000);
//   optimizer.step();
//   schedule.step();
//
// It keeps a reference to the optimizer. state_dict() has PyTorch's names.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/train/optimizer.h"

namespace calque {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  virtual void step();
  const std::vector<double>& last_lr() const { return last_lr_; }  // of each group
  int64_t last_epoch() const { return last_epoch_; }
  virtual Value state_dict() const;
  virtual void load_state_dict(
      const Value& state);  // sets the groups' learning rates too, which are the optimizer's in PyTorch

  // What a rule sees of one group: it gives the learning rate of step number `epoch`.
  struct Step {
    int64_t epoch;
    bool initial;    // the schedule is being made
    double base_lr;  // the group's before the schedule
    ParamGroup& group;
  };
  using Rule = std::function<double(const NamedValues& settings, const Step& step)>;

  LRScheduler(Optimizer& optimizer, NamedValues settings, Rule rule);

 protected:
  LRScheduler(Optimizer& optimizer, NamedValues settings);  // with a step of its own
  Optimizer& optimizer() const { return *optimizer_; }
  void remember_lr();

  NamedValues settings_;  // step_size, gamma, ...
  int64_t last_epoch_ = -1;

 private:
  void set_rates(bool initial);

  Optimizer* optimizer_;
  Rule rule_;
  int64_t step_count_ = 0;
  std::vector<double> base_lrs_, last_lr_;
};

// ---- PyTorch's ------------------------------------------------------------------------------------------------------------

// The first learning rate times what the function gives for the number of the step.
struct LambdaLR : LRScheduler {
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda);
};
struct StepLR : LRScheduler {
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
};
struct MultiStepLR : LRScheduler {
  MultiStepLR(Optimizer& optimizer, const std::vector<int64_t>& milestones, double gamma = 0.1);
};
struct ConstantLR : LRScheduler {
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);
};
struct LinearLR : LRScheduler {
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0, int64_t total_iters = 5);
};
struct ExponentialLR : LRScheduler {
  ExponentialLR(Optimizer& optimizer, double gamma);
};
struct PolynomialLR : LRScheduler {
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);
};
struct CosineAnnealingLR : LRScheduler {
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0.0);
};
struct CosineAnnealingWarmRestarts : LRScheduler {
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0.0);
};

struct OneCycleOptions {
  double max_lr = 0.1;
  int64_t total_steps = 1;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95, div_factor = 25.0, final_div_factor = 1e4;
  bool three_phase = false;
};
struct OneCycleLR : LRScheduler {
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options);
};

struct PlateauOptions {
  std::string mode = "min";  // or "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  // or "abs"
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
// Lowers the learning rates when a figure has not become better for a while.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  void step() override;  // UserError: it needs the figure
  void step(double metric);
};

// ---- transformers' --------------------------------------------------------------------------------------------------------

LambdaLR constant_schedule(Optimizer& optimizer);
LambdaLR constant_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps);
LambdaLR linear_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps, int64_t num_training_steps);
LambdaLR cosine_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps, int64_t num_training_steps,
                                     double num_cycles = 0.5);
LambdaLR cosine_with_hard_restarts_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps,
                                                        int64_t num_training_steps, int64_t num_cycles = 1);
LambdaLR polynomial_decay_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps, int64_t num_training_steps,
                                               double lr_end = 1e-7, double power = 1.0);
LambdaLR inverse_sqrt_schedule(Optimizer& optimizer, int64_t num_warmup_steps,
                               std::optional<int64_t> timescale = std::nullopt);

// By transformers' name: constant, constant_with_warmup, linear, cosine, cosine_with_restarts, polynomial, inverse_sqrt.
std::unique_ptr<LRScheduler> get_scheduler(std::string_view name, Optimizer& optimizer, int64_t num_warmup_steps,
                                           int64_t num_training_steps);
const std::vector<std::string>& scheduler_names();

}  // namespace calque

#include "calque/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace calque {

// ---- what all have --------------------------------------------------------------------------------------------------------

LRScheduler::LRScheduler(Optimizer& optimizer, NamedValues settings)
    : settings_(std::move(settings)), optimizer_(&optimizer) {
  for (ParamGroup& group : optimizer.param_groups()) {
    if (!group.options.find("initial_lr")) group.options.set("initial_lr", group.options.at("lr"));
    base_lrs_.push_back(group.options.number("initial_lr"));
  }
}

LRScheduler::LRScheduler(Optimizer& optimizer, NamedValues settings, Rule rule)
    : LRScheduler(optimizer, std::move(settings)) {
  rule_ = std::move(rule);
  set_rates(true);
}

void LRScheduler::step() { set_rates(false); }

void LRScheduler::set_rates(bool initial) {
  std::vector<ParamGroup>& groups = optimizer_->param_groups();
  if (groups.size() != base_lrs_.size())
    throw UserError("a schedule was made for " + std::to_string(base_lrs_.size()) + " parameter groups; the optimizer has " +
                    std::to_string(groups.size()) + " now");
  ++step_count_;
  ++last_epoch_;
  for (size_t i = 0; i < groups.size(); ++i)
    groups[i].set_lr(rule_(settings_, {last_epoch_, initial, base_lrs_[i], groups[i]}));
  remember_lr();
}

void LRScheduler::remember_lr() {
  last_lr_.clear();
  for (const ParamGroup& group : optimizer_->param_groups()) last_lr_.push_back(group.lr());
}

Value LRScheduler::state_dict() const {
  std::vector<std::pair<Value, Value>> items;
  for (const NamedValues::Item& item : settings_.items()) items.emplace_back(item.first, item.second);
  items.emplace_back("base_lrs", list(Values(base_lrs_.begin(), base_lrs_.end())));
  items.emplace_back("last_epoch", last_epoch_);
  items.emplace_back("_step_count", step_count_);
  items.emplace_back("_last_lr", list(Values(last_lr_.begin(), last_lr_.end())));
  return dict(std::move(items));
}

void LRScheduler::load_state_dict(const Value& state) {
  const DictValue& given = state.to_dict();
  const auto numbers = [&](const char* name) {
    const Value* value = given.find(name);
    if (!value) throw UserError(std::string("a schedule's state has no \"") + name + "\"");
    std::vector<double> out;
    for (const Value& item : value->to_items()) out.push_back(item.to_float());
    if (out.size() != optimizer_->param_groups().size())
      throw UserError(std::string("a schedule's state, \"") + name + "\": expected " +
                      std::to_string(optimizer_->param_groups().size()) + " numbers, one a parameter group, found " +
                      std::to_string(out.size()));
    return out;
  };
  const Value* epoch = given.find("last_epoch");
  if (!epoch) throw UserError("a schedule's state has no \"last_epoch\"");
  std::vector<double> base = given.find("base_lrs") ? numbers("base_lrs") : base_lrs_;
  std::vector<double> last = numbers("_last_lr");
  NamedValues settings;
  for (const NamedValues::Item& item : settings_.items()) {
    const Value* value = given.find(item.first);
    settings.set(item.first, value ? *value : item.second);
  }
  last_epoch_ = epoch->to_int();
  const Value* count = given.find("_step_count");
  step_count_ = count ? count->to_int() : last_epoch_ + 1;
  settings_ = std::move(settings);
  base_lrs_ = std::move(base);
  last_lr_ = std::move(last);
  for (size_t i = 0; i < last_lr_.size(); ++i) optimizer_->param_groups()[i].set_lr(last_lr_[i]);
}

// ---- PyTorch's ------------------------------------------------------------------------------------------------------------

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda)
    : LRScheduler(optimizer, {},
                  [f = std::move(lr_lambda)](const NamedValues&, const Step& s) { return s.base_lr * f(s.epoch); }) {}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer, {{"step_size", step_size}, {"gamma", gamma}}, [](const NamedValues& o, const Step& s) {
        const int64_t size = o.at("step_size").to_int();
        if (size <= 0) throw UserError("StepLR: step_size must be at least 1, found " + std::to_string(size));
        return s.epoch == 0 || s.epoch % size != 0 ? s.group.lr() : s.group.lr() * o.number("gamma");
      }) {}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const std::vector<int64_t>& milestones, double gamma)
    : LRScheduler(optimizer, {{"gamma", gamma}}, [milestones](const NamedValues& o, const Step& s) {
        const auto times = std::count(milestones.begin(), milestones.end(), s.epoch);
        return times == 0 ? s.group.lr() : s.group.lr() * std::pow(o.number("gamma"), static_cast<double>(times));
      }) {}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer, {{"factor", factor}, {"total_iters", total_iters}}, [](const NamedValues& o, const Step& s) {
        const double factor = o.number("factor");
        if (!(factor >= 0 && factor <= 1)) throw UserError("Constant multiplicative factor expected to be between 0 and 1.");
        if (s.epoch == 0) return s.group.lr() * factor;
        return s.epoch == o.at("total_iters").to_int() ? s.group.lr() * (1.0 / factor) : s.group.lr();
      }) {}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(
          optimizer, {{"start_factor", start_factor}, {"end_factor", end_factor}, {"total_iters", total_iters}},
          [](const NamedValues& o, const Step& s) {
            const double start = o.number("start_factor"), end = o.number("end_factor"), total = o.number("total_iters");
            if (!(start > 0 && start <= 1))
              throw UserError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
            if (!(end >= 0 && end <= 1)) throw UserError("Ending multiplicative factor expected to be between 0 and 1.");
            if (s.epoch == 0) return s.group.lr() * start;
            const auto epoch = static_cast<double>(s.epoch);
            if (s.initial || epoch > total) return s.group.lr();
            return s.group.lr() * (1.0 + (end - start) / (total * start + (epoch - 1) * (end - start)));
          }) {}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler(optimizer, {{"gamma", gamma}}, [](const NamedValues& o, const Step& s) {
        return s.initial ? s.group.lr() : s.group.lr() * o.number("gamma");
      }) {}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer, {{"total_iters", total_iters}, {"power", power}}, [](const NamedValues& o, const Step& s) {
        const double total = o.number("total_iters");
        const auto epoch = static_cast<double>(s.epoch);
        if (s.initial || epoch > total) return s.group.lr();
        return s.group.lr() * std::pow((1.0 - epoch / total) / (1.0 - (epoch - 1) / total), o.number("power"));
      }) {}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer, {{"T_max", T_max}, {"eta_min", eta_min}}, [](const NamedValues& o, const Step& s) {
        constexpr double pi = std::numbers::pi;
        const double least = o.number("eta_min"), lr = s.group.lr(), period = o.number("T_max");
        const int64_t steps = o.at("T_max").to_int();
        if (steps <= 0) throw UserError("CosineAnnealingLR: T_max must be at least 1, found " + std::to_string(steps));
        if (s.initial) return lr;
        const auto epoch = static_cast<double>(s.epoch);
        if ((s.epoch - 1 - steps) % (2 * steps) == 0) return lr + (s.base_lr - least) * (1 - std::cos(pi / period)) / 2;
        return (1 + std::cos(pi * epoch / period)) / (1 + std::cos(pi * (epoch - 1) / period)) * (lr - least) + least;
      }) {}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult, double eta_min)
    : LRScheduler(optimizer, {{"T_0", T_0}, {"T_mult", T_mult}, {"eta_min", eta_min}},
                  [](const NamedValues& o, const Step& s) {
                    int64_t length = o.at("T_0").to_int(), at = s.epoch;
                    const int64_t growth = o.at("T_mult").to_int();
                    if (length <= 0) throw UserError("Expected positive integer T_0, but got " + std::to_string(length));
                    if (growth < 1) throw UserError("Expected integer T_mult >= 1, but got " + std::to_string(growth));
                    for (; at >= length; length *= growth) at -= length;
                    const double least = o.number("eta_min");
                    const double angle = std::numbers::pi * static_cast<double>(at) / static_cast<double>(length);
                    return least + (s.base_lr - least) * (1 + std::cos(angle)) / 2;
                  }) {}

// ---- one cycle ------------------------------------------------------------------------------------------------------------

namespace {

struct Phase {
  double end;
  const char *start_lr, *end_lr, *start_momentum, *end_momentum;
};

double one_cycle_rate(const std::vector<Phase>& phases, bool cosine, const NamedValues& o, const LRScheduler::Step& s) {
  if (s.epoch > o.at("total_steps").to_int())
    throw UserError("Tried to step " + std::to_string(s.epoch) + " times. The specified number of total steps is " +
                    o.at("total_steps").str());
  NamedValues& group = s.group.options;
  const auto epoch = static_cast<double>(s.epoch);
  double from = 0;
  size_t i = 0;
  for (; i + 1 < phases.size() && epoch > phases[i].end; ++i) from = phases[i].end;
  const Phase& phase = phases[i];
  const double part = (epoch - from) / (phase.end - from);
  const auto between = [&](const char* start_name, const char* end_name) {
    const double start = group.number(start_name), end = group.number(end_name);
    if (!cosine) return (end - start) * part + start;
    return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
  };
  if (o.flag("cycle_momentum")) {
    const double momentum = between(phase.start_momentum, phase.end_momentum);
    if (const Value* betas = group.find("betas"))
      group.set("betas", tuple({momentum, betas->to_items().at(1)}));
    else
      group.set("momentum", momentum);
  }
  return between(phase.start_lr, phase.end_lr);
}

// Sets what the cycle goes between in the groups, where PyTorch keeps it, before the base class reads initial_lr.
NamedValues start_one_cycle(Optimizer& optimizer, const OneCycleOptions& o) {
  if (o.total_steps <= 0) throw UserError("Expected positive integer total_steps, but got " + std::to_string(o.total_steps));
  if (!(o.pct_start >= 0 && o.pct_start <= 1))
    throw UserError("Expected float between 0 and 1 pct_start, but got " + Value(o.pct_start).str());
  if (o.anneal_strategy != "cos" && o.anneal_strategy != "linear")
    throw UserError("anneal_strategy must be one of 'cos' or 'linear', instead got " + o.anneal_strategy);
  if (o.cycle_momentum && !optimizer.defaults().find("momentum") && !optimizer.defaults().find("betas"))
    throw UserError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled");
  for (ParamGroup& group : optimizer.param_groups()) {
    NamedValues& options = group.options;
    options.set("initial_lr", o.max_lr / o.div_factor);
    options.set("max_lr", o.max_lr);
    options.set("min_lr", o.max_lr / o.div_factor / o.final_div_factor);
    if (!o.cycle_momentum) continue;
    options.set("max_momentum", o.max_momentum);
    options.set("base_momentum", o.base_momentum);
  }
  return {{"total_steps", o.total_steps},
          {"_anneal_func_type", o.anneal_strategy},
          {"cycle_momentum", o.cycle_momentum},
          {"use_beta1", optimizer.defaults().find("betas") != nullptr}};
}

std::vector<Phase> one_cycle_phases(const OneCycleOptions& o) {
  const auto total = static_cast<double>(o.total_steps);
  const Phase up{o.pct_start * total - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"};
  if (o.three_phase)
    return {up,
            {2 * o.pct_start * total - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"},
            {total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"}};
  return {up, {total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"}};
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& o)
    : LRScheduler(optimizer, start_one_cycle(optimizer, o),
                  [phases = one_cycle_phases(o), cosine = o.anneal_strategy == "cos"](
                      const NamedValues& settings, const Step& s) { return one_cycle_rate(phases, cosine, settings, s); }) {}

// ---- on a plateau -----------------------------------------------------------------------------------------------------------

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& o)
    : LRScheduler(optimizer, {{"factor", o.factor},
                              {"min_lrs", list(Values(optimizer.param_groups().size(), Value(o.min_lr)))},
                              {"patience", o.patience},
                              {"cooldown", o.cooldown},
                              {"eps", o.eps},
                              {"mode", o.mode},
                              {"threshold", o.threshold},
                              {"threshold_mode", o.threshold_mode},
                              {"best", o.mode == "max" ? -std::numeric_limits<double>::infinity()
                                                       : std::numeric_limits<double>::infinity()},
                              {"cooldown_counter", 0},
                              {"num_bad_epochs", 0}}) {
  if (o.factor >= 1.0) throw UserError("Factor should be < 1.0.");
  if (o.mode != "min" && o.mode != "max") throw UserError("mode " + o.mode + " is unknown!");
  if (o.threshold_mode != "rel" && o.threshold_mode != "abs")
    throw UserError("threshold mode " + o.threshold_mode + " is unknown!");
  last_epoch_ = 0;
  remember_lr();
}

void ReduceLROnPlateau::step() {
  throw UserError("ReduceLROnPlateau.step needs the figure that should improve: step(loss)");
}

void ReduceLROnPlateau::step(double metric) {
  NamedValues& s = settings_;
  ++last_epoch_;
  const double best = s.number("best"), threshold = s.number("threshold");
  const bool relative = s.at("threshold_mode").to_string() == "rel";
  const bool better = s.at("mode").to_string() == "min" ? metric < (relative ? best * (1.0 - threshold) : best - threshold)
                                                        : metric > (relative ? best * (threshold + 1.0) : best + threshold);
  int64_t bad = s.at("num_bad_epochs").to_int() + 1, cooling = s.at("cooldown_counter").to_int();
  if (better) {
    s.set("best", metric);
    bad = 0;
  }
  if (cooling > 0) {
    --cooling;
    bad = 0;
  }
  if (bad > s.at("patience").to_int()) {
    std::vector<ParamGroup>& groups = optimizer().param_groups();
    const Values& least = s.at("min_lrs").to_items();
    for (size_t i = 0; i < groups.size() && i < least.size(); ++i) {
      const double lr = std::max(groups[i].lr() * s.number("factor"), least[i].to_float());
      if (groups[i].lr() - lr > s.number("eps")) groups[i].set_lr(lr);
    }
    cooling = s.at("cooldown").to_int();
    bad = 0;
  }
  s.set("num_bad_epochs", bad);
  s.set("cooldown_counter", cooling);
  remember_lr();
}

// ---- transformers' --------------------------------------------------------------------------------------------------------

namespace {

// Rises to 1 in `warmup` steps, then follows `after`, which gets the step.
LambdaLR with_warmup(Optimizer& optimizer, int64_t warmup, std::function<double(int64_t)> after) {
  return LambdaLR(optimizer, [warmup, after = std::move(after)](int64_t step) {
    if (step < warmup) return static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
    return after(step);
  });
}

double progress(int64_t step, int64_t warmup, int64_t steps) {
  return static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, steps - warmup));
}

}  // namespace

LambdaLR constant_schedule(Optimizer& optimizer) {
  return LambdaLR(optimizer, [](int64_t) { return 1.0; });
}

LambdaLR constant_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps) {
  return with_warmup(optimizer, num_warmup_steps, [](int64_t) { return 1.0; });
}

LambdaLR linear_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps, int64_t num_training_steps) {
  return with_warmup(optimizer, num_warmup_steps, [=](int64_t step) {
    const auto left = static_cast<double>(num_training_steps - step);
    return std::max(0.0, left / static_cast<double>(std::max<int64_t>(1, num_training_steps - num_warmup_steps)));
  });
}

LambdaLR cosine_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps, int64_t num_training_steps,
                                     double num_cycles) {
  return with_warmup(optimizer, num_warmup_steps, [=](int64_t step) {
    const double part = progress(step, num_warmup_steps, num_training_steps);
    return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles * 2.0 * part)));
  });
}

LambdaLR cosine_with_hard_restarts_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps,
                                                        int64_t num_training_steps, int64_t num_cycles) {
  return with_warmup(optimizer, num_warmup_steps, [=](int64_t step) {
    const double part = progress(step, num_warmup_steps, num_training_steps);
    if (part >= 1.0) return 0.0;
    const double in_cycle = std::fmod(static_cast<double>(num_cycles) * part, 1.0);
    return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * in_cycle)));
  });
}

LambdaLR polynomial_decay_schedule_with_warmup(Optimizer& optimizer, int64_t num_warmup_steps, int64_t num_training_steps,
                                               double lr_end, double power) {
  const double lr_init = optimizer.defaults().number("lr");
  if (!(lr_init > lr_end))
    throw UserError("lr_end (" + Value(lr_end).str() + ") must be smaller than initial lr (" + Value(lr_init).str() + ")");
  return with_warmup(optimizer, num_warmup_steps, [=](int64_t step) {
    if (step > num_training_steps) return lr_end / lr_init;
    const double left =
        1 - static_cast<double>(step - num_warmup_steps) / static_cast<double>(num_training_steps - num_warmup_steps);
    return ((lr_init - lr_end) * std::pow(left, power) + lr_end) / lr_init;
  });
}

LambdaLR inverse_sqrt_schedule(Optimizer& optimizer, int64_t num_warmup_steps, std::optional<int64_t> timescale) {
  const int64_t scale = timescale ? *timescale : num_warmup_steps != 0 ? num_warmup_steps : 10000;
  return with_warmup(optimizer, num_warmup_steps, [=](int64_t step) {
    const int64_t shift = scale - num_warmup_steps;
    return 1.0 / std::sqrt(static_cast<double>(step + shift) / static_cast<double>(scale));
  });
}

namespace {

struct NamedSchedule {
  const char* name;
  LambdaLR (*make)(Optimizer& optimizer, int64_t warmup, int64_t steps);
};
constexpr NamedSchedule named_schedules[] = {
    {"linear", &linear_schedule_with_warmup},
    {"cosine", [](Optimizer& o, int64_t warmup, int64_t steps) { return cosine_schedule_with_warmup(o, warmup, steps); }},
    {"cosine_with_restarts", [](Optimizer& o, int64_t warmup,
                                int64_t steps) { return cosine_with_hard_restarts_schedule_with_warmup(o, warmup, steps); }},
    {"polynomial",
     [](Optimizer& o, int64_t warmup, int64_t steps) { return polynomial_decay_schedule_with_warmup(o, warmup, steps); }},
    {"constant", [](Optimizer& o, int64_t, int64_t) { return constant_schedule(o); }},
    {"constant_with_warmup", [](Optimizer& o, int64_t warmup, int64_t) { return constant_schedule_with_warmup(o, warmup); }},
    {"inverse_sqrt", [](Optimizer& o, int64_t warmup, int64_t) { return inverse_sqrt_schedule(o, warmup); }},
};

}  // namespace

const std::vector<std::string>& scheduler_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const NamedSchedule& schedule : named_schedules) out.emplace_back(schedule.name);
    return out;
  }();
  return names;
}

std::unique_ptr<LRScheduler> get_scheduler(std::string_view name, Optimizer& optimizer, int64_t num_warmup_steps,
                                           int64_t num_training_steps) {
  std::string known;
  for (const NamedSchedule& schedule : named_schedules) {
    if (schedule.name == name)
      return std::make_unique<LambdaLR>(schedule.make(optimizer, num_warmup_steps, num_training_steps));
    known += std::string(known.empty() ? "" : ", ") + schedule.name;
  }
  throw UserError("there is no schedule \"" + std::string(name) + "\"; there are " + known);
}

}  // namespace calque

// optim_peer CASES TENSORS OUT: optimizers, schedules and clipping on cases made by tests/peers/optim.py. CASES has one JSON object a
// line; TENSORS holds p.N.I (parameters) and g.N.S.I (gradients of a step). OUT gets p.N.S.I, state.N.I.NAME, lr.N, norm.N and c.N.I.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"
#include "calque/op/make.h"
#include "calque/train/clip_grad.h"
#include "calque/train/schedule.h"

using namespace calque;
using Nlohmann = nlohmann::json;

namespace {

// What Python's keyword arguments say; each is taken once, and none may be left.
class Keywords {
 public:
  explicit Keywords(const Nlohmann& values) : values_(values) {}
  template <class T>
  void take(const char* name, T& to) {
    if (!values_.contains(name)) return;
    to = values_.at(name).get<T>();
    ++taken_;
  }
  void take(const char* name, std::pair<double, double>& to) {
    if (!values_.contains(name)) return;
    to = {values_.at(name).at(0).get<double>(), values_.at(name).at(1).get<double>()};
    ++taken_;
  }
  void take(const char* name, std::optional<double>& to) {
    if (!values_.contains(name)) return;
    if (!values_.at(name).is_null()) to = values_.at(name).get<double>();
    ++taken_;
  }
  void done() const {
    if (taken_ != values_.size()) throw UserError("optim_peer: an option is not known: " + values_.dump());
  }

 private:
  const Nlohmann& values_;
  size_t taken_ = 0;
};

template <class Made, class Options, class... Field>
std::unique_ptr<Optimizer> make(ParamGroups groups, const Nlohmann& values,
                                std::pair<const char*, Field Options::*>... fields) {
  Options options;
  Keywords keywords(values);
  (keywords.take(fields.first, options.*fields.second), ...);
  keywords.done();
  return std::make_unique<Made>(std::move(groups), options);
}

#define FIELD(Options, name) \
  std::pair { #name, &Options::name }

std::unique_ptr<Optimizer> make_optimizer(const Nlohmann& c, ParamGroups groups) {
  const std::string name = c.at("optimizer");
  const Nlohmann& o = c.at("options");
  using S = SGDOptions;
  using A = AdamOptions;
  using W = AdamWOptions;
  using G = AdagradOptions;
  using R = RMSpropOptions;
  using T = TransformersAdafactorOptions;
  if (name == "SGD")
    return make<SGD, S>(std::move(groups), o, FIELD(S, lr), FIELD(S, momentum), FIELD(S, dampening), FIELD(S, weight_decay),
                        FIELD(S, nesterov), FIELD(S, maximize), FIELD(S, fused));
  if (name == "Adam")
    return make<Adam, A>(std::move(groups), o, FIELD(A, lr), FIELD(A, betas), FIELD(A, eps), FIELD(A, weight_decay),
                         FIELD(A, amsgrad), FIELD(A, maximize), FIELD(A, fused), FIELD(A, decoupled_weight_decay));
  if (name == "AdamW")
    return make<AdamW, W>(std::move(groups), o, FIELD(W, lr), FIELD(W, betas), FIELD(W, eps), FIELD(W, weight_decay),
                          FIELD(W, amsgrad), FIELD(W, maximize), FIELD(W, fused));
  if (name == "Adagrad")
    return make<Adagrad, G>(std::move(groups), o, FIELD(G, lr), FIELD(G, lr_decay), FIELD(G, weight_decay),
                            FIELD(G, initial_accumulator_value), FIELD(G, eps), FIELD(G, maximize), FIELD(G, fused));
  if (name == "RMSprop")
    return make<RMSprop, R>(std::move(groups), o, FIELD(R, lr), FIELD(R, alpha), FIELD(R, eps), FIELD(R, weight_decay),
                            FIELD(R, momentum), FIELD(R, centered), FIELD(R, maximize));
  if (name == "TransformersAdafactor")
    return make<TransformersAdafactor, T>(std::move(groups), o, FIELD(T, lr), FIELD(T, eps), FIELD(T, clip_threshold),
                                          FIELD(T, decay_rate), FIELD(T, beta1), FIELD(T, weight_decay),
                                          FIELD(T, scale_parameter), FIELD(T, relative_step), FIELD(T, warmup_init));
  AdafactorOptions options;
  Keywords keywords(o);
  keywords.take("lr", options.lr);
  keywords.take("beta2_decay", options.beta2_decay);
  keywords.take("d", options.d);
  keywords.take("weight_decay", options.weight_decay);
  keywords.take("maximize", options.maximize);
  if (o.contains("eps")) {
    if (!o.at("eps").at(0).is_null()) options.eps.first = o.at("eps").at(0).get<double>();
    options.eps.second = o.at("eps").at(1).get<double>();
  }
  return std::make_unique<Adafactor>(std::move(groups), options);
}

Value value_of(const Nlohmann& v) {
  if (v.is_boolean()) return v.get<bool>();
  if (v.is_number_integer()) return v.get<int64_t>();
  if (v.is_number()) return v.get<double>();
  if (v.is_null()) return {};
  Values items;
  for (const Nlohmann& item : v) items.push_back(value_of(item));
  return tuple(std::move(items));
}

std::unique_ptr<LRScheduler> make_schedule(const Nlohmann& c, Optimizer& o) {
  const std::string name = c.at("name");
  const auto number = [&](const char* key, double other) { return c.value(key, other); };
  const auto integer = [&](const char* key, int64_t other) { return c.value(key, other); };
  const int64_t warmup = integer("num_warmup_steps", 0), steps = integer("num_training_steps", 0);
  if (name == "StepLR") return std::make_unique<StepLR>(o, integer("step_size", 1), number("gamma", 0.1));
  if (name == "MultiStepLR")
    return std::make_unique<MultiStepLR>(o, c.at("milestones").get<std::vector<int64_t>>(), number("gamma", 0.1));
  if (name == "ConstantLR") return std::make_unique<ConstantLR>(o, number("factor", 1.0 / 3), integer("total_iters", 5));
  if (name == "LinearLR")
    return std::make_unique<LinearLR>(o, number("start_factor", 1.0 / 3), number("end_factor", 1),
                                      integer("total_iters", 5));
  if (name == "ExponentialLR") return std::make_unique<ExponentialLR>(o, number("gamma", 0));
  if (name == "PolynomialLR") return std::make_unique<PolynomialLR>(o, integer("total_iters", 5), number("power", 1));
  if (name == "CosineAnnealingLR") return std::make_unique<CosineAnnealingLR>(o, integer("T_max", 1), number("eta_min", 0));
  if (name == "CosineAnnealingWarmRestarts")
    return std::make_unique<CosineAnnealingWarmRestarts>(o, integer("T_0", 1), integer("T_mult", 1), number("eta_min", 0));
  if (name == "OneCycleLR") {
    OneCycleOptions options;
    options.max_lr = number("max_lr", 0);
    options.total_steps = integer("total_steps", 0);
    options.pct_start = number("pct_start", 0.3);
    options.anneal_strategy = c.value("anneal_strategy", "cos");
    options.cycle_momentum = c.value("cycle_momentum", true);
    options.three_phase = c.value("three_phase", false);
    return std::make_unique<OneCycleLR>(o, options);
  }
  if (name == "ReduceLROnPlateau") {
    PlateauOptions options;
    options.mode = c.value("mode", "min");
    options.factor = number("factor", 0.1);
    options.patience = integer("patience", 10);
    options.threshold = number("threshold", 1e-4);
    options.threshold_mode = c.value("threshold_mode", "rel");
    options.cooldown = integer("cooldown", 0);
    options.min_lr = number("min_lr", 0);
    return std::make_unique<ReduceLROnPlateau>(o, options);
  }
  if (name == "cosine" && c.contains("num_cycles"))
    return std::make_unique<LambdaLR>(cosine_schedule_with_warmup(o, warmup, steps, number("num_cycles", 0.5)));
  if (name == "cosine_with_restarts" && c.contains("num_cycles"))
    return std::make_unique<LambdaLR>(
        cosine_with_hard_restarts_schedule_with_warmup(o, warmup, steps, integer("num_cycles", 1)));
  if (name == "polynomial" && c.contains("power"))
    return std::make_unique<LambdaLR>(
        polynomial_decay_schedule_with_warmup(o, warmup, steps, number("lr_end", 1e-7), number("power", 1)));
  return get_scheduler(name, o, warmup, steps);
}

// The learning rates and first momenta before and after each step.
Tensor run_schedule(const Nlohmann& c) {
  ParamGroup a{{tensor_of<float>({0.0F}, {1})}, {}, {}}, b = a;
  b.params = {tensor_of<float>({0.0F}, {1})};
  b.options.set("lr", c.at("second_lr").get<double>());
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(c, ParamGroups(std::vector<ParamGroup>{a, b}));
  std::unique_ptr<LRScheduler> schedule = make_schedule(c.at("schedule"), *optimizer);
  std::vector<double> out;
  const auto note = [&] {
    for (const ParamGroup& group : optimizer->param_groups()) {
      out.push_back(group.lr());
      const Value* betas = group.options.find("betas");
      out.push_back(betas ? betas->to_items()[0].to_float() : group.options.number("momentum"));
    }
  };
  note();
  const int64_t steps = c.at("steps");
  for (int64_t i = 0; i < steps; ++i) {
    if (c.contains("metrics"))
      dynamic_cast<ReduceLROnPlateau&>(*schedule).step(c.at("metrics").at(static_cast<size_t>(i)).get<double>());
    else
      schedule->step();
    if (i == steps / 2) {  // what is saved here goes on alike
      const Value state = schedule->state_dict();
      const Value of_optimizer = optimizer->state_dict();
      optimizer->load_state_dict(of_optimizer);
      schedule->load_state_dict(state);
    }
    note();
  }
  return tensor(out);
}

void run_optimizer(const Nlohmann& c, const std::string& n, const SafetensorsFile& tensors, NamedTensors& out) {
  std::vector<ParamGroup> groups;
  std::vector<Tensor> params;
  for (const Nlohmann& g : c.at("groups")) {
    ParamGroup& group = groups.emplace_back();
    for (const auto& [key, value] : g.at("options").items()) group.options.set(key, value_of(value));
    for (int64_t i = 0; i < g.at("count").get<int64_t>(); ++i) {
      Tensor p = tensors.tensor("p." + n + "." + std::to_string(params.size())).clone();
      if (c.value("transposed", false) && p.dim() > 1) p = p.transpose(0, 1).clone(MemoryFormat::contiguous).transpose(0, 1);
      p = p.detach().set_requires_grad();
      group.params.push_back(p);
      params.push_back(p);
    }
  }
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(c, ParamGroups(std::move(groups)));
  if (c.contains("load")) load_optimizer(*optimizer, c.at("load"));
  for (int64_t s = 0; s < c.at("steps").get<int64_t>(); ++s) {
    optimizer->zero_grad();
    for (size_t i = 0; i < params.size(); ++i) {
      const std::string at = "." + std::to_string(s) + "." + std::to_string(i);
      if (tensors.find("g." + n + at)) set_grad(params[i], tensors.tensor("g." + n + at).clone());
    }
    optimizer->step();
    for (size_t i = 0; i < params.size(); ++i)
      out.emplace_back("p." + n + "." + std::to_string(s) + "." + std::to_string(i),
                       params[i].detach().clone(MemoryFormat::contiguous));
  }
  for (size_t i = 0; i < params.size(); ++i)
    for (const auto& [name, value] : optimizer->state(params[i]).items())
      if (value.is_tensor())
        out.emplace_back("state." + n + "." + std::to_string(i) + "." + name,
                         value.to_tensor().clone(MemoryFormat::contiguous));
  if (c.contains("save")) save_optimizer(*optimizer, c.at("save"));
}

void run_clip(const Nlohmann& c, const std::string& n, const SafetensorsFile& tensors, NamedTensors& out) {
  std::vector<Tensor> params;
  for (int64_t i = 0; i < c.at("count").get<int64_t>(); ++i) {
    const Tensor g = tensors.tensor("g." + n + "." + std::to_string(i)).clone();
    params.push_back(g.clone().detach().set_requires_grad());
    set_grad(params.back(), g);
  }
  if (c.at("clip") == "value") {
    clip_grad_value_(params, c.at("bound").get<double>());
  } else {
    const double type =
        c.at("norm_type").is_string() ? std::numeric_limits<double>::infinity() : c.at("norm_type").get<double>();
    out.emplace_back("norm." + n, clip_grad_norm_(params, c.at("bound").get<double>(), type));
  }
  for (size_t i = 0; i < params.size(); ++i) out.emplace_back("c." + n + "." + std::to_string(i), grad_of(params[i]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "optim_peer CASES TENSORS OUT\n";
    return 2;
  }
  try {
    std::ifstream cases(argv[1]);
    const SafetensorsFile tensors = SafetensorsFile::open(argv[2]);
    NamedTensors out;
    std::string line;
    for (int64_t i = 0; std::getline(cases, line); ++i) {
      const Nlohmann c = Nlohmann::parse(line);
      const std::string n = std::to_string(i);
      if (c.contains("schedule"))
        out.emplace_back("lr." + n, run_schedule(c));
      else if (c.contains("clip"))
        run_clip(c, n, tensors, out);
      else
        run_optimizer(c, n, tensors, out);
    }
    save_safetensors(argv[3], out);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}

#undef FIELD

// calque train MODEL --data FILE -o FOLDER: fine-tuning, with checkpoints from which it goes on; calque grad MODEL: gradients by name.
#include "calque/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "calque/file/file_writer.h"
#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/save_pretrained.h"
#include "calque/tensor/generator.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/tensor_file.h"
#include "cli/train.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

struct NamedOptimizer {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(ParamGroups groups, double lr);
};
constexpr NamedOptimizer optimizers[] = {
    {"adamw",
     [](ParamGroups g, double lr) -> std::unique_ptr<Optimizer> {
       return std::make_unique<AdamW>(std::move(g), AdamWOptions{.lr = lr});
     }},
    {"adam",
     [](ParamGroups g, double lr) -> std::unique_ptr<Optimizer> {
       return std::make_unique<Adam>(std::move(g), AdamOptions{.lr = lr});
     }},
    {"sgd",
     [](ParamGroups g, double lr) -> std::unique_ptr<Optimizer> {
       return std::make_unique<SGD>(std::move(g), SGDOptions{.lr = lr, .momentum = 0.9});
     }},
    {"adagrad",
     [](ParamGroups g, double lr) -> std::unique_ptr<Optimizer> {
       return std::make_unique<Adagrad>(std::move(g), AdagradOptions{.lr = lr});
     }},
    {"rmsprop",
     [](ParamGroups g, double lr) -> std::unique_ptr<Optimizer> {
       return std::make_unique<RMSprop>(std::move(g), RMSpropOptions{.lr = lr});
     }},
    {"adafactor",
     [](ParamGroups g, double lr) -> std::unique_ptr<Optimizer> {
       return std::make_unique<TransformersAdafactor>(
           std::move(g), TransformersAdafactorOptions{.lr = lr, .scale_parameter = false, .relative_step = false});
     }},
};

std::unique_ptr<Optimizer> optimizer_named(const std::string& name, ParamGroups groups, double lr) {
  for (const NamedOptimizer& one : optimizers)
    if (one.name == name) return one.make(std::move(groups), lr);
  throw UserError("there is no optimizer \"" + name + "\"");
}

// ---- --lora r=8,alpha=16,targets=q_proj+v_proj ----------------------------------------------------------------------------

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Value lora_value(const std::string& key, const std::string& text) {
  const auto wrong = [&](const char* expected) {
    return UserError(fmt::format("--lora: {} has to be {}, found '{}'", key, expected, text));
  };
  if (key == "dora" || key == "rslora") {
    if (text != "true" && text != "false") throw wrong("true or false");
    return text == "true";
  }
  if (key == "bias") return text;
  if (key == "targets" || key == "exclude" || key == "save") {
    if (key == "targets" && text == "all-linear") return text;
    Values names;
    for (const std::string& name : split(text, '+')) names.emplace_back(name);
    return list(std::move(names));
  }
  char* end = nullptr;
  if (key == "r") {
    const long long number = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end) throw wrong("a whole number");
    return static_cast<int64_t>(number);
  }
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end) throw wrong("a number");
  if (number == std::floor(number) && std::abs(number) < 1e9 && key == "alpha") return static_cast<int64_t>(number);
  return number;
}

void add_lora(PretrainedModel& model, const std::string& text) {
  if (model.adapters) throw UserError("--lora: the model has an adapter already, which is trained on without --lora");
  static constexpr std::pair<const char*, const char*> names[] = {
      {"r", "r"},           {"alpha", "lora_alpha"},       {"dropout", "lora_dropout"},
      {"dora", "use_dora"}, {"targets", "target_modules"}, {"exclude", "exclude_modules"},
      {"bias", "bias"},     {"save", "modules_to_save"},   {"rslora", "use_rslora"}};
  Config::Items items;
  for (const std::string& part : split(text, ',')) {
    const size_t at = std::min(part.find('='), part.size());
    const std::string key = part.substr(0, at);
    const auto* found = std::ranges::find_if(names, [&](const auto& one) { return one.first == key; });
    if (found == std::end(names) || at == part.size())
      throw UserError(fmt::format("--lora: expected r=8,alpha=16,... with {}, found '{}'",
                                  join(names, ", ", [](const auto& one) { return std::string(one.first); }), part));
    items.emplace_back(found->second, lora_value(key, part.substr(at + 1)));
  }
  if (const std::string task = peft_task(model); !task.empty()) items.emplace_back("task_type", task);
  add_adapter(model, AdapterConfig(AdapterType::lora, items, "--lora"));
}

TrainData data_of(const TrainCommandOptions& o, const std::string& path, const PretrainedModel& model,
                  const Tokenizer& tokenizer) {
  const TrainTask task = o.task.empty() ? train_task_of(model) : train_task(o.task);
  const Progress progress("reading " + path);
  return about_file(path, [&] { return TrainData(model, tokenizer, read_train_texts(path, task), task, o.max_length); });
}

void write_curve(const TrainCommandOptions& o, const Trainer& trainer) {
  const std::string svg = loss_curve_svg(trainer.steps(), trainer.evaluations(), o.model);
  FileWriter writer(o.curve.empty() ? (fs::path(o.output) / "loss.svg").string() : o.curve);
  writer.write(svg.data(), svg.size());
  writer.commit();
}

class Course {
 public:
  Course(const TrainCommandOptions& o, Trainer& trainer, const TrainData* evaluation)
      : o_(o), trainer_(trainer), evaluation_(evaluation), from_(model_folder(o.model)) {}

  // Gives true when all steps are done, false when it was asked to stop.
  bool run() {
    StopRequest stop("after this step, with a checkpoint");
    Progress progress("training", "", Progress::Unit::none);
    const auto start = std::chrono::steady_clock::now();
    int64_t tokens = 0;
    while (trainer_.steps_done() < o_.steps) {
      const TrainStep step = trainer_.step();
      tokens += step.tokens;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      progress.rename(fmt::format("step {} of {}  loss {:.4f}  {:.0f} tokens/s", step.step, o_.steps, step.loss,
                                  static_cast<double>(tokens) / std::max(seconds, 1e-9)));
      progress.update(static_cast<uint64_t>(step.step), static_cast<uint64_t>(o_.steps));
      const bool last = step.step == o_.steps, asked = stop.asked();
      report(step, last || asked, seconds, tokens);
      if (evaluation_ && (last || (o_.eval_every > 0 && step.step % o_.eval_every == 0))) evaluate();
      if (last || asked || (o_.save_every > 0 && step.step % o_.save_every == 0)) save();
      if (asked && !last) return false;
    }
    return true;
  }

 private:
  void report(const TrainStep& s, bool always, double seconds, int64_t tokens) {
    if (o_.json)
      fmt::print(
          "{}\n",
          nlohmann::ordered_json{
              {"step", s.step}, {"loss", s.loss}, {"grad_norm", s.grad_norm}, {"learning_rate", s.lr}, {"tokens", s.tokens}}
              .dump());
    else if (!is_quiet() && (always || s.step % std::max<int64_t>(1, o_.log_every) == 0))
      fmt::print("step {:>6}  loss {:.4f}  gradient {:.3g}  rate {:.3g}  {:.0f} tokens/s\n", s.step, s.loss, s.grad_norm,
                 s.lr, static_cast<double>(tokens) / std::max(seconds, 1e-9));
    flush_output();
  }
  void evaluate() {
    const Evaluation e = trainer_.evaluate(*evaluation_);
    if (o_.json)
      fmt::print("{}\n", nlohmann::ordered_json{{"step", e.step}, {"eval_loss", e.loss}}.dump());
    else if (!is_quiet())
      fmt::print("step {:>6}  evaluation {:.4f}\n", e.step, e.loss);
    flush_output();
  }
  void save() {
    const fs::path before = last_checkpoint(o_.output);
    const fs::path folder = fs::path(o_.output) / ("checkpoint-" + std::to_string(trainer_.steps_done()));
    fs::create_directories(o_.output);
    trainer_.save(folder, from_);
    write_curve(o_, trainer_);
    if (!before.empty() && before != folder) fs::remove_all(before);  // the last one is enough to go on
  }

  const TrainCommandOptions& o_;
  Trainer& trainer_;
  const TrainData* evaluation_;
  std::string from_;
};

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out;
  for (const NamedOptimizer& one : optimizers) out.emplace_back(one.name);
  return out;
}

void run_train(const TrainCommandOptions& o) {
  const GradModeScope recording(true);
  const fs::path checkpoint = last_checkpoint(o.output);
  if (o.resume && checkpoint.empty())
    throw UserError(o.output + ": there is no checkpoint to go on from; leave out --resume");
  if (!o.resume && !checkpoint.empty())
    throw UserError(checkpoint.string() + ": training was stopped there; go on with --resume, or take another folder");
  // Small steps are lost in 16 bits: unless a dtype is asked for, weights are float32 while they are trained.
  const std::string folder = model_folder(o.model);
  const std::shared_ptr<PretrainedModel> model =
      load_model({o.model, o.model_class, o.dtype.empty() ? "float32" : o.dtype, o.attention});
  make_trainable(*model);
  if (!o.lora.empty()) {
    manual_seed(o.seed);  // of the adapter's first values
    add_lora(*model, o.lora);
  }
  const Tokenizer tokenizer = Tokenizer::from_file(tokenizer_folder(folder));
  const TrainData data = data_of(o, o.data, *model, tokenizer);
  std::optional<TrainData> evaluation;
  if (!o.eval_data.empty()) evaluation.emplace(data_of(o, o.eval_data, *model, tokenizer));
  const std::unique_ptr<Optimizer> optimizer = optimizer_named(o.optimizer, trainable_groups(*model, o.weight_decay), o.lr);
  const std::unique_ptr<LRScheduler> schedule = get_scheduler(o.schedule, *optimizer, o.warmup, o.steps);
  Trainer trainer(*model, data, *optimizer, *schedule,
                  {.batch_size = o.batch_size,
                   .accumulate = o.accumulate,
                   .max_grad_norm = o.max_grad_norm,
                   .bfloat16 = o.bfloat16,
                   .seed = o.seed});
  if (o.resume) trainer.load(checkpoint);
  Course course(o, trainer, evaluation ? &*evaluation : nullptr);
  if (!course.run()) {
    say(fmt::format("stopped at step {}; the same command with --resume goes on from there", trainer.steps_done()));
    throw ExitStatus{130};
  }
  SaveOptions save;
  save.companions_of = folder;
  if (o.dtype.empty()) save.dtype = config_from_pretrained(folder).dtype();
  const NoGradGuard no_grad;
  save_pretrained(*model, o.output, save);
  if (!o.json && !is_quiet())
    fmt::print("{} holds the {}; the loss over the steps is in its loss.svg\n", o.output,
               model->adapters ? "adapter" : "model");
}

void run_grad(const GradCommandOptions& o) {
  const GradModeScope recording(true);
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, o.dtype, o.attention});
  if (o.train) make_trainable(*model);  // batch norms write their statistics, which lie in the mapped file
  model->train(o.train);
  const ModelInputs inputs = read_model_inputs("grad", o.inputs, *model);
  const ModelOutput result = (*model)(inputs);
  if (!result.has("loss"))
    throw UserError("grad: " + model->class_name() + " gave no loss; the inputs need labels (of a class that takes them)");
  backward(result.loss());
  NamedTensors out{{"loss", result.loss().detach()}};
  nlohmann::ordered_json json{{"loss", result.loss().item<double>()}, {"gradients", nlohmann::ordered_json::object()}};
  Table table({{"parameter"}, {"dtype"}, {"shape"}, {"norm", Table::Align::right}});
  for (const auto& [name, parameter] : model->named_parameters()) {
    const Tensor grad = grad_of(parameter);
    if (!grad.defined()) continue;
    out.emplace_back(name, grad.contiguous());
    const double norm = grad.norm().item<double>();
    json["gradients"][name] = {{"dtype", calque::name(grad.dtype())},
                               {"shape", std::vector<int64_t>(grad.sizes().begin(), grad.sizes().end())},
                               {"norm", norm}};
    table.add({printable(name), std::string(calque::name(grad.dtype())), str(grad.sizes()), fmt::format("{:.6g}", norm)});
  }
  if (!o.outputs.empty()) save_tensors(o.outputs, out);
  if (o.json)
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else if (!is_quiet() || o.outputs.empty())
    fmt::print("loss = {:.9g}\n\n{}", result.loss().item<double>(), table.str());
}

}  // namespace calque::cli

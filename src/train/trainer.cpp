#include "calque/train/trainer.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/grad/autograd.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/save_pretrained.h"
#include "calque/op/autocast.h"
#include "calque/tensor/generator.h"
#include "calque/train/clip_grad.h"

namespace calque {

void make_trainable(PretrainedModel& model) {
  for (const auto& [name, parameter] : model.named_parameters())
    if (!parameter.is_floating_point())
      throw UserError(model.class_name() + ": the parameter " + name + " is " +
                      std::string(calque::name(parameter.dtype())) +
                      ", which has no gradient; train a checkpoint that is not quantised");
  // Tied parameters stay one: what was copied is remembered.
  std::unordered_map<const TensorImpl*, Tensor> copies;
  model.convert_tensors([&](const Tensor& t) {
    if (!t.storage()->is_borrowed()) return t;
    Tensor& copy = copies[&t.impl()];
    if (!copy.defined()) copy = t.clone();
    return copy;
  });
  if (!model.adapters) model.tie_weights();  // tied weights stand behind other names then, and stayed one above
  model.train();
  if (model.adapters) set_adapter(model, active_adapters(model));
}

ParamGroups trainable_groups(PretrainedModel& model, double weight_decay) {
  ParamGroup decaying, others;
  decaying.options.set("weight_decay", weight_decay);
  others.options.set("weight_decay", 0.0);
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (!parameter.requires_grad()) continue;
    ParamGroup& group = parameter.dim() > 1 ? decaying : others;
    group.params.push_back(parameter);
    group.names.push_back(name);
  }
  std::vector<ParamGroup> groups;
  for (ParamGroup* group : {&decaying, &others})
    if (!group->params.empty()) groups.push_back(std::move(*group));
  return groups;
}

Trainer::Trainer(PretrainedModel& model, const TrainData& data, Optimizer& optimizer, LRScheduler& schedule,
                 const TrainOptions& options)
    : model_(model), data_(data), optimizer_(optimizer), schedule_(schedule), options_(options) {
  if (options.batch_size == 0 || options.accumulate < 1) throw UserError("training needs batches of at least one text");
  for (const ParamGroup& group : optimizer.param_groups())
    parameters_.insert(parameters_.end(), group.params.begin(), group.params.end());
  manual_seed(options.seed);  // of dropout
}

// ---- steps ------------------------------------------------------------------------------------------------------------------

std::vector<size_t> Trainer::next_batch() {
  if (epoch_ < 0 || at_ == static_cast<int64_t>(batches_.size())) {
    ++epoch_;
    at_ = 0;
    batches_ = data_.epoch(options_.batch_size, options_.seed, epoch_);
  }
  return batches_[static_cast<size_t>(at_++)];
}

double Trainer::train_on(const std::vector<size_t>& rows) {
  const auto noise = options_.seed ^ (static_cast<uint64_t>(epoch_) << 32U) ^ static_cast<uint64_t>(at_);
  const ModelInputs inputs = data_.batch(rows, noise);
  Tensor loss;
  {
    const AutocastScope autocast(DeviceType::cpu, DType::bfloat16, options_.bfloat16);
    loss = model_(inputs).loss();
  }
  const double value = loss.item<double>();
  if (!std::isfinite(value))
    throw UserError("the loss of step " + std::to_string(steps_done() + 1) + " is " + Value(value).str() +
                    "; a smaller learning rate, a longer warm-up or float32 may help");
  backward(options_.accumulate == 1 ? loss : loss / Scalar(options_.accumulate));
  return value;
}

TrainStep Trainer::step() {
  const GradModeScope recording(true);
  model_.train();
  TrainStep out;
  out.step = steps_done() + 1;
  out.lr = optimizer_.param_groups().front().lr();
  for (int64_t i = 0; i < options_.accumulate; ++i) {
    const std::vector<size_t> rows = next_batch();
    out.loss += train_on(rows) / static_cast<double>(options_.accumulate);
    out.tokens += data_.tokens(rows);
  }
  out.grad_norm = options_.max_grad_norm > 0 ? clip_grad_norm_(parameters_, options_.max_grad_norm).item<double>()
                                             : get_total_norm(parameters_).item<double>();
  optimizer_.step();
  schedule_.step();
  optimizer_.zero_grad();
  steps_.push_back(out);
  return out;
}

Evaluation Trainer::evaluate(const TrainData& data) {
  const NoGradGuard no_grad;
  model_.eval();
  double sum = 0, counted = 0;
  for (const std::vector<size_t>& rows : data.in_order(options_.batch_size)) {
    const ModelInputs inputs = data.batch(rows, options_.seed);
    const Tensor labels = inputs[arg::labels];
    const int64_t* at = labels.data_as<int64_t>();
    const auto judged =
        static_cast<double>(std::count_if(at, at + labels.numel(), [](int64_t label) { return label >= 0; }));
    if (judged == 0) continue;
    const AutocastScope autocast(DeviceType::cpu, DType::bfloat16, options_.bfloat16);
    sum += model_(inputs).loss().item<double>() * judged;
    counted += judged;
  }
  model_.train();
  const Evaluation out{steps_done(), counted > 0 ? sum / counted : 0};
  evaluations_.push_back(out);
  return out;
}

// ---- checkpoints ------------------------------------------------------------------------------------------------------------

namespace {

// What a process that was killed left of a checkpoint.
void remove_partial(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const size_t mark = name.rfind(".partial-");
    if (mark == std::string::npos || !name.starts_with("checkpoint-")) continue;
    const int pid = std::atoi(name.c_str() + mark + 9);
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) std::filesystem::remove_all(entry.path());
  }
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  FileWriter writer(path.string());
  writer.write(text.data(), text.size());
  writer.commit();
}

Tensor random_state() {
  Generator& generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  const std::vector<uint8_t> bytes = generator.get_state();
  return tensor_of<uint8_t>(bytes, {static_cast<int64_t>(bytes.size())});
}

// What must be as it was for the same bits to follow.
std::vector<std::pair<const char*, int64_t>> course_of(const TrainData& data, const TrainOptions& o) {
  return {{"batch_size", static_cast<int64_t>(o.batch_size)},
          {"accumulate", o.accumulate},
          {"seed", static_cast<int64_t>(o.seed)},
          {"bfloat16", o.bfloat16 ? 1 : 0},
          {"examples", static_cast<int64_t>(data.size())},
          {"data_crc32", static_cast<int64_t>(data.fingerprint())}};
}

}  // namespace

std::string Trainer::state_json() const {
  JsonWriter json;
  json.begin_object();
  json.member("global_step", steps_done());
  json.member("epoch", epoch_);
  json.member("batches_of_epoch", at_);
  for (const auto& [name, value] : course_of(data_, options_)) json.member(name, value);
  json.member("max_grad_norm", options_.max_grad_norm);
  json.key("log_history");
  json.begin_array();
  for (const TrainStep& s : steps_) {
    json.begin_object();
    json.member("step", s.step);
    json.member("loss", s.loss);
    json.member("grad_norm", s.grad_norm);
    json.member("learning_rate", s.lr);
    json.member("tokens", s.tokens);
    json.end_object();
  }
  json.end_array();
  json.key("evaluations");
  json.begin_array();
  for (const Evaluation& e : evaluations_) {
    json.begin_object();
    json.member("step", e.step);
    json.member("eval_loss", e.loss);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

void Trainer::save(const std::filesystem::path& folder, const std::optional<std::filesystem::path>& companions_of) {
  namespace fs = std::filesystem;
  const fs::path partial = folder.string() + ".partial-" + std::to_string(::getpid());
  remove_partial(folder.parent_path().empty() ? fs::path(".") : folder.parent_path());
  fs::remove_all(partial);
  SaveOptions options;
  options.companions_of = companions_of;
  const NoGradGuard no_grad;
  save_pretrained(model_, partial, options);
  save_optimizer(optimizer_, (partial / "optimizer.pt").string());
  save_pickle((partial / "scheduler.pt").string(), schedule_.state_dict());
  save_pickle((partial / "rng_state.pt").string(), dict({{"cpu", random_state()}}));
  write_text(partial / "trainer_state.json", state_json());
  fs::remove_all(folder);
  fs::rename(partial, folder);
}

void Trainer::load(const std::filesystem::path& folder) {
  const NoGradGuard no_grad;
  const std::string state_path = (folder / "trainer_state.json").string();
  const std::shared_ptr<const MappedFile> file = MappedFile::open(state_path);
  const JsonDocument document({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, state_path);
  std::vector<TrainStep> steps;
  std::vector<Evaluation> evaluations;
  int64_t epoch = 0, at = 0;
  document.read([&](const Json& root) {
    for (const auto& [name, value] : course_of(data_, options_))
      if (const int64_t found = root.at(name).to_int(); found != value)
        throw UserError(std::string("training cannot go on from here: \"") + name + "\" was " + std::to_string(found) +
                        " and is " + std::to_string(value) +
                        " now; give the data and the options of then, or start anew elsewhere");
    epoch = root.at("epoch").to_int();
    at = root.at("batches_of_epoch").to_int();
    for (const Json& s : root.at("log_history").items())
      steps.push_back({s.at("step").to_int(), s.at("loss").to_float(), s.at("grad_norm").to_float(),
                       s.at("learning_rate").to_float(), s.at("tokens").to_int()});
    for (const Json& e : root.at("evaluations").items())
      evaluations.push_back({e.at("step").to_int(), e.at("eval_loss").to_float()});
  });
  std::vector<std::vector<size_t>> batches;
  if (epoch >= 0) batches = data_.epoch(options_.batch_size, options_.seed, epoch);
  if (at < 0 || at > static_cast<int64_t>(batches.size()))
    throw UserError(ErrorKind::bad_file, state_path + ": \"batches_of_epoch\" is " + std::to_string(at) +
                                             ", and the epoch has " + std::to_string(batches.size()));
  LoadOptions load;
  load.model_class = model_.class_name();
  load.dtype = parameter_dtype(model_);
  const std::shared_ptr<PretrainedModel> loaded = from_pretrained(folder, load);
  const Value schedule = load_pickle((folder / "scheduler.pt").string());
  const Value random = load_pickle((folder / "rng_state.pt").string());
  const Value* state = random.to_dict().find("cpu");
  if (!state) throw UserError(ErrorKind::bad_file, (folder / "rng_state.pt").string() + ": there is no \"cpu\" in it");
  const Tensor bytes = state->to_tensor().contiguous();
  load_optimizer(optimizer_, (folder / "optimizer.pt").string());
  schedule_.load_state_dict(schedule);
  model_.load_state_dict(loaded->state_dict());
  {
    Generator& generator = default_generator();
    const std::scoped_lock lock(generator.mutex());
    generator.set_state({bytes.data_as<uint8_t>(), static_cast<size_t>(bytes.numel())});
  }
  steps_ = std::move(steps), evaluations_ = std::move(evaluations), batches_ = std::move(batches);
  epoch_ = epoch, at_ = at;
}

std::filesystem::path last_checkpoint(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::path best;
  int64_t most = -1;
  if (!fs::is_directory(folder)) return best;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view prefix = "checkpoint-";
    const std::string digits = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!fs::exists(entry.path() / "trainer_state.json")) continue;
    if (const int64_t number = std::stoll(digits); number > most) most = number, best = entry.path();
  }
  return best;
}

}  // namespace calque

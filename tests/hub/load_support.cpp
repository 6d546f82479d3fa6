#include "hub/load_support.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "calque/file/pickle.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"
#include "support/paths.h"

namespace calque::load_test {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return fs::path(test::source_folder()) / "tests/hub/golden" / name; }

void Folder::tensors(const std::string& name, const NamedTensors& tensors,
                     const std::optional<SafetensorsMetadata>& metadata) const {
  fs::create_directories((*this / name).parent_path());
  save_safetensors((*this / name).string(), tensors, metadata, true, SharedTensors::written_each);
}
void Folder::pickle(const std::string& name, const NamedTensors& tensors) const {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key, tensor] : tensors) items.emplace_back(key, tensor.detach());
  write(name, write_pickle(dict(std::move(items))));
}

NamedTensors tensors_of(Module& module) {
  NamedTensors out;
  for (const auto& [name, tensor] : module.state_dict()) out.emplace_back(name, tensor.detach());
  return out;
}

NamedTensors without(const NamedTensors& tensors, const std::vector<std::string>& names) {
  NamedTensors out;
  for (const auto& item : tensors)
    if (std::find(names.begin(), names.end(), item.first) == names.end()) out.push_back(item);
  return out;
}

Warnings::Warnings() {
  reset_warnings();
  before_ = set_warning_sink([this](std::string_view text) { all_.emplace_back(text); });
}
Warnings::~Warnings() { set_warning_sink(before_); }
bool Warnings::any(std::string_view part) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

Environment::Environment(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
  if (const char* now = std::getenv(name_.c_str())) before_ = now;
  if (value)
    setenv(name_.c_str(), value->c_str(), 1);
  else
    unsetenv(name_.c_str());
}
Environment::~Environment() {
  if (before_)
    setenv(name_.c_str(), before_->c_str(), 1);
  else
    unsetenv(name_.c_str());
}

namespace {

template <class D>
struct TestModel : ModelOf<D> {
  static constexpr ModelArgument forward_arguments[] = {arg::inputs_embeds};
  using ModelOf<D>::ModelOf;
  std::string base_model_prefix() const override { return "base"; }
};

struct BaseModel : TestModel<BaseModel> {
  static constexpr const char* torch_type = "tests.BaseModel";
  explicit BaseModel(const Config& c)
      : TestModel(c), linear(child<Linear>("linear", 5, 5)), linear_2(child<Linear>("linear_2", 5, 5)) {}
  ModelOutput forward(const ModelInputs& in) override {
    ModelOutput out;
    out.set("logits", Value(linear_2(linear(in[arg::inputs_embeds]))));
    return out;
  }
  Child<Linear> linear, linear_2;
};

struct TiedBaseModel : TestModel<TiedBaseModel> {
  static constexpr const char* torch_type = "tests.TiedBaseModel";
  explicit TiedBaseModel(const Config& c)
      : TestModel(c), linear(child<Linear>("linear", 5, 5)), linear_2(child<Linear>("linear_2", 5, 5)) {}
  ModelOutput forward(const ModelInputs&) override { return {}; }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"linear_2.weight", "linear.weight"}};
  }
  Child<Linear> linear, linear_2;
};

struct HeadModel : TestModel<HeadModel> {
  static constexpr const char* torch_type = "tests.HeadModel";
  explicit HeadModel(const Config& c)
      : TestModel(c),
        base(child<BaseModel>("base", c)),
        linear(child<Linear>("linear", 5, c.num_labels())),
        linear2(child<Linear>("linear2", 5, 5)) {}
  ModelOutput forward(const ModelInputs& in) override {
    ModelOutput out;
    out.set("logits", Value(linear(base(in)["logits"])));
    return out;
  }
  std::vector<std::string> keys_to_ignore_on_load_missing() const override {
    return config().has("ignore_missing") ? std::vector<std::string>{config().text("ignore_missing")}
                                          : std::vector<std::string>();
  }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return config().has("ignore_unexpected") ? std::vector<std::string>{config().text("ignore_unexpected")}
                                             : std::vector<std::string>();
  }
  Child<BaseModel> base;
  Child<Linear> linear, linear2;
};

struct TiedHeadModel : TestModel<TiedHeadModel> {
  static constexpr const char* torch_type = "tests.TiedHeadModel";
  explicit TiedHeadModel(const Config& c)
      : TestModel(c), base(child<BaseModel>("base", c)), decoder(child<Linear>("decoder", 5, 5)) {}
  ModelOutput forward(const ModelInputs&) override { return {}; }
  TiedWeights tied_weights() const override { return {{"decoder.weight", "base.linear.weight"}}; }
  // Counts: a test asks what was initialised.
  void init_weights(Module& module) override {
    if (&module == &*decoder) config().set("decoder_initialised", true);
    PretrainedModel::init_weights(module);
  }
  Child<BaseModel> base;
  Child<Linear> decoder;
};

struct BufferModel : TestModel<BufferModel> {
  static constexpr const char* torch_type = "tests.BufferModel";
  explicit BufferModel(const Config& c)
      : TestModel(c),
        linear(child<Linear>("linear", 5, 5)),
        kept(child<Linear>("kept", 5, 5)),
        running(register_buffer("running", zeros({3}))),
        ids(register_buffer("ids", arange(4, DType::int64), false)) {}
  ModelOutput forward(const ModelInputs&) override { return {}; }
  std::vector<std::string> keep_in_fp32_modules() const override { return {"kept"}; }
  bool supports_sdpa() const override { return false; }
  Child<Linear> linear, kept;
  Buffer running, ids;
};

struct ScaledModel : TestModel<ScaledModel> {
  static constexpr const char* torch_type = "tests.ScaledModel";
  explicit ScaledModel(const Config& c)
      : TestModel(c), linear(child<Linear>("linear", 5, 5)), scale(register_parameter("scale", Tensor())) {
    register_parameter("scale", full({5}, 2.0));
    scale = full({5}, 2.5);
  }
  ModelOutput forward(const ModelInputs&) override { return {}; }
  Child<Linear> linear;
  Parameter scale;
};

template <class M>
ModelClass special(const char* name) {
  return model_class<M>(name, {name == std::string_view("BaseModel") ? "default" : "special"});
}

}  // namespace

void register_test_models() {
  static const bool once = [] {
    model_registry().add(
        {.model_type = "calque-test",
         .config_class = "CalqueTestConfig",
         .attribute_map = {{"width", "hidden"}},
         .defaults =
             R"({"hidden": 5, "initializer_range": 0.02, "ratio": 0.5, "wide": true, "kind": "plain", "sizes": [1, 2],
                            "tie_word_embeddings": true})",
         .classes = {special<BaseModel>("BaseModel"), special<TiedBaseModel>("TiedBaseModel"),
                     special<HeadModel>("HeadModel"), special<TiedHeadModel>("TiedHeadModel"),
                     special<BufferModel>("BufferModel"), special<ScaledModel>("ScaledModel")}});
    return true;
  }();
  static_cast<void>(once);
}

Config test_config(const std::string& architecture, const std::string& extra_json) {
  register_test_models();
  return Config::from_json(R"({"model_type": "calque-test", "architectures": [")" + architecture + "\"]" +
                           (extra_json.empty() ? "" : ", " + extra_json) + "}");
}

std::shared_ptr<PretrainedModel> new_model(const std::string& name, const std::string& extra_json) {
  return from_config(test_config(name, extra_json), {.model_class = name});
}

void save_test_model(PretrainedModel& model, const fs::path& folder) {
  fs::create_directories(folder);
  model.config().save(folder);
  NamedTensors once;
  for (const auto& item : tensors_of(model)) {
    const bool tied =
        std::any_of(once.begin(), once.end(), [&](const auto& other) { return other.second.data() == item.second.data(); });
    if (!tied) once.push_back(item);
  }
  save_safetensors((folder / "model.safetensors").string(), once, SafetensorsMetadata{{"format", "pt"}});
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && str(a.sizes()) == str(b.sizes()) &&
         std::memcmp(a.contiguous().data(), b.contiguous().data(), a.nbytes()) == 0;
}

}  // namespace calque::load_test

// Configurations that are changed, beside tiny weights: the small models of tests/zoo/golden, and the adapters of tests/hub/golden. A model
// is made and answers, or a UserError says why not.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "../tests/support/json_changes.h"
#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "calque/base/warning.h"
#include "calque/file/safetensors.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "forked.h"
#include "support/paths.h"

using namespace calque;
using Json = nlohmann::ordered_json;

namespace {

struct Seed {
  Json config;
  StateDict weights;
};

// A number anywhere in the configuration gets a value that nobody means.
void change_number(Json& root, std::mt19937& chance) {
  static const Json values[] = {
      0,         -1,        1,   2,     3,     7,      63,   64,     65, 1000, 65536, int64_t{1} << 31, int64_t{1} << 40,
      INT64_MAX, INT64_MIN, 1.5, -0.25, 1e308, "gelu", true, nullptr};
  std::vector<Json*> all, numbers;
  test::collect(root, all);
  std::copy_if(all.begin(), all.end(), std::back_inserter(numbers), [](const Json* j) { return j->is_number(); });
  if (!numbers.empty()) *numbers[chance() % numbers.size()] = values[chance() % std::size(values)];
}

Json changed(Json config, std::mt19937& chance) {
  for (size_t times = 1 + chance() % 3; times > 0; --times) {
    if (chance() % 4 == 0)
      test::change_one(config, chance);
    else
      change_number(config, chance);
  }
  return config;
}

template <class F>
forked::Outcome outcome_of(F&& f) {
  try {
    const GradModeScope no_grad(false);
    f();
    return {forked::Kind::answered, ""};
  } catch (const UserError& e) {
    return {forked::Kind::refused, e.what()};
  } catch (const std::exception& e) {
    return {forked::Kind::wrong, std::string("not a UserError: ") + e.what()};
  }
}

// An adapter of its own values, or a new one; merged where it can be.
forked::Outcome attempt_adapter(const Seed& seed, const std::string& base, uint64_t number) {
  std::mt19937 chance(static_cast<unsigned>(number));
  const Json config = changed(seed.config, chance);
  return outcome_of([&] {
    const AdapterConfig read = AdapterConfig::from_json(config.dump(-1, ' ', false, Json::error_handler_t::replace));
    const auto model = from_pretrained(base);
    if (chance() % 3 == 0)
      add_adapter(*model, read);
    else
      load_adapter(*model, read, seed.weights);
    const ModelInputs in{{arg::input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8}, {2, 3})}};
    static_cast<void>((*model)(in));
    static_cast<void>(adapter_state_dict(*model, "default"));
    if (!read.is_prompt_learning()) merge_and_unload(*model);
    static_cast<void>((*model)(in));
  });
}

forked::Outcome attempt(const Seed& seed, uint64_t number) {
  std::mt19937 chance(static_cast<unsigned>(number));
  const Json config = changed(seed.config, chance);
  const StateDict none;
  return outcome_of([&] {
    const Config read = Config::from_json(config.dump(-1, ' ', false, Json::error_handler_t::replace));
    const auto model = load_pretrained(read, chance() % 3 == 0 ? none : seed.weights).model;
    ModelInputs in;
    in.set(arg::input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8, 9, 3, 4, 5}, {2, 5}));
    if (model->takes(arg::decoder_input_ids)) in.set(arg::decoder_input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8}, {2, 3}));
    static_cast<void>((*model)(in));
  });
}

Json json_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return Json::parse(text.str());
}

}  // namespace

int main(int argc, char** argv) {
  set_memory_limit(size_t{1} << 30);
  set_num_threads(1);
  set_warning_sink([](std::string_view) {});
  std::vector<forked::Subject> subjects;
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(calque::test::source_folder() + "/tests/zoo/golden"))
    folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const auto& folder : folders) {
    auto seed = std::make_shared<Seed>();
    seed->config = json_of(folder / "config.json");
    seed->weights = StateDict(SafetensorsFile::open((folder / "model.safetensors").string()).tensors());
    subjects.push_back(
        {"configurations", folder.filename().string(), [seed](uint64_t number) { return attempt(*seed, number); }, {}});
  }
  const std::filesystem::path adapters = calque::test::source_folder() + "/tests/hub/golden/adapters";
  for (const char* name : {"lora", "dora", "tokens", "ia3", "prompt", "prefix"}) {
    auto seed = std::make_shared<Seed>();
    seed->config = json_of(adapters / name / "adapter_config.json");
    if (const auto file = adapters / name / "adapter_model.safetensors"; std::filesystem::exists(file))
      seed->weights = StateDict(SafetensorsFile::open(file.string()).tensors());
    const std::string base = (adapters / "base").string();
    subjects.push_back(
        {"adapters", name, [seed, base](uint64_t number) { return attempt_adapter(*seed, base, number); }, {}});
  }
  return forked::run(argc, argv, subjects);
}

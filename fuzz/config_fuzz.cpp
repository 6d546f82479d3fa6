// Configurations that are changed, beside tiny weights: the small models of tests/zoo/golden. A model is made and answers, or a
// UserError says why not.
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

forked::Outcome attempt(const Seed& seed, uint64_t number) {
  std::mt19937 chance(static_cast<unsigned>(number));
  Json config = seed.config;
  for (size_t times = 1 + chance() % 3; times > 0; --times) {
    if (chance() % 4 == 0)
      test::change_one(config, chance);
    else
      change_number(config, chance);
  }
  const StateDict none;
  try {
    const GradModeScope no_grad(false);
    const Config read = Config::from_json(config.dump(-1, ' ', false, Json::error_handler_t::replace));
    const auto model = load_pretrained(read, chance() % 3 == 0 ? none : seed.weights).model;
    ModelInputs in;
    in.set(arg::input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8, 9, 3, 4, 5}, {2, 5}));
    if (model->takes(arg::decoder_input_ids)) in.set(arg::decoder_input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8}, {2, 3}));
    static_cast<void>((*model)(in));
    return {forked::Kind::answered, ""};
  } catch (const UserError& e) {
    return {forked::Kind::refused, e.what()};
  } catch (const std::exception& e) {
    return {forked::Kind::wrong, std::string("not a UserError: ") + e.what()};
  }
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
    std::ifstream in(folder / "config.json");
    std::ostringstream text;
    text << in.rdbuf();
    auto seed = std::make_shared<Seed>();
    seed->config = Json::parse(text.str());
    seed->weights = StateDict(SafetensorsFile::open((folder / "model.safetensors").string()).tensors());
    subjects.push_back(
        {"configurations", folder.filename().string(), [seed](uint64_t number) { return attempt(*seed, number); }, {}});
  }
  return forked::run(argc, argv, subjects);
}

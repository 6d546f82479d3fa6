// Calque's side of bench/forward. Commands, one a line:
//   load NAME FOLDER                      a model, kept under the name
//   forward NAME BATCH LENGTH TIMES       answers nanoseconds of the median of TIMES passes, and a checksum
//   decode NAME PROMPT NEW                greedy, answers nanoseconds of the whole and of the part after the first token, and a checksum
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <sstream>

#include "calque/base/thread.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/ops.h"

using namespace calque;
using Clock = std::chrono::steady_clock;

namespace {

// The same in run.py.
Tensor ids_for(int64_t batch, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < batch * length; ++i) ids.push_back((i * 7919 + 13) % 1000 + 5);
  return tensor_of<int64_t>(ids, {batch, length});
}

int64_t nanoseconds(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
}

class FirstToken final : public Streamer {
 public:
  void put(const Tensor&) override {
    if (++calls_ == 2) time = Clock::now();
  }
  void end() override {}
  Clock::time_point time;

 private:
  int calls_ = 0;
};

}  // namespace

int main() {
  set_num_threads(2);
  const GradModeScope no_grad(false);
  std::map<std::string, std::shared_ptr<PretrainedModel>> models;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string command, name;
    in >> command >> name;
    if (command == "load") {
      std::string folder;
      in >> folder;
      models[name] = from_pretrained(folder);
      std::cout << "0 0" << std::endl;
      continue;
    }
    PretrainedModel& model = *models.at(name);
    int64_t a = 0, b = 0, times = 1;
    in >> a >> b >> times;
    if (command == "forward") {
      const Tensor ids = ids_for(a, b), mask = ones({a, b}, DType::int64);
      std::vector<int64_t> spent;
      double sum = 0;
      for (int64_t i = 0; i < times; ++i) {
        const Clock::time_point start = Clock::now();
        const Tensor last = model({.input_ids = ids, .attention_mask = mask})["last_hidden_state"];
        spent.push_back(nanoseconds(start, Clock::now()));
        sum = last.abs().mean().item_as<float>();
      }
      std::nth_element(spent.begin(), spent.begin() + std::ssize(spent) / 2, spent.end());
      std::cout << spent[spent.size() / 2] << " " << static_cast<int64_t>(sum * 1e4) << std::endl;
    } else {
      GenerationConfig config;
      config.max_new_tokens = b;
      FirstToken first;
      const Clock::time_point start = Clock::now();
      const Tensor out = generate(model, {.input_ids = ids_for(1, a)}, config, {.streamer = &first}).sequences;
      const Clock::time_point end = Clock::now();
      std::cout << nanoseconds(start, end) << " " << nanoseconds(first.time, end) << " " << out.sum().item_as<int64_t>()
                << std::endl;
    }
  }
}

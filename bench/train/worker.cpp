// Calque's side of bench/train. Commands, one a line:
//   load NAME FOLDER                 a model with an AdamW, kept under the name
//   step NAME BATCH LENGTH TIMES     answers nanoseconds of the median of TIMES training steps, and the last loss
//   update NAME TIMES                the same of the optimizer's step alone
//   memory                           answers the peak of this process in bytes
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <sstream>

#include "calque/base/thread.h"
#include "calque/grad/autograd.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/aten/like.h"
#include "calque/train/trainer.h"

using namespace calque;
using Clock = std::chrono::steady_clock;

namespace {

// The same in run.py.
Tensor ids_for(int64_t batch, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < batch * length; ++i) ids.push_back((i * 7919 + 13) % 1000 + 5);
  return tensor_of<int64_t>(ids, {batch, length});
}

struct Loaded {
  std::shared_ptr<PretrainedModel> model;
  std::unique_ptr<AdamW> optimizer;
};

template <class F>
int64_t median_nanoseconds(int64_t times, F run) {
  std::vector<int64_t> spent;
  for (int64_t i = 0; i < times; ++i) {
    const auto start = Clock::now();
    run();
    spent.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  }
  std::ranges::sort(spent);
  return spent[spent.size() / 2];
}

double training_step(Loaded& loaded, const Tensor& ids) {
  const Tensor loss = (*loaded.model)({{arg::input_ids, ids}, {arg::labels, ids}}).loss();
  backward(loss);
  loaded.optimizer->step();
  loaded.optimizer->zero_grad();
  return loss.item<double>();
}

}  // namespace

int main() {
  set_num_threads(2);
  std::map<std::string, Loaded> models;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string command, name, folder;
    int64_t batch = 0, length = 0, times = 0;
    in >> command >> name;
    if (command == "load") {
      in >> folder;
      Loaded& loaded = models[name];
      loaded.model = from_pretrained(folder);
      make_trainable(*loaded.model);
      loaded.model->eval();  // without dropout, on both sides
      loaded.optimizer = std::make_unique<AdamW>(loaded.model->parameters(), AdamWOptions{.lr = 1e-5});
      std::cout << "0 0" << std::endl;
    } else if (command == "step") {
      in >> batch >> length >> times;
      const Tensor ids = ids_for(batch, length);
      double loss = 0;
      const int64_t spent = median_nanoseconds(times, [&] { loss = training_step(models[name], ids); });
      std::cout << spent << " " << loss << std::endl;
    } else if (command == "update") {
      in >> times;
      for (const Tensor& p : models[name].model->parameters()) set_grad(p, zeros_like(p));
      std::cout << median_nanoseconds(times, [&] { models[name].optimizer->step(); }) << " 0" << std::endl;
      models[name].optimizer->zero_grad();
    } else if (command == "memory") {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      std::cout << usage.ru_maxrss * 1024 << " 0" << std::endl;
    }
  }
}

// Calque's side of bench/capture: a GPT-2-shaped decoder and a BERT-shaped encoder, traced and run on fake tensors. Reads
// commands, a line each ("decoder 12 symbolic", "encoder 12 forward"), and answers with the processor time of one run in nanoseconds and
// the nodes of the graph; "memory" answers with the bytes a node costs.

#include <malloc.h>
#include <time.h>

#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "calque/trace/make_fx.h"
#include "models.h"

namespace {

using namespace calque;

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

struct Case {
  std::shared_ptr<FakeMode> weights_of;
  std::shared_ptr<Module> model;
};

// Weights have no data: neither side's time depends on them.
Case make_case(const std::string& kind, int64_t layers) {
  Case c;
  c.weights_of = FakeMode::make();
  const ModeScope scope(*c.weights_of);
  c.model = bench::make_model(kind, layers);
  return c;
}

TracedGraph trace(Case& c, TracingMode mode) {
  // The parameters are arguments, as functional_call has them: real tensors, whose memory nobody touches.
  std::vector<Tensor> parameters = c.model->parameters();
  Values args{zeros({2, 128}, DType::int64)};
  for (const Tensor& p : parameters) args.emplace_back(empty(p.sym_sizes(), p.dtype()));
  return make_fx_values(
      [&](const Values& in) -> Value {
        const auto slots = c.model->named_parameters();
        for (size_t i = 0; i < slots.size(); ++i) c.model->set_tensor(slots[i].first, in[i + 1].to_tensor());
        const Value out = c.model->call({in[0]});
        for (size_t i = 0; i < slots.size(); ++i) c.model->set_tensor(slots[i].first, parameters[i]);
        return out;
      },
      args, {.mode = mode});
}

}  // namespace

int main() {
  const GradModeScope no_grad(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string kind, what;
    int64_t layers = 0;
    words >> kind >> layers >> what;
    Case c = make_case(kind, layers);
    size_t nodes = 0;
    int64_t start = 0, end = 0;
    size_t bytes = 0;
    if (what == "forward") {
      const ModeScope scope(*c.weights_of);
      const Tensor ids = zeros({2, 128}, DType::int64);
      start = now();
      c.model->call({ids});
      end = now();
    } else {
      const TracingMode mode = what == "symbolic" ? TracingMode::symbolic : TracingMode::fake;
      const size_t before = mallinfo2().uordblks;
      start = now();
      const TracedGraph g = trace(c, mode);
      end = now();
      nodes = g.graph().size();
      bytes = mallinfo2().uordblks - before;
    }
    fmt::print("{} {} {}\n", end - start, nodes, nodes ? bytes / nodes : 0);
    std::fflush(stdout);
  }
}

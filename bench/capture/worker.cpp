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

#include "calque/nn/nn.h"
#include "calque/op/ops.h"
#include "calque/trace/make_fx.h"

namespace {

using namespace calque;

constexpr int64_t width = 768;
constexpr int64_t heads = 12;
constexpr int64_t vocabulary = 50257;
constexpr int64_t positions = 1024;

Tensor split_heads(const Tensor& x) { return x.view({x.sym_size(0), x.sym_size(1), heads, width / heads}).transpose(1, 2); }
Tensor join_heads(const Tensor& x) {
  const Tensor y = x.transpose(1, 2).contiguous();
  return y.view({y.sym_size(0), y.sym_size(1), width});
}

struct DecoderLayer : Typed<DecoderLayer> {
  Child<LayerNorm> ln_1 = child<LayerNorm>("ln_1", width);
  Child<Linear> c_attn = child<Linear>("c_attn", width, 3 * width);
  Child<Linear> c_proj = child<Linear>("c_proj", width, width);
  Child<LayerNorm> ln_2 = child<LayerNorm>("ln_2", width);
  Child<Linear> c_fc = child<Linear>("c_fc", width, 4 * width);
  Child<Linear> mlp_proj = child<Linear>("mlp_proj", 4 * width, width);

  Tensor forward(const Tensor& x) {
    const std::vector<Tensor> qkv = c_attn(ln_1(x)).split(width, 2);
    const Tensor a = scaled_dot_product_attention(split_heads(qkv[0]), split_heads(qkv[1]), split_heads(qkv[2]), {}, 0.0, true);
    const Tensor y = x + c_proj(join_heads(a));
    return y + mlp_proj(gelu(c_fc(ln_2(y)), "tanh"));
  }
};

struct Decoder : Typed<Decoder> {
  explicit Decoder(int64_t layers) {
    std::vector<std::shared_ptr<Module>> all;
    for (int64_t i = 0; i < layers; ++i) all.push_back(std::make_shared<DecoderLayer>());
    blocks = std::make_shared<ModuleList>(std::move(all));
    register_module("h", blocks);
  }
  Child<Embedding> wte = child<Embedding>("wte", vocabulary, width);
  Child<Embedding> wpe = child<Embedding>("wpe", positions, width);
  std::shared_ptr<ModuleList> blocks;
  Child<LayerNorm> ln_f = child<LayerNorm>("ln_f", width);

  Tensor forward(const Tensor& ids) {
    Tensor x = wte(ids) + wpe(arange(ids.sym_size(1)));
    for (DecoderLayer* layer : blocks->items<DecoderLayer>()) x = (*layer)(x);
    return linear(ln_f(x), wte->weight);
  }
};

struct EncoderLayer : Typed<EncoderLayer> {
  Child<Linear> query = child<Linear>("query", width, width);
  Child<Linear> key = child<Linear>("key", width, width);
  Child<Linear> value = child<Linear>("value", width, width);
  Child<Linear> dense = child<Linear>("dense", width, width);
  Child<LayerNorm> norm_1 = child<LayerNorm>("norm_1", width);
  Child<Linear> intermediate = child<Linear>("intermediate", width, 4 * width);
  Child<Linear> output = child<Linear>("output", 4 * width, width);
  Child<LayerNorm> norm_2 = child<LayerNorm>("norm_2", width);

  Tensor forward(const Tensor& x) {
    const Tensor a = scaled_dot_product_attention(split_heads(query(x)), split_heads(key(x)), split_heads(value(x)));
    const Tensor y = norm_1(x + dense(join_heads(a)));
    return norm_2(y + output(gelu(intermediate(y))));
  }
};

struct Encoder : Typed<Encoder> {
  explicit Encoder(int64_t layers) {
    std::vector<std::shared_ptr<Module>> all;
    for (int64_t i = 0; i < layers; ++i) all.push_back(std::make_shared<EncoderLayer>());
    blocks = std::make_shared<ModuleList>(std::move(all));
    register_module("layer", blocks);
  }
  Child<Embedding> words = child<Embedding>("words", vocabulary, width);
  Child<Embedding> places = child<Embedding>("places", positions, width);
  Child<Embedding> kinds = child<Embedding>("kinds", 2, width);
  Child<LayerNorm> norm = child<LayerNorm>("norm", width);
  std::shared_ptr<ModuleList> blocks;
  Child<Linear> pooler = child<Linear>("pooler", width, width);

  Tensor forward(const Tensor& ids) {
    Tensor x = norm(words(ids) + places(arange(ids.sym_size(1))) + kinds(zeros_like(ids)));
    for (EncoderLayer* layer : blocks->items<EncoderLayer>()) x = (*layer)(x);
    return tanh(pooler(x.select(1, 0)));
  }
};

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
  if (kind == "decoder") c.model = std::make_shared<Decoder>(layers);
  else c.model = std::make_shared<Encoder>(layers);
  c.model->eval();
  return c;
}

TracedGraph trace(Case& c, TracingMode mode) {
  // The parameters are arguments, as functional_call has them, so that they may be fake.
  std::vector<Tensor> parameters = c.model->parameters();
  Values args{zeros({2, 128}, DType::int64)};
  for (const Tensor& p : parameters) args.emplace_back(p);
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

// The modules of capture_cases.py. Parameters and buffers hold what the driver puts into PyTorch's.
#include <limits>

#include "calque/graph/higher_order.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/zeros.h"
#include "programs.h"

namespace calque::capture {

namespace {

void fill(const Tensor& t, int64_t seed, bool positive) {
  if (t.dtype() != DType::float32) return;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto v = static_cast<float>((i * 37 + seed * 11) % 101);
    t.mutable_data_as<float>()[i] = positive ? v / 64 + 0.5F : (v - 50) / 256;
  }
}

template <class M, class... A>
void add_module(Programs& programs, const std::string& name, A&&... args) {
  const auto module = std::make_shared<M>(std::forward<A>(args)...);
  module->eval();
  int64_t seed = 0;
  for (const auto& [path, t] : module->named_parameters()) fill(t, seed++, false);
  for (const auto& [path, t] : module->named_buffers()) fill(t, seed++, true);
  programs[name] = [module](const Values& inputs) { return module->call(inputs); };
}

struct Mlp : Typed<Mlp> {
  Child<Linear> up = child<Linear>("up", 4, 8);
  Child<Linear> down = child<Linear>("down", 8, 4);
  Tensor forward(const Tensor& x) { return down(up(x).relu()); }
};

struct Residual : Typed<Residual> {
  Child<LayerNorm> norm = child<LayerNorm>("norm", 4);
  Child<Linear> mix = child<Linear>("mix", 4, 4, false);
  Tensor forward(const Tensor& x) { return x + mix(norm(x)); }
};

struct Gated : Typed<Gated> {
  Child<Linear> gate = child<Linear>("gate", 4, 6, false);
  Child<Linear> up = child<Linear>("up", 4, 6, false);
  Child<Linear> down = child<Linear>("down", 6, 4, false);
  Tensor forward(const Tensor& x) {
    const Tensor gated = gate(x).silu();
    return down(gated * up(x));
  }
};

struct Rms : Typed<Rms> {
  Parameter weight = register_parameter("weight", ones({4}));
  Tensor forward(const Tensor& x) {
    const Tensor scale = (x.pow(2).mean({-1}, true) + 1e-6).rsqrt();
    return x * scale * *weight;
  }
};

struct Words : Typed<Words> {
  Child<Embedding> embed = child<Embedding>("embed", 7, 4);
  Child<Linear> head = child<Linear>("head", 4, 7);
  Tensor forward(const Tensor& ids) { return head(embed(ids).mean({1})); }
};

struct Tied : Typed<Tied> {
  Child<Embedding> embed = child<Embedding>("embed", 7, 4);
  Tensor forward(const Tensor& ids) {
    const Tensor x = embed(ids);
    return linear(x, *embed->weight);
  }
};

struct ConvNet : Typed<ConvNet> {
  Child<Conv2d> conv = child<Conv2d>("conv", 3, 4, 3, ConvOptions{.stride = 2, .padding = Sizes(1)});
  Child<BatchNorm2d> norm = child<BatchNorm2d>("norm", 4);
  Child<Linear> head = child<Linear>("head", 4, 5);
  Tensor forward(const Tensor& x) {
    const Tensor y = norm(conv(x)).relu();
    return head(y.mean({2, 3}));
  }
};

struct Waves : Typed<Waves> {
  Child<Conv1d> first = child<Conv1d>("first", 2, 4, 3);
  Child<GroupNorm> norm = child<GroupNorm>("norm", 2, 4);
  Child<Conv1d> second = child<Conv1d>("second", 4, 4, 3, ConvOptions{.padding = Sizes(1)});
  Tensor forward(const Tensor& x) {
    const Tensor y = norm(first(x)).gelu();
    return second(y) + y;
  }
};

struct SelfAttention : Typed<SelfAttention> {
  Child<Linear> qkv = child<Linear>("qkv", 4, 12);
  Child<Linear> out = child<Linear>("out", 4, 4);
  Tensor forward(const Tensor& x) {
    const SymInt batch = x.sym_size(0), length = x.sym_size(1);
    const auto parts = qkv(x).chunk(3, -1);
    const auto heads = [&](const Tensor& t) { return t.view({batch, length, 2, 2}).transpose(1, 2); };
    const Tensor q = heads(parts[0]);
    const Tensor k = heads(parts[1]);
    const Tensor y = scaled_dot_product_attention(q, k, heads(parts[2]), {}, 0.0, true);
    return out(y.transpose(1, 2).reshape({batch, length, 4}));
  }
};

struct Block : Typed<Block> {
  Child<LayerNorm> first_norm = child<LayerNorm>("first_norm", 4);
  Child<SelfAttention> attention = child<SelfAttention>("attention");
  Child<LayerNorm> second_norm = child<LayerNorm>("second_norm", 4);
  Child<Mlp> mlp = child<Mlp>("mlp");
  Tensor forward(const Tensor& x) {
    const Tensor y = x + attention(first_norm(x));
    return y + mlp(second_norm(y));
  }
};

struct Decoder : Typed<Decoder> {
  Child<Embedding> tokens = child<Embedding>("tokens", 7, 4);
  Child<Embedding> positions = child<Embedding>("positions", 16, 4);
  Child<Block> first = child<Block>("first");
  Child<Block> second = child<Block>("second");
  Child<LayerNorm> norm = child<LayerNorm>("norm", 4);
  Child<Linear> head = child<Linear>("head", 4, 7, false);
  Tensor forward(const Tensor& ids) {
    const Tensor places = arange(0, ids.sym_size(1));
    const Tensor embedded = tokens(ids);
    const Tensor x = embedded + positions(places);
    return head(norm(second(first(x))));
  }
};

struct Table : Typed<Table> {
  Buffer table = register_buffer("table", zeros({16, 4}));
  Parameter scale = register_parameter("scale", ones({4}));
  Tensor forward(const Tensor& x) {
    const Tensor rows = table->index_by({Slice(none, x.sym_size(1))});
    return x * *scale + rows;
  }
};

struct TwoResults : Typed<TwoResults> {
  Child<Linear> mean = child<Linear>("mean", 4, 2);
  Child<Linear> spread = child<Linear>("spread", 4, 2);
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    const Tensor first = mean(x);
    return {first, softplus(spread(x))};
  }
};

}  // namespace

void add_modules(Programs& programs) {
  add_module<Mlp>(programs, "mlp");
  add_module<Residual>(programs, "residual");
  add_module<Gated>(programs, "gated");
  add_module<Rms>(programs, "rms");
  add_module<Words>(programs, "words");
  add_module<Tied>(programs, "tied");
  add_module<ConvNet>(programs, "conv_net");
  add_module<Waves>(programs, "waves");
  add_module<SelfAttention>(programs, "self_attention");
  add_module<Block>(programs, "block");
  add_module<Decoder>(programs, "decoder");
  add_module<Table>(programs, "table");
  add_module<TwoResults>(programs, "two_results");

  const Adder add(programs);
  add("conditional", [](const Tensor& x) {
    const Tensor positive = x.sum() > 0;
    return cond(
        positive, [](const Values& in) -> Value { return tuple({in[0].to_tensor().sin()}); },
        [](const Values& in) -> Value { return tuple({in[0].to_tensor().cos() + 1}); }, {x});
  });
}

}  // namespace calque::capture

#include "cli/examples.h"

#include "calque/base/error.h"
#include "calque/graph/higher_order.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/random.h"
#include "calque/op/index.h"

namespace calque::cli {
namespace {

struct Mlp : Typed<Mlp> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 16, 64);
  Child<GELU> act = child<GELU>("act");
  Child<Linear> down = child<Linear>("down", 64, 16);
  Tensor forward(const Tensor& x) { return x + down(act(up(x))); }
};

struct Attention : Typed<Attention> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<LayerNorm> norm = child<LayerNorm>("norm", 32);
  Child<Linear> qkv = child<Linear>("qkv", 32, 96);
  Child<Linear> out = child<Linear>("out", 32, 32);
  Tensor forward(const Tensor& x) {
    const auto heads = [](const Tensor& t) { return t.view({t.sym_size(0), t.sym_size(1), 4, 8}).transpose(1, 2); };
    const std::vector<Tensor> parts = qkv(norm(x)).chunk(3, 2);
    const Tensor a = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), {}, 0.0, true);
    const Tensor joined = a.transpose(1, 2).reshape({x.sym_size(0), x.sym_size(1), 32});
    return x + out(joined);
  }
};

struct ConvNet : Typed<ConvNet> {
  static constexpr const char* forward_arguments[] = {"image"};
  Child<Conv2d> conv = child<Conv2d>("conv", 3, 8, 3);
  Child<BatchNorm2d> norm = child<BatchNorm2d>("norm", 8);
  Child<Linear> head = child<Linear>("head", 8, 10);
  Tensor forward(const Tensor& image) { return head(norm(conv(image)).relu().mean({2, 3})); }
};

struct Branches : Typed<Branches> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> small = child<Linear>("small", 8, 8);
  Tensor forward(const Tensor& x) {
    // A question about a size is answered while tracing, and leaves a guard.
    const Tensor y = guard(x.sym_size(0) > 4) ? small(x) : x * 2;
    // One about a value is not, and becomes a choice in the graph.
    return cond(
               y.sum() > 0, [](const Values& in) -> Value { return in[0].to_tensor().relu(); },
               [](const Values& in) -> Value { return in[0].to_tensor().neg(); }, {y})
        .to_tensor();
  }
};

struct Selected : Typed<Selected> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) { return x[x > 0.5] * 2; }
};

template <class M>
std::shared_ptr<Module> evaluated() {
  auto m = std::make_shared<M>();
  m->eval();
  return m;
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"mlp", "two linear layers with a residual", evaluated<Mlp>,
       [] {
         return Values{rand({4, 16})};
       }},
      {"attention", "causal self-attention over any batch and length", evaluated<Attention>,
       [] {
         return Values{rand({2, 7, 32})};
       }},
      {"convnet", "convolution, batch norm, pooling, linear", evaluated<ConvNet>,
       [] {
         return Values{rand({2, 3, 32, 32})};
       }},
      {"branches", "a guard on a size, a choice on a value", evaluated<Branches>,
       [] {
         return Values{rand({6, 8})};
       }},
      {"selected", "a result whose size depends on values", evaluated<Selected>, [] { return Values{rand({10})}; }},
  };
  return all;
}

const Example& find_example(const std::string& name) {
  std::string names;
  for (const Example& e : examples()) {
    if (e.name == name) return e;
    names += (names.empty() ? "" : ", ") + std::string(e.name);
  }
  throw UserError("no example is named '" + name + "'; the examples are " + names +
                  "; nor is there a model folder or a file of that name");
}

}  // namespace calque::cli

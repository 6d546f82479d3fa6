// The modules of fx.py in C++, traced: as JSON, for each its nodes and code as torch.fx prints them, the modules that each
// node was made under, and whether the graph computes what the module does.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "calque/base/warning.h"
#include "calque/nn/functional.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/alias.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/getitem.h"
#include "calque/op/index.h"
#include "calque/op/tree.h"
#include "calque/tensor/generator.h"
#include "calque/trace/tracer.h"

using namespace calque;

namespace {

Tensor floats(std::initializer_list<float> values) {
  const std::vector<float> v(values);
  return tensor_of<float>(v, {static_cast<int64_t>(v.size())});
}

struct Mlp : Typed<Mlp> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 4, 8);
  Child<GELU> act = child<GELU>("act");
  Child<Linear> down = child<Linear>("down", 8, 4);
  Parameter bias = register_parameter("bias", zeros({4}));
  Tensor forward(const Tensor& x) { return relu(down(act(up(x))) + bias); }
};

struct Convolutions : Typed<Convolutions> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Conv2d> conv1 = child<Conv2d>("conv1", 3, 4, 3);
  Child<BatchNorm2d> bn1 = child<BatchNorm2d>("bn1", 4);
  Child<Conv2d> conv2 = child<Conv2d>("conv2", 4, 4, 3, ConvOptions{.padding = 1});
  Child<Linear> fc = child<Linear>("fc", 4, 2);
  Tensor forward(const Tensor& input) {
    Tensor x = max_pool2d(relu(bn1(conv1(input))), {2, 2});
    x = x + conv2(x);
    x = adaptive_avg_pool2d(x, {1, 1});
    return fc(flatten(x, 1));
  }
};

struct Attention : Typed<Attention> {
  static constexpr const char* forward_arguments[] = {"x", "mask"};
  Child<Linear> q_ = child<Linear>("q", 8, 8);
  Child<Linear> k_ = child<Linear>("k", 8, 8);
  Child<Linear> v_ = child<Linear>("v", 8, 8);
  Child<Linear> o_ = child<Linear>("o", 8, 8);
  Tensor forward(const Tensor& x, const Tensor& mask) {
    const SymInt b = x.sym_size(0);
    const SymInt t = x.sym_size(1);
    const Tensor q = q_(x).view({b, t, 2, 4}).transpose(1, 2);
    const Tensor k = k_(x).view({b, t, 2, 4}).transpose(1, 2);
    const Tensor v = v_(x).view({b, t, 2, 4}).transpose(1, 2);
    Tensor scores = matmul(q, k.transpose(-2, -1)) / 2.0;
    scores = scores.masked_fill(mask == 0, -10000.0);
    const Tensor y = matmul(softmax(scores, -1), v);
    return o_(y.transpose(1, 2).contiguous().view({b, t, 8}));
  }
};

struct Embeddings : Typed<Embeddings> {
  static constexpr const char* forward_arguments[] = {"input_ids"};
  Child<Embedding> word = child<Embedding>("word", 10, 6);
  Child<Embedding> position = child<Embedding>("position", 5, 6);
  Child<LayerNorm> norm = child<LayerNorm>("norm", 6);
  Child<Dropout> dropout = child<Dropout>("dropout", 0.1);
  Buffer ids = register_buffer("ids", arange(5));
  Tensor forward(const Tensor& input_ids) {
    const Tensor words = word(input_ids);
    return dropout(norm(words + position(ids)));
  }
};

struct Gates : Typed<Gates> {
  static constexpr const char* forward_arguments[] = {"x", "c"};
  Child<Linear> w = child<Linear>("w", 4, 12);
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& before) {
    const std::vector<Tensor> parts = chunk(w(x), 3, -1);
    const Tensor kept = sigmoid(parts[1]) * before;
    const Tensor in = sigmoid(parts[0]);
    const Tensor c = kept + in * parts[2].tanh();
    return {c, c.sin().neg()};
  }
};

struct Indexing : Typed<Indexing> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) {
    const Tensor y = x[1];
    const Tensor z = x.index_by({ellipsis, Slice(1, none), none});
    const Tensor a = z.index_by({Slice(), -1});
    const Tensor b = a + y[Slice(1, 3, 2)].sum();
    const Tensor c = b + x[x > 0].mean();
    return c + x.index_by({0, Slice(), none});
  }
};

struct Operators : Typed<Operators> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor left = (1 - x) * 2;
    const Tensor a = left / (y + 3);
    const Tensor above = 2 < x;
    const Tensor both = above & (x <= y);
    const Tensor b = both | ~(x == 0);
    const Tensor minus = -a;
    const Tensor chosen = where(b, minus, a % 2);
    return chosen + (5 != y);
  }
};

struct Members : Typed<Members> {
  struct Inner : Typed<Inner> {
    static constexpr const char* forward_arguments[] = {"x"};
    Parameter w = register_parameter("w", ones({3}));
    Buffer b = register_buffer("b", ones({3}));
    Tensor forward(const Tensor& x) { return x * w + b; }
  };
  static constexpr const char* forward_arguments[] = {"x"};
  std::shared_ptr<Inner> shared = std::make_shared<Inner>();
  Child<Inner> inner = child_module<Inner>("inner", shared);
  Child<Inner> tied = child_module<Inner>("tied", shared);
  Tensor forward(const Tensor& x) { return tied(inner(x)) - inner->w + inner->b; }
};

struct Constants : Typed<Constants> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) {
    const Tensor scale = floats({1, 2});
    return x * scale + floats({3, 4}) - scale;
  }
};

struct Results : Typed<Results> {
  static constexpr const char* forward_arguments[] = {"x"};
  Value forward(const Tensor& x) {
    const auto [values, indices] = max(x, 1);
    const std::vector<Tensor> parts = split(x, {1, 2}, 1);
    return dict({{"values", values}, {"rest", list({indices, tuple({parts[0], parts[1]})})}});
  }
};

struct Specialized : Typed<Specialized> {
  static constexpr const char* forward_arguments[] = {"x", "y", "twice", "n"};
  Tensor forward(const Tensor& input, const std::optional<Tensor>& y, bool twice, int64_t n) {
    Tensor x = input;
    if (y) x = x + *y;
    if (twice) x = x * 2;
    return x + n;
  }
};

struct Trees : Typed<Trees> {
  static constexpr const char* forward_arguments[] = {"tree", "y"};
  Value forward(const Value& tree, const Tensor& y) {
    const Value b = getitem(tree, "b");
    const Tensor sum = getitem(tree, "a").to_tensor() + getitem(b, 0).to_tensor();
    return dict({{"sum", sum}, {"last", tuple({getitem(getitem(b, 1), 0).to_tensor() * y})}});
  }
};

struct Containers : Typed<Containers> {
  static constexpr const char* forward_arguments[] = {"x"};
  using Modules = std::vector<std::shared_ptr<Module>>;
  static std::shared_ptr<Module> dense() { return std::make_shared<Linear>(3, 3); }
  Child<Sequential> first =
      child<Sequential>("first", Modules{dense(), std::make_shared<ReLU>(), std::make_shared<Sequential>(Modules{dense()})});
  Child<ModuleList> layers = child<ModuleList>("layers", Modules{dense(), dense()});
  Child<LayerNorm> again = child<LayerNorm>("again", 3);
  Tensor forward(const Tensor& input) {
    Tensor x = again((*first)(input));
    for (Module* layer : layers->children()) x = again(layer->call({x}).to_tensor()) + x;
    return x;
  }
};

struct InPlace : Typed<InPlace> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Tensor forward(const Tensor& input, const Tensor& y) {
    const Tensor x = input.clone().add_(1).mul_(y);
    x.copy_(y).clamp_(0.0, 1.0);
    return leaky_relu_(sigmoid(x, Out(y)), 0.1);
  }
};

struct Functions : Typed<Functions> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter weight = register_parameter("weight", ones({4, 4}));
  Tensor forward(const Tensor& x) {
    Tensor y = linear(gelu(x, "tanh"), weight);
    Tensor z = silu(y);
    z = z + hardswish(y);
    z = z + softplus(y);
    z = z + elu(y, 2.0);
    z = z + relu6(y);
    z = z + mish(y);
    y = z + glu(cat({y, y}, -1));
    z = layer_norm(y, {4});
    z = z + dropout(y, 0.5, false);
    y = z + pad(y, {1, -1});
    z = y + special_expit(y);
    z = z + logsumexp(y, {1}, true);
    y = z + stack({y, y}).mean({0});
    return scaled_dot_product_attention(y, y, y);
  }
};

struct Losses : Typed<Losses> {
  static constexpr const char* forward_arguments[] = {"ids", "target"};
  Parameter weight = register_parameter("weight", ones({4, 3}));
  Buffer mean = register_buffer("mean", zeros({3}));
  Buffer var = register_buffer("var", ones({3}));
  Tensor forward(const Tensor& ids, const Tensor& target) {
    Tensor x = functional::embedding(ids, weight, 0);
    x = functional::batch_norm(x, mean, var);
    const Tensor soft = functional::softmax(x, -1, DType::float64);
    x = soft + functional::normalize(functional::log_softmax(x, -1));
    Tensor loss = functional::cross_entropy(x, target, {}, -1, "sum");
    loss = loss + functional::nll_loss(x, target);
    loss = loss + functional::mse_loss(x, x);
    return loss + functional::binary_cross_entropy_with_logits(x, x);
  }
};

struct Shapes : Typed<Shapes> {
  static constexpr const char* forward_arguments[] = {"x"};
  Value forward(const Tensor& x) {
    Tensor y = x.reshape({-1, x.sym_size(2)}).permute({1, 0}).unsqueeze(0).expand({2, -1, -1}).contiguous();
    const Tensor flat = y.squeeze(0).flatten(1).repeat({1, 2});
    const SymInt rows = x.sym_size(0);
    y = flat.view({rows * x.sym_size(1), -1}).to(DType::float64);
    const Tensor m = y.mT().neg();
    const Tensor like = y.numpy_T().type_as(x);
    return tuple({like.new_zeros({2, x.sym_size(-1)}), zeros({2, 3}), m});
  }
};

const auto fused = wrap("fx.fused", [](const Tensor& x, double by) { return sin(x * by); });
const auto two_of = wrap("fx.two_of", [](const Tensor& x) { return std::tuple<Tensor, Tensor>(x + 1, x + 2); });

struct Wrapped : Typed<Wrapped> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) {
    const auto [a, b] = two_of(fused(x, 2.0));
    return a - b;
  }
};

struct Encoder : Typed<Encoder> {
  struct Block : Typed<Block> {
    static constexpr const char* forward_arguments[] = {"x", "mask"};
    Child<LayerNorm> norm1 = child<LayerNorm>("norm1", 8);
    Child<Attention> attention = child<Attention>("attention");
    Child<LayerNorm> norm2 = child<LayerNorm>("norm2", 8);
    Child<Sequential> mlp = child<Sequential>(
        "mlp", std::vector<std::shared_ptr<Module>>{std::make_shared<Linear>(8, 16), std::make_shared<GELU>(),
                                                    std::make_shared<Linear>(16, 8)});
    Tensor forward(const Tensor& input, const Tensor& mask) {
      const Tensor x = input + attention(norm1(input), mask);
      return x + (*mlp)(norm2(x));
    }
  };
  static constexpr const char* forward_arguments[] = {"x", "mask"};
  Child<ModuleList> blocks = child<ModuleList>(
      "blocks", std::vector<std::shared_ptr<Module>>{std::make_shared<Block>(), std::make_shared<Block>()});
  Child<Linear> head = child<Linear>("head", 8, 3);
  Parameter scale = register_parameter("scale", ones({1}));
  Tensor forward(const Tensor& input, const Tensor& mask) {
    Tensor x = input;
    for (Module* block : blocks->children()) x = block->call({x, mask}).to_tensor();
    return log_softmax(head(x * scale), -1);
  }
};

bool same_values(const Value& a, const Value& b) {
  const FlatTree x = tree_flatten(a), y = tree_flatten(b);
  if (!(x.spec == y.spec)) return false;
  for (size_t i = 0; i < x.leaves.size(); ++i)
    if (x.leaves[i].is_tensor() ? !x.leaves[i].to_tensor().equal(y.leaves[i].to_tensor()) : !x.leaves[i].equals(y.leaves[i]))
      return false;
  return true;
}

template <class M>
void run(nlohmann::json& out, const char* name, const Values& inputs, const Kwargs& concrete_args = {}) {
  nlohmann::json& result = out[name];
  try {
    M module;
    module.eval();
    const auto gm = symbolic_trace(module, {.concrete_args = concrete_args});
    gm->graph().lint();
    for (const Node* n : gm->graph().nodes()) {
      if (const std::string line = n->format_node(); !line.empty()) result["nodes"].push_back(line);
      nlohmann::json modules = nlohmann::json::array();
      if (n->meta.nn_module_stack)
        for (const ModuleStackEntry& e : *n->meta.nn_module_stack) modules.push_back(e.path);
      result["modules"].push_back(std::move(modules));
    }
    result["code"] = gm->code();
    const auto copies = [&] {
      return tree_map_tensors([](const Tensor& t) -> Value { return t.clone(); }, tuple(inputs)).to_items();
    };
    result["same"] = same_values(module.call(copies()), gm->call(copies()));
  } catch (const std::exception& e) {
    result = {{"error", e.what()}};
  }
}

}  // namespace

int main() {
  manual_seed(1);
  nlohmann::json out;
  const Tensor sentence = randn({2, 5, 8});
  const Tensor mask = ones({5, 5}).tril();
  run<Mlp>(out, "mlp", {randn({3, 4})});
  run<Convolutions>(out, "convolutions", {randn({2, 3, 8, 8})});
  run<Attention>(out, "attention", {sentence, mask});
  run<Embeddings>(out, "embeddings", {arange(5)});
  run<Gates>(out, "gates", {randn({2, 4}), randn({2, 4})});
  run<Indexing>(out, "indexing", {randn({4, 4})});
  run<Operators>(out, "operators", {randn({4}), randn({4})});
  run<Members>(out, "attributes", {randn({3})});
  run<Constants>(out, "constants", {randn({2})});
  run<Results>(out, "results", {randn({2, 3})});
  run<Specialized>(out, "specialized", {randn({2}), Value(), true, 3}, {{"y", Value()}, {"twice", true}, {"n", 3}});
  const auto tree = [](const Value& a, const Value& b, const Value& c) {
    return dict({{"a", a}, {"b", list({b, tuple({c})})}});
  };
  run<Trees>(out, "trees", {tree(randn({2}), randn({2}), randn({2})), randn({2})}, {{"tree", tree(PH(), PH(), PH())}});
  run<Containers>(out, "containers", {randn({2, 3})});
  run<InPlace>(out, "in_place", {randn({2}), randn({2})});
  run<Functions>(out, "functions", {randn({2, 4})});
  run<Losses>(out, "losses", {arange(4), arange(4) % 3});
  run<Shapes>(out, "shapes", {randn({2, 3, 4})});
  run<Wrapped>(out, "wrapped", {randn({2})});
  run<Encoder>(out, "encoder", {sentence, mask});
  fmt::print("{}\n", out.dump());
  return 0;
}

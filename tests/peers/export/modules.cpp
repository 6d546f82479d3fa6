// Programs with state.
#include "calque/nn/functional.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "export/programs.h"

namespace calque::peers {
namespace {

using DS = DynamicShapes;

struct Mlp : Typed<Mlp> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 4, 8);
  Child<Linear> down = child<Linear>("down", 8, 4);
  Tensor forward(const Tensor& x) { return down(up(x).relu()) + x; }
};

struct Counter : Typed<Counter> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer count = register_buffer("count", zeros({1}));
  Buffer scale = register_buffer("scale", full({1}, 2.0), false);
  Tensor forward(const Tensor& x) {
    count->add_(1);
    return x * *scale + *count;
  }
};

struct Assigned : Typed<Assigned> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer last = register_buffer("last", zeros({3}));
  Tensor forward(const Tensor& x) {
    const Tensor out = x + *last;
    last = out * 2;
    return out;
  }
};

struct Tied : Typed<Tied> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> a = child<Linear>("a", 3, 3);
  Child<Linear> b = child<Linear>("b", 3, 3);
  Child<Linear> unused = child<Linear>("unused", 2, 2);
  Tied() { b->set_tensor("weight", a->get_parameter("weight")); }
  Tensor forward(const Tensor& x) { return b(a(x)); }
};

struct Inner : Typed<Inner> {
  static constexpr const char* forward_arguments[] = {"x", "k"};
  Parameter weight = register_parameter("weight", filled({3}));
  Constant constant = register_constant("constant", filled({3}, 4));
  Tensor forward(const Tensor& x, double k) {
    const Tensor a = x * *weight;
    return a + *constant * k;
  }
};

struct Outer : Typed<Outer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Inner> nested_1 = child<Inner>("nested_1");
  Child<Inner> nested_2 = child<Inner>("nested_2");
  Tensor forward(const Tensor& x) {
    const Tensor a = nested_1(x, 1.0);
    const Tensor b = nested_2(a, 2.0);
    return nested_1(b, 3.0);
  }
};

struct Literal : Typed<Literal> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant attribute = register_constant("attribute", filled({3}, 2));
  Child<Linear> layer = child<Linear>("layer", 3, 3);
  Tensor forward(const Tensor& x) {
    const Tensor a = x + *attribute;
    const Tensor b = a + tensor({1., 2., 3.});
    return layer(b) * tensor({4., 5., 6.});
  }
};

struct Convolutions : Typed<Convolutions> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Conv2d> conv = child<Conv2d>("conv", 3, 4, Sizes(3));
  Child<BatchNorm2d> norm = child<BatchNorm2d>("norm", 4);
  Child<Linear> head = child<Linear>("head", 4, 2);
  Tensor forward(const Tensor& x) {
    const Tensor a = norm(conv(x)).relu();
    const Tensor b = max_pool2d(a, {2, 2});
    return head(adaptive_avg_pool2d(b, {1, 1}).flatten(1));
  }
};

struct Block : Typed<Block> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<LayerNorm> norm = child<LayerNorm>("norm", std::vector<int64_t>{8});
  Child<Linear> qkv = child<Linear>("qkv", 8, 24);
  Child<Linear> out = child<Linear>("out", 8, 8);
  Tensor forward(const Tensor& x) {
    const SymInt b = x.sym_size(0), t = x.sym_size(1);
    const Tensor h = qkv(norm(x));
    const auto parts = h.split(8, -1);
    const auto heads = [&](const Tensor& p) { return p.view({b, t, 2, 4}).transpose(1, 2); };
    const Tensor q = heads(parts[0]);
    const Tensor k = heads(parts[1]);
    const Tensor v = heads(parts[2]);
    const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0.0, true);
    return x + out(y.transpose(1, 2).reshape({b, t, 8}));
  }
};

struct Language : Typed<Language> {
  static constexpr const char* forward_arguments[] = {"tokens"};
  Child<Embedding> embed = child<Embedding>("embed", 16, 8);
  Child<Block> first = child<Block>("first");
  Child<Block> second = child<Block>("second");
  Child<LayerNorm> norm = child<LayerNorm>("norm", std::vector<int64_t>{8});
  Tensor forward(const Tensor& tokens) {
    const Tensor x = second(first(embed(tokens)));
    return norm(x).matmul(embed->weight->t());
  }
};

struct Keywords : Typed<Keywords> {
  static constexpr const char* forward_arguments[] = {"x", "scale", "shift"};
  Tensor forward(const Tensor& x, const Tensor& scale, const Tensor& shift) { return x * scale + shift; }
};

struct Frozen : Typed<Frozen> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter weight = register_parameter("weight", filled({3}), false);
  Tensor forward(const Tensor& x) { return x * *weight; }
};

struct Repeated : Typed<Repeated> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> layer = child<Linear>("layer", 3, 3);
  Tensor forward(const Tensor& x) { return layer(layer(x).sin()).cos(); }
};

struct MutatesBoth : Typed<MutatesBoth> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer state = register_buffer("state", ones({3}));
  Tensor forward(const Tensor& x) {
    x.add_(1);
    state->mul_(2);
    return x + *state;
  }
};

}  // namespace

void add_module_cases(std::vector<ExportCase>& cases) {
  const auto add = [&]<class M>(const std::string& name, std::shared_ptr<M> m, Values args, ExportOptions options = {},
                                std::vector<Values> others = {},
                                Kwargs kwargs = {}) { add_case(cases, name, m, args, options, others, kwargs); };
  const DS batched = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}});
  add("mlp", std::make_shared<Mlp>(), {filled({3, 4})}, {.dynamic_shapes = batched}, {{filled({5, 4})}});
  add("counter", std::make_shared<Counter>(), {filled({3})});
  add("assigned", std::make_shared<Assigned>(), {filled({3})});
  add("tied", std::make_shared<Tied>(), {filled({2, 3})});
  add("named_constants", std::make_shared<Outer>(), {filled({3})});
  add("preserved", std::make_shared<Outer>(), {filled({3})}, {.preserve_module_call_signature = {"nested_1", "nested_2"}});
  add("literal_module", std::make_shared<Literal>(), {filled({2, 3})});
  const auto conv = std::make_shared<Convolutions>();
  add("convolutions_training", conv, {filled({2, 3, 8, 8})}, {.dynamic_shapes = batched}, {{filled({3, 3, 8, 8})}});
  const auto evaluated = std::make_shared<Convolutions>();
  evaluated->eval();
  add("convolutions", evaluated, {filled({2, 3, 8, 8})}, {.dynamic_shapes = batched}, {{filled({3, 3, 8, 8})}});
  add("block", std::make_shared<Block>(), {filled({2, 3, 8})},
      {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}, {1, Dim("length")}})}})}, {{filled({4, 5, 8})}});
  add("language", std::make_shared<Language>(), {filled({2, 5}, 0, DType::int64, 16)},
      {.dynamic_shapes = DS::dict({{"tokens", DS::dict({{0, Dim("batch")}, {1, Dim("length")}})}})},
      {{filled({3, 7}, 0, DType::int64, 16)}});
  add("keywords", std::make_shared<Keywords>(), {filled({3})}, {}, {},
      {{"shift", filled({3}, 1)}, {"scale", filled({3}, 2)}});
  add("frozen", std::make_shared<Frozen>(), {filled({3})});
  add("repeated", std::make_shared<Repeated>(), {filled({2, 3})});
  add("mutates_both", std::make_shared<MutatesBoth>(), {filled({3})});
}

std::vector<ExportCase> export_cases() {
  std::vector<ExportCase> cases;
  add_function_cases(cases);
  add_module_cases(cases);
  add_region_cases(cases);
  add_structure_cases(cases);
  add_refused_cases(cases);
  return cases;
}

}  // namespace calque::peers

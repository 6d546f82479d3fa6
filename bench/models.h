// The models that the benchmarks trace and export, as bench/models.py has them: a GPT-2-small-shaped decoder, a
// BERT-base-shaped encoder and a Llama-shaped decoder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calque/nn/nn.h"
#include "calque/op/ops.h"

namespace calque::bench {

constexpr int64_t width = 768;
constexpr int64_t heads = 12;
constexpr int64_t vocabulary = 50257;
constexpr int64_t positions = 1024;

inline Tensor split_heads(const Tensor& x) {
  return x.view({x.sym_size(0), x.sym_size(1), heads, width / heads}).transpose(1, 2);
}
inline Tensor join_heads(const Tensor& x) {
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
    const Tensor a =
        scaled_dot_product_attention(split_heads(qkv[0]), split_heads(qkv[1]), split_heads(qkv[2]), {}, 0.0, true);
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

constexpr int64_t llama_width = 1024;
constexpr int64_t llama_heads = 16;
constexpr int64_t llama_groups = 4;
constexpr int64_t llama_head = llama_width / llama_heads;
constexpr int64_t llama_inner = 2816;
constexpr int64_t llama_vocabulary = 32000;

inline Tensor rotate_half(const Tensor& x) {
  return cat({-x.slice(-1, llama_head / 2), x.slice(-1, 0, llama_head / 2)}, -1);
}

struct LlamaLayer : Typed<LlamaLayer> {
  Child<RMSNorm> input_norm = child<RMSNorm>("input_norm", llama_width);
  Child<Linear> q_proj = child<Linear>("q_proj", llama_width, llama_width, false);
  Child<Linear> k_proj = child<Linear>("k_proj", llama_width, llama_groups* llama_head, false);
  Child<Linear> v_proj = child<Linear>("v_proj", llama_width, llama_groups* llama_head, false);
  Child<Linear> o_proj = child<Linear>("o_proj", llama_width, llama_width, false);
  Child<RMSNorm> post_norm = child<RMSNorm>("post_norm", llama_width);
  Child<Linear> gate_proj = child<Linear>("gate_proj", llama_width, llama_inner, false);
  Child<Linear> up_proj = child<Linear>("up_proj", llama_width, llama_inner, false);
  Child<Linear> down_proj = child<Linear>("down_proj", llama_inner, llama_width, false);

  static Tensor split(const Tensor& x, int64_t heads) {
    return x.view({x.sym_size(0), x.sym_size(1), heads, llama_head}).transpose(1, 2);
  }
  static Tensor repeat(const Tensor& x) {
    const SymInt b = x.sym_size(0), n = x.sym_size(2);
    return x.unsqueeze(2)
        .expand({b, llama_groups, llama_heads / llama_groups, n, llama_head})
        .reshape({b, llama_heads, n, llama_head});
  }
  Tensor forward(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
    const Tensor h = input_norm(x);
    Tensor q = split(q_proj(h), llama_heads);
    Tensor k = split(k_proj(h), llama_groups);
    const Tensor v = split(v_proj(h), llama_groups);
    const Tensor q_cosine = q * cosine;
    q = q_cosine + rotate_half(q) * sine;
    const Tensor k_cosine = k * cosine;
    k = k_cosine + rotate_half(k) * sine;
    const Tensor k_all = repeat(k);
    const Tensor v_all = repeat(v);
    const Tensor a = scaled_dot_product_attention(q, k_all, v_all, {}, 0.0, true).transpose(1, 2).contiguous();
    const Tensor y = x + o_proj(a.view({a.sym_size(0), a.sym_size(1), llama_width}));
    const Tensor n = post_norm(y);
    const Tensor gate = silu(gate_proj(n));
    return y + down_proj(gate * up_proj(n));
  }
};

struct Llama : Typed<Llama> {
  explicit Llama(int64_t layers) {
    std::vector<std::shared_ptr<Module>> all;
    for (int64_t i = 0; i < layers; ++i) all.push_back(std::make_shared<LlamaLayer>());
    blocks = std::make_shared<ModuleList>(std::move(all));
    register_module("layers", blocks);
  }
  Child<Embedding> embed = child<Embedding>("embed", llama_vocabulary, llama_width);
  std::shared_ptr<ModuleList> blocks;
  Child<RMSNorm> norm = child<RMSNorm>("norm", llama_width);
  Buffer frequencies = register_buffer(
      "frequencies", pow(10000.0, (arange(llama_head / 2) * 2).to(DType::float32) / static_cast<double>(-llama_head)),
      false);

  Tensor forward(const Tensor& ids) {
    Tensor x = embed(ids);
    const Tensor places = arange(ids.sym_size(1)).unsqueeze(-1);
    const Tensor angles = places * frequencies;
    const Tensor both = cat({angles, angles}, -1);
    const Tensor cosine = both.cos();
    const Tensor sine = both.sin();
    for (LlamaLayer* layer : blocks->items<LlamaLayer>()) x = (*layer)(x, cosine, sine);
    return linear(norm(x), embed->weight);
  }
};

inline std::shared_ptr<Module> make_model(const std::string& kind, int64_t layers) {
  std::shared_ptr<Module> model;
  if (kind == "decoder")
    model = std::make_shared<Decoder>(layers);
  else if (kind == "encoder")
    model = std::make_shared<Encoder>(layers);
  else
    model = std::make_shared<Llama>(layers);
  model->eval();
  return model;
}

}  // namespace calque::bench

#include "nn/layers_support.h"

#include <functional>
#include <map>

#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/ternary.h"
#include "calque/tensor/generator.h"

namespace calque {
namespace {

using nlohmann::json;

// The arguments of a case by name; what was not asked for in the end is an error of the test.
class Args {
 public:
  Args(const json& values, const SafetensorsFile& inputs) : values_(values), inputs_(inputs) {}
  void finish(const std::string& what) const {
    for (const auto& [key, value] : values_.items())
      if (!used_.contains(key)) throw UserError(what + ": argument " + key + " is not known to the test");
  }
  bool has(const char* key) const {
    used_[key] = true;
    return values_.contains(key) && !values_[key].is_null();
  }
  template <class T>
  T get(const char* key, T otherwise) const {
    return has(key) ? values_[key].get<T>() : otherwise;
  }
  int64_t integer(const char* key) const {
    return has(key) ? values_[key].get<int64_t>() : throw UserError(std::string("missing argument ") + key);
  }
  double number(const char* key, double otherwise) const { return get<double>(key, otherwise); }
  bool flag(const char* key, bool otherwise) const { return get<bool>(key, otherwise); }
  std::string text(const char* key, std::string otherwise) const { return get<std::string>(key, std::move(otherwise)); }
  Tensor tensor(const char* key) const {
    return has(key) ? inputs_.tensor(values_[key].at("tensor").get<std::string>()).clone() : Tensor();
  }
  template <class T>
  std::optional<T> maybe(const char* key) const {
    return has(key) ? std::optional<T>(values_[key].get<T>()) : std::nullopt;
  }
  Sizes sizes(const char* key, Sizes otherwise) const {
    if (!has(key)) return otherwise;
    return values_[key].is_array() ? Sizes(values_[key].get<std::vector<int64_t>>()) : Sizes(values_[key].get<int64_t>());
  }
  std::optional<Sizes> maybe_sizes(const char* key) const {
    return has(key) ? std::optional<Sizes>(sizes(key, 0)) : std::nullopt;
  }
  OptionalSizes output_size() const {
    const json& v = raw("output_size");
    if (!v.is_array()) return v.get<int64_t>();
    std::vector<std::optional<int64_t>> out;
    for (const json& x : v) out.push_back(x.is_null() ? std::nullopt : std::optional<int64_t>(x.get<int64_t>()));
    return out;
  }
  std::optional<std::vector<double>> scale_factor() const {
    if (!has("scale_factor")) return std::nullopt;
    const json& v = values_["scale_factor"];
    return v.is_array() ? v.get<std::vector<double>>() : std::vector<double>{v.get<double>()};
  }
  Factory factory() const {
    Factory f;
    if (has("dtype")) f.dtype = dtype_from_name(values_["dtype"].get<std::string>());
    return f;
  }
  const json& raw(const char* key) const {
    used_[key] = true;
    return values_.at(key);
  }
  const SafetensorsFile& inputs() const { return inputs_; }

 private:
  const json& values_;
  const SafetensorsFile& inputs_;
  mutable std::map<std::string, bool> used_;
};

using Maker = std::function<std::shared_ptr<Module>(const Args&)>;

template <class M, class... A>
std::shared_ptr<Module> make(A&&... args) {
  return std::make_shared<M>(std::forward<A>(args)...);
}

ConvOptions conv_options(const Args& a) {
  ConvOptions o{.stride = a.sizes("stride", 1),
                .dilation = a.sizes("dilation", 1),
                .groups = a.get<int64_t>("groups", 1),
                .bias = a.flag("bias", true),
                .padding_mode = a.text("padding_mode", "zeros"),
                .factory = a.factory()};
  if (a.has("padding") && a.raw("padding").is_string())
    o.padding = a.raw("padding").get<std::string>();
  else
    o.padding = a.sizes("padding", 0);
  return o;
}
template <class M>
std::shared_ptr<Module> conv(const Args& a) {
  return make<M>(a.integer("in_channels"), a.integer("out_channels"), a.sizes("kernel_size", 1), conv_options(a));
}
template <class M>
std::shared_ptr<Module> conv_transpose(const Args& a) {
  return make<M>(a.integer("in_channels"), a.integer("out_channels"), a.sizes("kernel_size", 1),
                 ConvTransposeOptions{.stride = a.sizes("stride", 1),
                                      .padding = a.sizes("padding", 0),
                                      .output_padding = a.sizes("output_padding", 0),
                                      .groups = a.get<int64_t>("groups", 1),
                                      .bias = a.flag("bias", true),
                                      .dilation = a.sizes("dilation", 1)});
}
template <class M>
std::shared_ptr<Module> running_norm(const Args& a, bool on) {
  RunningNormOptions o{.eps = a.number("eps", 1e-5),
                       .momentum = a.number("momentum", 0.1),
                       .affine = a.flag("affine", on),
                       .track_running_stats = a.flag("track_running_stats", on),
                       .bias = a.flag("bias", true)};
  if (a.flag("no_momentum", false)) o.momentum = std::nullopt;
  return make<M>(a.integer("num_features"), o);
}
template <class M>
std::shared_ptr<Module> max_pool(const Args& a) {
  return make<M>(a.sizes("kernel_size", 1), MaxPoolOptions{.stride = a.maybe_sizes("stride"),
                                                           .padding = a.sizes("padding", 0),
                                                           .dilation = a.sizes("dilation", 1),
                                                           .ceil_mode = a.flag("ceil_mode", false)});
}
template <class M>
std::shared_ptr<Module> avg_pool(const Args& a) {
  return make<M>(a.sizes("kernel_size", 1), AvgPoolOptions{.stride = a.maybe_sizes("stride"),
                                                           .padding = a.sizes("padding", 0),
                                                           .ceil_mode = a.flag("ceil_mode", false),
                                                           .count_include_pad = a.flag("count_include_pad", true),
                                                           .divisor_override = a.maybe<int64_t>("divisor_override")});
}
TransformerLayerOptions layer_options(const Args& a) {
  return {.dim_feedforward = a.get<int64_t>("dim_feedforward", 2048),
          .dropout = a.number("dropout", 0.1),
          .activation = a.text("activation", "relu"),
          .layer_norm_eps = a.number("layer_norm_eps", 1e-5),
          .batch_first = a.flag("batch_first", false),
          .norm_first = a.flag("norm_first", false),
          .bias = a.flag("bias", true)};
}
template <class M>
std::shared_ptr<Module> recurrent(const Args& a) {
  return make<M>(a.integer("input_size"), a.integer("hidden_size"),
                 RecurrentOptions{.num_layers = a.get<int64_t>("num_layers", 1),
                                  .bias = a.flag("bias", true),
                                  .batch_first = a.flag("batch_first", false),
                                  .dropout = a.number("dropout", 0),
                                  .bidirectional = a.flag("bidirectional", false),
                                  .proj_size = a.get<int64_t>("proj_size", 0),
                                  .nonlinearity = a.text("nonlinearity", "tanh")});
}
template <class M>
std::shared_ptr<Module> cell(const Args& a) {
  return make<M>(a.integer("input_size"), a.integer("hidden_size"), a.flag("bias", true));
}
std::vector<std::shared_ptr<Module>> nested(const Args& a) {
  std::vector<std::shared_ptr<Module>> out;
  for (const json& item : a.raw("modules"))
    out.push_back(make_layer(item.at("layer").get<std::string>(), item.at("args"), a.inputs()));
  return out;
}
std::shared_ptr<Module> final_norm(const Args& a) {
  return a.flag("norm", false) ? make<LayerNorm>(a.integer("d_model")) : nullptr;
}

#define PLAIN(NAME)                                 \
  {                                                 \
    #NAME, [](const Args&) { return make<NAME>(); } \
  }
#define INPLACE(NAME)                                                         \
  {                                                                           \
    #NAME, [](const Args& a) { return make<NAME>(a.flag("inplace", false)); } \
  }
#define ALONG(NAME)                                                          \
  {                                                                          \
    #NAME, [](const Args& a) { return make<NAME>(a.maybe<int64_t>("dim")); } \
  }
#define NUMBER(NAME, ARGUMENT, DEFAULT)                                                                     \
  {                                                                                                         \
    #NAME, [](const Args& a) { return make<NAME>(a.number(#ARGUMENT, DEFAULT), a.flag("inplace", false)); } \
  }
#define DROPS(NAME)                                                                               \
  {                                                                                               \
    #NAME, [](const Args& a) { return make<NAME>(a.number("p", 0.5), a.flag("inplace", false)); } \
  }
#define PADS(NAME)                                                         \
  {                                                                        \
    #NAME, [](const Args& a) { return make<NAME>(a.sizes("padding", 0)); } \
  }
#define PADS_WITH(NAME)                                                                          \
  {                                                                                              \
    #NAME, [](const Args& a) { return make<NAME>(a.sizes("padding", 0), a.number("value", 0)); } \
  }
#define ADAPTS(NAME)                                                 \
  {                                                                  \
    #NAME, [](const Args& a) { return make<NAME>(a.output_size()); } \
  }
#define LOSS(NAME)                                                               \
  {                                                                              \
    #NAME, [](const Args& a) { return make<NAME>(a.text("reduction", "mean")); } \
  }

const std::map<std::string, Maker>& activations_and_shapes() {
  static const std::map<std::string, Maker> makers = {
      PLAIN(Identity),
      PLAIN(Tanh),
      PLAIN(Sigmoid),
      PLAIN(LogSigmoid),
      PLAIN(Softsign),
      PLAIN(Tanhshrink),
      PLAIN(Softmax2d),
      INPLACE(ReLU),
      INPLACE(ReLU6),
      INPLACE(SiLU),
      INPLACE(SELU),
      INPLACE(Mish),
      INPLACE(Hardswish),
      INPLACE(Hardsigmoid),
      ALONG(Softmax),
      ALONG(LogSoftmax),
      ALONG(Softmin),
      NUMBER(ELU, alpha, 1),
      NUMBER(CELU, alpha, 1),
      NUMBER(LeakyReLU, negative_slope, 0.01),
      DROPS(Dropout),
      DROPS(Dropout1d),
      DROPS(Dropout2d),
      DROPS(Dropout3d),
      DROPS(AlphaDropout),
      DROPS(FeatureAlphaDropout),
      PADS(ReflectionPad1d),
      PADS(ReflectionPad2d),
      PADS(ReflectionPad3d),
      PADS(ReplicationPad1d),
      PADS(ReplicationPad2d),
      PADS(ReplicationPad3d),
      PADS(CircularPad1d),
      PADS(CircularPad2d),
      PADS(CircularPad3d),
      PADS(ZeroPad1d),
      PADS(ZeroPad2d),
      PADS(ZeroPad3d),
      PADS_WITH(ConstantPad1d),
      PADS_WITH(ConstantPad2d),
      PADS_WITH(ConstantPad3d),
      ADAPTS(AdaptiveAvgPool1d),
      ADAPTS(AdaptiveAvgPool2d),
      ADAPTS(AdaptiveAvgPool3d),
      ADAPTS(AdaptiveMaxPool1d),
      ADAPTS(AdaptiveMaxPool2d),
      ADAPTS(AdaptiveMaxPool3d),
      {"GLU", [](const Args& a) { return make<GLU>(a.get<int64_t>("dim", -1)); }},
      {"GELU", [](const Args& a) { return make<GELU>(a.text("approximate", "none")); }},
      {"Softshrink", [](const Args& a) { return make<Softshrink>(a.number("lambd", 0.5)); }},
      {"Hardshrink", [](const Args& a) { return make<Hardshrink>(a.number("lambd", 0.5)); }},
      {"Hardtanh",
       [](const Args& a) {
         return make<Hardtanh>(a.number("min_val", -1), a.number("max_val", 1), a.flag("inplace", false));
       }},
      {"Softplus", [](const Args& a) { return make<Softplus>(a.number("beta", 1), a.number("threshold", 20)); }},
      {"Threshold",
       [](const Args& a) {
         return make<Threshold>(a.number("threshold", 0), a.number("value", 0), a.flag("inplace", false));
       }},
      {"RReLU",
       [](const Args& a) {
         return make<RReLU>(a.number("lower", 1.0 / 8), a.number("upper", 1.0 / 3), a.flag("inplace", false));
       }},
      {"PReLU", [](const Args& a) { return make<PReLU>(a.get<int64_t>("num_parameters", 1), a.number("init", 0.25)); }},
      {"Flatten",
       [](const Args& a) { return make<Flatten>(a.get<int64_t>("start_dim", 1), a.get<int64_t>("end_dim", -1)); }},
      {"Unflatten",
       [](const Args& a) { return make<Unflatten>(a.integer("dim"), a.get<std::vector<int64_t>>("unflattened_size", {})); }},
      {"PixelShuffle", [](const Args& a) { return make<PixelShuffle>(a.integer("upscale_factor")); }},
      {"PixelUnshuffle", [](const Args& a) { return make<PixelUnshuffle>(a.integer("downscale_factor")); }},
      {"ChannelShuffle", [](const Args& a) { return make<ChannelShuffle>(a.integer("groups")); }},
      {"Upsample",
       [](const Args& a) {
         return make<Upsample>(UpsampleOptions{.size = a.maybe_sizes("size"),
                                               .scale_factor = a.scale_factor(),
                                               .mode = a.text("mode", "nearest"),
                                               .align_corners = a.maybe<bool>("align_corners"),
                                               .recompute_scale_factor = a.maybe<bool>("recompute_scale_factor")});
       }},
      {"Unfold",
       [](const Args& a) {
         return make<Unfold>(a.sizes("kernel_size", 1), a.sizes("dilation", 1), a.sizes("padding", 0), a.sizes("stride", 1));
       }},
      {"Fold",
       [](const Args& a) {
         return make<Fold>(a.sizes("output_size", 1), a.sizes("kernel_size", 1), a.sizes("dilation", 1),
                           a.sizes("padding", 0), a.sizes("stride", 1));
       }},
      {"CosineSimilarity",
       [](const Args& a) { return make<CosineSimilarity>(a.get<int64_t>("dim", 1), a.number("eps", 1e-8)); }},
      {"PairwiseDistance",
       [](const Args& a) {
         return make<PairwiseDistance>(a.number("p", 2), a.number("eps", 1e-6), a.flag("keepdim", false));
       }},
  };
  return makers;
}

const std::map<std::string, Maker>& weighted_layers() {
  static const std::map<std::string, Maker> makers = {
      {"Linear",
       [](const Args& a) {
         return make<Linear>(a.integer("in_features"), a.integer("out_features"), a.flag("bias", true), a.factory());
       }},
      {"Bilinear",
       [](const Args& a) {
         return make<Bilinear>(a.integer("in1_features"), a.integer("in2_features"), a.integer("out_features"),
                               a.flag("bias", true));
       }},
      {"Embedding",
       [](const Args& a) {
         return make<Embedding>(a.integer("num_embeddings"), a.integer("embedding_dim"),
                                EmbeddingOptions{.padding_idx = a.maybe<int64_t>("padding_idx"),
                                                 .max_norm = a.maybe<double>("max_norm"),
                                                 .norm_type = a.number("norm_type", 2),
                                                 .scale_grad_by_freq = a.flag("scale_grad_by_freq", false),
                                                 .sparse = a.flag("sparse", false),
                                                 .factory = a.factory()});
       }},
      {"LayerNorm",
       [](const Args& a) {
         return make<LayerNorm>(a.sizes("normalized_shape", 1),
                                LayerNormOptions{.eps = a.number("eps", 1e-5),
                                                 .elementwise_affine = a.flag("elementwise_affine", true),
                                                 .bias = a.flag("bias", true)});
       }},
      {"RMSNorm",
       [](const Args& a) {
         return make<RMSNorm>(
             a.sizes("normalized_shape", 1),
             RMSNormOptions{.eps = a.maybe<double>("eps"), .elementwise_affine = a.flag("elementwise_affine", true)});
       }},
      {"GroupNorm",
       [](const Args& a) {
         return make<GroupNorm>(
             a.integer("num_groups"), a.integer("num_channels"),
             GroupNormOptions{.eps = a.number("eps", 1e-5), .affine = a.flag("affine", true), .bias = a.flag("bias", true)});
       }},
      {"LocalResponseNorm",
       [](const Args& a) {
         return make<LocalResponseNorm>(a.integer("size"), a.number("alpha", 1e-4), a.number("beta", 0.75),
                                        a.number("k", 1));
       }},
      {"BatchNorm1d", [](const Args& a) { return running_norm<BatchNorm1d>(a, true); }},
      {"BatchNorm2d", [](const Args& a) { return running_norm<BatchNorm2d>(a, true); }},
      {"BatchNorm3d", [](const Args& a) { return running_norm<BatchNorm3d>(a, true); }},
      {"InstanceNorm1d", [](const Args& a) { return running_norm<InstanceNorm1d>(a, false); }},
      {"InstanceNorm2d", [](const Args& a) { return running_norm<InstanceNorm2d>(a, false); }},
      {"InstanceNorm3d", [](const Args& a) { return running_norm<InstanceNorm3d>(a, false); }},
      {"Conv1d", conv<Conv1d>},
      {"Conv2d", conv<Conv2d>},
      {"Conv3d", conv<Conv3d>},
      {"ConvTranspose1d", conv_transpose<ConvTranspose1d>},
      {"ConvTranspose2d", conv_transpose<ConvTranspose2d>},
      {"ConvTranspose3d", conv_transpose<ConvTranspose3d>},
      {"MaxPool1d", max_pool<MaxPool1d>},
      {"MaxPool2d", max_pool<MaxPool2d>},
      {"MaxPool3d", max_pool<MaxPool3d>},
      {"AvgPool1d", avg_pool<AvgPool1d>},
      {"AvgPool2d", avg_pool<AvgPool2d>},
      {"AvgPool3d", avg_pool<AvgPool3d>},
      {"MultiheadAttention",
       [](const Args& a) {
         return make<MultiheadAttention>(a.integer("embed_dim"), a.integer("num_heads"),
                                         MultiheadAttentionOptions{.dropout = a.number("dropout", 0),
                                                                   .bias = a.flag("bias", true),
                                                                   .add_bias_kv = a.flag("add_bias_kv", false),
                                                                   .add_zero_attn = a.flag("add_zero_attn", false),
                                                                   .kdim = a.maybe<int64_t>("kdim"),
                                                                   .vdim = a.maybe<int64_t>("vdim"),
                                                                   .batch_first = a.flag("batch_first", false)});
       }},
      {"TransformerEncoderLayer",
       [](const Args& a) {
         return make<TransformerEncoderLayer>(a.integer("d_model"), a.integer("nhead"), layer_options(a));
       }},
      {"TransformerDecoderLayer",
       [](const Args& a) {
         return make<TransformerDecoderLayer>(a.integer("d_model"), a.integer("nhead"), layer_options(a));
       }},
      {"TransformerEncoder",
       [](const Args& a) {
         return make<TransformerEncoder>(TransformerEncoderLayer(a.integer("d_model"), a.integer("nhead"), layer_options(a)),
                                         a.integer("num_layers"), final_norm(a));
       }},
      {"TransformerDecoder",
       [](const Args& a) {
         return make<TransformerDecoder>(TransformerDecoderLayer(a.integer("d_model"), a.integer("nhead"), layer_options(a)),
                                         a.integer("num_layers"), final_norm(a));
       }},
      {"RNN", recurrent<RNN>},
      {"GRU", recurrent<GRU>},
      {"LSTM", recurrent<LSTM>},
      {"GRUCell", cell<GRUCell>},
      {"LSTMCell", cell<LSTMCell>},
      {"RNNCell",
       [](const Args& a) {
         return make<RNNCell>(a.integer("input_size"), a.integer("hidden_size"), a.flag("bias", true),
                              a.text("nonlinearity", "tanh"));
       }},
      {"Sequential", [](const Args& a) { return make<Sequential>(nested(a)); }},
      {"ModuleList", [](const Args& a) { return make<ModuleList>(nested(a)); }},
  };
  return makers;
}

const std::map<std::string, Maker>& losses() {
  static const std::map<std::string, Maker> makers = {
      LOSS(MSELoss),
      LOSS(L1Loss),
      LOSS(SoftMarginLoss),
      {"SmoothL1Loss", [](const Args& a) { return make<SmoothL1Loss>(a.text("reduction", "mean"), a.number("beta", 1)); }},
      {"HuberLoss", [](const Args& a) { return make<HuberLoss>(a.text("reduction", "mean"), a.number("delta", 1)); }},
      {"HingeEmbeddingLoss",
       [](const Args& a) { return make<HingeEmbeddingLoss>(a.text("reduction", "mean"), a.number("margin", 1)); }},
      {"CrossEntropyLoss",
       [](const Args& a) {
         return make<CrossEntropyLoss>(CrossEntropyOptions{.weight = a.tensor("weight"),
                                                           .ignore_index = a.get<int64_t>("ignore_index", -100),
                                                           .reduction = a.text("reduction", "mean"),
                                                           .label_smoothing = a.number("label_smoothing", 0)});
       }},
      {"NLLLoss",
       [](const Args& a) {
         return make<NLLLoss>(CrossEntropyOptions{.weight = a.tensor("weight"),
                                                  .ignore_index = a.get<int64_t>("ignore_index", -100),
                                                  .reduction = a.text("reduction", "mean")});
       }},
      {"BCELoss", [](const Args& a) { return make<BCELoss>(a.tensor("weight"), a.text("reduction", "mean")); }},
      {"BCEWithLogitsLoss",
       [](const Args& a) {
         return make<BCEWithLogitsLoss>(a.tensor("weight"), a.text("reduction", "mean"), a.tensor("pos_weight"));
       }},
      {"MultiLabelSoftMarginLoss",
       [](const Args& a) { return make<MultiLabelSoftMarginLoss>(a.tensor("weight"), a.text("reduction", "mean")); }},
      {"KLDivLoss", [](const Args& a) { return make<KLDivLoss>(a.text("reduction", "mean"), a.flag("log_target", false)); }},
      {"CTCLoss",
       [](const Args& a) {
         return make<CTCLoss>(a.get<int64_t>("blank", 0), a.text("reduction", "mean"), a.flag("zero_infinity", false));
       }},
      {"CosineEmbeddingLoss",
       [](const Args& a) { return make<CosineEmbeddingLoss>(a.number("margin", 0), a.text("reduction", "mean")); }},
      {"MarginRankingLoss",
       [](const Args& a) { return make<MarginRankingLoss>(a.number("margin", 0), a.text("reduction", "mean")); }},
      {"TripletMarginLoss",
       [](const Args& a) {
         return make<TripletMarginLoss>(a.number("margin", 1), a.number("p", 2), a.number("eps", 1e-6),
                                        a.flag("swap", false), a.text("reduction", "mean"));
       }},
      {"PoissonNLLLoss",
       [](const Args& a) {
         return make<PoissonNLLLoss>(a.flag("log_input", true), a.flag("full", false), a.number("eps", 1e-8),
                                     a.text("reduction", "mean"));
       }},
      {"GaussianNLLLoss",
       [](const Args& a) {
         return make<GaussianNLLLoss>(a.flag("full", false), a.number("eps", 1e-6), a.text("reduction", "mean"));
       }},
  };
  return makers;
}

// torch.nn.init and torch.nn.functional by name: what they do to or make of the first tensor.
Tensor call_function(const std::string& name, const Args& a, const std::vector<Tensor>& in) {
  const Tensor& x = in.at(0);
  if (name == "init.uniform_") return init::uniform_(x, a.number("a", 0), a.number("b", 1));
  if (name == "init.normal_") return init::normal_(x, a.number("mean", 0), a.number("std", 1));
  if (name == "init.trunc_normal_")
    return init::trunc_normal_(x, a.number("mean", 0), a.number("std", 1), a.number("a", -2), a.number("b", 2));
  if (name == "init.constant_") return init::constant_(x, a.number("val", 0));
  if (name == "init.eye_") return init::eye_(x);
  if (name == "init.dirac_") return init::dirac_(x, a.get<int64_t>("groups", 1));
  if (name == "init.xavier_uniform_") return init::xavier_uniform_(x, a.number("gain", 1));
  if (name == "init.xavier_normal_") return init::xavier_normal_(x, a.number("gain", 1));
  if (name == "init.kaiming_uniform_")
    return init::kaiming_uniform_(x, a.number("a", 0), a.text("mode", "fan_in"), a.text("nonlinearity", "leaky_relu"));
  if (name == "init.kaiming_normal_")
    return init::kaiming_normal_(x, a.number("a", 0), a.text("mode", "fan_in"), a.text("nonlinearity", "leaky_relu"));
  if (name == "init.orthogonal_") return init::orthogonal_(x, a.number("gain", 1));
  if (name == "init.sparse_") return init::sparse_(x, a.number("sparsity", 0), a.number("std", 0.01));
  if (name == "normalize")
    return functional::normalize(x, a.number("p", 2), a.get<int64_t>("dim", 1), a.number("eps", 1e-12));
  if (name == "softmin") return functional::softmin(x, a.maybe<int64_t>("dim"));
  if (name == "gumbel_softmax")
    return functional::gumbel_softmax(x, a.number("tau", 1), a.flag("hard", false), a.get<int64_t>("dim", -1));
  if (name == "grid_sample")
    return functional::grid_sample(x, in.at(1), a.text("mode", "bilinear"), a.text("padding_mode", "zeros"),
                                   a.flag("align_corners", false));
  if (name == "interpolate") {
    const std::string mode = a.text("mode", "nearest");
    return functional::interpolate(x, {.size = a.maybe_sizes("size"),
                                       .scale_factor = a.scale_factor(),
                                       .mode = mode,
                                       .align_corners = a.maybe<bool>("align_corners"),
                                       .recompute_scale_factor = a.maybe<bool>("recompute_scale_factor"),
                                       .antialias = a.flag("antialias", false)});
  }
  throw UserError("function " + name + " is not known to the test");
}

void flatten(const Value& value, const std::string& prefix, NamedTensors& out) {
  if (value.is_tensor()) {
    out.emplace_back(prefix, value.to_tensor().detach().clone());
  } else if (value.is_container()) {
    int i = 0;
    for (const Value& item : value.to_items()) flatten(item, prefix + "." + std::to_string(i++), out);
  }
}

Value argument(const json& value, const SafetensorsFile& inputs) {
  if (value.is_object()) return inputs.tensor(value.at("tensor").get<std::string>()).clone();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_array()) {
    Values items;
    for (const json& item : value) items.push_back(argument(item, inputs));
    return list(std::move(items));
  }
  return Value();
}

}  // namespace

std::shared_ptr<Module> make_layer(const std::string& name, const json& args, const SafetensorsFile& inputs) {
  const Args a(args, inputs);
  for (const auto* makers : {&activations_and_shapes(), &weighted_layers(), &losses()}) {
    const auto found = makers->find(name);
    if (found == makers->end()) continue;
    std::shared_ptr<Module> made = found->second(a);
    a.finish(name);
    return made;
  }
  throw UserError("layer " + name + " is not known to the test");
}

LayerResult run_layer_case(const json& layer_case, const SafetensorsFile& inputs) {
  LayerResult result;
  const auto id = layer_case.at("id").get<std::string>();
  const auto seed = layer_case.at("seed").get<uint64_t>();
  try {
    const auto arguments = [&] {
      Values args;
      for (const json& value : layer_case.at("inputs")) args.push_back(argument(value, inputs));
      // One tensor given three times is one tensor: attention looks.
      for (size_t i = 1; i < args.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (layer_case["inputs"][i].is_object() && layer_case["inputs"][i] == layer_case["inputs"][j]) args[i] = args[j];
      return args;
    };
    if (layer_case.contains("function")) {
      manual_seed(seed);
      std::vector<Tensor> tensors;
      for (const Value& value : arguments()) tensors.push_back(value.to_tensor());
      const Args a(layer_case.at("args"), inputs);
      flatten(call_function(layer_case["function"].get<std::string>(), a, tensors), id + "/out/0", result.tensors);
      a.finish(id);
      return result;
    }
    manual_seed(seed);
    const std::shared_ptr<Module> module =
        make_layer(layer_case.at("layer").get<std::string>(), layer_case.at("args"), inputs);
    result.repr = module->str();
    result.type_name = module->type_name();
    StateDict before;
    for (const auto& [name, tensor] : module->state_dict()) {
      before.set(name, tensor.detach().clone());
      result.state_names.push_back(name);
      result.tensors.emplace_back(id + "/state/" + name, before.at(name));
    }
    if (!layer_case.value("call", true)) return result;
    Kwargs kwargs;
    const json given = layer_case.value("kwargs", json::object());
    for (const auto& [name, value] : given.items()) kwargs.emplace_back(name, argument(value, inputs));
    for (const bool training : {true, false}) {
      module->train(training);
      manual_seed(seed + 1);
      flatten(module->call(arguments(), kwargs), id + (training ? "/train/0" : "/eval/0"), result.tensors);
      if (!training) continue;
      for (const auto& [name, tensor] : module->state_dict())
        if (!equal(tensor, before.at(name))) result.tensors.emplace_back(id + "/after/" + name, tensor.detach().clone());
    }
  } catch (const std::exception& e) {
    result.error = e.what();
  }
  return result;
}

}  // namespace calque

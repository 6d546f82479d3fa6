#include "swin_layers.h"

#include <cmath>

#include "attention.h"
#include "calque/base/error.h"
#include "calque/nn/convert.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/shaping.h"
#include "child_if.h"

namespace calque {

namespace {

size_t stages_of(const Config& c) { return c.integers("depths").size(); }

// Which row of the table of biases belongs to two patches of a window, [area * area].
Tensor relative_positions(int64_t window) {
  const Tensor steps = arange(window, DType::int64);
  const Tensor rows = steps.repeat_interleave(window), columns = steps.repeat({window});
  const Tensor down = rows.unsqueeze(1) - rows.unsqueeze(0) + (window - 1);
  const Tensor right = columns.unsqueeze(1) - columns.unsqueeze(0) + (window - 1);
  return down * (2 * window - 1) + right;
}

// [batch, height, width, size] to [batch * windows, window, window, size] and back.
Tensor window_partition(const Tensor& x, int64_t window) {
  const SymInt batch = x.sym_size(0), down = floor_div(x.sym_size(1), window), right = floor_div(x.sym_size(2), window);
  const int64_t size = x.size(3);
  return x.view({batch, down, window, right, window, size})
      .transpose(2, 3)
      .contiguous()
      .view({batch * down * right, window, window, size});
}
Tensor window_reverse(const Tensor& windows, const SymInt& batch, int64_t window, const SymInt& height,
                      const SymInt& width) {
  const int64_t size = windows.size(-1);
  return windows.view({batch, floor_div(height, window), floor_div(width, window), window, window, size})
      .transpose(2, 3)
      .contiguous()
      .view({batch, height, width, size});
}

// Patches that a shift brought into one window from opposite sides do not look at each other: [windows, area, area].
Tensor shift_mask(const SymInt& height, const SymInt& width, int64_t window, int64_t shift, const Tensor& like) {
  const auto regions = [&](const SymInt& length) {
    const Tensor at = arange(Scalar(length), DType::int64, std::nullopt, like.device());
    const Tensor first = ge(at, Scalar(length - window)).to(DType::int64),
                 second = ge(at, Scalar(length - shift)).to(DType::int64);
    return first + second;
  };
  const Tensor down = regions(height).view({1, height, 1, 1}), right = regions(width).view({1, 1, width, 1});
  const Tensor regions_of = (down * 3 + right).to(like.dtype());
  const Tensor windows = window_partition(regions_of, window).view({-1, window * window});
  const Tensor apart = ne(windows.unsqueeze(1) - windows.unsqueeze(2), 0);
  return zeros_like(apart, like.dtype()).masked_fill(apart, -100.0);
}

}  // namespace

std::string swin_defaults(std::string_view own) {
  return R"({"image_size": 224, "patch_size": 4, "num_channels": 3, "embed_dim": 96, "depths": [2, 2, 6, 2],
        "num_heads": [3, 6, 12, 24], "window_size": 7, "mlp_ratio": 4.0, "qkv_bias": true, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu", "use_absolute_embeddings": false,
        "initializer_range": 0.02, "layer_norm_eps": 1e-05)" +
         std::string(own) + "}";
}

std::vector<std::pair<std::string, std::string>> swin_attributes() {
  return {{"num_attention_heads", "num_heads"}, {"num_hidden_layers", "num_layers"}};
}

ConfigSchema swin_schema(std::vector<KeyRule> own) {
  own.insert(own.end(), {{"embed_dim", KeyKind::size},
                         {"num_heads", KeyKind::sizes},
                         {"num_layers", KeyKind::layers},
                         {"window_size", KeyKind::size},
                         {"mlp_ratio", KeyKind::positive}});
  // Each pair of patches in a window has an index.
  return {.keys = std::move(own), .tables = {{"window_size", "window_size", "window_size", "window_size"}}};
}

int64_t swin_features(const Config& c, size_t stage) {
  return scaled_size(c, "embed_dim", std::exp2(static_cast<double>(stage)), c.integer("embed_dim"));
}

void complete_swin_sizes(Config& config) {
  const size_t stages = stages_of(config);
  config.set("num_layers", static_cast<int64_t>(stages));
  config.set("hidden_size", swin_features(config, stages - 1));
}

SwinGrid SwinGrid::from_value(const Value& value) {
  const Values& items = value.to_items();
  return {items.at(0).to_tensor(), items.at(1).to_sym_int(), items.at(2).to_sym_int()};
}

SwinPatchEmbeddings::SwinPatchEmbeddings(const SwinStyle& style, const Config& c)
    : style(&style),
      channels(c.integer("num_channels")),
      patch_size(picture_size(c, "patch_size")),
      grid(patch_grid(c)),
      projection(child<Conv2d>("projection", channels, c.integer("embed_dim"), patch_size.both(),
                               ConvOptions{.stride = patch_size.both()})) {}

SwinGrid SwinPatchEmbeddings::forward(const Tensor& pixel_values) {
  Tensor pixels = checked_pixels(pixel_values, channels, pixel_values.dtype());
  const SymInt height = pixels.sym_size(2), width = pixels.sym_size(3);
  if (guard(width % patch_size.width != 0))
    pixels = constant_pad_nd(pixels, {0, SymInt(patch_size.width) - width % patch_size.width});
  if (guard(height % patch_size.height != 0))
    pixels = constant_pad_nd(pixels, {0, 0, 0, SymInt(patch_size.height) - height % patch_size.height});
  const Tensor x = projection(pixels);
  return {x.flatten(2).transpose(1, 2), x.sym_size(2), x.sym_size(3)};
}

SwinEmbeddings::SwinEmbeddings(const SwinStyle& style, const Config& c, bool use_mask_token)
    : style(&style),
      mask_token(
          register_parameter("mask_token", use_mask_token ? unset_parameter({1, 1, c.integer("embed_dim")}) : Tensor())),
      position_embeddings(register_parameter(
          "position_embeddings",
          c.flag("use_absolute_embeddings")
              ? unset_parameter(
                    {1, patch_grid(c).height * patch_grid(c).width + (style.extra_position ? 1 : 0), c.integer("embed_dim")})
              : Tensor())),
      patch_embeddings(child<SwinPatchEmbeddings>("patch_embeddings", style, c)),
      norm(child<LayerNorm>("norm", c.integer("embed_dim"))),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}

SwinGrid SwinEmbeddings::forward(const Tensor& pixel_values, const Tensor& bool_masked_pos, bool interpolate_pos_encoding) {
  SwinGrid grid = patch_embeddings(pixel_values);
  grid.x = with_mask_token(norm(grid.x), mask_token, bool_masked_pos);
  if (position_embeddings.defined()) {
    const int64_t lead = style->extra_position ? 1 : 0;
    if (interpolate_pos_encoding)
      grid.x = grid.x + positions_for(position_embeddings, lead, grid.x.sym_size(1), pixel_values.sym_size(2),
                                      pixel_values.sym_size(3), patch_embeddings->patch_size);
    else
      grid.x = grid.x + *position_embeddings;
  }
  grid.x = dropout(grid.x);
  return grid;
}

SwinPatchMerging::SwinPatchMerging(const SwinStyle& style, int64_t size)
    : style(&style),
      reduction(child<Linear>("reduction", 4 * size, 2 * size, false)),
      norm(child<LayerNorm>("norm", 4 * size)) {}

SwinGrid SwinPatchMerging::forward(const SwinGrid& input) {
  const SymInt batch = input.x.sym_size(0);
  const SymInt height = floor_div(input.height + 1, 2), width = floor_div(input.width + 1, 2);
  const int64_t size = input.x.size(2);
  Tensor x = input.x.view({batch, input.height, input.width, size});
  if (guard(input.height % 2 == 1) || guard(input.width % 2 == 1))
    x = constant_pad_nd(x, {0, 0, 0, input.width % 2, 0, input.height % 2});
  std::vector<Tensor> neighbours;
  for (const int64_t column : {0, 1})
    for (const int64_t row : {0, 1})
      neighbours.push_back(x.slice(1, row, std::nullopt, 2).slice(2, column, std::nullopt, 2));
  return {reduction(norm(cat(neighbours, -1).view({batch, height * width, 4 * size}))), height, width};
}

SwinSelfAttention::SwinSelfAttention(const SwinStyle& style, const Config& c, int64_t hidden_size, int64_t heads)
    : style(&style),
      heads(heads),
      size(hidden_size / heads),
      area(c.integer("window_size") * c.integer("window_size")),
      relative_position_bias_table(register_parameter(
          "relative_position_bias_table",
          unset_parameter({(2 * c.integer("window_size") - 1) * (2 * c.integer("window_size") - 1), heads}))),
      relative_position_index(
          register_buffer("relative_position_index", relative_positions(c.integer("window_size")), style.saved_index)),
      query(child<Linear>("query", hidden_size, hidden_size, c.flag("qkv_bias"))),
      key(child<Linear>("key", hidden_size, hidden_size, c.flag("qkv_bias"))),
      value(child<Linear>("value", hidden_size, hidden_size, c.flag("qkv_bias"))),
      dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {
  if (hidden_size % heads != 0)
    throw UserError(ErrorKind::bad_file, c.where() + ": num_heads has " + std::to_string(heads) +
                                             " heads for a stage of size " + std::to_string(hidden_size) +
                                             ", expected a divisor of it");
}

SwinSelfAttention::Result SwinSelfAttention::forward(const Tensor& hidden_states, const Tensor& mask, bool eager) {
  if (hidden_states.size(1) != area)
    throw UserError(class_name() + ": a window has " + std::to_string(hidden_states.size(1)) + " patches, expected " +
                    std::to_string(area) + ": the picture is smaller than a window, give a larger one");
  const Tensor rows = index(relative_position_bias_table, {relative_position_index->view({-1})});
  const Tensor bias = rows.view({area, area, -1}).permute({2, 0, 1}).contiguous().unsqueeze(0);
  const Tensor queries = split_heads(query(hidden_states), heads, size);
  const Tensor keys = split_heads(key(hidden_states), heads, size);
  const AttentionResult attended = attend(queries, keys, split_heads(value(hidden_states), heads, size), {mask, false},
                                          {.dropout = training() ? dropout->p : 0,
                                           .eager = eager,
                                           .position_bias = bias,
                                           .softmax_in_float32 = style->softmax_in_float32});
  return {attended.output, attended.weights};
}

Tensor SwinDense::forward(const Tensor& hidden_states) { return dropout(dense(hidden_states)); }

SwinAttention::SwinAttention(const SwinStyle& style, const Config& c, int64_t size, int64_t heads)
    : style(&style),
      self(child<SwinSelfAttention>("self", style, c, size, heads)),
      output(child<SwinDense>("output", style.type("SelfOutput"), size, size, c.number("attention_probs_dropout_prob"))) {}

SwinSelfAttention::Result SwinAttention::forward(const Tensor& hidden_states, const Tensor& mask, bool eager) {
  auto [attended, weights] = self(hidden_states, mask, eager);
  return {output(attended), weights};
}

SwinIntermediate::SwinIntermediate(const SwinStyle& style, const Config& c, int64_t in_features, int64_t out_features)
    : style(&style),
      dense(child<Linear>("dense", in_features, out_features)),
      activation(activation_named(c.text("hidden_act"))) {}

static int64_t wide_size(const Config& c, int64_t size) { return scaled_size(c, "mlp_ratio", c.number("mlp_ratio"), size); }

SwinLayer::SwinLayer(const SwinStyle& style, const Config& c, int64_t size, int64_t heads, double drop, bool shifted)
    : style(&style),
      window_size(c.integer("window_size")),
      shift_size(shifted ? window_size / 2 : 0),
      layernorm_before(child<LayerNorm>("layernorm_before", size, LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      attention(child<SwinAttention>("attention", style, c, size, heads)),
      drop_path(child<DropPath>("drop_path", style.type("DropPath"), drop)),
      layernorm_after(child<LayerNorm>("layernorm_after", size, LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      intermediate(child<SwinIntermediate>("intermediate", style, c, size, wide_size(c, size))),
      output(child<SwinDense>("output", style.type("Output"), wide_size(c, size), size, c.number("hidden_dropout_prob"))) {}

SwinSelfAttention::Result SwinLayer::forward(const SwinGrid& grid, bool always_partition, bool eager) {
  // One window takes all of a small picture, and then nothing is shifted.
  const SymInt smaller = sym_min(grid.height, grid.width);
  const bool one_window = !always_partition && guard(smaller <= window_size);
  const int64_t window = one_window ? smaller.guard_int() : window_size, shift = one_window ? 0 : shift_size;
  const SymInt batch = grid.x.sym_size(0);
  const int64_t size = grid.x.size(2);
  const SymInt below = (SymInt(window) - grid.height % window) % window,
               right = (SymInt(window) - grid.width % window) % window;
  const SymInt height = grid.height + below, width = grid.width + right;
  const bool padded = guard(below > 0) || guard(right > 0);

  Tensor x = layernorm_before(grid.x).view({batch, grid.height, grid.width, size});
  if (padded) x = constant_pad_nd(x, {0, 0, 0, right, 0, below});
  if (shift > 0) x = roll(x, {-shift, -shift}, {1, 2});
  const SymInt windows = floor_div(height, window) * floor_div(width, window);
  const int64_t area = window * window;
  x = window_partition(x, window).view({batch * windows, area, size});
  Tensor mask;
  if (shift > 0)
    mask = shift_mask(height, width, window, shift, x)
               .unsqueeze(1)
               .unsqueeze(0)
               .expand({batch, -1, -1, -1, -1})
               .reshape({batch * windows, 1, area, area});
  auto [attended, weights] = attention(x, mask, eager);
  Tensor y = window_reverse(attended.view({batch * windows, window, window, size}), batch, window, height, width);
  if (shift > 0) y = roll(y, {shift, shift}, {1, 2});
  if (padded) y = y.slice(1, 0, grid.height).slice(2, 0, grid.width).contiguous();
  y = grid.x + drop_path(y.view({batch, grid.height * grid.width, size}));
  return {y + output(intermediate(layernorm_after(y))), weights};
}

SwinStage::SwinStage(const SwinStyle& style, const Config& c, size_t stage, const std::vector<double>& drops, bool last)
    : style(&style),
      blocks(child<ModuleList>("blocks")),
      downsample(child_if<SwinPatchMerging>(!last, *this, "downsample", style, swin_features(c, stage))) {
  const int64_t heads = one_a_stage(c, "num_heads", stages_of(c))[stage];
  for (size_t i = 0; i < drops.size(); ++i)
    blocks->emplace<SwinLayer>(style, c, swin_features(c, stage), heads, drops[i], i % 2 == 1);
}

SwinStage::Result SwinStage::forward(const SwinGrid& grid, bool always_partition, bool eager) {
  SwinGrid now = grid;
  Tensor weights;
  for (SwinLayer* layer : blocks->items<SwinLayer>()) std::tie(now.x, weights) = (*layer)(now, always_partition, eager);
  return {downsample ? (*downsample)(now) : now, now, weights};
}

SwinWishes SwinWishes::from_value(const Value& value) {
  const Values& items = value.to_items();
  return {items.at(0).to_bool(), items.at(1).to_bool(), items.at(2).to_bool(), items.at(3).to_bool(), items.at(4).to_bool()};
}

Value SwinResult::to_value() const {
  return tuple({last_hidden_state, calque::to_value(hidden_states), calque::to_value(attentions),
                calque::to_value(reshaped_hidden_states)});
}

SwinResult SwinResult::from_value(const Value& value) {
  const Values& items = value.to_items();
  const auto tensors = [&](size_t i) { return calque::from_value<std::vector<Tensor>>(items.at(i)); };
  return {items.at(0).to_tensor(), tensors(1), tensors(2), tensors(3)};
}

SwinEncoder::SwinEncoder(const SwinStyle& style, const Config& c) : style(&style), layers(child<ModuleList>("layers")) {
  const std::vector<int64_t> depths = c.integers("depths");
  int64_t all = 0, at = 0;
  for (const int64_t depth : depths) all += depth;
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    std::vector<double> drops;
    for (int64_t i = 0; i < depths[stage]; ++i, ++at)
      drops.push_back(c.number("drop_path_rate") * static_cast<double>(at) /
                      static_cast<double>(std::max<int64_t>(all - 1, 1)));
    layers->emplace<SwinStage>(style, c, stage, drops, stage + 1 == depths.size());
  }
}

SwinResult SwinEncoder::forward(const SwinGrid& grid, const SwinWishes& wishes) {
  SwinResult out;
  SwinGrid now = grid;
  const auto note = [&](const SwinGrid& state) {
    if (!wishes.hidden_states) return;
    out.hidden_states.push_back(state.x);
    out.reshaped_hidden_states.push_back(as_picture(state.x, state.height, state.width));
  };
  note(now);
  for (SwinStage* stage : layers->items<SwinStage>()) {
    auto [next, before, weights] = (*stage)(now, wishes.always_partition, wishes.eager);
    now = next;
    note(wishes.before_downsampling ? before : now);
    if (wishes.attentions) out.attentions.push_back(weights);
  }
  out.last_hidden_state = now.x;
  return out;
}

SwinWishes swin_wishes(const PretrainedModel& model, const ModelInputs& in) {
  SwinWishes out;
  out.hidden_states = model.wants_hidden_states(in);
  out.attentions = model.wants_attentions(in);
  out.eager = eager_attention(model.config(), out.attentions);
  return out;
}

SwinPictures::SwinPictures(const SwinStyle& style, const Config& c, bool use_mask_token)
    : VisionModel(c),
      style(&style),
      embeddings(child<SwinEmbeddings>("embeddings", style, c, use_mask_token)),
      encoder(child<SwinEncoder>("encoder", style, c)) {}

SwinResult SwinPictures::encoded(const ModelInputs& in) {
  const SwinGrid grid =
      embeddings(in[arg::pixel_values], in[arg::bool_masked_pos], in[arg::interpolate_pos_encoding].value_or(false));
  return encoder(grid, swin_wishes(*this, in));
}

std::vector<std::string> SwinPictures::no_split_modules() const {
  const std::string stage = style->type("Stage");
  return {stage.substr(stage.rfind('.') + 1)};
}

// Start values that PretrainedModel does not know.
void SwinPictures::init_weights(Module& module) {
  VisionModel::init_weights(module);
  if (auto* embedded = dynamic_cast<SwinEmbeddings*>(&module)) {
    if (embedded->mask_token.defined()) init::zeros_(embedded->mask_token);
    if (embedded->position_embeddings.defined()) init::zeros_(embedded->position_embeddings);
  } else if (auto* attention = dynamic_cast<SwinSelfAttention*>(&module)) {
    init::zeros_(attention->relative_position_bias_table);
  }
}

ModelOutput swin_output(const SwinResult& result, const Tensor& last_hidden_state) {
  ModelOutput out;
  out.set("last_hidden_state", last_hidden_state);
  out.set("pooler_output", functional::adaptive_avg_pool1d(last_hidden_state.transpose(1, 2), 1).flatten(1));
  out.set("hidden_states", result.hidden_states);
  out.set("attentions", result.attentions);
  out.set("reshaped_hidden_states", result.reshaped_hidden_states);
  return out;
}

static constexpr ModelArgument swin_classification_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                                  arg::output_hidden_states, arg::interpolate_pos_encoding};

SwinImageClassification::SwinImageClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, true, swin_classification_arguments, c.integer("hidden_size")) {}

}  // namespace calque

// XLNet: attention over relative positions and segments, to the states of texts before (mems) and in any order of tokens
// (perm_mask), with a second stream that asks for tokens without seeing them (target_mapping).
#include "calque/base/error.h"
#include "calque/hub/next_word.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/chunking.h"
#include "zoo/blocks/vision.h"
#include "zoo/heads/decoder_heads.h"
#include "zoo/heads/encoder_heads.h"
#include "zoo/heads/summary_heads.h"

namespace calque::xlnet {

namespace {

constexpr const char* names = "transformers.models.xlnet.modeling_xlnet.XLNet";

constexpr ArgumentName<Value> mems{"mems"};                       // of each layer [length, batch, size]
constexpr ArgumentName<Tensor> perm_mask{"perm_mask"};            // [batch, query, key]: 1 where one may not look
constexpr ArgumentName<Tensor> target_mapping{"target_mapping"};  // [batch, asked, length]
constexpr ArgumentName<bool> use_mems{"use_mems"};

// What a layer's attention is told beside the states; lengths come first, the batch second.
struct Surroundings {
  Tensor mask_h, mask_g;  // [query, key, batch, 1], numbers; undefined: everybody looks at all
  Tensor positions;       // [key and query, batch, size]
  Tensor segments;        // [query, key, batch, 2]; undefined: none
  Tensor mapping;         // [asked, query, batch]; undefined: none

  Value to_value() const { return tuple({mask_h, mask_g, positions, segments, mapping}); }
  static Surroundings from_value(const Value& value) {
    const auto at = [&](size_t i) { return value.to_items().at(i).to_tensor_or_none(); };
    return {at(0), at(1), at(2), at(3), at(4)};
  }
};
using Streams = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // states of both, weights of both

struct XLNetRelativeAttention : Typed<XLNetRelativeAttention> {
  static constexpr const char* torch_type = "transformers.models.xlnet.modeling_xlnet.XLNetRelativeAttention";
  static constexpr const char* forward_arguments[] = {"h", "g", "around", "mems"};
  explicit XLNetRelativeAttention(const Config& c)
      : scale(1 / std::sqrt(c.number("d_head"))),
        q(weight("q", c)),
        k(weight("k", c)),
        v(weight("v", c)),
        o(weight("o", c)),
        r(weight("r", c)),
        r_r_bias(register_parameter("r_r_bias", unset_parameter({c.integer("n_head"), c.integer("d_head")}))),
        r_s_bias(register_parameter("r_s_bias", unset_parameter({c.integer("n_head"), c.integer("d_head")}))),
        r_w_bias(register_parameter("r_w_bias", unset_parameter({c.integer("n_head"), c.integer("d_head")}))),
        seg_embed(register_parameter("seg_embed", unset_parameter({2, c.integer("n_head"), c.integer("d_head")}))),
        layer_norm(
            child<LayerNorm>("layer_norm", c.integer("d_model"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        dropout(child<Dropout>("dropout", c.number("dropout"))) {}

  Streams forward(const Tensor& h, const Tensor& g, const Surroundings& around, const Tensor& before) {
    const Tensor all = before.defined() ? cat({before, h}, 0) : h;
    const Tensor key = einsum("ibh,hnd->ibnd", {all, *k}), value = einsum("ibh,hnd->ibnd", {all, *v});
    const Tensor turned = einsum("ibh,hnd->ibnd", {around.positions.to(r->dtype()), *r});
    const auto [seen, weights] = attended(einsum("ibh,hnd->ibnd", {h, *q}), key, value, turned, around, around.mask_h);
    const Tensor output_h = joined(h, seen);
    if (!g.defined()) return {output_h, {}, weights, {}};
    Tensor query = einsum("ibh,hnd->ibnd", {g, *q});
    if (around.mapping.defined()) query = einsum("mbnd,mlb->lbnd", {query, around.mapping});
    auto [asked, weights_g] = attended(query, key, value, turned, around, around.mask_g);
    if (around.mapping.defined()) asked = einsum("lbnd,mlb->mbnd", {asked, around.mapping});
    return {output_h, joined(g, asked), weights, weights_g};
  }

  double scale;
  Parameter q, k, v, o, r, r_r_bias, r_s_bias, r_w_bias, seg_embed;
  Child<LayerNorm> layer_norm;
  Child<Dropout> dropout;

 private:
  Parameter weight(const char* name, const Config& c) {
    return register_parameter(name, unset_parameter({c.integer("d_model"), c.integer("n_head"), c.integer("d_head")}));
  }
  // Scores [batch, heads, query, all distances] to those of the keys: each row a step further.
  static Tensor shifted(const Tensor& x, const SymInt& keys) {
    const SymInt batch = x.sym_size(0), heads = x.sym_size(1), queries = x.sym_size(2), distances = x.sym_size(3);
    const Tensor cut = x.reshape({batch, heads, distances, queries}).slice(2, 1);
    return cut.reshape({batch, heads, queries, distances - 1}).slice(3, 0, keys);
  }
  std::tuple<Tensor, Tensor> attended(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& turned,
                                      const Surroundings& around, const Tensor& mask) {
    Tensor scores = einsum("ibnd,jbnd->bnij", {query + *r_w_bias, key});
    scores = scores + shifted(einsum("ibnd,jbnd->bnij", {query + *r_r_bias, turned}), key.sym_size(0));
    if (around.segments.defined()) {
      const Tensor of_segments = einsum("ibnd,snd->ibns", {query + *r_s_bias, *seg_embed});
      scores = scores + einsum("ijbs,ibns->bnij", {around.segments, of_segments});
    }
    scores = scores * scale;
    if (mask.defined()) scores = scores - (mask.dtype() == DType::float16 ? 65500 : 1e30) * einsum("ijbn->bnij", {mask});
    const Tensor weights = dropout(softmax(scores, 3));
    return {einsum("bnij,jbnd->ibnd", {weights, value}), weights};
  }
  Tensor joined(const Tensor& before, const Tensor& seen) {
    return layer_norm(dropout(einsum("ibnd,hnd->ibh", {seen, *o})) + before);
  }
};

struct XLNetFeedForward : Typed<XLNetFeedForward> {
  static constexpr const char* torch_type = "transformers.models.xlnet.modeling_xlnet.XLNetFeedForward";
  static constexpr const char* forward_arguments[] = {"inp"};
  explicit XLNetFeedForward(const Config& c)
      : layer_norm(
            child<LayerNorm>("layer_norm", c.integer("d_model"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        layer_1(child<Linear>("layer_1", c.integer("d_model"), c.integer("d_inner"))),
        layer_2(child<Linear>("layer_2", c.integer("d_inner"), c.integer("d_model"))),
        dropout(child<Dropout>("dropout", c.number("dropout"))),
        activation(activation_named(c.text("ff_activation"))) {}
  Tensor forward(const Tensor& inp) { return layer_norm(dropout(layer_2(dropout(activation(layer_1(inp))))) + inp); }
  Child<LayerNorm> layer_norm;
  Child<Linear> layer_1, layer_2;
  Child<Dropout> dropout;
  Activation activation;
};

struct XLNetLayer : Typed<XLNetLayer> {
  static constexpr const char* torch_type = "transformers.models.xlnet.modeling_xlnet.XLNetLayer";
  static constexpr const char* forward_arguments[] = {"output_h", "output_g", "around", "mems"};
  explicit XLNetLayer(const Config& c)
      : rel_attn(child<XLNetRelativeAttention>("rel_attn", c)),
        ff(child<XLNetFeedForward>("ff", c)),
        dropout(child<Dropout>("dropout", c.number("dropout"))),
        chunk_size(c.optional_integer("chunk_size_feed_forward").value_or(0)) {}
  Streams forward(const Tensor& h, const Tensor& g, const Surroundings& around, const Tensor& before) {
    const auto [output_h, output_g, weights, weights_g] = rel_attn(h, g, around, before);
    const auto fed = [&](const Tensor& x) {
      return apply_chunking_to_forward([&](const Tensor& piece) { return ff(piece); }, chunk_size, 1, x);
    };
    return {fed(output_h), output_g.defined() ? fed(output_g) : Tensor(), weights, weights_g};
  }
  Child<XLNetRelativeAttention> rel_attn;
  Child<XLNetFeedForward> ff;
  Child<Dropout> dropout;
  int64_t chunk_size;
};

struct XLNetModel : ModelOf<XLNetModel> {
  static constexpr const char* torch_type = "transformers.models.xlnet.modeling_xlnet.XLNetModel";
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids,
                                                        arg::attention_mask,
                                                        mems,
                                                        perm_mask,
                                                        target_mapping,
                                                        arg::token_type_ids,
                                                        arg::input_mask,
                                                        arg::inputs_embeds,
                                                        use_mems,
                                                        arg::output_attentions,
                                                        arg::output_hidden_states};
  explicit XLNetModel(const Config& c)
      : ModelOf(c),
        word_embedding(child<Embedding>("word_embedding", c.integer("vocab_size"), c.integer("d_model"))),
        mask_emb(register_parameter("mask_emb", unset_parameter({1, 1, c.integer("d_model")}))),
        layer(child<ModuleList>("layer")),
        dropout(child<Dropout>("dropout", c.number("dropout"))) {
    for (int64_t i = 0; i < c.integer("n_layer"); ++i) layer->emplace<XLNetLayer>(c);
    if (const std::string type = c.text("attn_type"); type != "bi" && type != "uni")
      throw UserError(ErrorKind::bad_file, "\"attn_type\" is \"" + type + "\", expected bi or uni");
  }

  ModelOutput forward(const ModelInputs& in) override;
  std::string base_model_prefix() const override { return "transformer"; }
  bool supports_sdpa() const override { return false; }
  bool supports_gradient_checkpointing() const override { return false; }
  Child<Embedding>* input_embeddings() override { return &word_embedding; }
  void init_weights(Module& module) override {
    const double range = config().number("initializer_range");
    PretrainedModel::init_weights(module);
    if (&module == this) init::normal_(mask_emb, 0, range);
    auto* attention = dynamic_cast<XLNetRelativeAttention*>(&module);
    if (!attention) return;
    for (Parameter* one : {&attention->q, &attention->k, &attention->v, &attention->o, &attention->r, &attention->r_r_bias,
                           &attention->r_s_bias, &attention->r_w_bias, &attention->seg_embed})
      init::normal_(*one, 0, range);
  }

  Child<Embedding> word_embedding;
  Parameter mask_emb;
  Child<ModuleList> layer;
  Child<Dropout> dropout;

 private:
  struct Sizes {
    SymInt query, before, batch;  // tokens, those of mems, rows
  };
  Surroundings surroundings(const ModelInputs& in, const Sizes& sizes, DType dtype) const;
  Tensor forbidden(const ModelInputs& in, const Sizes& sizes) const;
  Tensor positions(const Sizes& sizes) const;
  Tensor segments(const Tensor& types, const Sizes& sizes, DType dtype) const;
  Tensor embedded_by_place(const ModelInputs& in) const;
  Tensor remembered(const Tensor& state, const Tensor& before) const;
};

Tensor batch_last(const Tensor& x) { return x.defined() ? x.transpose(0, 1) : x; }

// Who may not look at whom, [query or 1, key, batch or 1, 1], true or false; undefined: everybody may.
Tensor XLNetModel::forbidden(const ModelInputs& in, const Sizes& sizes) const {
  if (in[arg::input_mask].defined() && in[arg::attention_mask].defined())
    throw UserError("You can only use one of input_mask (1 is padding) and attention_mask (0 is padding)");
  Tensor masked = batch_last(in[arg::input_mask]);
  if (in[arg::attention_mask].defined()) masked = 1.0 - batch_last(in[arg::attention_mask]);
  Tensor data = masked.defined() ? masked.unsqueeze(0) : masked;
  if (const Tensor order = in[perm_mask]; order.defined())
    data = data.defined() ? data + order.permute({1, 2, 0}) : order.permute({1, 2, 0});
  if (data.defined()) {
    if (sizes.before.is_symbolic() || sizes.before.as_int() > 0)
      data = cat({zeros({data.sym_size(0), sizes.before, sizes.batch}, data.dtype()), data}, 1);
    data = gt(data.unsqueeze(-1), 0);
  }
  if (config().text("attn_type") == "bi") return data;
  const Tensor key = arange(sizes.before + sizes.query, DType::int64).unsqueeze(0);
  const Tensor query = arange(sizes.query, DType::int64).unsqueeze(1);
  Tensor later = gt(key, query + Scalar(sizes.before));
  if (config().flag("same_length")) later = bitwise_or(later, lt(key, query));
  later = later.unsqueeze(-1).unsqueeze(-1);
  return data.defined() ? bitwise_or(data, later) : later;
}

// Of each distance between a key and a query sines and cosines, from the farthest before to the farthest behind.
Tensor XLNetModel::positions(const Sizes& sizes) const {
  const auto width = static_cast<double>(config().integer("d_model"));
  const Tensor exponents = arange(0, config().integer("d_model"), 2, DType::int64).to(DType::float32) / width;
  const Tensor frequencies = 1 / pow(10000.0, exponents);
  const SymInt keys = sizes.before + sizes.query;
  const SymInt count = config().text("attn_type") == "bi" ? keys + sizes.query : keys + 1;
  const auto angles = [&](const Tensor& distances, const SymInt& rows) {
    const int64_t limit = config().integer("clamp_len");
    const Tensor near = limit > 0 ? clamp(distances, -limit, limit) : distances;
    const Tensor turns = near.unsqueeze(1) * frequencies;
    return cat({sin(turns), cos(turns)}, -1).unsqueeze(1).expand({-1, rows, -1});
  };
  const Tensor steps = arange(count, DType::int64);
  const Tensor forwards = (Scalar(keys) - steps).to(DType::float32);
  if (!config().flag("bi_data")) return angles(forwards, sizes.batch);
  const SymInt half = floor_div(sizes.batch, 2);
  return cat({angles(forwards, half), angles((steps - Scalar(keys)).to(DType::float32), half)}, 1);
}

// Whether a key is of another segment than the query; texts before are segment 0.
Tensor XLNetModel::segments(const Tensor& types, const Sizes& sizes, DType dtype) const {
  const Tensor own = types.transpose(0, 1);
  const bool alone = !sizes.before.is_symbolic() && sizes.before.as_int() == 0;
  const Tensor all = alone ? own : cat({zeros({sizes.before, sizes.batch}, DType::int64), own}, 0);
  const Tensor other = ne(own.unsqueeze(1), all.unsqueeze(0)).to(dtype);
  return stack({1 - other, other}, -1);
}

Surroundings XLNetModel::surroundings(const ModelInputs& in, const Sizes& sizes, DType dtype) const {
  Surroundings out;
  if (const Tensor masked = forbidden(in, sizes); masked.defined()) {
    const Tensor key = arange(sizes.before + sizes.query, DType::int64).unsqueeze(0);
    const Tensor self = eq(key, arange(sizes.query, DType::int64).unsqueeze(1) + Scalar(sizes.before));
    out.mask_g = masked.to(dtype);
    out.mask_h = bitwise_and(masked, bitwise_not(self.unsqueeze(-1).unsqueeze(-1))).to(dtype);
  }
  out.positions = positions(sizes);
  if (in[arg::token_type_ids].defined()) out.segments = segments(in[arg::token_type_ids], sizes, dtype);
  if (in[target_mapping].defined()) out.mapping = in[target_mapping].permute({1, 2, 0});
  return out;
}

// What the next text may look at: this state and those before it, the last mem_len.
Tensor XLNetModel::remembered(const Tensor& state, const Tensor& before) const {
  const int64_t reused = config().optional_integer("reuse_len").value_or(0);
  const int64_t length = config().optional_integer("mem_len").value_or(0);
  const Tensor now = reused > 0 ? state.slice(0, 0, reused) : state;
  const Tensor all = before.defined() ? cat({before, now}, 0) : now;
  return length > 0 ? all.slice(0, -length) : all;
}

// [length, batch, size]
Tensor XLNetModel::embedded_by_place(const ModelInputs& in) const {
  if (in[arg::input_ids].defined() == in[arg::inputs_embeds].defined())
    throw UserError("You must specify exactly one of input_ids or inputs_embeds");
  if (in[arg::inputs_embeds].defined()) return in[arg::inputs_embeds].transpose(0, 1).contiguous();
  return word_embedding(in[arg::input_ids].transpose(0, 1).contiguous());
}

ModelOutput XLNetModel::forward(const ModelInputs& in) {
  const Tensor words = embedded_by_place(in);
  const Value given = in[mems];
  const auto before = [&](size_t i) { return given.is_none() ? Tensor() : given.to_items().at(i).to_tensor_or_none(); };
  if (!given.is_none() && (!given.is_container() || given.to_items().size() != layer->size()))
    throw UserError("mems: expected a tensor of each of the " + std::to_string(layer->size()) + " layers");
  const Sizes sizes{words.sym_size(0), before(0).defined() ? before(0).sym_size(0) : SymInt(0), words.sym_size(1)};
  Surroundings around = surroundings(in, sizes, mask_emb->dtype());
  const bool remembers = in[use_mems].value_or(config().flag(training() ? "use_mems_train" : "use_mems_eval"));
  const bool two = around.mapping.defined();

  Tensor h = dropout(words), g;
  if (two) g = dropout(mask_emb->expand({around.mapping.sym_size(0), sizes.batch, -1}));
  around.positions = dropout(around.positions);
  std::vector<Tensor> memories, states;
  Values attentions;
  const auto keep_states = [&] {
    states.push_back(h.transpose(0, 1).contiguous());
    if (two) states.push_back(g.transpose(0, 1).contiguous());
  };
  size_t i = 0;
  for (XLNetLayer* one : layer->items<XLNetLayer>()) {
    if (remembers) memories.push_back(remembered(h, before(i)));
    keep_states();
    const auto [next_h, next_g, weights, weights_g] = (*one)(h, g, around, before(i++));
    h = next_h;
    g = next_g;
    attentions.push_back(two ? tuple({weights, weights_g}) : Value(weights));
  }
  keep_states();
  ModelOutput out;
  out.set("last_hidden_state", dropout(two ? g : h).transpose(0, 1).contiguous());
  out.set("mems", memories);
  if (wants_hidden_states(in)) out.set("hidden_states", states);
  if (wants_attentions(in)) out.set("attentions", tuple(std::move(attentions)));
  return out;
}

struct XLNetLMHeadModel : CopiedAs<XLNetLMHeadModel, SummaryHead>, NextWordModel {
  XLNetLMHeadModel(const HeadClass& head, const Config& c)
      : CopiedAs(head, c), lm_loss(child<Linear>("lm_loss", c.integer("d_model"), c.integer("vocab_size"))) {
    take_by_default(head, arguments_with(arguments_with(model->arguments(), arg::inputs_embeds, {arg::labels}),
                                         arg::output_hidden_states, {arg::logits_to_keep}));
  }
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor states = last_positions(base["last_hidden_state"], in[arg::logits_to_keep].value_or(0));
    return masked_lm_output(base, lm_loss(states), in[arg::labels]);
  }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"lm_loss.weight", "transformer.word_embedding.weight"}};
  }
  Child<Linear>* output_embeddings() override { return &lm_loss; }
  bool can_generate() const override { return true; }
  ModelInputs next_word_inputs(const Tensor& ids, const ModelOutput& before, const Tensor& rows) const override;
  Child<Linear> lm_loss;
};

// A token behind the text that nobody looks at, and is asked for. The states of all but the text's last token are those of before.
ModelInputs XLNetLMHeadModel::next_word_inputs(const Tensor& ids, const ModelOutput& before, const Tensor& rows) const {
  constexpr int64_t again =
      2;  // the last token of before, which then saw the token that is asked for, and the one that came
  const Value* states = before.find("mems");
  const Tensor text = states ? ids.slice(1, -again) : ids;
  const int64_t batch = text.size(0), length = text.size(1) + 1;
  const Tensor asked = one_hot(full({1}, length - 1, DType::int64), length).to(DType::float32);
  ModelInputs in{{arg::input_ids, cat({text, zeros({batch, 1}, DType::int64)}, 1)},
                 {perm_mask, asked.expand({batch, length, length})},
                 {target_mapping, asked.expand({batch, 1, length})}};
  if (!states) return in;
  Values kept;
  for (const Value& state : states->to_items()) {
    const Tensor all = state.to_tensor().slice(0, 0, -again);
    kept.push_back(rows.defined() ? all.index_select(1, rows) : all);
  }
  in.set(mems, tuple(std::move(kept)));
  return in;
}

struct XLNetForQuestionAnswering : CopiedAs<XLNetForQuestionAnswering, SummaryHead> {
  XLNetForQuestionAnswering(const HeadClass& head, const Config& c)
      : CopiedAs(head, c),
        start_logits(child<PoolerStartLogits>("start_logits", c)),
        end_logits(child<PoolerEndLogits>("end_logits", c)),
        answer_class(child<PoolerAnswerClass>("answer_class", c)) {
    take_by_default(
        head, arguments_with(model->arguments(), arg::inputs_embeds,
                             {arg::start_positions, arg::end_positions, arg::is_impossible, arg::cls_index, arg::p_mask}));
  }
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    ModelOutput out = searched_spans(
        {start_logits, end_logits, answer_class, config().integer("start_n_top"), config().integer("end_n_top")},
        base["last_hidden_state"], in[arg::start_positions], in[arg::end_positions], in[arg::cls_index],
        in[arg::is_impossible], in[arg::p_mask]);
    out.take(base, {"mems", "hidden_states", "attentions"});
    return out;
  }
  Child<PoolerStartLogits> start_logits;
  Child<PoolerEndLogits> end_logits;
  Child<PoolerAnswerClass> answer_class;
};

void complete(Config& config) {
  if (!config.has("d_head")) config.set("d_head", config.integer("d_model") / config.integer("n_head"));
}

constexpr HeadFamily heads{names, "transformer", made_model<XLNetModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "xlnet",
      .config_class = "XLNetConfig",
      .attribute_map = {{"n_token", "vocab_size"},
                        {"hidden_size", "d_model"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"}},
      .defaults = R"({"vocab_size": 32000, "d_model": 1024, "n_layer": 24, "n_head": 16, "d_inner": 4096, "d_head": null,
        "ff_activation": "gelu", "attn_type": "bi", "initializer_range": 0.02, "layer_norm_eps": 1e-12, "dropout": 0.1,
        "mem_len": 512, "reuse_len": null, "use_mems_eval": true, "use_mems_train": false, "bi_data": false, "clamp_len": -1,
        "same_length": false, "summary_type": "last", "summary_use_proj": true, "summary_activation": "tanh",
        "summary_last_dropout": 0.1, "start_n_top": 5, "end_n_top": 5, "pad_token_id": 5, "bos_token_id": 1,
        "eos_token_id": 2, "tie_word_embeddings": true})",
      .schema = {.keys = {{"d_inner", KeyKind::size},
                          {"d_head", KeyKind::size},
                          {"mem_len", KeyKind::count},
                          {"reuse_len", KeyKind::count},
                          {"clamp_len", KeyKind::number},
                          {"start_n_top", KeyKind::length},
                          {"end_n_top", KeyKind::length}},
                 .relations = {multiple("d_model", "n_head")}},
      .complete = complete,
      .classes = {model_class<XLNetModel>("XLNetModel", {"default"}),
                  head_class<XLNetLMHeadModel>({"pretraining", "causal-lm"}, {&heads, "LMHeadModel"}),
                  head_class<SummaryClassification>({"sequence-classification"}, {&heads, "ForSequenceClassification"}),
                  head_class<WordClassification>({"token-classification"}, {&heads, "ForTokenClassification"}),
                  head_class<SummaryChoice>({"multiple-choice"}, {&heads, "ForMultipleChoice"}),
                  head_class<PlainSpans>({"question-answering"}, {&heads, "ForQuestionAnsweringSimple"}),
                  head_class<XLNetForQuestionAnswering>({"special"}, {&heads, "ForQuestionAnswering"})},
  });
}

}  // namespace calque::xlnet

// LXMERT: words and the objects of a picture (their features and boxes come from elsewhere), each in layers of BERT's kind, then layers
// in which both look at each other; heads for words, objects, matching and answers.
#include <algorithm>

#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/blocks/query_key_value.h"
#include "zoo/heads/arguments.h"
#include "zoo/heads/losses.h"

namespace calque::lxmert {

namespace {

constexpr char lxmert_family[] = "transformers.models.lxmert.modeling_lxmert.Lxmert";
constexpr ArgumentName<Tensor> visual_feats{"visual_feats"}, visual_pos{"visual_pos"},
    visual_attention_mask{"visual_attention_mask"}, matched_label{"matched_label"}, answers{"ans"};
constexpr ArgumentName<Value> obj_labels{"obj_labels"};
constexpr LayerNormOptions lxmert_norm{.eps = 1e-12};

std::string lxmert_type(const char* part) { return lxmert_family + std::string(part); }

struct LxmertEmbeddings : Typed<LxmertEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertEmbeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "token_type_ids", "inputs_embeds"};
  explicit LxmertEmbeddings(const Config& c)
      : word_embeddings(table("word_embeddings", "vocab_size", c)),
        position_embeddings(table("position_embeddings", "max_position_embeddings", c)),
        token_type_embeddings(table("token_type_embeddings", "type_vocab_size", c)),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), lxmert_norm)),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Child<Embedding> table(const char* name, const char* rows, const Config& c) {
    return child<Embedding>(name, c.integer(rows), c.integer("hidden_size"), EmbeddingOptions{.padding_idx = 0});
  }
  Tensor forward(const Tensor& input_ids, const Tensor& given_types, const Tensor& inputs_embeds) {
    const Tensor words = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
    const SymInt batch = words.sym_size(0), length = words.sym_size(1);
    const Tensor types =
        given_types.defined() ? given_types : zeros({batch, length}, DType::int64, std::nullopt, words.device());
    const Tensor places = arange(length, DType::int64, std::nullopt, words.device()).unsqueeze(0);
    const Tensor placed = words + position_embeddings(places);
    return dropout(norm(placed + token_type_embeddings(types)));
  }
  Child<Embedding> word_embeddings, position_embeddings, token_type_embeddings;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
};

struct LxmertAttention : Typed<LxmertAttention, QueryKeyValue> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "context", "attention_mask"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  explicit LxmertAttention(const Config& c) : Typed(c) {}
  Result forward(const Tensor& x, const Tensor& context, const AttentionMask& mask) {
    const Tensor queries = split_heads(query(x), heads, size);
    const Tensor keys = split_heads(key(context), heads, size);
    const AttentionResult attended = attend(queries, keys, split_heads(value(context), heads, size), mask,
                                            {.dropout = training() ? dropout->p : 0, .eager = true});
    return {attended.output, attended.weights};
  }
};

// dense, dropout, residual, norm.
struct LxmertResidual : NamedModule<LxmertResidual> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "input_tensor"};
  LxmertResidual(const Config& c, const char* part, const char* from)
      : NamedModule(lxmert_type(part)),
        dense(child<Linear>("dense", c.integer(from), c.integer("hidden_size"))),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), lxmert_norm)),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& x, const Tensor& input) { return norm(dropout(dense(x)) + input); }
  Child<Linear> dense;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
};

// To oneself ("self"), or from words to objects and back ("att").
struct LxmertAttentionLayer : Typed<LxmertAttentionLayer> {
  static constexpr const char* forward_arguments[] = {"input_tensor", "ctx_tensor", "ctx_att_mask"};
  LxmertAttentionLayer(const Config& c, bool cross)
      : cross(cross),
        attention(child<LxmertAttention>(cross ? "att" : "self", c)),
        output(child<LxmertResidual>("output", c, "AttentionOutput", "hidden_size")) {}
  std::string type_name() const override { return lxmert_type(cross ? "CrossAttentionLayer" : "SelfAttentionLayer"); }
  LxmertAttention::Result forward(const Tensor& x, const Tensor& context, const AttentionMask& mask) {
    const auto [attended, weights] = attention(x, context, mask);
    return {output(attended, x), weights};
  }
  bool cross;
  Child<LxmertAttention> attention;
  Child<LxmertResidual> output;
};

struct LxmertLayer : Typed<LxmertLayer> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask"};
  explicit LxmertLayer(const Config& c)
      : attention(child<LxmertAttentionLayer>("attention", c, false)),
        intermediate(child<BertIntermediate>("intermediate", c, lxmert_family)),
        output(child<LxmertResidual>("output", c, "Output", "intermediate_size")) {}
  LxmertAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask) {
    const auto [x, weights] = attention(hidden_states, hidden_states, mask);
    return {output(intermediate(x), x), weights};
  }
  Child<LxmertAttentionLayer> attention;
  Child<BertIntermediate> intermediate;
  Child<LxmertResidual> output;
};

struct LxmertXLayer : Typed<LxmertXLayer> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertXLayer";
  static constexpr const char* forward_arguments[] = {"lang_feats", "lang_attention_mask", "visual_feats",
                                                      "visual_attention_mask"};
  using Result = std::tuple<Tensor, Tensor, Tensor>;  // words, objects, weights of the words' look at the objects
  explicit LxmertXLayer(const Config& c)
      : visual_attention(child<LxmertAttentionLayer>("visual_attention", c, true)),
        lang_self_att(child<LxmertAttentionLayer>("lang_self_att", c, false)),
        visn_self_att(child<LxmertAttentionLayer>("visn_self_att", c, false)),
        lang_inter(child<BertIntermediate>("lang_inter", c, lxmert_family)),
        lang_output(child<LxmertResidual>("lang_output", c, "Output", "intermediate_size")),
        visn_inter(child<BertIntermediate>("visn_inter", c, lxmert_family)),
        visn_output(child<LxmertResidual>("visn_output", c, "Output", "intermediate_size")) {}
  Result forward(const Tensor& words, const AttentionMask& words_mask, const Tensor& objects,
                 const AttentionMask& objects_mask) {
    const auto [words_across, weights] = visual_attention(words, objects, objects_mask);
    const auto [objects_across, back] = visual_attention(objects, words, words_mask);
    const auto [x, words_weights] = lang_self_att(words_across, words_across, words_mask);
    const auto [y, objects_weights] = visn_self_att(objects_across, objects_across, objects_mask);
    return {lang_output(lang_inter(x), x), visn_output(visn_inter(y), y), weights};
  }
  Child<LxmertAttentionLayer> visual_attention, lang_self_att, visn_self_att;
  Child<BertIntermediate> lang_inter;
  Child<LxmertResidual> lang_output;
  Child<BertIntermediate> visn_inter;
  Child<LxmertResidual> visn_output;
};

struct LxmertVisualFeatureEncoder : Typed<LxmertVisualFeatureEncoder> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertVisualFeatureEncoder";
  static constexpr const char* forward_arguments[] = {"visual_feats", "visual_pos"};
  explicit LxmertVisualFeatureEncoder(const Config& c)
      : visn_fc(child<Linear>("visn_fc", c.integer("visual_feat_dim"), c.integer("hidden_size"))),
        visn_layer_norm(child<LayerNorm>("visn_layer_norm", c.integer("hidden_size"), lxmert_norm)),
        box_fc(child<Linear>("box_fc", c.integer("visual_pos_dim"), c.integer("hidden_size"))),
        box_layer_norm(child<LayerNorm>("box_layer_norm", c.integer("hidden_size"), lxmert_norm)),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& features, const Tensor& boxes) {
    const Tensor seen = visn_layer_norm(visn_fc(features));
    return dropout((seen + box_layer_norm(box_fc(boxes))) / 2);
  }
  Child<Linear> visn_fc;
  Child<LayerNorm> visn_layer_norm;
  Child<Linear> box_fc;
  Child<LayerNorm> box_layer_norm;
  Child<Dropout> dropout;
};

struct LxmertEncoder : Typed<LxmertEncoder> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertEncoder";
  static constexpr const char* forward_arguments[] = {"lang_feats", "lang_attention_mask", "visual_feats", "visual_pos",
                                                      "visual_attention_mask"};
  using Result = std::vector<std::vector<Tensor>>;
  explicit LxmertEncoder(const Config& c)
      : visn_fc(child<LxmertVisualFeatureEncoder>("visn_fc", c)),
        layer(child<ModuleList>("layer")),
        x_layers(child<ModuleList>("x_layers")),
        r_layers(child<ModuleList>("r_layers")) {
    for (int64_t i = 0; i < c.integer("l_layers"); ++i) layer->emplace<LxmertLayer>(c);
    for (int64_t i = 0; i < c.integer("x_layers"); ++i) x_layers->emplace<LxmertXLayer>(c);
    for (int64_t i = 0; i < c.integer("r_layers"); ++i) r_layers->emplace<LxmertLayer>(c);
  }
  // States of words, of objects, weights of words, of objects, across.
  Result forward(const Tensor& embedded, const AttentionMask& words_mask, const Tensor& features, const Tensor& boxes,
                 const AttentionMask& objects_mask) {
    Result out(5);
    Tensor words = embedded, objects = visn_fc(features, boxes);
    const auto through = [&](ModuleList& layers, Tensor& x, const AttentionMask& mask, size_t at) {
      for (LxmertLayer* one : layers.items<LxmertLayer>()) {
        auto [y, weights] = (*one)(x, mask);
        x = y;
        out[at].push_back(x);
        out[at + 2].push_back(weights);
      }
    };
    through(*layer, words, words_mask, 0);
    through(*r_layers, objects, objects_mask, 1);
    for (LxmertXLayer* one : x_layers->items<LxmertXLayer>()) {
      auto [x, y, weights] = (*one)(words, words_mask, objects, objects_mask);
      words = x;
      objects = y;
      out[0].push_back(words);
      out[1].push_back(objects);
      out[4].push_back(weights);
    }
    return out;
  }
  Child<LxmertVisualFeatureEncoder> visn_fc;
  Child<ModuleList> layer, x_layers, r_layers;
};

struct LxmertPredictionHeadTransform : Typed<LxmertPredictionHeadTransform> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertPredictionHeadTransform";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit LxmertPredictionHeadTransform(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
        activation(activation_named(c.text("hidden_act"))),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), lxmert_norm)) {}
  Tensor forward(const Tensor& hidden_states) { return norm(activation(dense(hidden_states))); }
  Child<Linear> dense;
  Activation activation;
  Child<LayerNorm> norm;
};

struct LxmertLMPredictionHead : Typed<LxmertLMPredictionHead> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertLMPredictionHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit LxmertLMPredictionHead(const Config& c)
      : transform(child<LxmertPredictionHeadTransform>("transform", c)),
        decoder(child<Linear>("decoder", c.integer("hidden_size"), c.integer("vocab_size"), false)),
        bias(register_parameter("bias", zeros({c.integer("vocab_size")}))) {}
  Tensor forward(const Tensor& hidden_states) { return decoder(transform(hidden_states)) + *bias; }
  Child<LxmertPredictionHeadTransform> transform;
  Child<Linear> decoder;
  Parameter bias;
};

struct LxmertPreTrainingHeads : Typed<LxmertPreTrainingHeads> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertPreTrainingHeads";
  static constexpr const char* forward_arguments[] = {"sequence_output", "pooled_output"};
  explicit LxmertPreTrainingHeads(const Config& c)
      : predictions(child<LxmertLMPredictionHead>("predictions", c)),
        seq_relationship(child<Linear>("seq_relationship", c.integer("hidden_size"), 2)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& states, const Tensor& pooled) {
    return {predictions(states), seq_relationship(pooled)};
  }
  Child<LxmertLMPredictionHead> predictions;
  Child<Linear> seq_relationship;
};

struct LxmertVisualAnswerHead : Typed<LxmertVisualAnswerHead> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertVisualAnswerHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  // The places 0, 2 and 3 of a Sequential, whose place 1 is the activation.
  struct Layers : Typed<Layers> {
    static constexpr const char* torch_type = "torch.nn.modules.container.Sequential";
    static constexpr const char* forward_arguments[] = {"input"};
    explicit Layers(const Config& c)
        : wide(child<Linear>("0", c.integer("hidden_size"), 2 * c.integer("hidden_size"))),
          norm(child<LayerNorm>("2", 2 * c.integer("hidden_size"), lxmert_norm)),
          out(child<Linear>("3", 2 * c.integer("hidden_size"), c.integer("num_qa_labels"))) {}
    Tensor forward(const Tensor& x) { return out(norm(gelu(wide(x)))); }
    Child<Linear> wide;
    Child<LayerNorm> norm;
    Child<Linear> out;
  };
  explicit LxmertVisualAnswerHead(const Config& c) : logit_fc(child<Layers>("logit_fc", c)) {}
  Tensor forward(const Tensor& hidden_states) { return logit_fc(hidden_states); }
  Child<Layers> logit_fc;
};

// A kind of thing that is learnt of objects: its name, whether it is, how many numbers it has.
struct VisualLoss {
  const char* name;
  const char* wanted;
  const char* size;
  bool classes;  // labels, not numbers to come near to
};
constexpr VisualLoss visual_losses[] = {{"obj", "visual_obj_loss", "num_object_labels", true},
                                        {"attr", "visual_attr_loss", "num_attr_labels", true},
                                        {"feat", "visual_feat_loss", "visual_feat_dim", false}};

struct LxmertVisualObjHead : Typed<LxmertVisualObjHead> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertVisualObjHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit LxmertVisualObjHead(const Config& c)
      : transform(child<LxmertPredictionHeadTransform>("transform", c)), decoder_dict(child<ModuleDict>("decoder_dict")) {
    for (const VisualLoss& loss : visual_losses)
      if (c.flag(loss.wanted))
        decoder_dict->set(loss.name, std::make_shared<Linear>(c.integer("hidden_size"), c.integer(loss.size)));
  }
  // One a kind that is learnt.
  std::vector<Tensor> forward(const Tensor& hidden_states) {
    const Tensor x = transform(hidden_states);
    std::vector<Tensor> out;
    for (Module* one : decoder_dict->children()) out.push_back(dynamic_cast<Linear&>(*one)(x));
    return out;
  }
  Child<LxmertPredictionHeadTransform> transform;
  Child<ModuleDict> decoder_dict;
};

struct LxmertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "lxmert"; }
  bool supports_sdpa() const override { return false; }
  bool supports_gradient_checkpointing() const override { return false; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* head = dynamic_cast<LxmertLMPredictionHead*>(&module)) init::zeros_(head->bias);
  }
};

constexpr ModelArgument lxmert_arguments[] = {arg::input_ids,      visual_feats,           visual_pos,
                                              arg::attention_mask, visual_attention_mask,  arg::token_type_ids,
                                              arg::inputs_embeds,  arg::output_attentions, arg::output_hidden_states};

struct LxmertModel : ModelOf<LxmertModel, LxmertPretrained> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertModel";
  static constexpr auto& forward_arguments = lxmert_arguments;
  explicit LxmertModel(const Config& c)
      : ModelOf(c),
        embeddings(child<LxmertEmbeddings>("embeddings", c)),
        encoder(child<LxmertEncoder>("encoder", c)),
        pooler(child<BertPooler>("pooler", c, lxmert_family)) {
    for (const char* own : {"l_layers", "r_layers"})
      if (c.integer(own) + c.integer("x_layers") == 0)
        throw UserError(ErrorKind::bad_file,
                        c.where() + ": \"" + own + "\" and \"x_layers\" are 0, expected at least one layer");
  }

  ModelOutput forward(const ModelInputs& in) override {
    if (in[arg::input_ids].defined() == in[arg::inputs_embeds].defined())
      throw UserError("You must specify exactly one of input_ids or inputs_embeds");
    for (const auto& needed : {visual_feats, visual_pos})
      if (!in[needed].defined()) throw UserError("LxmertModel: expected " + std::string(needed.name) + " of the objects");
    const Tensor embedded = embeddings(in[arg::input_ids], in[arg::token_type_ids], in[arg::inputs_embeds]);
    const DType dtype = embedded.dtype();
    const auto found = encoder(embedded, mask_of(in[arg::attention_mask], dtype), in[visual_feats], in[visual_pos],
                               mask_of(in[visual_attention_mask], dtype));
    ModelOutput out;
    out.set("language_output", found[0].back());
    out.set("vision_output", found[1].back());
    out.set("pooled_output", pooler(found[0].back()));
    if (wants_hidden_states(in)) {
      out.set("language_hidden_states", found[0]);
      out.set("vision_hidden_states", found[1]);
    }
    if (wants_attentions(in)) {
      out.set("language_attentions", found[2]);
      out.set("vision_attentions", found[3]);
      out.set("cross_encoder_attentions", found[4]);
    }
    return out;
  }
  static AttentionMask mask_of(const Tensor& attention_mask, DType dtype) {
    if (!attention_mask.defined()) return {};
    if (attention_mask.dim() == 2 && !is_floating(attention_mask.dtype())) return bidirectional_mask(attention_mask);
    // A mask between 0 and 1 hides in part.
    const Tensor hidden = (1.0 - attention_mask.unsqueeze(1).unsqueeze(2).to(dtype));
    return {hidden * lowest_finite(dtype), false};
  }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return example_objects(*this, sizes); }
  static ModelInputs example_objects(const PretrainedModel& model, const ExampleSizes& sizes) {
    ModelInputs in = example_tokens(model, {sizes.batch, sizes.length});
    in.set(visual_feats, ones({sizes.batch, sizes.length, model.config().integer("visual_feat_dim")}));
    in.set(visual_pos, ones({sizes.batch, sizes.length, model.config().integer("visual_pos_dim")}) / 2);
    return in;
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }

  Child<LxmertEmbeddings> embeddings;
  Child<LxmertEncoder> encoder;
  Child<BertPooler> pooler;
};

void take_states(ModelOutput& out, const ModelOutput& base) {
  out.take(base, {"language_hidden_states", "vision_hidden_states", "language_attentions", "vision_attentions",
                  "cross_encoder_attentions"});
}

struct LxmertForPreTraining : ModelOf<LxmertForPreTraining, LxmertPretrained> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertForPreTraining";
  static constexpr auto forward_arguments =
      with_arguments(names_of(lxmert_arguments), arg::inputs_embeds, {arg::labels, obj_labels, matched_label, answers});
  explicit LxmertForPreTraining(const Config& c)
      : ModelOf(c),
        lxmert(child<LxmertModel>("lxmert", c)),
        cls(child<LxmertPreTrainingHeads>("cls", c)),
        obj_predict_head(child_if<LxmertVisualObjHead>(c.flag("task_obj_predict"), *this, "obj_predict_head", c)),
        answer_head(child_if<LxmertVisualAnswerHead>(c.flag("task_qa"), *this, "answer_head", c)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = lxmert(in);
    const Tensor& pooled = base["pooled_output"];
    const auto [words, matches] = cls(base["language_output"], pooled);
    const Tensor answer = answer_head ? (*answer_head)(pooled) : pooled.select(0, 0).select(0, 0);
    Tensor loss;
    const auto add = [&](const Tensor& part) { loss = loss.defined() ? loss + part : part; };
    const bool asked =
        in[arg::labels].defined() || in[matched_label].defined() || in[answers].defined() || !in[obj_labels].is_none();
    if (asked) add(zeros({}, DType::float32));
    if (in[arg::labels].defined() && config().flag("task_mask_lm")) add(token_loss(words, in[arg::labels]));
    if (in[matched_label].defined() && config().flag("task_matched")) add(token_loss(matches, in[matched_label]));
    if (!in[obj_labels].is_none() && obj_predict_head) add(objects_loss(base["vision_output"], in[obj_labels]));
    if (in[answers].defined() && answer_head) add(token_loss(answer, in[answers]));
    ModelOutput out;
    if (loss.defined()) out.set("loss", loss);
    out.set("prediction_logits", words);
    out.set("cross_relationship_score", matches);
    out.set("question_answering_score", answer);
    take_states(out, base);
    return out;
  }
  // `given` has for each kind the labels and how sure they are.
  Tensor objects_loss(const Tensor& objects, const Value& given) {
    const std::vector<Tensor> scores = (*obj_predict_head)(objects);
    Tensor total = zeros({}, DType::float32);
    size_t at = 0;
    for (const VisualLoss& one : visual_losses) {
      if (!config().flag(one.wanted)) continue;
      const Tensor& score = scores[at++];
      const Values label = pair_of(given, one.name);
      const Tensor rows = score.view({-1, score.sym_size(-1)}), wanted = label[0].to_tensor();
      Tensor loss = one.classes ? functional::cross_entropy(rows, wanted.view({-1}), {}, -100, "none")
                                : functional::smooth_l1_loss(rows, wanted.view({-1, score.sym_size(-1)}), "none").mean({1});
      total = total + (loss * label[1].to_tensor().view({-1})).mean() * config().number("visual_loss_normalizer");
    }
    return total;
  }
  // By name, or by its place among obj, attr and feat.
  static Values pair_of(const Value& given, const std::string& name) {
    Value found;
    if (given.kind() == Value::Kind::dict) {
      for (const auto& [key, value] : given.to_dict().items)
        if (key.kind() == Value::Kind::string && key.to_string() == name) found = value;
    } else if (given.is_sequence()) {
      for (size_t i = 0; i < std::min(given.to_items().size(), std::size(visual_losses)); ++i)
        if (visual_losses[i].name == name) found = given.to_items()[i];
    }
    if (found.is_sequence() && found.to_items().size() == 2) return found.to_items();
    throw UserError("LxmertForPreTraining: obj_labels: expected for \"" + name +
                    "\" a pair of labels and their confidence; found " + found.str());
  }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return LxmertModel::example_objects(*this, sizes); }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"cls.predictions.decoder.weight", "lxmert.embeddings.word_embeddings.weight"}};
  }
  Child<Embedding>* input_embeddings() override { return lxmert->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }

  Child<LxmertModel> lxmert;
  Child<LxmertPreTrainingHeads> cls;
  std::optional<Child<LxmertVisualObjHead>> obj_predict_head;
  std::optional<Child<LxmertVisualAnswerHead>> answer_head;
};

struct LxmertForQuestionAnswering : ModelOf<LxmertForQuestionAnswering, LxmertPretrained> {
  static constexpr const char* torch_type = "transformers.models.lxmert.modeling_lxmert.LxmertForQuestionAnswering";
  static constexpr auto forward_arguments = with_arguments(names_of(lxmert_arguments), arg::inputs_embeds, {arg::labels});
  explicit LxmertForQuestionAnswering(const Config& c)
      : ModelOf(c), lxmert(child<LxmertModel>("lxmert", c)), answer_head(child<LxmertVisualAnswerHead>("answer_head", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = lxmert(in);
    const Tensor answer = answer_head(base["pooled_output"]);
    ModelOutput out;
    if (in[arg::labels].defined()) out.set("loss", token_loss(answer, in[arg::labels]));
    out.set("question_answering_score", answer);
    take_states(out, base);
    return out;
  }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return LxmertModel::example_objects(*this, sizes); }
  Child<Embedding>* input_embeddings() override { return lxmert->input_embeddings(); }

  Child<LxmertModel> lxmert;
  Child<LxmertVisualAnswerHead> answer_head;
};

void complete_lxmert(Config& c) {
  c.set("num_hidden_layers", dict({{"vision", c.integer("r_layers")},
                                   {"cross_encoder", c.integer("x_layers")},
                                   {"language", c.integer("l_layers")}}));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "lxmert",
      .config_class = "LxmertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30522, "hidden_size": 768, "num_attention_heads": 12, "num_qa_labels": 9500,
        "num_object_labels": 1600, "num_attr_labels": 400, "intermediate_size": 3072, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
        "initializer_range": 0.02, "l_layers": 9, "x_layers": 5, "r_layers": 5, "visual_feat_dim": 2048, "visual_pos_dim": 4,
        "visual_loss_normalizer": 6.67, "task_matched": true, "task_mask_lm": true, "task_obj_predict": true, "task_qa": true,
        "visual_obj_loss": true, "visual_attr_loss": true, "visual_feat_loss": true, "pad_token_id": null,
        "bos_token_id": null, "eos_token_id": null, "tie_word_embeddings": true})",
      .schema = {.keys = {{"num_qa_labels", KeyKind::size},
                          {"num_object_labels", KeyKind::size},
                          {"num_attr_labels", KeyKind::size},
                          {"type_vocab_size", KeyKind::size},
                          {"l_layers", KeyKind::layers},
                          {"x_layers", KeyKind::layers},
                          {"r_layers", KeyKind::layers},
                          {"visual_feat_dim", KeyKind::size},
                          {"visual_pos_dim", KeyKind::size},
                          {"visual_loss_normalizer", KeyKind::number}},
                 .relations = {multiple("hidden_size", "num_attention_heads")}},
      .complete = complete_lxmert,
      .classes = {model_class<LxmertModel>("LxmertModel", {"default"}),
                  model_class<LxmertForPreTraining>("LxmertForPreTraining", {"pretraining"}),
                  model_class<LxmertForQuestionAnswering>("LxmertForQuestionAnswering", {"question-answering"})},
  });
}

}  // namespace calque::lxmert

#include "summary_heads.h"

#include "encoder_heads.h"
#include "zoo/blocks/child_if.h"

namespace calque {

namespace {

int64_t summary_size(const HeadClass& head, const Config& c) {
  return std::string_view(head.features) == "num_labels" ? num_labels(c) : c.integer(head.features);
}

}  // namespace

SummaryHead::SummaryHead(const HeadClass& head, const Config& c) : HeadModel(head, c, false, {}) {
  take_by_default(head, arguments_with(model->arguments(), arg::inputs_embeds, {arg::labels}));
}

SummaryClassification::SummaryClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      sequence_summary(child<SequenceSummary>("sequence_summary", c)),
      logits_proj(
          child_if<Linear>(head.classifier != nullptr, *this, "logits_proj", c.integer("hidden_size"), num_labels(c))) {}

ModelOutput SummaryClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor summary = sequence_summary(base["last_hidden_state"], Tensor());
  const Tensor logits = logits_proj ? (*logits_proj)(summary) : summary;
  return sequence_classification_output(config(), base, logits, in[arg::labels]);
}

SummaryChoice::SummaryChoice(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      sequence_summary(child<SequenceSummary>("sequence_summary", c)),
      logits_proj(child<Linear>("logits_proj", summary_size(head, c), 1)) {}

ModelOutput SummaryChoice::forward(const ModelInputs& in) {
  ModelInputs rows = choices_as_rows(in);
  for (const ArgumentName<Tensor>& one : {arg::langs, arg::input_mask})
    if (const Tensor given = in[one]; given.defined()) rows.set(one, given.view({-1, given.sym_size(-1)}));
  const ModelOutput base = model(rows);
  const Tensor logits = logits_proj(sequence_summary(base["last_hidden_state"], Tensor()));
  return multiple_choice_output(base, logits, in);
}

ModelInputs SummaryChoice::example_inputs(const ExampleSizes& sizes) const { return example_choices(*this, sizes); }

WordClassification::WordClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      dropout(child_if<Dropout>(head.dropout != nullptr, *this, "dropout", head.dropout ? head.dropout(c) : 0)),
      classifier(child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}

ModelOutput WordClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor& states = base["last_hidden_state"];
  return token_classification_output(base, classifier(dropout ? (*dropout)(states) : states), in[arg::labels]);
}

PlainSpans::PlainSpans(const HeadClass& head, const Config& c)
    : CopiedAs(head, c), qa_outputs(child<Linear>("qa_outputs", c.integer("hidden_size"), num_labels(c))) {
  take_by_default(head, arguments_with(model->arguments(), arg::inputs_embeds, {arg::start_positions, arg::end_positions}));
}

ModelOutput PlainSpans::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return span_output(base, qa_outputs(base["last_hidden_state"]), in);
}

}  // namespace calque

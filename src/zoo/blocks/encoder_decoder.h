// What encoder-decoder models share whatever their layers: the encoder's outputs given or made, the decoder's ids made from
// labels, the outputs of both under one roof, masks of heads by layer.
#pragma once

#include <string>
#include <string_view>

#include "calque/hub/pretrained_model.h"

namespace calque {

// The arguments for the encoder of a model that got these.
ModelInputs encoder_inputs(const ModelInputs& inputs);
// ... and for its decoder, which looks at `encoded`.
ModelInputs decoder_inputs(const ModelInputs& inputs, const ModelOutput& encoded);
// inputs[arg::encoder_outputs] (a tuple of last_hidden_state, hidden_states, attentions or a dict of them) as an output.
ModelOutput given_encoder_outputs(const Value& encoder_outputs);
// The decoder's fields, those that the encoder has too as decoder_..., then the encoder's as encoder_...
ModelOutput encoder_decoder_output(const ModelOutput& encoded, const ModelOutput& decoded);
// A head's output: what comes first, then the fields of such an output behind its first.
void take_encoder_decoder_fields(ModelOutput& out, const ModelOutput& base);

// Each token moved one place to the right, -100 replaced by padding; the first place gets the start token...
Tensor shift_tokens_right(const Config& config, const Tensor& ids);
// ... or the last token that is no padding (a language code).
Tensor wrap_last_token(const Config& config, const Tensor& ids);

// The factors of one layer's heads; undefined stays undefined. UserError unless there is a row for each layer.
Tensor layer_head_mask(const Tensor& head_mask, size_t layer, size_t layers, std::string_view name);
// Whether training leaves this layer out.
bool drops_layer(bool training, double probability);

// Of each row the hidden state at its last end-of-sequence token, [batch, size]. UserError unless all rows have equally many,
// at least one (not asked of values that are not there yet).
Tensor state_at_end(const Config& config, const Tensor& input_ids, const Tensor& hidden_states);

}  // namespace calque

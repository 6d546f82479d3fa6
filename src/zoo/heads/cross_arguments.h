// What decoders that may look across to an encoder's output take, alone and as language models.
#pragma once

#include "arguments.h"

namespace calque {

inline constexpr ModelArgument cross_decoder_arguments[] = {arg::input_ids,
                                                            arg::attention_mask,
                                                            arg::encoder_hidden_states,
                                                            arg::encoder_attention_mask,
                                                            arg::past_key_values,
                                                            arg::inputs_embeds,
                                                            arg::use_cache,
                                                            arg::output_attentions,
                                                            arg::output_hidden_states,
                                                            arg::head_mask,
                                                            arg::cross_attn_head_mask};
inline constexpr auto cross_decoder_labelled_arguments =
    with_arguments(names_of(cross_decoder_arguments), arg::inputs_embeds, {arg::labels});
inline constexpr auto cross_decoder_lm_arguments =
    with_arguments(cross_decoder_labelled_arguments, arg::use_cache, {arg::logits_to_keep});

}  // namespace calque

// What decoders that may look across to an encoder's output take, alone and as language models.
#pragma once

#include "arguments.h"

namespace calque {

inline constexpr const char* cross_decoder_arguments[] = {
    "input_ids",           "attention_mask", "encoder_hidden_states", "encoder_attention_mask", "past_key_values",
    "inputs_embeds",       "use_cache",      "output_attentions",     "output_hidden_states",   "head_mask",
    "cross_attn_head_mask"};
inline constexpr auto cross_decoder_labelled_arguments =
    with_arguments(names_of(cross_decoder_arguments), "inputs_embeds", {"labels"});
inline constexpr auto cross_decoder_lm_arguments =
    with_arguments(cross_decoder_labelled_arguments, "use_cache", {"logits_to_keep"});

}  // namespace calque

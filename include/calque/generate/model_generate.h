// generate with a model: the loop of generate.h over a PretrainedModel, with its cache, its attention masks (padding on the
// left), its positions, and for an encoder-decoder its encoder, which runs once.
//
//   const auto model = from_pretrained(folder);
//   const auto out = generate(*model, {.input_ids = ids}, generation_config_of(folder));
#pragma once

#include <filesystem>
#include <vector>

#include "calque/generate/generate.h"
#include "calque/hub/cache.h"
#include "calque/hub/model_io.h"

namespace calque {

class PretrainedModel;

struct ModelGenerateOutput : GenerateOutput {
  // What follows is there when the config says return_dict_in_generate; the tensors when they are asked for.
  KeyValueCache past_key_values;  // of every token but the last
  // By new token, then by layer; the first has the prompt's too. Of an encoder-decoder these are the decoder's. With candidates
  // they are what they are without; transformers 5 gives in the first round rows of the prompt in the place of the candidates'.
  std::vector<std::vector<Tensor>> hidden_states, attentions, cross_attentions;
  std::vector<Tensor> encoder_hidden_states, encoder_attentions;
};

// `inputs` are those of the model's forward. input_ids: the prompt, or of an encoder-decoder the source, whose
// decoder_input_ids then begin with the config's decoder_start_token_id. past_key_values of an earlier call: what they
// hold of input_ids is not computed again. No gradients. UserError for a class that has no language modelling head.
//
// inputs_embeds [batch, length, width] are the prompt, or of an encoder-decoder the source, in the place of input_ids. The sequences are
// then the new tokens alone; input_ids given beside them, of whatever length, are what the sequences begin with and what penalties look
// at. attention_mask and position_ids are those of the embeddings; max_length counts them, and a cache is always kept.
ModelGenerateOutput generate(PretrainedModel& model, const ModelInputs& inputs, const GenerationConfig& config,
                             const GenerateOptions& options = {});

// What a model folder says about generation: its generation_config.json or, where there is none, its config.json.
GenerationConfig generation_config_of(const std::filesystem::path& folder);

}  // namespace calque

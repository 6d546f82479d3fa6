import torch

SIZES = dict(vocab_size=99, num_mel_bins=8, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=20, decoder_ffn_dim=20, max_source_positions=10, max_target_positions=30,
             pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=3, classifier_proj_size=12)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, activation_function="relu", encoder_attention_heads=2, decoder_layers=3, tie_word_embeddings=False, use_weighted_layer_sum=True, num_labels=5, scale_embedding=True),
    dict(SIZES, num_mel_bins=5, max_source_positions=7, encoder_layers=1, decoder_ffn_dim=32, num_labels=3, output_hidden_states=True, use_cache=False),
]
GOLDEN_CLASS = "WhisperForConditionalGeneration"
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")


def inputs(cls, x, model):
    torch.manual_seed(3)
    config = model.config
    batch, length = x["decoder_input_ids"].shape
    if cls == "WhisperForCausalLM":
        return {"input_ids": x["decoder_input_ids"], "attention_mask": torch.ones(batch, length, dtype=torch.long)}
    features = {"input_features": torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions)}
    return features if "AudioClassification" in cls else {**features, "decoder_input_ids": x["decoder_input_ids"]}


def labels(cls, x, model, y):
    return {"labels": torch.randint(0, model.config.num_labels, (x["input_features"].shape[0],))} if "AudioClassification" in cls else y


def no_embeds(cls, model):
    return True


def extra(cls, x, model):
    if "decoder_input_ids" in x:
        ids = x["decoder_input_ids"]
        mask = torch.ones_like(ids)
        mask[0, :2] = 0
        yield "a mask and positions of the decoder", dict(x, decoder_attention_mask=mask, decoder_position_ids=(mask.cumsum(-1) - 1).clamp(min=0)), {"output_hidden_states": True}
        embeds = model.get_input_embeddings()(ids).detach()
        yield "the decoder's embeddings", {"input_features": x["input_features"], "decoder_inputs_embeds": embeds}, {}
    if cls == "WhisperForCausalLM":
        yield "looking across", dict(x, encoder_outputs=(torch.randn(x["input_ids"].shape[0], 6, model.config.d_model),)), {"output_attentions": True}

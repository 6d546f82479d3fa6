from model_cases import decoders

SIZES = dict(vocab_size=99, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=37, max_target_positions=64, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, is_decoder=True)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, scale_embedding=False, activation_function="gelu", decoder_attention_heads=2, tie_word_embeddings=False),
    dict(SIZES, decoder_layers=3, max_target_positions=20, output_hidden_states=True, use_cache=False),
]
OWN_HEAD_MASKS = True  # one a layer
GOLDEN_CLASS = "Speech2Text2ForCausalLM"
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")


def inputs(cls, x, model):
    x.update(decoders.encoder_inputs(x, model.config.d_model))
    return x


def no_embeds(cls, model):
    return True  # positions count ids

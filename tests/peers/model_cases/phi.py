import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES),
    dict(SIZES, qk_layernorm=True, num_key_value_heads=None, tie_word_embeddings=False, resid_pdrop=0.1, embd_pdrop=0.1),
    dict(SIZES, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=2.0, partial_rotary_factor=0.25), hidden_act="gelu", layer_norm_eps=1e-3),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

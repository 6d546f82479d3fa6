import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=37, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, use_qk_norm=True, logit_scale=0.5, attention_bias=True, hidden_act="gelu_new", layer_norm_eps=1e-3),
    dict(SIZES, num_key_value_heads=None, tie_word_embeddings=False, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=2.0)),
    dict(SIZES, num_key_value_heads=1, use_qk_norm=True, max_position_embeddings=5, rope_parameters=dict(rope_type="dynamic", rope_theta=1000.0, factor=2.0)),
    dict(SIZES, rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16)),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield "mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x)), {}, "sdpa", torch.float32

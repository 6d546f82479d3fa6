import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES),
    dict(SIZES, sliding_window=3, num_key_value_heads=None, tie_word_embeddings=True, resid_pdrop=0.1),
    dict(SIZES, max_position_embeddings=5, original_max_position_embeddings=4, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.2, 1.5], long_factor=[1.5, 2.0, 3.0, 4.0])),
    dict(SIZES, original_max_position_embeddings=16, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.5, short_factor=[1.0, 1.1], long_factor=[1.5, 2.0])),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

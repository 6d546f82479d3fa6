import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=37, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
SHORT = dict(SIZES, max_position_embeddings=5)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, num_key_value_heads=4, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, hidden_act="gelu_new", rms_norm_eps=1e-3),
    dict(SIZES, num_key_value_heads=1, head_dim=16, rope_parameters=dict(rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16), num_labels=1),
    dict(SIZES, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0), num_labels=5, problem_type="multi_label_classification"),
    dict(SHORT, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=4.0)),
    dict(SIZES, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)),
    dict(SIZES, head_dim=16, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)),
    dict(SIZES, head_dim=32, rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5, mscale=0.7, mscale_all_dim=1.2, truncate=False)),
    dict(SHORT, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.2, 1.5], long_factor=[1.5, 2.0, 3.0, 4.0], original_max_position_embeddings=4)),
    dict(SIZES, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.2, 1.5], long_factor=[1.5, 2.0, 3.0, 4.0], original_max_position_embeddings=16, attention_factor=1.3)),
    dict(SIZES, head_dim=16, rope_parameters=dict(rope_type="proportional", rope_theta=1000.0, partial_rotary_factor=0.5, factor=2.0)),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield "mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x)), {}, "sdpa", torch.float32
    yield "added mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x, additive=True)), {}, "eager", torch.float32

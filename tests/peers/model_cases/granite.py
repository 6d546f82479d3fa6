import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES, embedding_multiplier=2.5, logits_scaling=3.0, residual_multiplier=0.3, attention_multiplier=0.2),
    dict(SIZES, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, num_key_value_heads=None),
    dict(SIZES, logits_scaling=0.5, attention_multiplier=0.125, hidden_act="gelu_new", rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES),
    dict(SIZES, use_sliding_window=True, sliding_window=3, max_window_layers=1, tie_word_embeddings=True),
    dict(SIZES, num_key_value_heads=None, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)),
    dict(SIZES, use_sliding_window=True, sliding_window=4, layer_types=["sliding_attention", "sliding_attention"], num_labels=1),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

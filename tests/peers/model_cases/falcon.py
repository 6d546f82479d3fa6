import inspect

import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES),
    dict(SIZES, new_decoder_architecture=True, num_kv_heads=2, bias=True),
    dict(SIZES, alibi=True, multi_query=False, parallel_attn=False, bias=True, num_labels=1),
    dict(SIZES, new_decoder_architecture=True, num_kv_heads=1, num_ln_in_parallel_attn=1, activation="gelu_new", tie_word_embeddings=False),
    dict(SIZES, hidden_size=36, num_attention_heads=6, alibi=True, layer_norm_epsilon=1e-3, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, multi_query=False, rope_parameters=dict(rope_type="linear", rope_theta=1000.0, factor=2.0)),
]


def extra(cls, x, model):
    if "position_ids" in inspect.signature(model.forward).parameters:
        yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

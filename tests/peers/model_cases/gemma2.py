import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES, head_dim=16, sliding_window=3, query_pre_attn_scalar=20),
    dict(SIZES, head_dim=8, num_hidden_layers=3, attn_logit_softcapping=None, final_logit_softcapping=None, attention_bias=True, sliding_window=4),
    dict(SIZES, head_dim=16, layer_types=["full_attention", "full_attention"], attn_logit_softcapping=2.0, final_logit_softcapping=1.5, hidden_activation="silu"),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

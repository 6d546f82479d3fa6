import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, head_dim=16),
    dict(SIZES, num_experts=4, num_experts_per_tok=3, moe_intermediate_size=24, norm_topk_prob=True, mlp_only_layers=[0], attention_bias=True, head_dim=8),
    dict(SIZES, num_experts=3, num_experts_per_tok=1, moe_intermediate_size=16, num_hidden_layers=3, decoder_sparse_step=2, use_sliding_window=True, sliding_window=3, head_dim=8, tie_word_embeddings=True),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield from decoders.router_logits(cls, x)

import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")
CONFIGS = [
    dict(SIZES, num_key_value_heads=4, moe_intermediate_size=24, n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3, kv_lora_rank=16, q_lora_rank=24, qk_rope_head_dim=8, v_head_dim=12, qk_nope_head_dim=16, first_k_dense_replace=1),
    dict(SIZES, num_key_value_heads=4, moe_intermediate_size=16, n_routed_experts=6, n_group=2, topk_group=1, num_experts_per_tok=2, kv_lora_rank=16, q_lora_rank=None, qk_rope_head_dim=8, v_head_dim=16, qk_nope_head_dim=8, first_k_dense_replace=0, norm_topk_prob=False, rope_interleave=False, n_shared_experts=2, attention_bias=True),
    dict(SIZES, num_key_value_heads=4, num_hidden_layers=3, moe_intermediate_size=16, n_routed_experts=4, n_group=1, topk_group=1, num_experts_per_tok=2, kv_lora_rank=16, q_lora_rank=24, qk_rope_head_dim=8, v_head_dim=16, qk_nope_head_dim=8, first_k_dense_replace=2, routed_scaling_factor=1.5, tie_word_embeddings=True, rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=0.7)),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield from decoders.router_logits(cls, x)

import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=37, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2)
CONFIGS = [
    dict(SIZES, word_embed_proj_dim=16),
    dict(SIZES, do_layer_norm_before=False, activation_function="gelu", enable_bias=False, num_labels=1),
    dict(SIZES, _remove_final_layer_norm=True, layer_norm_elementwise_affine=False, tie_word_embeddings=False, num_attention_heads=2, num_labels=5, problem_type="multi_label_classification"),
]


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32

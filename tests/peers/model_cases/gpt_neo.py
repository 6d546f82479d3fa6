import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=37, max_position_embeddings=64, attention_types=[[["global", "local"], 1]], window_size=3, bos_token_id=1, eos_token_id=2, pad_token_id=0)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, num_layers=3, attention_types=[[["local"], 2], [["global"], 1]], window_size=4, intermediate_size=None, activation_function="relu", layer_norm_epsilon=1e-3, num_labels=1),
    dict(SIZES, attention_types=[[["global"], 2]], tie_word_embeddings=False, num_heads=2, num_labels=5, problem_type="multi_label_classification"),
]


def extra(cls, x, model):
    yield "token types", dict(x, token_type_ids=torch.randint(0, 99, x["input_ids"].shape)), {}, "sdpa", torch.float32
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield "added mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x, additive=True)), {}, "eager", torch.float32

import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=37, rotary_dim=4, bos_token_id=1, eos_token_id=2, pad_token_id=0)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, rotary_dim=8, n_inner=None, activation_function="relu", layer_norm_epsilon=1e-3, num_labels=1),
    dict(SIZES, n_head=2, rotary_dim=6, tie_word_embeddings=True, num_labels=5, problem_type="multi_label_classification"),
]
CLASS_SETTINGS = {"GPTJForQuestionAnswering": dict(num_labels=2)}  # its outputs are as many as labels


def extra(cls, x, model):
    yield "token types", dict(x, token_type_ids=torch.randint(0, 99, x["input_ids"].shape)), {}, "sdpa", torch.float32
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield "added mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x, additive=True)), {}, "eager", torch.float32

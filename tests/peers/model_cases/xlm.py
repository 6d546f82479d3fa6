import torch

SIZES = dict(vocab_size=99, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, start_n_top=3, end_n_top=2)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, n_langs=3, use_lang_emb=True, sinusoidal_embeddings=True, gelu_activation=False, summary_type="last", num_labels=1, tie_word_embeddings=False),
    dict(SIZES, causal=True, layer_norm_eps=1e-3, summary_type="mean", summary_activation="tanh", num_labels=5, problem_type="multi_label_classification"),
]
CLASS_SETTINGS = {"XLMForQuestionAnsweringSimple": {"num_labels": 2}, "FlaubertForQuestionAnsweringSimple": {"num_labels": 2}}


def shortest(cls):
    return 3 if cls.endswith("ForQuestionAnswering") else 1  # as many starts are asked for


def no_bfloat16(cls, model):
    return cls.endswith("ForQuestionAnswering")  # which of two spans is likelier is rounding


def labels(cls, x, model, y):
    if cls.endswith("ForQuestionAnsweringSimple"):
        return {"start_positions": torch.tensor([1, 9]), "end_positions": torch.tensor([2, 3])}
    if cls.endswith("ForQuestionAnswering"):
        return {"start_positions": torch.tensor([1, 3]), "end_positions": torch.tensor([2, 4]), "cls_index": torch.tensor([0, 6]), "is_impossible": torch.tensor([0.0, 1.0])}
    if cls.endswith("WithLMHeadModel"):
        marked = x["input_ids"].clone()
        marked[:, 0] = -100
        return {"labels": marked}
    return y


def extra(cls, x, model):
    if cls.endswith("ForMultipleChoice"):
        return
    ids = x["input_ids"]
    yield "positions and types", dict(x, position_ids=torch.arange(ids.shape[1]).flip(0).expand_as(ids) * 2, token_type_ids=ids % 5), {}, "eager", torch.float32
    yield "lengths", {"input_ids": ids, "lengths": torch.tensor([3, 7])}, {}, "eager", torch.float32
    padded = ids.clone()
    padded[1, -3:] = 0
    yield "padding without a mask", {"input_ids": padded}, {"output_attentions": True}, "eager", torch.float32
    if model.config.n_langs > 1:
        yield "languages", dict(x, langs=ids % model.config.n_langs), {}, "eager", torch.float32
    if cls.endswith("ForQuestionAnswering"):
        yield "spans of a part", dict(x, p_mask=(torch.arange(ids.shape[1]) % 3 == 0).float().expand(ids.shape)), {}, "eager", torch.float32

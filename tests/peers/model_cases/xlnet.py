import torch

from model_cases import xlm
from model_cases.xlm import shortest  # noqa: F401

SIZES = dict(vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=40, pad_token_id=0, bos_token_id=1, eos_token_id=2, start_n_top=3, end_n_top=2, mem_len=None)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, clamp_len=3, ff_activation="relu", summary_type="first", num_labels=1, tie_word_embeddings=False, mem_len=4),
    dict(SIZES, layer_norm_eps=1e-3, summary_type="mean", reuse_len=3, use_mems_eval=False, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, attn_type="uni", mem_len=4),
    dict(SIZES, attn_type="uni", same_length=True, clamp_len=4, summary_type="first"),
]
FORWARD_CONFIGS = [dict(SIZES, bi_data=True, mem_len=4)]  # batches are even: no program of any batch
CLASS_SETTINGS = {"XLNetForQuestionAnsweringSimple": {"num_labels": 2}}


def one_way(model):
    return model.config.attn_type == "uni"


def inputs(cls, x, model):
    """transformers cannot add a mask of more than one row to that of one way."""
    return {name: t for name, t in x.items() if name != "attention_mask"} if one_way(model) else x


def labels(cls, x, model, y):
    return xlm.labels("WithLMHeadModel" if cls.endswith("LMHeadModel") else cls, x, model, y)


def no_bfloat16(cls, model):
    return True  # 1e30 and the scores differ by more than 16 bits hold: rows without a key are all rounding


def extra(cls, x, model):
    if cls.endswith("ForMultipleChoice"):
        return
    if one_way(model):  # one row, with its mask
        for name, t in x.items():
            x[name] = t[:1]
        x["attention_mask"] = torch.tensor([[0, 0] + [1] * (x["input_ids"].shape[1] - 2)])
        yield "one row", dict(x), {"output_attentions": True}, "eager", torch.float32
    ids = x["input_ids"]
    batch, length = ids.shape
    yield "types", dict(x, token_type_ids=(torch.arange(length) > 3).long().expand(batch, -1)), {}, "eager", torch.float32
    yield "padding the other way", {"input_ids": ids, "input_mask": 1.0 - x["attention_mask"]}, {}, "eager", torch.float32
    order = torch.rand(batch, length, length, generator=torch.Generator().manual_seed(5)).gt(0.6).float()
    yield "in an order", dict(x, perm_mask=order), {"output_attentions": True}, "eager", torch.float32
    if not cls.endswith(("ForQuestionAnswering", "ForTokenClassification", "ForQuestionAnsweringSimple")):
        asked = torch.zeros(batch, 2, length)
        asked[:, 0, -1] = asked[:, 1, 2] = 1.0
        yield "asked for tokens", dict(x, perm_mask=order, target_mapping=asked), {"output_attentions": True, "output_hidden_states": True}, "eager", torch.float32
    before = tuple(torch.randn(3, batch, model.config.d_model, generator=torch.Generator().manual_seed(i)) for i in range(model.config.n_layer))
    yield "texts before", dict(x, mems=before, token_type_ids=ids % 2), {"use_mems": True}, "eager", torch.float32
    if cls.endswith("ForQuestionAnswering"):
        yield "spans of a part", dict(x, p_mask=(torch.arange(length) % 3 == 0).float().expand(batch, -1)), {}, "eager", torch.float32

import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=37, bos_token_id=1, eos_token_id=2, pad_token_id=0)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, add_cross_attention=True, scale_attn_by_inverse_layer_idx=True, activation_function="relu", layer_norm_epsilon=1e-3, summary_type="last", summary_activation="tanh", num_labels=1),
    dict(SIZES, n_inner=None, reorder_and_upcast_attn=True, tie_word_embeddings=False, summary_type="mean", summary_proj_to_labels=False, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, scale_attn_weights=False, summary_type="first", summary_use_proj=False, n_head=2, num_labels=3),
]


def no_embeds(cls, model):
    return cls == "GPT2DoubleHeadsModel"  # its positions do not fit four dimensions


def takes_encoder(cls, model):
    return model.config.add_cross_attention and cls in ("GPT2Model", "GPT2LMHeadModel")


def inputs(cls, x, model):
    if takes_encoder(cls, model):
        x.update(decoders.encoder_inputs(x, model.config.hidden_size))
    return x


def labels(cls, x, model, y):
    if cls == "GPT2DoubleHeadsModel":
        y = {"labels": x["input_ids"].clone()}
        scores = model(**x).mc_logits  # other summaries than cls_index run over the choices, and give other sizes
        if scores.is_contiguous():
            y["mc_labels"] = torch.randint(0, scores.shape[-1], (scores.numel() // scores.shape[-1],))
        return y
    return y


def extra(cls, x, model):
    types = torch.randint(0, 99, x["input_ids"].shape)
    yield "token types", dict(x, token_type_ids=types), {"output_hidden_states": True}, "sdpa", torch.float32
    if x["input_ids"].dim() == 2:
        yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
        yield "mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x)), {}, "sdpa", torch.float32
        yield "added mask of four dimensions", dict(x, attention_mask=decoders.four_dimensional(x, additive=True)), {}, "eager", torch.float32
    if takes_encoder(cls, model):
        without = {k: v for k, v in x.items() if not k.startswith("encoder")}
        yield "without encoder", without, {}, "sdpa", torch.float32
    if cls == "GPT2DoubleHeadsModel":
        yield "without mc_token_ids", {k: v for k, v in x.items() if k != "mc_token_ids"}, {}, "sdpa", torch.float32

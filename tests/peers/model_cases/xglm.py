import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, d_model=32, num_layers=2, attention_heads=4, ffn_dim=37, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, add_cross_attention=True, scale_embedding=False, activation_function="relu"),
    dict(SIZES, attention_heads=2, d_model=34, tie_word_embeddings=False),
]


def inputs(cls, x, model):
    if model.config.add_cross_attention:
        x.update(decoders.encoder_inputs(x, model.config.hidden_size))
    return x


def extra(cls, x, model):
    yield "positions", dict(x, position_ids=decoders.positions(x)), {}, "sdpa", torch.float32
    yield "more than the table has", dict(decoders.long(x), **{k: v for k, v in x.items() if k.startswith("encoder")}), {}, "sdpa", torch.float32
    if model.config.add_cross_attention:
        yield "without encoder", {k: v for k, v in x.items() if not k.startswith("encoder")}, {}, "sdpa", torch.float32
        yield "encoder without mask", {k: v for k, v in x.items() if k != "encoder_attention_mask"}, {"output_attentions": True}, "eager", torch.float32


def longer_than_the_table(model):
    return [80]

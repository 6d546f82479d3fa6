import torch

from model_cases import decoders

SIZES = dict(vocab_size=99, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=37, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, is_decoder=True)
CONFIGS = [
    dict(SIZES, cross_attention_hidden_size=24),
    dict(SIZES, scale_embedding=True, layernorm_embedding=False, activation_function="relu", decoder_attention_heads=2, tie_word_embeddings=False),
    dict(SIZES, use_learned_position_embeddings=False, cross_attention_hidden_size=32),
]
GOLDEN_CLASS = "TrOCRForCausalLM"


def inputs(cls, x, model):
    x.update(decoders.encoder_inputs(x, model.config.cross_attention_hidden_size or model.config.hidden_size))
    return x


def no_embeds(cls, model):
    return not model.config.use_learned_position_embeddings  # they count ids


def no_bfloat16(cls, model):
    return not model.config.use_learned_position_embeddings  # the table stays in float32, which transformers cannot add


def extra(cls, x, model):
    yield "without encoder", {k: v for k, v in x.items() if not k.startswith("encoder")}, {}, "sdpa", torch.float32
    yield "encoder without mask", {k: v for k, v in x.items() if k != "encoder_attention_mask"}, {"output_attentions": True}, "eager", torch.float32
    if not model.config.use_learned_position_embeddings:
        padded = dict(x, input_ids=x["input_ids"].clone())
        padded["input_ids"][0, -2:] = 1
        yield "padding ids", padded, {}, "sdpa", torch.float32
        yield "more than the table has", dict(decoders.long(x), **{k: v for k, v in x.items() if k.startswith("encoder")}), {}, "sdpa", torch.float32


def longer_than_the_table(model):
    return [] if model.config.use_learned_position_embeddings else [80]

"""What the cases of encoder-decoder models share: sizes, and inputs beyond the encoder's ids and mask."""

import inspect

import torch
import transformers
from model_cases.decoders import encoder_inputs, four_dimensional

OLD = transformers.__version__ < "5"
OWN_HEAD_MASKS = True
SIZES = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64,
             pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2)
GOLDEN_CONFIG = dict(SIZES, d_model=16, decoder_layers=1, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=16)
GOLDEN_CASES = ("eager, with attentions", "ids from labels")
UNEVEN = dict(SIZES, encoder_layers=3, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=8, encoder_ffn_dim=20, decoder_ffn_dim=41)


class ClassSettings(dict):
    """Two labels for spans."""

    def get(self, cls, default=None):
        return {"num_labels": 2} if cls.endswith("ForQuestionAnswering") else {}


CLASS_SETTINGS = ClassSettings()


def no_embeds(cls, model):
    """The decoder's ids come from the encoder's."""
    return cls.endswith("ForQuestionAnswering")


def decoder_layers(config):
    """Layers and heads of encoder and decoder."""
    encoder = (getattr(config, "encoder_layers", None) or config.num_layers, config.num_attention_heads)
    decoder = (getattr(config, "decoder_layers", None) or config.num_decoder_layers, getattr(config, "decoder_attention_heads", config.num_attention_heads))
    return encoder, decoder


def extra(cls, x, model):
    names = inspect.signature(model.forward).parameters
    config = model.config
    (layers, heads), (layers2, heads2) = decoder_layers(config)
    if cls.endswith("ForCausalLM"):
        y = dict(x, **encoder_inputs(x, config.d_model))
        yield "across", y, {"output_attentions": True, "output_hidden_states": True}
        yield "across, fused", y, {}
        if not OLD:
            yield "a mask of four dimensions", dict(x, attention_mask=four_dimensional(x, additive=True)), {}
        if "head_mask" in names:
            masks = dict(head_mask=torch.rand(layers2, heads2), cross_attn_head_mask=torch.rand(layers2, heads2))
            yield "head masks", dict(y, **masks), {"output_attentions": True}, "eager", torch.float32
        return
    if "decoder_input_ids" not in names:
        return
    batch, length = x["input_ids"].shape
    ids = x.get("decoder_input_ids", torch.randint(3, config.vocab_size, (batch, length if "SequenceClassification" in cls else 5)))
    short = torch.ones_like(ids)
    short[1, -2:] = 0
    y = dict(x, decoder_input_ids=ids, decoder_attention_mask=short)
    yield "decoder's mask", y, {"output_attentions": True, "output_hidden_states": True}
    yield "decoder's mask, fused", y, {}
    if not OLD:
        square = four_dimensional({"input_ids": ids, "attention_mask": short}, additive=True)
        yield "decoder's mask of four dimensions", dict(y, decoder_attention_mask=square), {"output_attentions": True}
    table = model.get_decoder().get_input_embeddings() if hasattr(model, "get_decoder") else None
    if table is not None and "SequenceClassification" not in cls:
        e = {k: v for k, v in y.items() if k != "decoder_input_ids"}
        yield "decoder's embeddings", dict(e, decoder_inputs_embeds=table(ids).detach()), {}
    with torch.no_grad():
        encoded = model.get_encoder()(x["input_ids"], attention_mask=x["attention_mask"], output_hidden_states=True)
    yield "encoder's outputs given", dict(y, encoder_outputs=(encoded.last_hidden_state,)), {}
    yield "all of the encoder's outputs given", dict(y, encoder_outputs=(encoded.last_hidden_state, encoded.hidden_states)), {"output_hidden_states": True}
    if "labels" in names and "SequenceClassification" not in cls:
        labels = ids.clone()
        labels[0, -2:] = -100
        labels[1, 2] = config.pad_token_id
        labels[1, -1] = -100
        yield "ids from labels", dict({k: v for k, v in x.items() if not k.startswith("decoder")}, labels=labels), {}
    if "head_mask" in names:
        masks = dict(head_mask=torch.rand(layers, heads), decoder_head_mask=torch.rand(layers2, heads2), cross_attn_head_mask=torch.rand(layers2, heads2))
        yield "head masks", dict(y, **masks), {"output_attentions": True}, "eager", torch.float32
        yield "head mask of the decoder", dict(y, decoder_head_mask=masks["decoder_head_mask"]), {}, "eager", torch.float32

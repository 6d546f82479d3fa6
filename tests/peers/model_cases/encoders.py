"""What the encoders' cases share: settings by class, further inputs."""

import inspect

import torch
import transformers

from model_cases.decoders import encoder_inputs

SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, type_vocab_size=2, pad_token_id=0)


class ClassSettings(dict):
    """By the kind of class: two labels for spans, a decoder for causal language models."""

    def get(self, cls, default=None):
        out = {}
        if cls.endswith("ForQuestionAnswering"):
            out["num_labels"] = 2
        if cls.endswith(("ForCausalLM", "LMHeadModel")):
            out["is_decoder"] = True
        return out


def inputs(cls, x, model):
    """Cross attention where the model has it."""
    config = model.config
    if getattr(config, "add_cross_attention", False) and "encoder_hidden_states" in inspect.signature(model.forward).parameters:
        x.update(encoder_inputs(x, config.hidden_size))
    return x


def extra(cls, x, model, mask_dims=4):
    """Token types, positions and masks of three or four dimensions."""
    names = inspect.signature(model.forward).parameters
    y = dict(x)
    shape = x["input_ids"].shape
    if "token_type_ids" in names:
        y["token_type_ids"] = torch.randint(0, model.config.type_vocab_size, shape) if model.config.type_vocab_size else torch.zeros(shape, dtype=torch.long)
    if "position_ids" in names:
        y["position_ids"] = torch.randint(0, 20, shape)
    yield "token types and positions", y, {}
    if len(shape) == 2 and mask_dims > 2:
        may = torch.rand(2, 1, shape[1], shape[1]) > 0.4
        may |= torch.eye(shape[1], dtype=torch.bool)
        if transformers.__version__ < "5" or mask_dims == 3:
            yield "a mask of three dimensions", dict(x, attention_mask=may[:, 0].long()), {"output_hidden_states": True}
            return
        yield "a mask of four dimensions", dict(x, attention_mask=torch.where(may, 0.0, torch.finfo(torch.float32).min)), {"output_hidden_states": True}

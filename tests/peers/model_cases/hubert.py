from model_cases import speech
from model_cases.speech import labels, no_bfloat16  # noqa: F401

CONFIGS = [
    dict(speech.SIZES),
    dict(speech.LARGE),
    dict(speech.SIZES, conv_pos_batch_norm=True, feat_proj_layer_norm=False, mask_time_prob=0.0, num_conv_pos_embeddings=7, num_labels=3, output_hidden_states=True),
]
GOLDEN_CLASS = "HubertForCTC"
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")


def inputs(cls, x, model):
    return speech.sounds(x)


def extra(cls, x, model):
    if cls == "HubertModel" and model.config.mask_time_prob:
        yield "frames that are not heard", dict(x, mask_time_indices=speech.hidden_frames(model, x)), {}

import torch

from model_cases import speech
from model_cases.speech import labels, no_bfloat16  # noqa: F401

SIZES = dict(speech.SIZES, num_codevectors_per_group=8, codevector_dim=16, proj_codevector_dim=8, tdnn_dim=(10, 12), tdnn_kernel=(2, 1), tdnn_dilation=(1, 2), xvector_output_dim=6)
LARGE = dict(speech.LARGE, num_codevectors_per_group=6, num_codevector_groups=3, codevector_dim=12, proj_codevector_dim=10, contrastive_logits_temperature=0.5, diversity_loss_weight=0.7, adapter_attn_dim=6,
             tdnn_dim=(10, 12), tdnn_kernel=(2, 1), tdnn_dilation=(2, 1), xvector_output_dim=7)
CONFIGS = [
    dict(SIZES),
    dict(LARGE),
    dict(SIZES, mask_time_prob=0.0, apply_spec_augment=False, output_hidden_states=True, feat_extract_norm="layer"),
    dict(SIZES, add_adapter=True, output_hidden_size=24, num_adapter_layers=2, adapter_kernel_size=3, adapter_stride=2),
]
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions", "negatives")


class ClassSettings(dict):
    """Heads that have no adapter do without, and speakers are told apart by several."""

    def get(self, cls, default=None):
        out = {}
        if "SequenceClassification" in cls or "AudioFrame" in cls or "XVector" in cls or "MaskedLM" in cls or "PreTraining" in cls:
            out["add_adapter"] = False
        if "XVector" in cls:
            out["num_labels"] = 5
        return out


CLASS_SETTINGS = ClassSettings()


def inputs(cls, x, model):
    return speech.sounds(x)


def extra(cls, x, model):
    mask = speech.hidden_frames(model, x) if not model.config.add_adapter else None
    if cls == "Wav2Vec2Model" and model.config.mask_time_prob and mask is not None:
        yield "frames that are not heard", dict(x, mask_time_indices=mask), {}
    if cls == "Wav2Vec2ForPreTraining":
        negatives = torch.randint(0, mask.numel(), (*mask.shape, 4))
        given = dict(x, mask_time_indices=mask if model.config.mask_time_prob else mask, sampled_negative_indices=negatives)
        yield "negatives", given, {"output_hidden_states": True}
        yield "a mask without negatives", dict(x, mask_time_indices=mask), {}

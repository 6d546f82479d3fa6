import torch

from model_cases import pairs
from model_cases.pairs import NO_EMBEDS, extra, labels, picture_sizes  # noqa: F401

TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, projection_dim=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
VISION = dict(image_size=30, patch_size=6, num_channels=3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, projection_dim=32)
CONFIGS = [
    dict(text_config=TEXT, vision_config=VISION, projection_dim=32),
    dict(text_config=dict(TEXT, eos_token_id=98, hidden_act="gelu", layer_norm_eps=1e-3, hidden_size=16, projection_dim=24), vision_config=dict(VISION, num_attention_heads=2, hidden_act="relu", projection_dim=24), projection_dim=24, num_labels=1),
    dict(text_config=dict(TEXT, num_hidden_layers=1, num_attention_heads=2), vision_config=dict(VISION, patch_size=10, num_hidden_layers=3, layer_norm_eps=1e-3), projection_dim=16, logit_scale_init_value=1.5, num_labels=5, problem_type="multi_label_classification"),
]
GOLDEN_CLASS = "CLIPModel"
GOLDEN_CONFIG = pairs.small(CONFIGS[1])
PARTS = {"clip_text_model": "CLIPTextModelWithProjection", "clip_vision_model": "CLIPVisionModelWithProjection"}


def inputs(cls, x, model):
    """An end of text in every row."""
    x = pairs.inputs(cls, x, model)
    if "input_ids" in x:
        config = getattr(model.config, "text_config", model.config)
        x["input_ids"][:, -1] = config.eos_token_id
        x["input_ids"][0, min(3, x["input_ids"].shape[1] - 1)] = config.eos_token_id
        torch.clamp(x["input_ids"], max=98, out=x["input_ids"])
    return x

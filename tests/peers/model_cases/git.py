from model_cases import pairs
from model_cases.clip import VISION
from model_cases.pairs import NO_EMBEDS, extra, inputs, picture_sizes  # noqa: F401

PICTURES = {k: v for k, v in VISION.items() if k != "projection_dim"}
CONFIGS = [
    dict(vision_config=PICTURES),
    dict(vision_config=dict(PICTURES, num_attention_heads=2, hidden_act="relu", layer_norm_eps=1e-3)),
    dict(vision_config=dict(PICTURES, patch_size=10, num_hidden_layers=3, intermediate_size=64)),
]
GOLDEN_CONFIG = pairs.small(CONFIGS[0])

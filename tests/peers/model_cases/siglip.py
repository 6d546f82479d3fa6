from model_cases import pairs
from model_cases.clip import TEXT, VISION
from model_cases.pairs import NO_EMBEDS, extra, inputs, labels, picture_sizes  # noqa: F401

CONFIGS = [
    dict(text_config=dict(TEXT, projection_size=32), vision_config=VISION),
    dict(text_config=dict(TEXT, hidden_size=16, layer_norm_eps=1e-3, hidden_act="gelu", projection_size=32), vision_config=dict(VISION, num_attention_heads=2, hidden_act="relu"), num_labels=1),
    dict(text_config=dict(TEXT, num_hidden_layers=1, num_attention_heads=2), vision_config=dict(VISION, patch_size=10, num_hidden_layers=3, layer_norm_eps=1e-3), initializer_factor=0.5, num_labels=5, problem_type="multi_label_classification"),
]
GOLDEN_CLASS = "SiglipModel"
GOLDEN_CONFIG = pairs.small(CONFIGS[0])
PARTS = {"siglip_text_model": "SiglipTextModel", "siglip_vision_model": "SiglipVisionModel"}

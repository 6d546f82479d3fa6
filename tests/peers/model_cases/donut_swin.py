from model_cases.swin import SIZES as SWIN
from model_cases.swin import PICTURE_MULTIPLE, extra, inputs, picture_sizes  # noqa: F401

SIZES = {k: v for k, v in SWIN.items() if k != "encoder_stride"}
CONFIGS = [
    dict(SIZES, depths=[2, 2, 1], window_size=4),
    dict(SIZES, qkv_bias=False, window_size=4, hidden_act="relu", layer_norm_eps=1e-3, num_labels=1),
    dict(SIZES, image_size=[32, 48], window_size=3, drop_path_rate=0.2, depths=[2, 1], num_heads=[1, 2], mlp_ratio=1.5, output_hidden_states=True),
]
GOLDEN_CLASS = "DonutSwinModel"
GOLDEN_CONFIG = dict(SIZES, image_size=16, depths=[2, 1], num_heads=[2, 2], window_size=4)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")

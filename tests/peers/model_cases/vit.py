import torch

SIZES = dict(image_size=30, patch_size=6, num_channels=3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, encoder_stride=6)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, qkv_bias=False, hidden_act="relu", layer_norm_eps=1e-3, pooler_output_size=16, pooler_act="relu", num_labels=1),
    dict(SIZES, image_size=[30, 30], patch_size=[6, 10], num_attention_heads=2, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, image_size=[24, 30], num_hidden_layers=3, num_labels=4, output_hidden_states=True),
]
CLASS_SETTINGS = {"ViTForMaskedImageModeling": dict(image_size=12, patch_size=6)}  # others give no square
GOLDEN_CLASS = "ViTForMaskedImageModeling"
GOLDEN_CONFIG = dict(SIZES, image_size=12, hidden_size=16, intermediate_size=20)
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions", "interpolated positions")


def square(config):
    return all(isinstance(x, int) for x in (config.image_size, config.patch_size))


def inputs(cls, x, model):
    size = model.config.image_size
    size = size if isinstance(size, (list, tuple)) else (size, size)
    if tuple(x["pixel_values"].shape[2:]) != tuple(size):
        x["pixel_values"] = torch.randn(x["pixel_values"].shape[0], 3, *size)
    return x


def extra(cls, x, model):
    if square(model.config):
        size, patch = model.config.image_size, model.config.patch_size  # reconstructions are square
        larger = dict(x, pixel_values=torch.randn(2, 3, size + patch, size + patch * (1 if "MaskedImage" in cls else 2)))
        yield "interpolated positions", larger, {"interpolate_pos_encoding": True, "output_hidden_states": True}
        yield "interpolated positions of its own size", dict(x), {"interpolate_pos_encoding": True}
    mask = torch.rand(2, (x["pixel_values"].shape[2] // pair(model.config.patch_size)[0]) * (x["pixel_values"].shape[3] // pair(model.config.patch_size)[1]) + 1) > 0.3
    yield "a mask of patches", dict(x, attention_mask=mask.long()), {"output_hidden_states": True}


def pair(x):
    return x if isinstance(x, (list, tuple)) else (x, x)


def picture_sizes(cls, model):
    if square(model.config) and "MaskedImage" not in cls:
        yield (36, 42), ((30, 30), (24, 60)), {"interpolate_pos_encoding": True}

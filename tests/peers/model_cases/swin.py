import torch

SIZES = dict(image_size=32, patch_size=2, num_channels=3, embed_dim=8, depths=[1, 2, 1], num_heads=[2, 2, 4], window_size=2, mlp_ratio=2.0, encoder_stride=8)
CONFIGS = [
    dict(SIZES, depths=[2, 2, 1], window_size=4, out_features=["stage1", "stage3"]),
    dict(SIZES, qkv_bias=False, use_absolute_embeddings=True, window_size=4, hidden_act="relu", layer_norm_eps=1e-3, num_labels=1, out_indices=[0, -1]),
    dict(SIZES, image_size=[32, 32], window_size=3, drop_path_rate=0.2, depths=[2, 1], num_heads=[1, 2], num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, use_absolute_embeddings=True, mlp_ratio=1.5, num_labels=4, output_hidden_states=True, out_features=["stem", "stage2"]),
]
GOLDEN_CLASS = "SwinForImageClassification"
GOLDEN_CONFIG = dict(SIZES, image_size=16, depths=[2, 1], num_heads=[2, 2], window_size=4, out_indices=[1])
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")


class ClassSettings(dict):
    """Reconstructions are as large as the picture, from patches that the stages made larger."""

    def get(self, cls, default=None):
        return dict(patch_size=2, encoder_stride=8, image_size=32, depths=[1, 2, 1], num_heads=[2, 2, 4]) if cls.endswith("ForMaskedImageModeling") else {}


CLASS_SETTINGS = ClassSettings()


def inputs(cls, x, model):
    size = model.config.image_size
    size = size if isinstance(size, (list, tuple)) else (size, size)
    if tuple(x["pixel_values"].shape[2:]) != tuple(size):
        x["pixel_values"] = torch.randn(x["pixel_values"].shape[0], 3, *size)
    return x


def extra(cls, x, model):
    if "Masked" in cls:
        return
    height, width = x["pixel_values"].shape[2:]
    if model.config.use_absolute_embeddings:
        if "Backbone" not in cls:
            yield "interpolated positions", dict(x, pixel_values=torch.randn(2, 3, height + 16, height + 32)), {"interpolate_pos_encoding": True}
        return
    yield "a larger picture", dict(x, pixel_values=torch.randn(2, 3, height + 5, width + 19)), {"output_hidden_states": True}


# Whole windows in each of up to three stages of patches of 2.
PICTURE_MULTIPLE = 32


def picture_sizes(cls, model):
    c = model.config
    if "Masked" not in cls and not getattr(c, "use_absolute_embeddings", False) and c.window_size in (2, 4):
        yield (64, 96), ((96, 64), (128, 160)), {}

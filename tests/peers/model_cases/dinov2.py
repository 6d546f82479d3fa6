import torch

SIZES = dict(image_size=30, patch_size=6, num_channels=3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2)
CONFIGS = [
    dict(SIZES, out_features=["stage1", "stage2"]),
    dict(SIZES, qkv_bias=False, use_swiglu_ffn=True, layer_norm_eps=1e-3, use_mask_token=False, num_labels=1, apply_layernorm=False, out_indices=[0, -1]),
    dict(SIZES, hidden_act="relu", num_attention_heads=2, drop_path_rate=0.1, num_labels=5, problem_type="multi_label_classification", reshape_hidden_states=False),
    dict(SIZES, num_hidden_layers=3, layerscale_value=0.3, num_labels=4, output_hidden_states=True, patch_size=[6, 6]),
]
GOLDEN_CLASS = "Dinov2Model"
GOLDEN_CONFIG = dict(SIZES, image_size=8, patch_size=4, hidden_size=16, out_indices=[1])
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions", "masked patches", "another size")


def extra(cls, x, model):
    size = x["pixel_values"].shape[-1]
    yield "another size", dict(x, pixel_values=torch.randn(2, 3, size + 6, size + 13)), {"output_hidden_states": True}
    count = model.embeddings.patch_embeddings.num_patches if hasattr(model, "embeddings") else model.dinov2.embeddings.patch_embeddings.num_patches
    if cls == "Dinov2Model" and model.config.use_mask_token:
        yield "masked patches", dict(x, bool_masked_pos=torch.rand(2, count) > 0.5), {"output_hidden_states": True}
    yield "a mask of patches", dict(x, attention_mask=(torch.rand(2, count + 1) > 0.3).long()), {}


def inputs(cls, x, model):
    size = model.config.image_size
    x["pixel_values"] = torch.randn(x["pixel_values"].shape[0], 3, size, size)
    return x


def picture_sizes(cls, model):
    yield (36, 42), ((30, 30), (24, 63)), {}

import torch

SIZES = dict(num_channels=3, num_encoder_blocks=4, depths=[1, 1, 1, 1], sr_ratios=[4, 2, 1, 1], hidden_sizes=[8, 8, 16, 16], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16)
CONFIGS = [
    dict(SIZES, num_labels=3),
    dict(SIZES, hidden_act="relu", mlp_ratios=[2, 2, 1, 3], num_labels=1, decoder_hidden_size=12),
    dict(SIZES, num_encoder_blocks=2, depths=[2, 1], sr_ratios=[1, 2], hidden_sizes=[8, 16], patch_sizes=[3, 3], strides=[2, 2], num_attention_heads=[2, 4], mlp_ratios=[2, 2], drop_path_rate=0.0, num_labels=5, problem_type="multi_label_classification",
         semantic_loss_ignore_index=0),
    dict(SIZES, reshape_last_stage=False, num_labels=4, output_hidden_states=True),
]
CLASS_SETTINGS = {"SegformerForSemanticSegmentation": dict(reshape_last_stage=True)}  # without it transformers' head takes the wrong sizes
GOLDEN_CLASS = "SegformerForSemanticSegmentation"
GOLDEN_CONFIG = dict(SIZES, num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 8], patch_sizes=[3, 3], strides=[2, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], num_labels=3)
GOLDEN_CASES = ("padded, with labels and hidden states", "without mask")


def extra(cls, x, model):
    if model.config.reshape_last_stage:
        yield "another size", dict(x, pixel_values=torch.randn(2, 3, 48, 37)), {"output_hidden_states": True}


def picture_sizes(cls, model):
    if model.config.reshape_last_stage:
        yield (128, 96), ((160, 128), (96, 131)), {}

SIZES = dict(num_channels=3, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1], image_size=32, num_stages=4)
CONFIGS = [
    dict(SIZES, layer_scale_init_value=0.5, out_features=["stage1", "stage3"]),
    dict(SIZES, layer_scale_init_value=0.0, hidden_act="relu", patch_size=2, num_labels=1, out_indices=[0, -1]),
    dict(SIZES, layer_norm_eps=1e-3, drop_path_rate=0.2, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, hidden_sizes=[8, 8], depths=[2, 1], num_stages=2, layer_scale_init_value=0.5, num_labels=4, output_hidden_states=True, out_features=["stem", "stage2"]),
]
NO_ATTENTIONS = True
GOLDEN_CLASS = "ConvNextForImageClassification"
GOLDEN_CONFIG = dict(SIZES, hidden_sizes=[8, 8, 12], depths=[1, 1, 1], num_stages=3, image_size=16, layer_scale_init_value=0.5, out_indices=[1, 2])


def picture_sizes(cls, model):
    yield (64, 72), ((96, 64), (128, 67)), {}

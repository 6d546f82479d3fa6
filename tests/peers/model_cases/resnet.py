SIZES = dict(num_channels=3, embedding_size=8, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1])
CONFIGS = [
    dict(SIZES, layer_type="basic", out_features=["stage1", "stage3"]),
    dict(SIZES, hidden_act="gelu", num_labels=1, out_indices=[0, -1]),
    dict(SIZES, downsample_in_first_stage=True, downsample_in_bottleneck=True, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, hidden_sizes=[8, 8], depths=[2, 1], layer_type="basic", num_labels=4, output_hidden_states=True, out_features=["stem", "stage2"]),
]
NO_ATTENTIONS = True
GOLDEN_CLASS = "ResNetForImageClassification"
GOLDEN_CONFIG = dict(SIZES, hidden_sizes=[8, 8, 12], depths=[1, 1, 1], out_indices=[1, 2])


def picture_sizes(cls, model):
    yield (32, 40), ((64, 64), (96, 33)), {}

import functools

from model_cases import encoders
from model_cases.encoders import SIZES, ClassSettings  # noqa: F401

CLASS_SETTINGS = ClassSettings()
extra = functools.partial(encoders.extra, mask_dims=2)
LAYOUT = dict(SIZES, max_2d_position_embeddings=64)
CONFIGS = [
    dict(LAYOUT),
    dict(LAYOUT, hidden_act="gelu_new", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=3, num_labels=1, num_attention_heads=2),
    dict(LAYOUT, max_2d_position_embeddings=80, hidden_act="relu", num_labels=5, problem_type="multi_label_classification"),
    dict(LAYOUT, num_hidden_layers=3, intermediate_size=64, num_labels=4, output_hidden_states=True),
]
GOLDEN_CONFIG = dict(LAYOUT, hidden_size=16, intermediate_size=20, max_position_embeddings=32)

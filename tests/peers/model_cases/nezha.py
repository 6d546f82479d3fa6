from model_cases.encoders import SIZES, ClassSettings, extra  # noqa: F401

CLASS_SETTINGS = ClassSettings()
CONFIGS = [
    dict(SIZES, max_relative_position=4),
    dict(SIZES, hidden_act="gelu_new", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=3, num_labels=1, num_attention_heads=2, max_relative_position=64),
    dict(SIZES, max_relative_position=2, hidden_act="relu", num_labels=5, problem_type="multi_label_classification", is_decoder=True, use_cache=False),
    dict(SIZES, num_hidden_layers=3, intermediate_size=64, num_labels=4, output_hidden_states=True),
]


def no_bfloat16(cls, model):
    return True  # transformers makes the encodings in two dtypes and fails

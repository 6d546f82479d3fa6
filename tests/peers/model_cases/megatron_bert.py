# No cross attention: transformers takes the keys of an encoder only where it is as long as the text.
from model_cases.encoders import SIZES, ClassSettings, extra, inputs  # noqa: F401

CLASS_SETTINGS = ClassSettings()
CONFIGS = [
    dict(SIZES),
    dict(SIZES, hidden_act="gelu_new", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=3, num_labels=1, num_attention_heads=2),
    dict(SIZES, is_decoder=True, hidden_act="relu", num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, num_hidden_layers=3, intermediate_size=64, num_labels=4, output_hidden_states=True, is_decoder=True, use_cache=False),
]
OLD_CONFIGS = [dict(SIZES, position_embedding_type="relative_key", use_cache=False)]

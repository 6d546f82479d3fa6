from model_cases.encoders import SIZES, ClassSettings, extra, inputs  # noqa: F401

CLASS_SETTINGS = ClassSettings()
ROBERTA = dict(SIZES, pad_token_id=1, bos_token_id=0, eos_token_id=2)
CONFIGS = [
    dict(ROBERTA),
    dict(ROBERTA, hidden_act="gelu_new", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=1, num_labels=1, num_attention_heads=2, pad_token_id=5),
    dict(ROBERTA, is_decoder=True, add_cross_attention=True, hidden_act="relu", num_labels=5, problem_type="multi_label_classification"),
]

from model_cases.seq2seq import CLASS_SETTINGS, NO_EMBEDS, OWN_HEAD_MASKS, SIZES, UNEVEN, extra  # noqa: F401

CONFIGS = [
    dict(SIZES),
    dict(UNEVEN, scale_embedding=True, activation_function="relu", num_labels=1, tie_word_embeddings=False),
    dict(SIZES, activation_function="gelu_new", num_labels=5, problem_type="multi_label_classification", pad_token_id=3, use_cache=False),
]

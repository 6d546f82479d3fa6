from model_cases.seq2seq import (  # noqa: F401
    CLASS_SETTINGS, GOLDEN_CASES, GOLDEN_CONFIG, OWN_HEAD_MASKS, SIZES, UNEVEN, extra, no_embeds,
)

GOLDEN_CLASS = "MBartForConditionalGeneration"
CONFIGS = [
    dict(SIZES),
    dict(UNEVEN, scale_embedding=True, activation_function="relu", num_labels=1, tie_word_embeddings=False),
    dict(SIZES, activation_function="gelu_new", num_labels=5, problem_type="multi_label_classification", pad_token_id=3, use_cache=False),
]

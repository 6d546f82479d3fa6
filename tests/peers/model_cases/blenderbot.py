from model_cases.seq2seq import (  # noqa: F401
    CLASS_SETTINGS, GOLDEN_CASES, GOLDEN_CONFIG, OWN_HEAD_MASKS, SIZES, UNEVEN, extra, no_embeds,
)

GOLDEN_CLASS = "BlenderbotForConditionalGeneration"
CONFIGS = [
    dict(SIZES),
    dict(UNEVEN, scale_embedding=True, activation_function="relu", tie_word_embeddings=False),
    dict(SIZES, d_model=36, activation_function="gelu_new", pad_token_id=3, decoder_start_token_id=7, use_cache=False),
]

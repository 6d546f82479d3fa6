from model_cases.seq2seq import (  # noqa: F401
    CLASS_SETTINGS, GOLDEN_CASES, GOLDEN_CONFIG, OLD, OWN_HEAD_MASKS, SIZES, UNEVEN, extra, no_embeds,
)

GOLDEN_CLASS = "BlenderbotSmallForConditionalGeneration"
CONFIGS = [
    dict(SIZES),
    # transformers 5 forgets the scale in the decoder
    dict(UNEVEN, scale_embedding=OLD, activation_function="relu", tie_word_embeddings=False),
    dict(SIZES, activation_function="gelu_new", pad_token_id=3, decoder_start_token_id=7, use_cache=False),
]

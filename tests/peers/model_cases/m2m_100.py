from model_cases.seq2seq import CLASS_SETTINGS, NO_EMBEDS, OWN_HEAD_MASKS, SIZES, UNEVEN, extra  # noqa: F401

CONFIGS = [
    dict(SIZES),
    dict(UNEVEN, scale_embedding=False, activation_function="gelu", tie_word_embeddings=False),
    dict(SIZES, max_position_embeddings=4, pad_token_id=3, decoder_start_token_id=7, use_cache=False),
]

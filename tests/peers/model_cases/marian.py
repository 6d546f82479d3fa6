from model_cases.seq2seq import (  # noqa: F401
    CLASS_SETTINGS, GOLDEN_CASES, GOLDEN_CONFIG, OWN_HEAD_MASKS, SIZES, UNEVEN, extra, no_embeds,
)

GOLDEN_CLASS = "MarianMTModel"
CONFIGS = [
    dict(SIZES),
    dict(UNEVEN, scale_embedding=True, activation_function="swish", share_encoder_decoder_embeddings=False, decoder_vocab_size=99),
    dict(SIZES, activation_function="relu", tie_word_embeddings=False, pad_token_id=98, decoder_start_token_id=98, use_cache=False),
]

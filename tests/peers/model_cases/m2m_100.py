from model_cases.seq2seq import (  # noqa: F401
    CLASS_SETTINGS, GOLDEN_CASES, GOLDEN_CONFIG, OWN_HEAD_MASKS, SIZES, UNEVEN, extra, no_embeds,
)

GOLDEN_CLASS = "M2M100ForConditionalGeneration"
CONFIGS = [
    dict(SIZES),
    dict(UNEVEN, scale_embedding=False, activation_function="gelu", tie_word_embeddings=False),
    dict(SIZES, max_position_embeddings=4, pad_token_id=3, decoder_start_token_id=7, use_cache=False),
]


def longer_than_the_table(model):
    return [80]

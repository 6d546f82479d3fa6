from model_cases.seq2seq import CLASS_SETTINGS, GOLDEN_CASES, OWN_HEAD_MASKS, extra, no_embeds  # noqa: F401

SIZES = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_decoder_layers=2, num_heads=4, relative_attention_num_buckets=8, relative_attention_max_distance=16, pad_token_id=0, eos_token_id=1,
             decoder_start_token_id=0)
GOLDEN_CLASS = "MT5ForConditionalGeneration"
GOLDEN_CONFIG = dict(SIZES, d_model=16, d_kv=4, d_ff=20, num_decoder_layers=1)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, d_kv=5, num_layers=1, num_decoder_layers=3, feed_forward_proj="gated-gelu", relative_attention_num_buckets=32, layer_norm_epsilon=1e-3, num_labels=1, tie_word_embeddings=False),
    dict(SIZES, feed_forward_proj="gated-silu", num_labels=5, problem_type="multi_label_classification", pad_token_id=3, decoder_start_token_id=7, use_cache=False),
]

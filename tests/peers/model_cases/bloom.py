SIZES = dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, hidden_size=36, n_head=6, apply_residual_connection_post_layernorm=True, tie_word_embeddings=False, num_labels=1),
    dict(SIZES, hidden_size=33, n_head=11, n_layer=1, layer_norm_epsilon=1e-3, num_labels=5, problem_type="multi_label_classification"),
    dict(SIZES, pretraining_tp=2, slow_but_exact=True, num_labels=3),
]

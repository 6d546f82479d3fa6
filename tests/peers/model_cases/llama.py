SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=37, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, num_key_value_heads=4, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, hidden_act="gelu_new", rms_norm_eps=1e-3),
    dict(SIZES, num_key_value_heads=1, head_dim=16, rope_parameters=dict(rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16), num_labels=1),
    dict(SIZES, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0), num_labels=5, problem_type="multi_label_classification"),
]

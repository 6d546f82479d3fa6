from model_cases.encoders import SIZES, ClassSettings, extra  # noqa: F401

CLASS_SETTINGS = ClassSettings()
MOBILE = dict(SIZES, embedding_size=16, intra_bottleneck_size=16, num_feedforward_networks=2)
CONFIGS = [
    dict(MOBILE),
    dict(MOBILE, hidden_act="gelu", normalization_type="layer_norm", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=3, num_labels=1, num_attention_heads=2, use_bottleneck_attention=True),
    dict(MOBILE, use_bottleneck=False, num_feedforward_networks=1, trigram_input=False, embedding_size=24, classifier_activation=False, num_labels=5, problem_type="multi_label_classification"),
    dict(MOBILE, intra_bottleneck_size=32, key_query_shared_bottleneck=False, num_feedforward_networks=3, intermediate_size=64, num_labels=4, output_hidden_states=True),
]

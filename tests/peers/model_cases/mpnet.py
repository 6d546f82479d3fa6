from model_cases.encoders import SIZES, ClassSettings, extra, inputs  # noqa: F401

CLASS_SETTINGS = ClassSettings()
MPNET = dict(SIZES, pad_token_id=1, bos_token_id=0, eos_token_id=2, max_position_embeddings=300)
del MPNET["type_vocab_size"]
CONFIGS = [
    dict(MPNET),
    dict(MPNET, hidden_act="gelu_new", layer_norm_eps=1e-3, tie_word_embeddings=False, num_labels=1, num_attention_heads=2, relative_attention_num_buckets=40),
    dict(MPNET, hidden_act="relu", num_labels=5, problem_type="multi_label_classification", num_hidden_layers=3, output_hidden_states=True),
]


def longer_than_the_table(model):
    return [250]  # distances that share a bucket

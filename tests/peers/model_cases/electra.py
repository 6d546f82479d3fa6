import torch
from model_cases.encoders import SIZES, ClassSettings, extra, inputs  # noqa: F401

CLASS_SETTINGS = ClassSettings()
ELECTRA = dict(SIZES, embedding_size=16)
CONFIGS = [
    dict(ELECTRA),
    dict(ELECTRA, embedding_size=32, hidden_act="gelu_new", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=3, num_labels=1, num_attention_heads=2, summary_type="mean", summary_activation="tanh"),
    dict(ELECTRA, is_decoder=True, add_cross_attention=True, hidden_act="relu", num_labels=5, problem_type="multi_label_classification", summary_type="last", summary_use_proj=False, summary_activation="relu"),
    dict(ELECTRA, num_hidden_layers=3, intermediate_size=64, num_labels=4, output_hidden_states=True, is_decoder=True, use_cache=False, summary_type="cls_index", summary_last_dropout=0.0),
]
OLD_CONFIGS = [dict(ELECTRA, position_embedding_type="relative_key", use_cache=False)]


def labels(cls, x, model, y):
    return {"labels": torch.randint(0, 2, x["input_ids"].shape)} if cls == "ElectraForPreTraining" else y

import functools

from model_cases import encoders
from model_cases.encoders import SIZES, ClassSettings

CLASS_SETTINGS = ClassSettings()
extra = functools.partial(encoders.extra, mask_dims=2)
CONFIGS = [
    dict(SIZES, relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False, type_vocab_size=0, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True),
    dict(SIZES, relative_attention=True, pos_att_type="p2c|c2p", position_buckets=4, max_relative_positions=16, conv_kernel_size=3, conv_act="gelu", hidden_act="relu", tie_word_embeddings=False, num_labels=1, num_attention_heads=2, legacy=False, layer_norm_eps=1e-3),
    dict(SIZES, relative_attention=False, embedding_size=16, conv_kernel_size=5, conv_groups=2, num_labels=5, problem_type="multi_label_classification", pooler_hidden_act="tanh"),
    dict(SIZES, relative_attention=True, pos_att_type=["c2p"], max_relative_positions=5, num_hidden_layers=3, intermediate_size=64, num_labels=4, output_hidden_states=True),
]

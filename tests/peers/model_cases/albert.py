from model_cases.encoders import SIZES, ClassSettings, extra  # noqa: F401


class Settings(ClassSettings):
    def get(self, cls, default=None):
        return {"num_labels": 2} if cls == "AlbertForPreTraining" else super().get(cls)


CLASS_SETTINGS = Settings()
ALBERT = dict(SIZES, embedding_size=16, bos_token_id=2, eos_token_id=3)
CONFIGS = [
    dict(ALBERT),
    dict(ALBERT, num_hidden_layers=4, num_hidden_groups=2, hidden_act="gelu", layer_norm_eps=1e-3, tie_word_embeddings=False, type_vocab_size=3, num_labels=1, num_attention_heads=2),
    dict(ALBERT, num_hidden_layers=2, inner_group_num=2, hidden_act="relu", num_labels=5, problem_type="multi_label_classification"),
    dict(ALBERT, num_hidden_layers=3, num_hidden_groups=2, intermediate_size=64, num_labels=4, output_hidden_states=True),
]

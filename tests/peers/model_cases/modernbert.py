from model_cases import encoders
from model_cases.encoders import ClassSettings, inputs  # noqa: F401


class Settings(ClassSettings):
    """transformers' choices have no mean without a mask."""

    def get(self, cls, default=None):
        return {**super().get(cls), **({"classifier_pooling": "cls"} if "MultipleChoice" in cls else {})}


CLASS_SETTINGS = Settings()
SIZES = dict(vocab_size=99, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=4)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, hidden_activation="relu", norm_bias=True, attention_bias=True, mlp_bias=True, decoder_bias=False, classifier_bias=True, classifier_activation="silu", classifier_pooling="mean", norm_eps=1e-3, tie_word_embeddings=False, num_labels=1,
         rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 500.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 80.0}}),
    dict(SIZES, layer_types=["sliding_attention", "full_attention", "sliding_attention"], num_hidden_layers=3, local_attention=6, num_labels=5, problem_type="multi_label_classification", output_hidden_states=True, sparse_prediction=True),
]


def extra(cls, x, model):
    """transformers' mean wants a mask of two dimensions."""
    mean = cls.endswith("SequenceClassification") and model.config.classifier_pooling == "mean"
    return encoders.extra(cls, x, model, 2 if mean else 4)

import transformers

from model_cases import xlm
from model_cases.xlm import CLASS_SETTINGS, labels, no_bfloat16, shortest  # noqa: F401

# With pre_norm transformers asks its cache for a layer by number, which a cache no longer answers.
if hasattr(transformers, "EncoderDecoderCache"):  # not in 4.40
    transformers.EncoderDecoderCache.__getitem__ = lambda self, layer: self
CONFIGS = [
    dict(xlm.SIZES),
    dict(xlm.SIZES, pre_norm=True, n_langs=3, num_labels=1, tie_word_embeddings=False),
    dict(xlm.SIZES, sinusoidal_embeddings=True, gelu_activation=False, causal=True, summary_type="mean", num_labels=5, problem_type="multi_label_classification"),
]
NO_ATTENTIONS = True  # with pre_norm transformers does not give any


def extra(cls, x, model):
    return (one for one in xlm.extra(cls, x, model) if not (model.config.pre_norm and "output_attentions" in one[2]))

import inspect

import torch
import transformers
from model_cases.encoders import ClassSettings

CLASS_SETTINGS = ClassSettings()
SIZES = dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=37, max_position_embeddings=64, pad_token_id=0)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, activation="relu", tie_word_embeddings=False, num_labels=1, n_heads=2, sinusoidal_pos_embds=True),
    dict(SIZES, n_layers=3, hidden_dim=64, num_labels=5, problem_type="multi_label_classification", output_hidden_states=True),
]


def extra(cls, x, model):
    shape = x["input_ids"].shape
    if "position_ids" in inspect.signature(model.forward).parameters and len(shape) == 2:
        yield "positions", dict(x, position_ids=torch.randint(0, 20, shape)), {}
    if len(shape) == 2 and transformers.__version__ >= "5":
        may = (torch.rand(2, 1, shape[1], shape[1]) > 0.4) | torch.eye(shape[1], dtype=torch.bool)
        yield "a mask of four dimensions", dict(x, attention_mask=torch.where(may, 0.0, torch.finfo(torch.float32).min)), {"output_hidden_states": True}

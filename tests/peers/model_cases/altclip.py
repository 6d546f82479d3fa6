import torch

from model_cases import pairs
from model_cases.clip import VISION
from model_cases.pairs import inputs, labels, picture_sizes  # noqa: F401

TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, type_vocab_size=2, project_dim=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
CONFIGS = [
    dict(text_config=TEXT, vision_config=VISION, projection_dim=32),
    dict(text_config=dict(TEXT, pad_token_id=3, hidden_act="relu", layer_norm_eps=1e-3, hidden_size=16, project_dim=24), vision_config=dict(VISION, num_attention_heads=2, hidden_act="relu"), projection_dim=24),
    dict(text_config=dict(TEXT, num_hidden_layers=1, num_attention_heads=2), vision_config=dict(VISION, patch_size=10, num_hidden_layers=3, layer_norm_eps=1e-3), projection_dim=16, logit_scale_init_value=1.5),
]
GOLDEN_CLASS = "AltCLIPModel"
GOLDEN_CONFIG = pairs.small(CONFIGS[0])
PARTS = {"altclip_text_model": "AltCLIPTextModel", "altclip_vision_model": "AltCLIPVisionModel"}


def no_embeds(cls, model):
    return cls != "AltCLIPTextModel"


def extra(cls, x, model):
    yield from pairs.extra(cls, x, model)
    if "input_ids" in x:
        yield "token types", dict(x, token_type_ids=torch.randint(0, 2, x["input_ids"].shape)), {}

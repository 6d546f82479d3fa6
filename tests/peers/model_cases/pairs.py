"""What the cases of models of texts and pictures share."""

import torch

NO_EMBEDS = True
SMALLER = {"hidden_size": 16, "intermediate_size": 20, "image_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 16, "projection_dim": 8, "projection_size": 16, "project_dim": 8}


def small(settings):
    """A configuration with everything smaller."""
    out = {k: small(v) if isinstance(v, dict) else SMALLER.get(k, v) for k, v in settings.items()}
    return {k: 6 if k == "patch_size" else v for k, v in out.items()}


def inputs(cls, x, model):
    """Pictures as large as the model's."""
    size = getattr(getattr(model.config, "vision_config", model.config), "image_size", None)
    if "pixel_values" in x and x["pixel_values"].shape[-1] != size:
        x["pixel_values"] = torch.randn(x["pixel_values"].shape[0], 3, size, size)
    return x


def takes_both(x):
    return "pixel_values" in x and "input_ids" in x


def labels(cls, x, model, y):
    return {"return_loss": torch.tensor(True)} if takes_both(x) else y


def extra(cls, x, model):
    if "pixel_values" in x and not (cls.startswith("CLIP") and cls.endswith("ForImageClassification")):
        config = getattr(model.config, "vision_config", model.config)
        size, patch = config.image_size, config.patch_size
        yield "interpolated positions", dict(x, pixel_values=torch.randn(2, 3, size + patch, size + 2 * patch)), {"interpolate_pos_encoding": True, "output_hidden_states": True}
    if "input_ids" in x:
        yield "positions", dict(x, position_ids=torch.randint(0, 10, x["input_ids"].shape)), {"output_hidden_states": True}
    if takes_both(x):
        yield "more pictures than texts", dict(x, pixel_values=torch.cat([x["pixel_values"], x["pixel_values"].flip(0) * 0.5])[:3]), {}


def picture_sizes(cls, model):
    config = getattr(model.config, "vision_config", model.config)
    if hasattr(config, "image_size") and not (cls.startswith("CLIP") and cls.endswith("ForImageClassification")):
        yield (36, 42), ((30, 30), (24, 60)), {"interpolate_pos_encoding": True}

"""What the cases of decoders share: inputs beyond ids and masks."""

import torch


def encoder_inputs(x, size, length=5):
    """An encoder's output for x to look at, padded in the last row."""
    batch = x["input_ids"].shape[0]
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, -2:] = 0
    return {"encoder_hidden_states": torch.randn(batch, length, size, generator=torch.Generator().manual_seed(3)), "encoder_attention_mask": mask}


def four_dimensional(x, additive=False):
    """The causal mask of x with its padding, as [batch, 1, length, length]."""
    batch, length = x["input_ids"].shape
    may = torch.ones(length, length, dtype=torch.bool).tril()[None, None] & x["attention_mask"].bool()[:, None, None]
    if not additive:
        return may
    return torch.zeros(may.shape).masked_fill(~may, torch.finfo(torch.float32).min)


def positions(x, step=2):
    batch, length = x["input_ids"].shape
    return torch.arange(length).flip(0)[None].repeat(batch, 1) * step


def long(x, length=70):
    ids = torch.randint(3, 99, (x["input_ids"].shape[0], length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def router_logits(cls, x):
    """What the routers of mixtures of experts say, and the loss of unequal use."""
    y = {"labels": x["input_ids"]} if cls.endswith("ForCausalLM") else {}
    flags = {"output_router_logits": True}
    yield "router logits", {**x, **y}, flags, "sdpa", torch.float32
    yield "router logits without a mask", {"input_ids": x["input_ids"], **y}, flags, "sdpa", torch.float32

"""Writes tests/export/golden/tiny_llama.pt2 and its outputs: two layers and 256 tokens of the tiny-lm Llama, exported by
PyTorch with a dynamic sequence length. Usage: tiny_llama.py TINY_LM_FOLDER OUT_FOLDER"""
import re
import sys

import torch
from transformers import AutoModelForCausalLM

source, out = sys.argv[1:]
torch.manual_seed(0)
model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
model.model.layers = model.model.layers[:2]
vocabulary = 256
model.model.embed_tokens = torch.nn.Embedding(vocabulary, model.config.hidden_size, _weight=model.model.embed_tokens.weight[:vocabulary].detach().clone())
model.lm_head = torch.nn.Linear(model.config.hidden_size, vocabulary, bias=False)
model.lm_head.weight = model.model.embed_tokens.weight


class Logits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


ids = torch.arange(3, 9).unsqueeze(0)
with torch.no_grad():
    program = torch.export.export(Logits().eval(), (ids,), dynamic_shapes={"input_ids": {1: torch.export.Dim("seq", min=2, max=512)}}, strict=False)
    for node in program.graph.nodes:  # traces name files, not where they are on this machine
        if trace := node.meta.get("stack_trace"):
            node.meta["stack_trace"] = re.sub(r'"[^"]*/(site-packages/)?((torch|transformers)/[^"]*|[^"/]*)"', r'"\2"', trace)
    torch.export.save(program, out + "/tiny_llama.pt2")
    for length in (6, 17):
        tokens = (torch.arange(length) * 37 % vocabulary).unsqueeze(0)
        with open(f"{out}/tiny_llama_{length}.f32", "wb") as f:
            f.write(program.module()(tokens).contiguous().numpy().tobytes())

#!/usr/bin/env python3
"""Writes tests/hub/golden/adapters/traced.json: which modules the graphs of transformers 4.40's symbolic_trace call for PeftModelForCausalLM and
PeftModelForSeq2SeqLM. For a Python with transformers 4.40, peft 0.8.2 (the last whose forward that tracer goes through) and accelerate 0.30."""
import json
import os
import warnings

warnings.filterwarnings("ignore")
import peft
import torch
import transformers
from transformers.utils import fx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def models():
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=32, attention_bias=True))
    t5 = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=32, d_model=8, d_kv=4, d_ff=12, num_layers=2, num_heads=2, dropout_rate=0, decoder_start_token_id=0))
    yield "llama", llama, "CAUSAL_LM", [["input_ids", "attention_mask"], ["input_ids", "attention_mask", "labels"]]
    yield "t5", t5, "SEQ_2_SEQ_LM", [["input_ids", "attention_mask", "decoder_input_ids"],
                                     ["input_ids", "attention_mask", "decoder_input_ids", "labels"]]


if __name__ == "__main__":
    out = []
    for name, model, task, sets in models():
        wrapped = peft.get_peft_model(model, peft.LoraConfig(r=2, task_type=task)).eval()
        for inputs in sets:
            nodes = list(fx.symbolic_trace(wrapped, inputs).graph.nodes)
            out.append({"model": name, "class": type(wrapped).__name__, "config": model.config.to_dict() if name == "t5" else None, "inputs": inputs,
                        "placeholders": [n.name for n in nodes if n.op == "placeholder"],
                        "modules": [n.target for n in nodes if n.op == "call_module"],
                        "outputs": list(nodes[-1].args[0])})
    with open(os.path.join(ROOT, "tests", "hub", "golden", "adapters", "traced.json"), "w") as f:
        json.dump(out, f, indent=1)

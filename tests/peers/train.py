#!/usr/bin/env python3
"""Training beside PyTorch and transformers: tiny-lm, a small BERT and a small T5 on the same batches, from the same weights.

200 steps in float64: every loss within 1e-9, parameters and optimizer states after all of them within 1e-7 (of the largest of each
tensor, or of 1); 50 steps in float32: every loss within 1e-4. The models themselves cast norms, softmax and losses to float32, whose sums
differ by 1e-7 between any two orders of adding: in the float64 runs these casts are lifted, on both sides alike. And `calque grad`
beside autograd (in float64 for BERT, which casts nothing). Dropout is off: what it draws is compared elsewhere.
--all: SGD and Adafactor too.
"""
import contextlib
import json
import os
import subprocess
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

import parts
from parts import check
from wide import Wide

PEER = os.path.join(parts.BUILD, "bin", "train_peer")
TINY = os.path.join(parts.ROOT, "assets", "tiny-lm")
BATCHES = 8


def tiny_lm(folder):
    return TINY, transformers.AutoModelForCausalLM


def bert(folder):
    torch.manual_seed(11)
    config = transformers.BertConfig(vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                     max_position_embeddings=40, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    path = os.path.join(folder, "bert")
    transformers.BertForMaskedLM(config).save_pretrained(path)
    return path, transformers.BertForMaskedLM


def t5(folder):
    torch.manual_seed(12)
    config = transformers.T5Config(vocab_size=120, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0,
                                   decoder_start_token_id=0)
    path = os.path.join(folder, "t5")
    transformers.T5ForConditionalGeneration(config).save_pretrained(path)
    return path, transformers.T5ForConditionalGeneration


def batches_of(name, vocab):
    torch.manual_seed(5)
    out = []
    for i in range(BATCHES):
        length = 9 + 3 * (i % 3)
        ids = torch.randint(3, vocab, (4, length))
        mask = torch.ones_like(ids)
        mask[1, -2:] = 0
        labels = torch.where(mask == 1, ids, -100)
        if name == "bert":
            labels = torch.where(torch.rand(ids.shape) < 0.3, ids, -100)
        if name == "t5":
            labels = torch.randint(3, vocab, (4, 7))
            labels[2, 5:] = -100
        out.append({"input_ids": ids, "attention_mask": mask, "labels": labels})
    return out


def torch_optimizer(model, s):
    named = list(model.named_parameters())
    if s["optimizer"] == "SGD":
        return torch.optim.SGD(named, lr=s["lr"], momentum=0.9, weight_decay=s["weight_decay"])
    if s["optimizer"] == "Adafactor":
        return transformers.Adafactor([p for _, p in named], lr=s["lr"], scale_parameter=False, relative_step=False)
    return torch.optim.AdamW(named, lr=s["lr"], weight_decay=s["weight_decay"])


def run_torch(path, cls, batches, s):
    model = cls.from_pretrained(path, dtype=getattr(torch, s["dtype"])).train()
    optimizer = torch_optimizer(model, s)
    schedule = transformers.get_scheduler("linear", optimizer, s["warmup"], s["steps"])
    losses = []
    for i in range(s["steps"]):
        with Wide() if s["dtype"] == "float64" else contextlib.nullcontext():
            loss = model(**batches[i % BATCHES]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), s["max_grad_norm"])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return model, optimizer, losses


def run_calque(folder, path, batches, s):
    inputs, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    save_file({f"{k}.{i}": v for i, b in enumerate(batches) for k, v in b.items()}, inputs)
    done = subprocess.run([PEER, path, inputs, json.dumps(s), out], capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return load_file(out)


def furthest(mine, there):
    if mine.shape != there.shape:
        return float("inf")
    return ((mine.double() - there.double()).abs().max() / there.double().abs().max().clamp(min=1)).item() if there.numel() else 0.0


def compare(name, out, model, optimizer, losses, s, loss_bound, state_bound):
    mine = out["losses"].tolist()
    apart = [abs(a - b) for a, b in zip(mine, losses)]
    label = f"{name} {s['dtype']} {s['optimizer']}: {s['steps']} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}"
    wrong = [f"step {i}: {mine[i]!r}, PyTorch's {losses[i]!r}" for i, d in enumerate(apart) if not d <= loss_bound]
    check(f"{label}, losses at most {max(apart):.1e} apart", wrong)
    if losses[-1] >= losses[0]:
        check(f"{label}: it learns", ["the loss did not fall"])
    if state_bound is None:
        return
    wrong, worst = [], 0
    for key, p in model.named_parameters():
        pairs = [("p." + key, p.detach())] + [(f"state.{key}.{k}", v) for k, v in optimizer.state[p].items() if isinstance(v, torch.Tensor)]
        for k, v in pairs:
            d = furthest(out[k], v) if k in out else float("inf")
            worst = max(worst, d)
            if not d <= state_bound:
                wrong.append(f"{k}: {d:.2e}")
    check(f"{label}, states at most {worst:.1e} apart", wrong)


def steps(folder, args):
    for make in (tiny_lm, bert, t5):
        path, cls = make(folder)
        batches = batches_of(make.__name__, transformers.AutoConfig.from_pretrained(path).vocab_size)
        for optimizer in ("AdamW", "SGD", "Adafactor") if args.all else ("AdamW",):
            for dtype, count, loss_bound, state_bound in (("float64", 200, 1e-9, 1e-7), ("float32", 50, 1e-4, None)):
                s = {"dtype": dtype, "steps": count, "batches": BATCHES, "lr": {"SGD": 0.05, "AdamW": 1e-3, "Adafactor": 1e-3}[optimizer],
                     "weight_decay": 0.01, "warmup": 10, "max_grad_norm": 1.0, "optimizer": optimizer}
                model, made, losses = run_torch(path, cls, batches, s)
                compare(make.__name__, run_calque(folder, path, batches, s), model, made, losses, s, loss_bound, state_bound)


def gradients(folder, args):
    """calque grad: loss and gradients by name."""
    for make in (tiny_lm, bert, t5):
        path, cls = make(folder)
        batch = batches_of(make.__name__, transformers.AutoConfig.from_pretrained(path).vocab_size)[0]
        for dtype, bound in (("float64", 1e-10), ("float32", 1e-5)):
            if dtype == "float64" and make is not bert:
                continue
            inputs, outputs = os.path.join(folder, "one.safetensors"), os.path.join(folder, "grads.safetensors")
            save_file(batch, inputs)
            parts.calque("grad", path, "--inputs", inputs, "--outputs", outputs, "--dtype", dtype, "--quiet")
            mine = load_file(outputs)
            model = cls.from_pretrained(path, dtype=getattr(torch, dtype)).eval()
            loss = model(**batch).loss
            loss.backward()
            grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
            total = torch.stack([g.norm() for g in grads.values()]).norm()
            wrong = [f"names: {sorted(set(grads) ^ set(mine))[:4]}"] if set(grads) | {"loss"} != set(mine) else []
            wrong += [f"loss {mine['loss']}, PyTorch's {loss}"] if abs(mine["loss"] - loss) > bound else []
            wrong += [f"{n}: {((mine[n] - g).norm() / max(g.norm(), total / 1000)).item():.1e}" for n, g in grads.items()
                      if n in mine and not (mine[n] - g).norm() <= bound * max(g.norm(), total / 1000)]
            check(f"{make.__name__} {dtype}: gradients of {len(grads)} parameters", wrong)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(parts.main([steps, gradients], __doc__, "SGD and Adafactor too"))

"""Tracing and fake execution, Calque beside PyTorch in one run: a GPT-2-small-shaped decoder and a BERT-base-shaped encoder.

Both sides trace the same modules (parameters are inputs, as functional_call has them) with make_fx in symbolic and in fake
mode, and run them on fake tensors. Rounds alternate between the two; the table shows medians. Each side uses one thread; the time is its
process's processor time.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

WIDTH, HEADS, VOCABULARY, POSITIONS = 768, 12, 50257, 1024


def split_heads(x):
    return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).transpose(1, 2)


def join_heads(x):
    y = x.transpose(1, 2).contiguous()
    return y.view(y.size(0), y.size(1), WIDTH)


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.mlp_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).split(WIDTH, 2)
        a = F.scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v), is_causal=True)
        y = x + self.c_proj(join_heads(a))
        return y + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(y)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.h = nn.ModuleList(DecoderLayer() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.dense = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.intermediate, self.output = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        a = F.scaled_dot_product_attention(split_heads(self.query(x)), split_heads(self.key(x)), split_heads(self.value(x)))
        y = self.norm_1(x + self.dense(join_heads(a)))
        return self.norm_2(y + self.output(F.gelu(self.intermediate(y))))


class Encoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layer = nn.ModuleList(EncoderLayer() for _ in range(layers))
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.size(1))) + self.kinds(torch.zeros_like(ids)))
        for layer in self.layer:
            x = layer(x)
        return torch.tanh(self.pooler(x.select(1, 0)))


MODELS = {"decoder": Decoder, "encoder": Encoder}


class Torch:
    def __init__(self):
        self.models = {}

    def case(self, kind, layers):
        if (kind, layers) not in self.models:
            mode = FakeTensorMode()
            with mode:
                model = MODELS[kind](layers).eval()
            self.models[kind, layers] = mode, model
        return self.models[kind, layers]

    def run(self, kind, layers, what):
        mode, model = self.case(kind, layers)
        if what == "forward":
            with torch.no_grad(), mode:
                ids = torch.zeros(2, 128, dtype=torch.int64)
                start = time.process_time_ns()
                model(ids)
                return time.process_time_ns() - start, 0
        parameters = dict(model.named_parameters())
        # make_fx makes its own fake tensors; real ones without memory behind them stand for the weights.
        real = {n: torch.empty(1).expand(p.shape) if p.dim() < 2 else torch.empty(p.shape) for n, p in parameters.items()}

        def f(ids, params):
            return torch.func.functional_call(model, params, (ids,))

        with torch.no_grad():
            ids = torch.zeros(2, 128, dtype=torch.int64)
            start = time.process_time_ns()
            graph = make_fx(f, tracing_mode=what)(ids, real)
            return time.process_time_ns() - start, len(graph.graph.nodes)


class Calque:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, kind, layers, what):
        self.process.stdin.write(f"{kind} {layers} {what}\n")
        self.process.stdin.flush()
        nanoseconds, nodes, per_node = map(int, self.process.stdout.readline().split())
        self.per_node = per_node
        return nanoseconds, nodes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default="build/release/bin/bench_capture")
    parser.add_argument("--json", help="where to write the results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["CALQUE_THREADS"] = "1"
    peer, ours = Torch(), Calque(options.program)
    results = []
    print(f"PyTorch {torch.__version__} beside Calque; milliseconds, medians of {options.rounds} alternating rounds")
    print(f"{'':28}{'PyTorch':>12}{'Calque':>12}{'ratio':>9}{'nodes':>14}")
    for kind in MODELS:
        for what in ("symbolic", "fake", "forward"):
            theirs, mine = [], []
            for _ in range(options.rounds):
                t, their_nodes = peer.run(kind, 12, what)
                c, nodes = ours.run(kind, 12, what)
                theirs.append(t / 1e6)
                mine.append(c / 1e6)
            a, b = statistics.median(theirs), statistics.median(mine)
            name = f"{kind}, 12 layers, " + ("fake forward" if what == "forward" else f"make_fx {what}")
            print(f"{name:36}{a:>10.2f}{b:>10.3f}{a / b:>8.0f}x{their_nodes:>7}{nodes:>7}")
            results.append({"model": kind, "layers": 12, "what": what, "pytorch_ms": a, "calque_ms": b, "ratio": a / b, "nodes": nodes})
    print("\nCalque alone, symbolic")
    for kind in MODELS:
        per_layer = {}
        for layers in (12, 24, 48, 96):
            times = [ours.run(kind, layers, "symbolic") for _ in range(2 * options.rounds)]
            ms = statistics.median(t for t, _ in times) / 1e6
            per_layer[layers] = ms / layers
            print(f"{kind}, {layers:>2} layers: {ms:8.3f} ms, {ms / layers * 1000:7.1f} us a layer, {times[0][1]} nodes, {ours.per_node} bytes a node")
            results.append({"model": kind, "layers": layers, "what": "symbolic", "calque_ms": ms, "nodes": times[0][1], "bytes_per_node": ours.per_node})
        static = statistics.median(ours.run(kind, 12, "fake")[0] for _ in range(4 * options.rounds)) / 1e6
        dynamic = statistics.median(ours.run(kind, 12, "symbolic")[0] for _ in range(4 * options.rounds)) / 1e6
        print(f"{kind}: 96 layers cost {per_layer[96] / per_layer[12]:.2f} of 12 layers' time a layer; symbolic {dynamic / static:.2f} of fake")
        results.append({"model": kind, "per_layer_96_over_12": per_layer[96] / per_layer[12], "symbolic_over_fake": dynamic / static})
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"pytorch": torch.__version__, "results": results}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    sys.exit(main())

"""Training steps, Calque beside PyTorch eager and its compiled step, in one run.

BERT-base (batch 8, 128 tokens, masked language model) and GPT-2 small (batch 4, 256 tokens), random weights, float32, without
dropout: forward, backward, AdamW, zero_grad, on two threads each; and AdamW's step alone, beside PyTorch's default and its
fused=True. Rounds alternate between the sides; the table shows medians, PyTorch's time over Calque's, and each process's peak memory
(PyTorch's sides run in processes of their own). Losses are compared before anything is timed. --no-compiled leaves the compiled step out.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = {"bert": (8, 128), "gpt2": (4, 256)}


class Asked:
    """A process that answers commands."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError(f"no answer to {words}")
        return int(answer[0]), float(answer[1])


def make_models(folder):
    import torch
    import transformers
    torch.manual_seed(1)
    transformers.BertForMaskedLM(transformers.BertConfig()).save_pretrained(os.path.join(folder, "bert"))
    transformers.GPT2LMHeadModel(transformers.GPT2Config(bos_token_id=0, eos_token_id=0)).save_pretrained(os.path.join(folder, "gpt2"))


def serve(kind):
    """PyTorch's side, with the commands of worker.cpp. kind: eager, fused (AdamW's fused form), compiled."""
    import torch
    import transformers
    torch.set_num_threads(2)
    models = {}

    def step(model, optimizer, ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def median(times, run):
        spent = []
        for _ in range(times):
            start = time.perf_counter_ns()
            run()
            spent.append(time.perf_counter_ns() - start)
        return sorted(spent)[len(spent) // 2]

    for line in sys.stdin:
        command, *words = line.split()
        if command == "load":
            cls = transformers.BertForMaskedLM if words[0] == "bert" else transformers.GPT2LMHeadModel
            model = cls.from_pretrained(words[1], dtype=torch.float32).eval()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True if kind == "fused" else None)
            models[words[0]] = (model if kind != "compiled" else torch.compile(model), model, optimizer)
            print(0, 0, flush=True)
        elif command == "step":
            batch, length, times = map(int, words[1:])
            ids = torch.tensor([(i * 7919 + 13) % 1000 + 5 for i in range(batch * length)]).view(batch, length)
            run, _, optimizer = models[words[0]]
            losses = []
            print(median(times, lambda: losses.append(step(run, optimizer, ids))), losses[-1].item(), flush=True)
        elif command == "update":
            _, model, optimizer = models[words[0]]
            for p in model.parameters():
                p.grad = torch.zeros_like(p)
            print(median(int(words[1]), optimizer.step), 0, flush=True)
            optimizer.zero_grad()
        elif command == "memory":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, 0, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--serve")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", choices=list(ROWS))
    p.add_argument("--no-compiled", action="store_true")
    o = p.parse_args()
    if o.serve:
        return serve(o.serve)
    kinds = ["eager", "fused"] + ([] if o.no_compiled else ["compiled"])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import run; run.make_models({folder!r})"], check=True)
        for name in [o.only] if o.only else ROWS:
            sides = {"calque": Asked(os.path.join(ROOT, "build", "release", "bin", "bench_train"))}
            sides.update({kind: Asked(sys.executable, os.path.abspath(__file__), "--serve", kind) for kind in kinds})
            batch, length = ROWS[name]
            losses = {}
            for kind, side in sides.items():
                side.ask("load", name, os.path.join(folder, name))
                losses[kind] = side.ask("step", name, batch, length, 2)[1]
            apart = max(abs(a - b) for a in losses.values() for b in losses.values())
            if apart > 1e-3:
                raise SystemExit(f"{name}: the losses differ: {losses}")
            times = {(kind, what): [] for kind in sides for what in ("step", "update")}
            for turn in range(o.rounds):
                order = list(sides.items())
                for kind, side in order if turn % 2 == 0 else reversed(order):
                    times[kind, "step"].append(side.ask("step", name, batch, length, 1)[0])
                    times[kind, "update"].append(side.ask("update", name, 3)[0])
            for what in ("step", "update"):
                mine = statistics.median(times["calque", what])
                row = {"model": name, "what": what, "batch": batch, "length": length, "calque_ms": round(mine / 1e6, 1)}
                for kind in kinds:
                    there = statistics.median(times[kind, what])
                    row[f"{kind}_ms"], row[f"over_{kind}"] = round(there / 1e6, 1), round(there / mine, 2)
                print(json.dumps(row), flush=True)
            print(json.dumps({"model": name, "what": "peak memory, MB", **{kind: side.ask("memory")[0] // 1_000_000 for kind, side in sides.items()}}), flush=True)
            for side in sides.values():
                side.process.kill()
                side.process.wait()


if __name__ == "__main__":
    main()

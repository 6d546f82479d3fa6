"""Forward passes and decoding, Calque beside transformers on PyTorch eager, in one run.

A BERT-base-shaped encoder (12 layers, 768 wide; batch 1 and 8, lengths 16 to 512, with a mask) and a GPT-2-small-shaped decoder (12 layers, 768 wide;
a prompt of 128 tokens, then 64 new ones, greedy, with its cache), float32, two threads each. The weights are random; transformers
makes them once, and both load the same folder. Rounds alternate between the two, and so does who comes first; the table shows medians and
PyTorch's time over Calque's. Loading and imports are not counted.
"""
import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LENGTHS = (16, 32, 64, 128, 256, 512)


def ids_for(batch, length):
    return torch.tensor([(i * 7919 + 13) % 1000 + 5 for i in range(batch * length)]).view(batch, length)


class Torch:
    def __init__(self):
        self.models = {}

    def load(self, name, folder):
        kind = transformers.BertModel if name == "bert" else transformers.GPT2LMHeadModel
        self.models[name] = kind.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.no_grad()
    def forward(self, name, batch, length, times):
        ids, spent = ids_for(batch, length), []
        mask = torch.ones_like(ids)
        for _ in range(times):
            start = time.perf_counter_ns()
            out = self.models[name](input_ids=ids, attention_mask=mask).last_hidden_state
            spent.append(time.perf_counter_ns() - start)
        return sorted(spent)[len(spent) // 2], int(out.abs().mean().item() * 1e4)

    @torch.no_grad()
    def decode(self, name, prompt, new):
        first = []

        class Streamer(transformers.generation.streamers.BaseStreamer):
            def put(self, _):
                first.append(time.perf_counter_ns())

            def end(self):
                pass

        ids = ids_for(1, prompt)
        model = self.models[name]
        start = time.perf_counter_ns()
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, eos_token_id=None, pad_token_id=0, streamer=Streamer())
        end = time.perf_counter_ns()
        return end - start, end - first[1], out.sum().item()


class Calque:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))

    def load(self, name, folder):
        self.ask("load", name, folder)

    def forward(self, *arguments):
        return self.ask("forward", *arguments)

    def decode(self, *arguments):
        return self.ask("decode", *arguments)


def make_models(folder):
    torch.manual_seed(0)
    bert, gpt2 = os.path.join(folder, "bert"), os.path.join(folder, "gpt2")
    transformers.BertModel(transformers.BertConfig()).save_pretrained(bert)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    with torch.no_grad():  # tokens that differ by more than rounding
        for parameter in model.parameters():
            parameter.mul_(3)
    model.save_pretrained(gpt2)
    return {"bert": bert, "gpt2": gpt2}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/bench_forward"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["encoder", "decode"])
    parser.add_argument("--json", help="a file to write the numbers to")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(2)
    rows = []
    if args.only != "decode":
        rows += [("forward", "bert", batch, length, max(1, 1024 // (batch * length))) for batch in (1, 8) for length in LENGTHS]
    if args.only != "encoder":
        rows += [("decode", "gpt2", 128, 64)]
    with tempfile.TemporaryDirectory() as folder:
        models = make_models(folder)
        sides = [Calque(args.program), Torch()]
        for side in sides:
            for name, path in models.items():
                side.load(name, path)
        for row in rows:  # warm
            answers = [getattr(side, row[0])(*row[1:]) for side in sides]
            close = abs(answers[0][-1] - answers[1][-1]) <= (2 if row[0] == "forward" else 0)
            if not close:
                print(f"{row}: the results differ: {answers}")
        times = {row: ([], []) for row in rows}
        for round_ in range(args.rounds):
            for row in rows:
                for i in ((0, 1), (1, 0))[round_ % 2]:
                    times[row][i].append(getattr(sides[i], row[0])(*row[1:]))
    out = []
    print(f"{'row':32} {'Calque ms':>10} {'PyTorch ms':>11} {'times':>6}")

    def show(label, calque, pytorch):
        out.append({"row": label, "calque_ms": calque, "pytorch_ms": pytorch, "ratio": pytorch / calque})
        print(f"{label:32} {calque:10.2f} {pytorch:11.2f} {pytorch / calque:6.2f}")

    for row, (ours, theirs) in times.items():
        median = [[statistics.median(values) / 1e6 for values in zip(*side)] for side in (ours, theirs)]
        if row[0] == "forward":
            show(f"BERT-base, batch {row[2]}, length {row[3]}", median[0][0], median[1][0])
        else:
            show(f"GPT-2, prompt {row[2]}, {row[3]} tokens", median[0][0], median[1][0])
            show(f"  a token after the first", median[0][1] / (row[3] - 1), median[1][1] / (row[3] - 1))
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"torch": torch.__version__, "transformers": transformers.__version__, "threads": 2, "rounds": args.rounds, "rows": out}, f, indent=1)
            f.write("\n")
    return 0 if all(row["ratio"] >= 1 for row in out) else 1


if __name__ == "__main__":
    sys.exit(main())

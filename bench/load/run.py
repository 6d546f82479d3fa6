"""A model folder to its first logits, Calque beside transformers on PyTorch, in one run.

A Llama-shaped checkpoint of 1.1 billion parameters in bfloat16, three shards of safetensors (2.2 GB, made in a temporary folder), a prompt of 16
tokens, two threads each. Each run is a process of its own; imports are not counted. Rounds alternate, and so does who comes first; the table shows
medians, the fastest run, and the peak of resident memory over the bytes of the weights.

Warm: a second start; the page cache is as the side's own first start left it. Cold: posix_fadvise(DONTNEED) on each file before each run, and beside
it the disk in the same rounds: the fastest plain reader of the same files (four threads, O_DIRECT, 4 MB at a time, huge pages), once into memory that
is new to it and holds all, as any loader must have it, and once over and over the same 16 MB, which never leave a processor's cache. The first is the
baseline: where a virtual machine has given free memory back to its host, finding it again costs more than the device does.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHAPE = dict(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048)

PEER = """
import os, sys, time, warnings
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
warnings.filterwarnings("ignore")
import torch, transformers
from transformers import LlamaForCausalLM
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(2)
ids = (torch.arange(16) * 37 + 5).unsqueeze(0)
with torch.no_grad():
    start, spent = time.perf_counter_ns(), time.process_time_ns()
    model = LlamaForCausalLM.from_pretrained(sys.argv[1]).eval()
    loaded = time.perf_counter_ns() - start
    logits = model(ids).logits
    first, spent = time.perf_counter_ns() - start, time.process_time_ns() - spent
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(loaded, first, spent, peak, f"{logits.float().abs().mean().item():.4f}")
"""


def make(folder, layers):
    import torch
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**dict(SHAPE, num_hidden_layers=layers), dtype="bfloat16", architectures=["LlamaForCausalLM"])
    with torch.device("meta"):
        shapes = [(name, tuple(t.shape)) for name, t in LlamaForCausalLM(config).state_dict().items()]
    total = sum(2 * torch.Size(shape).numel() for _, shape in shapes)
    torch.manual_seed(0)
    shards, size = [{}], 0
    for name, shape in shapes:
        if size > total / 3 and len(shards) < 3:
            shards.append({})
            size = 0
        shards[-1][name] = torch.ones(shape, dtype=torch.bfloat16) if len(shape) == 1 else torch.empty(shape, dtype=torch.bfloat16).normal_(0, 0.02)
        size += 2 * shards[-1][name].numel()
    weight_map = {}
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        save_file(shard, os.path.join(folder, file), metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(shard, file))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, f)
    config.save_pretrained(folder)
    return total


def files_of(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".safetensors")]


def forget(folder):
    for path in files_of(folder):
        with open(path, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def worker(program, folder, what, environment):
    done = subprocess.run([program, folder, what], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{program} {what}: {done.stderr.strip()[-800:]}")
    return done.stdout


def start(who, command, environment):
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{who}: {done.stderr.strip()[-800:]}")
    loaded, first, spent, peak, mean = done.stdout.split()
    return int(loaded) / 1e9, int(first) / 1e9, int(spent) / 1e9, int(peak), float(mean)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=22, help="22 make 1.1 billion parameters")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/bench_load"))
    parser.add_argument("--before", help="the bench_load of another build, to compare with instead of transformers: ratios above 1 are faster now")
    parser.add_argument("--folder", help="where to put the checkpoint; it is kept")
    parser.add_argument("--json", help="where to write the results")
    options = parser.parse_args()
    import transformers

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        index = os.path.join(folder, "model.safetensors.index.json")
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(index):
            with open(index) as f:
                weights = json.load(f)["metadata"]["total_size"]
        else:
            weights = make(folder, options.layers)
        environment = dict(os.environ, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2", CALQUE_NUM_THREADS="2", ONEDNN_MAX_CPU_ISA=os.environ.get("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"))
        other = "before" if options.before else "transformers"
        commands = {other: [options.before, folder] if options.before else [sys.executable, "-c", PEER, folder], "Calque": [options.program, folder]}
        states = ("warm", "cold")
        results = {(state, who): [] for state in states for who in commands}
        disk = {"keeping": [], "passing": []}
        for state in states:
            for round_ in range(options.rounds):
                order = list(commands)
                for who in order if round_ % 2 == 0 else reversed(order):
                    forget(folder)
                    if state == "warm":
                        start(who, commands[who], environment)
                    results[state, who].append(start(who, commands[who], environment))
                if state == "cold":
                    forget(folder)
                    keeping, passing = worker(options.program, folder, "disk", environment).split()
                    disk["passing"].append(int(passing) / 1e9)
                    disk["keeping"].append(int(keeping) / 1e9)
        print(f"{weights / 2e9:.2f} billion parameters in bfloat16, {weights / 1e9:.2f} GB in {len(files_of(folder))} shards; 16 tokens; 2 threads; {options.before or 'transformers ' + transformers.__version__} beside Calque; medians of {options.rounds} alternating rounds")
        print(f"{'':12}{'':14}{'model':>10}{'logits':>10}{'fastest':>10}{'ratio':>8}{'processor':>12}{'peak/weights':>14}{'mean |logit|':>14}")
        table = []
        for state in states:
            medians = {who: [statistics.median(column) for column in zip(*results[state, who])] for who in commands}
            for who in commands:
                loaded, first, spent, peak, mean = medians[who]
                fastest = min(one[1] for one in results[state, who])
                ratio = medians[other][1] / first
                print(f"{state:12}{who:14}{loaded:>8.3f} s{first:>8.3f} s{fastest:>8.3f} s{ratio:>7.2f}x{spent:>10.3f} s{peak / weights:>14.3f}{mean:>14.4f}")
                table.append(dict(state=state, who=who, model_s=loaded, logits_s=first, fastest_s=fastest, ratio=ratio, processor_s=spent, peak_over_weights=peak / weights))
            if state == "cold":
                calque = medians["Calque"][1]
                for how, all_seconds in disk.items():
                    seconds = statistics.median(all_seconds)
                    print(f"{state:12}{'the disk':14}{'':>10}{seconds:>8.3f} s{min(all_seconds):>8.3f} s   {how} what it reads; Calque takes {calque / seconds:.2f} of it")
                    table.append(dict(state=state, who="disk, " + how, logits_s=seconds, fastest_s=min(all_seconds), calque_over_disk=calque / seconds))
        if options.json:
            with open(options.json, "w") as f:
                json.dump(dict(transformers=transformers.__version__, rounds=options.rounds, weights=weights, rows=table), f, indent=1)


if __name__ == "__main__":
    main()

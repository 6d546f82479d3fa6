"""Programs through plans, beside PyTorch (eager and torch.compile), ONNX Runtime and OpenVINO, two threads each, in one run.

Models have random weights of their real sizes. transformers makes each once; PyTorch exports the program that Calque runs, and the ONNX file for the two others. Inputs are the same.
Rounds alternate between all sides, in changing order. The table shows medians in milliseconds and, behind the slash, processor time (of both threads), which a busy machine disturbs
less; then Calque over the best peer with a 95 % interval from the rounds. Loading, exporting and compiling is not counted. Every side's result is compared with PyTorch's first.

A row's roofline is the time that its products need at the rate of multiplications, or its weights at the rate of reading, that the machine showed in the same rounds, whichever is
longer. Rows that reach 85 % of it leave the mean: there is nothing left to gain. In bfloat16 ONNX Runtime is left out (it has no such kernels for processors), OpenVINO gets the float32 file and the hint.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "2"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "calque", "bench-models")


DTYPE = torch.float32


class Decode(torch.nn.Module):
    """One more token of a text whose keys and values are inputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, keys, values):
        cache = tf.DynamicCache()
        for i, (k, v) in enumerate(zip(keys.unbind(0), values.unbind(0))):
            cache.update(k, v, i)
        position = torch.full((1, 1), keys.shape[3], dtype=torch.int64)
        return self.model(input_ids=ids, past_key_values=cache, position_ids=position, use_cache=True).logits


class First(torch.nn.Module):
    """The first output, of inputs by position: what all sides can run."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        out = self.model(**dict(zip(self.names, inputs)), return_dict=True)
        return out.logits if "logits" in out else out.last_hidden_state


def text(model):
    return First(model, ["input_ids", "attention_mask"])


def ids(batch, length):
    tokens = torch.tensor([(i * 7919 + 13) % 1000 + 5 for i in range(batch * length)]).view(batch, length)
    return tokens, torch.ones_like(tokens)


def image(batch, size):
    return (torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0), dtype=torch.float32).to(DTYPE),)


def sound():
    return (torch.randn(1, 80, 3000, generator=torch.Generator().manual_seed(0), dtype=torch.float32).to(DTYPE),)


def past(length):
    numbers = torch.randn(2, 12, 1, 12, length, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float32).to(DTYPE)
    return torch.full((1, 1), 17), numbers[0], numbers[1]


class Encoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, features):
        return self.model(features).last_hidden_state


BOTH = ({0: "batch", 1: "length"}, {0: "batch", 1: "length"})
MODELS = {
    "bert": (lambda: text(tf.BertModel(tf.BertConfig())), BOTH),
    "minilm": (lambda: text(tf.BertModel(tf.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536))), BOTH),
    "distilbert": (lambda: text(tf.DistilBertModel(tf.DistilBertConfig())), BOTH),
    "t5": (lambda: text(tf.T5EncoderModel(tf.T5Config(d_model=512, num_layers=6))), BOTH),
    "gpt2": (lambda: text(tf.GPT2LMHeadModel(tf.GPT2Config(use_cache=False))), BOTH),
    "resnet": (lambda: First(tf.ResNetForImageClassification(tf.ResNetConfig(num_labels=1000)), ["pixel_values"]), ({0: "batch"},)),
    "vit": (lambda: First(tf.ViTModel(tf.ViTConfig()), ["pixel_values"]), ({0: "batch"},)),
    "decode": (lambda: Decode(tf.GPT2LMHeadModel(tf.GPT2Config())), None),
    "whisper": (lambda: Encoder(tf.WhisperModel(tf.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, decoder_layers=1)).encoder), None),
}
ROWS = {
    "bert 1x16": ("bert", lambda: ids(1, 16)), "bert 1x128": ("bert", lambda: ids(1, 128)), "bert 8x128": ("bert", lambda: ids(8, 128)), "bert 1x512": ("bert", lambda: ids(1, 512)),
    "minilm 1x16": ("minilm", lambda: ids(1, 16)), "minilm 1x128": ("minilm", lambda: ids(1, 128)), "minilm 32x128": ("minilm", lambda: ids(32, 128)),
    "distilbert 1x128": ("distilbert", lambda: ids(1, 128)), "t5 encoder 1x128": ("t5", lambda: ids(1, 128)), "gpt2 prefill 1x512": ("gpt2", lambda: ids(1, 512)),
    "resnet50 1": ("resnet", lambda: image(1, 224)), "resnet50 8": ("resnet", lambda: image(8, 224)), "vit 1": ("vit", lambda: image(1, 224)),
    "gpt2 decode 1x128": ("decode", lambda: past(127)), "whisper-tiny encoder": ("whisper", sound),
}


def make(name):
    """The model; its program and ONNX file are made where they are not there yet."""
    build, dims = MODELS[name]
    torch.manual_seed(0)
    model = build().eval()
    example = next(inputs for row, (m, inputs) in ROWS.items() if m == name)()
    if dims:
        example = tuple(x.repeat(2, *[1] * (x.dim() - 1)) for x in example)
    wide = DTYPE == torch.float32
    program, onnx = os.path.join(WORK, name + ("" if wide else ".bf16") + ".pt2"), os.path.join(WORK, name + ".onnx")
    names = [f"input{i}" for i in range(len(example))]
    if not os.path.exists(onnx):
        axes = {n: dict(d) for n, d in zip(names, dims)} if dims else None
        floats = tuple(x.float() if x.is_floating_point() else x for x in example)
        torch.onnx.export(model, floats, onnx + ".part", input_names=names, output_names=["out"], dynamic_axes=axes, dynamo=False)
        os.replace(onnx + ".part", onnx)
    model = model.to(DTYPE)
    if not os.path.exists(program):
        sizes = {"batch": torch.export.Dim("batch", min=1, max=64), "length": torch.export.Dim("length", min=2, max=512)}
        shapes = tuple({d: sizes[n] for d, n in dim.items()} for dim in dims) if dims else None
        if shapes and not isinstance(model, (Decode, Encoder)):
            shapes = (shapes,)
        torch.export.save(torch.export.export(model, example, strict=False, dynamic_shapes=shapes), program + ".part.pt2")
        os.replace(program + ".part.pt2", program)
    return model, program, onnx


def least_work(model, inputs):
    """Multiplications and additions of the products, and bytes of the weights that they read."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode
    # The counter knows products; of attention in one pass it knows nothing.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.inference_mode():
        model(*inputs)
    kinds = ("Linear", "Conv1D", "Conv2d", "Conv1d")
    weights = sum(m.weight.numel() * m.weight.element_size() for m in model.modules() if type(m).__name__ in kinds)
    return counter.get_total_flops(), weights


class Side:
    def prepare(self, inputs):
        self.inputs = inputs

    def timed(self, times):
        """Median milliseconds of `times` runs, and processor time of one."""
        spent, before = [], time.process_time()
        for _ in range(times):
            start = time.perf_counter()
            self.once()
            spent.append(time.perf_counter() - start)
        return statistics.median(spent) * 1e3, (time.process_time() - before) / times * 1e3


class Eager(Side):
    name = "PyTorch " + torch.__version__

    def __init__(self, model, program, onnx):
        self.model = model

    @torch.inference_mode()
    def once(self):
        return self.model(*self.inputs).float().numpy()


class Compiled(Eager):
    name = "torch.compile"

    def __init__(self, model, program, onnx):
        self.model = torch.compile(model, dynamic=False)


class Onnx(Side):
    name = "ONNX Runtime"

    def __init__(self, model, program, onnx):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = 2, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        self.session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])

    def prepare(self, inputs):
        self.inputs = {i.name: x.numpy() for i, x in zip(self.session.get_inputs(), inputs)}

    def once(self):
        return self.session.run(None, self.inputs)[0]


class OpenVino(Side):
    name = "OpenVINO"

    def __init__(self, model, program, onnx):
        import openvino
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32" if DTYPE == torch.float32 else "bf16"})
        self.model = core.compile_model(onnx, "CPU", {"PERFORMANCE_HINT": "LATENCY"})

    def prepare(self, inputs):
        self.inputs = [x.float().numpy() if x.is_floating_point() else x.numpy() for x in inputs][: len(self.model.inputs)]

    def once(self):
        return self.model(self.inputs)[0]


class Calque(Side):
    name, how = "Calque", "plan"

    def __init__(self, model, program, onnx):
        self.process = subprocess.Popen([os.path.join(ROOT, "build/release/bin/bench_models")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.plan_ms = self.ask("load", "m", program, self.how)[0] / 1e6
        user = torch.export.graph_signature.InputKind.USER_INPUT
        self.names = [s.arg.name for s in torch.export.load(program).graph_signature.input_specs if s.kind == user]

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return [int(x) for x in self.process.stdout.readline().split()]

    def prepare(self, inputs):
        path = os.path.join(WORK, f"inputs-{os.getpid()}.safetensors")
        save_file(dict(zip(self.names, (x.contiguous() for x in inputs))), path)
        self.ask("inputs", "m", path)
        os.remove(path)

    def once(self):
        path = os.path.join(WORK, f"outputs-{os.getpid()}.safetensors")
        self.ask("outputs", "m", path)
        out = load_file(path)["0"].float().numpy()
        os.remove(path)
        return out

    def timed(self, times):
        return tuple(x / 1e6 for x in self.ask("run", "m", times))


    def roofline(self):
        """Operations and bytes a second that the machine gives now."""
        return tuple(x * 1e6 for x in self.ask("roofline", "m"))


class Interpreted(Calque):
    name, how = "Calque, interpreter", "eager"


def at_real_time(side, on):
    """All threads of the side's process, and no others: pools of peers that wait actively would keep a processor from the one that is measured."""
    pid = side.process.pid if isinstance(side, Calque) else os.getpid()
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_FIFO if on else os.SCHED_OTHER, os.sched_param(50 if on else 0))


def measure(row, options):
    name, inputs = ROWS[row]
    model, program, onnx = make(name)
    kinds = [Calque] + ([Interpreted] if options.interpreter else []) + [k for k in (Eager, Compiled, Onnx, OpenVino) if k.name.split()[0].lower() not in options.without]
    sides, expected = [], None
    with torch.inference_mode():
        expected = model(*inputs()).float().numpy()
    for kind in kinds:
        side = kind(model, program, onnx)
        side.prepare(inputs())
        worst = float(np.abs(side.once() - expected).max())
        if not worst < (1e-3 if DTYPE == torch.float32 else 0.05 * float(np.abs(expected).max())):
            print(f"# {row}: {side.name} differs from PyTorch by {worst:.2g}", flush=True)
        sides.append(side)
    times = {s.name: [] for s in sides}
    order = list(sides)
    estimate = max(s.timed(2)[0] for s in sides)
    repeat = max(1, min(20, int(options.round_ms / estimate)))
    rates = (0.0, 0.0)
    for _ in range(options.rounds):
        if options.real_time:
            at_real_time(sides[0], True)
        rates = tuple(map(max, rates, sides[0].roofline()))
        random.shuffle(order)
        for side in order:
            if options.real_time:
                at_real_time(side, True)
            times[side.name].append(side.timed(repeat))
            if options.real_time:
                at_real_time(side, False)
    middle = {n: (statistics.median(t[0] for t in ts), statistics.median(t[1] for t in ts)) for n, ts in times.items()}
    peers = [n for n in middle if not n.startswith("Calque")]
    out = {"row": row, "plan_ms": sides[0].plan_ms, "ms": {n: m[0] for n, m in middle.items()}, "processor_ms": {n: m[1] for n, m in middle.items()}}
    if peers:
        best = min(peers, key=lambda n: middle[n][0])
        ratios = sorted(b[0] / c[0] for b, c in zip(times[best], times["Calque"]))
        cut = max(0, int(len(ratios) * 0.025))
        out.update(best=best, ratio=middle[best][0] / middle["Calque"][0], interval=[ratios[cut], ratios[-1 - cut]],
                   eager_ratio=middle[Eager.name][0] / middle["Calque"][0] if Eager.name in middle else None)
    if DTYPE == torch.float32:
        operations, weights = least_work(model, inputs())
        out["roofline"] = 1e3 * max(operations / rates[0], weights / rates[1]) / middle["Calque"][0]
        out["rates"] = rates
    for side in sides:
        if isinstance(side, Calque):
            side.process.stdin.close()
            side.process.wait()
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--rows", nargs="*", default=list(ROWS), help="names, or parts of names")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--round-ms", type=float, default=300, help="about so long each side runs in a round")
    p.add_argument("--without", nargs="*", default=["torch.compile"], help="peers that are left out (pytorch, torch.compile, onnx, openvino); by default torch.compile, which compiles for a minute a row")
    p.add_argument("--interpreter", action="store_true", help="Calque's interpreter too")
    p.add_argument("--json", help="a file to write; rows that it has already are kept")
    p.add_argument("--real-time", action="store_true", help="all threads at real-time priority while they are measured, and only then")
    p.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = p.parse_args()
    global DTYPE
    DTYPE = getattr(torch, options.dtype)
    if options.dtype == "bfloat16":
        options.without.append("onnx")
    os.makedirs(WORK, exist_ok=True)
    warnings.filterwarnings("ignore")
    tf.logging.set_verbosity_error()
    torch.set_num_threads(2)
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    print(f"# {cpu}, 2 threads, {options.dtype}, {options.rounds} rounds; ms / processor ms", flush=True)
    results = []
    named = [r for r in ROWS if r in options.rows]
    for row in named or [r for r in ROWS if any(part in r for part in options.rows)]:
        r = measure(row, options)
        results.append(r)
        cells = "  ".join(f"{n} {r['ms'][n]:.1f}/{r['processor_ms'][n]:.0f}" for n in r["ms"])
        verdict = f"  best peer/Calque {r['ratio']:.2f} [{r['interval'][0]:.2f}, {r['interval'][1]:.2f}]" if "best" in r else ""
        roofline = f"  {100 * r['roofline']:.0f} % of the roofline" if "roofline" in r else ""
        print(f"{row:20}  {cells}{verdict}{roofline}  plan made in {r['plan_ms']:.0f} ms", flush=True)
        if options.json:
            kept = json.load(open(options.json))["rows"] if os.path.exists(options.json) else []
            kept = [k for k in kept if k["row"] != row]
            with open(options.json, "w") as f:
                json.dump({"processor": cpu, "dtype": options.dtype, "rows": kept + [r]}, f, indent=1)
    compared = [r for r in results if "best" in r]
    counted = [r["ratio"] for r in compared if r.get("roofline", 0) < 0.85]
    if compared:
        print(f"# geometric mean: {statistics.geometric_mean([r['ratio'] for r in compared]):.2f} of the best peer's speed", flush=True)
    if counted:
        print(f"# of {len(counted)} rows below 85 % of the roofline: {statistics.geometric_mean(counted):.2f}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Every number of every architecture's configuration, replaced by hostile values, through the command line.

  tools/hostile_configs.py CALQUE [--models tests/zoo/golden] [--only NAME] [--jobs N] [--verbose]

For each model folder and each number in its config.json (also inside objects and lists), the value becomes 0, -1, 1, 2^31,
2^63-1, 1.5 and a text; keys that a file need not have are added with the extremes. `info`, `trace` and `forward` run on it
with the folder's weights and with an empty weight file. Each run must end with status 0 or 2, and within the time limit. Prints
counts, the slowest runs and every failure; exits 1 when there is one.
"""

import argparse
import collections
import concurrent.futures
import copy
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

VALUES = [0, -1, 1, 2**31, 2**63 - 1, 1.5, "text"]
# Keys that a file need not have and that are read all the same.
ADDED = ["num_labels", "chunk_size_feed_forward", "head_dim", "pad_token_id", "eos_token_id", "decoder_start_token_id",
         "rope_theta", "partial_rotary_factor", "embedding_size", "conv_kernel_size", "conv_groups", "position_buckets",
         "max_relative_positions", "cross_attention_hidden_size", "n_inner", "rotary_dim", "n_embed", "attention_head_size",
         "pooler_hidden_size", "word_embed_proj_dim", "num_key_value_heads", "original_max_position_embeddings",
         "id2label", "pruned_heads", "rope_scaling", "layer_types", "eos_token_id[]"]
EMPTY = struct.pack("<Q", 2) + b"{}"


def numbers(value, path=()):
    """The paths of the numbers in a configuration."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("label2id", "transformers_version"):
                yield from numbers(inner, path + (key,))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, path + (i,))


def replaced(config, path, value):
    out = copy.deepcopy(config)
    at = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return out


def cases(config):
    paths = list(numbers(config))
    for path in paths:
        for value in VALUES:
            yield ".".join(map(str, path)), value, replaced(config, path, value)
    for key in ADDED:
        if key == "eos_token_id[]":
            yield "eos_token_id", [], replaced(config, ("eos_token_id",), [])
        elif (key,) not in paths:
            for value in (0, 2**63 - 1):
                yield key, value, replaced(config, (key,), value)


def int64_tensors(tensors):
    header, data = {}, b""
    for name, rows in tensors.items():
        flat = [x for row in rows for x in row]
        begin = len(data)
        data += struct.pack(f"<{len(flat)}q", *flat)
        header[name] = {"dtype": "I64", "shape": [len(rows), len(rows[0])], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def run(calque, command, folder, limit):
    """Status (negative for a signal), seconds, seconds of processor time, MB resident, what it said."""
    args = [calque, command, folder]
    if command == "forward":
        args += ["--inputs", os.path.join(folder, "inputs.safetensors")]
    start = time.monotonic()
    with open(os.path.join(folder, "stderr"), "w+b") as errors:
        process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=errors)
        killer = threading.Timer(limit, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        killer.cancel()
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    return process.returncode, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def one_case(options, work, model, files, name, value, config):
    out = []
    with tempfile.TemporaryDirectory(dir=work) as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        inputs = {"input_ids": [[3, 4, 5, 6, 7], [8, 9, 3, 4, 5]]}
        if config.get("is_encoder_decoder") is True:
            inputs["decoder_input_ids"] = [[3, 4, 5], [6, 7, 8]]
        with open(os.path.join(folder, "inputs.safetensors"), "wb") as f:
            f.write(int64_tensors(inputs))
        for weights in ("tiny", "none"):
            with open(os.path.join(folder, "model.safetensors"), "wb") as f:
                f.write(files if weights == "tiny" else EMPTY)
            for command in options.commands:
                result = run(options.calque, command, folder, options.limit)
                out.append((f"{model} {name}={value!r} {command} {weights} weights", *result))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calque")
    parser.add_argument("--models", default=os.path.join(os.path.dirname(__file__), "../tests/zoo/golden"))
    parser.add_argument("--only", action="append", help="this model folder (may be given several times)")
    parser.add_argument("--commands", nargs="+", default=["info", "trace", "forward"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=10, help="seconds after which a run has failed")
    parser.add_argument("--share", type=float, default=1, help="only this share of the cases, drawn the same each time")
    parser.add_argument("--verbose", action="store_true", help="every run with its status and first line")
    options = parser.parse_args()

    chosen = random.Random(0)
    statuses, slow, failures = collections.Counter(), [], []
    most = [0.0, ""]
    work = tempfile.mkdtemp()
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            waiting = []
            for model in sorted(os.listdir(options.models)):
                if options.only and model not in options.only:
                    continue
                folder = os.path.join(options.models, model)
                with open(os.path.join(folder, "config.json")) as f:
                    config = json.load(f)
                with open(os.path.join(folder, "model.safetensors"), "rb") as f:
                    files = f.read()
                for name, value, changed in cases(config):
                    if chosen.random() >= options.share:
                        continue
                    waiting.append(pool.submit(one_case, options, work, model, files, name, value, changed))
            for done in waiting:
                for what, status, seconds, processor, resident, text in done.result():
                    statuses[status] += 1
                    slow.append((processor, seconds, what))
                    most = max(most, [resident, what])
                    line = (text.strip().splitlines() or [""])[-1][:160]
                    if status not in (0, 2):
                        failures.append(f"{what}: status {status}: {line}")
                    if options.verbose:
                        print(f"{status} {seconds:.2f} {what}: {line}")
    finally:
        shutil.rmtree(work)
    slow.sort(reverse=True)
    print(f"{sum(statuses.values())} runs, statuses {dict(statuses)}, {sum(s > 1 for s, _, _ in slow)} with more than 1 s of "
          f"processor time, {sum(s > 1 for _, s, _ in slow)} longer than 1 s, most memory {most[0]:.0f} MB ({most[1]})")
    for processor, seconds, what in slow[:5]:
        print(f"  {processor:.2f} s of processor time, {seconds:.2f} s: {what}")
    for failure in failures:
        print("FAILED " + failure)
    sys.exit(1 if failures else 0)


main()

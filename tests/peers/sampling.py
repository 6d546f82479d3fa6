#!/usr/bin/env python3
"""Logits processors and generate against transformers, live: python tests/peers/sampling.py [PROGRAM] [--all]

Every logits processor on random scores (ties, infinities, several dtypes), and whole generations, greedy and sampled from the
same seeds, over a model that is a table of logits. Ids must be equal; scores equal where they are only chosen or scaled,
within 2e-6 where a softmax is in them.
"""
import argparse
import inspect
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.generation import logits_process
from transformers.modeling_outputs import CausalLMOutput
from transformers.utils import logging

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.join(HERE, "..", "..", "assets", "tiny-lm")
APPROXIMATE = {"LogitNormalization"}


class TableConfig(PreTrainedConfig):
    model_type = "table"


class TableModel(PreTrainedModel, GenerationMixin):
    config_class = TableConfig

    def __init__(self, table):
        super().__init__(TableConfig(vocab_size=table.shape[0]))
        self.table = torch.nn.Parameter(table, requires_grad=False)

    def forward(self, input_ids, attention_mask=None, **_):
        return CausalLMOutput(logits=self.table[input_ids])

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}


def processor_cases(r, count):
    """(settings, how to make transformers' processor from them, tensors)"""
    for _ in range(count):
        batch, vocab, length = r.choice([1, 2, 4]), r.choice([3, 10, 97, 1000]), r.choice([1, 2, 5, 20])
        dtype = r.choice([torch.float32] * 4 + [torch.float64, torch.bfloat16])
        scores = torch.randn(batch, vocab, dtype=torch.float32) * r.choice([0.1, 1, 5, 20])
        if r.random() < 0.3:
            scores = scores.round()
        if r.random() < 0.3:
            scores[torch.rand_like(scores) < 0.2] = -float("inf")
            scores[:, r.randrange(vocab)] = 1.0
        name = r.choice(NAMES)
        if name == "TypicalLogitsWarper" and dtype == torch.bfloat16:
            dtype = torch.float32  # generate's scores are float32; in bfloat16 the last bit of a log-softmax chooses tokens
        scores = scores.to(dtype)
        ids = torch.randint(0, min(vocab, r.choice([2, 5, 1000])), (batch, length))
        eos = [r.randrange(vocab) for _ in range(r.randrange(1, 4))]
        kept = {"min_tokens_to_keep": r.choice([1, 1, 2, 3])}
        tensors, extra = {"ids": ids, "scores": scores}, {}
        if name == "MinLengthLogitsProcessor":
            s = {"min_length": r.randrange(12), "eos_token_id": eos}
        elif name == "MinNewTokensLengthLogitsProcessor":
            s = {"prompt_length_to_skip": r.randrange(8), "min_new_tokens": r.randrange(6), "eos_token_id": eos}
        elif name == "TemperatureLogitsWarper":
            s = {"temperature": r.uniform(0.1, 3)}
        elif name == "RepetitionPenaltyLogitsProcessor":
            s = {"penalty": r.uniform(0.5, 2)}
            if r.random() < 0.3 and length > 2:
                s["prompt_ignore_length"] = r.randrange(length)
        elif name in ("EncoderRepetitionPenaltyLogitsProcessor", "EncoderNoRepeatNGramLogitsProcessor"):
            beams = 2 if batch > 1 and r.random() < 0.5 else 1
            source = torch.randint(0, min(vocab, 5), (batch // beams, r.randrange(3, 9)))
            tensors["source"], extra["encoder_input_ids"] = source, source
            s = {"penalty": r.uniform(0.5, 2)} if "Penalty" in name else {"encoder_ngram_size": r.randrange(1, 4)}
            if "NGram" in name:
                s["encoder_ngram_size"] = min(s["encoder_ngram_size"], length)
        elif name == "TopPLogitsWarper":
            s = {"top_p": r.choice([0.0, 0.1, 0.5, 0.9, 0.95, 0.999, r.random()]), **kept}
        elif name == "TopKLogitsWarper":
            s = {"top_k": r.choice([1, 2, 5, 50]), **kept}
        elif name == "TopHLogitsWarper":
            s = {"top_h": r.uniform(0.05, 1)}
        elif name == "MinPLogitsWarper":
            s = {"min_p": r.choice([0.0, 0.05, 0.3, 1.0]), **kept}
        elif name == "TypicalLogitsWarper":
            s = {"mass": r.uniform(0.05, 0.99), **kept}
        elif name in ("EpsilonLogitsWarper", "EtaLogitsWarper"):
            s = {"epsilon": r.choice([3e-4, 0.01, 0.1, 0.5]), **kept}
        elif name == "NoRepeatNGramLogitsProcessor":
            s = {"ngram_size": r.randrange(1, 5)}
        elif name == "SequenceBiasLogitsProcessor":
            s = {"sequence_bias": [[list(x), r.uniform(-9, 9)] for x in
                                   {tuple(r.randrange(min(vocab, 5)) for _ in range(r.randrange(1, 4))) for _ in range(8)}]}
        elif name == "NoBadWordsLogitsProcessor":
            s = {"bad_words_ids": [[(eos[0] + 1) % vocab]] + [[r.randrange(min(vocab, 5)) for _ in range(r.randrange(1, 4))]
                                                      for _ in range(5)], "eos_token_id": eos}
            if all(w in [[e] for e in eos] for w in s["bad_words_ids"]):
                continue
        elif name == "PrefixConstrainedLogitsProcessor":
            beams = 2 if batch > 1 and r.random() < 0.5 else 1
            allowed = [[r.randrange(vocab) for _ in range(r.randrange(1, 4))] for _ in range(3)]
            s = {"num_beams": beams}
            extra["prefix_allowed_tokens_fn"] = lambda _, row, allowed=allowed: allowed[int(row[-1]) % 3]
            extra["settings"] = {"allowed": allowed}
        elif name == "ForcedBOSTokenLogitsProcessor":
            s = {"bos_token_id": r.randrange(vocab)}
        elif name == "ForcedEOSTokenLogitsProcessor":
            s = {"max_length": length + r.choice([0, 1, 1, 2]), "eos_token_id": eos}
        elif name == "InfNanRemoveLogitsProcessor":
            s = {}
            scores[0, 0], scores[-1, -1], scores[0, 1] = float("nan"), float("inf"), -float("inf")
        elif name == "ExponentialDecayLengthPenalty":
            s = {"start": r.randrange(6), "factor": r.uniform(1, 1.5), "eos_token_id": sorted(set(eos)), "input_ids_seq_length": r.randrange(4)}
        elif name == "LogitNormalization":
            s = {}
        elif name == "SuppressTokensLogitsProcessor":
            s = {"suppress_tokens": eos + [vocab + 5]}
        else:
            s = {"begin_suppress_tokens": eos, "begin_index": length + r.choice([0, 0, 1])}
        settings = extra.pop("settings", {})
        arguments = dict(s)
        if name == "ExponentialDecayLengthPenalty":
            arguments["exponential_decay_length_penalty"] = (arguments.pop("start"), arguments.pop("factor"))
        arguments.update(extra)
        try:
            expected = getattr(logits_process, name)(**arguments)(ids, scores.clone())
        except RuntimeError:
            continue  # a dtype that transformers itself cannot do
        case = {"processor": name, **s, **settings}
        if "source" in tensors:
            case["source"] = True
        yield case, tensors, {"out": expected}


NAMES = [name for name, c in inspect.getmembers(logits_process, inspect.isclass)
         if issubclass(c, logits_process.LogitsProcessor) and c is not logits_process.LogitsProcessor
         and not name.startswith(("Whisper", "ClassifierFree", "Alternating", "Unbatched", "Bark", "Watermark", "SynthID", "Dia"))]


def generate_cases(r, count, tokenizer):
    for _ in range(count):
        vocab = tokenizer.vocab_size if r.random() < 0.2 else r.choice([20, 50, 500])
        table = torch.randn(vocab, vocab) * r.choice([1, 3])
        prompt = torch.randint(0, vocab, (r.choice([1, 1, 3]), r.randrange(1, 6)))
        s = {"eos_token_id": r.choice([1, [0, 2]]), "pad_token_id": r.choice([3, 0])}
        s[r.choice(["max_new_tokens", "max_length"])] = r.randrange(7, 30)
        if r.random() < 0.6:
            s["do_sample"] = True
            for key, values in (("temperature", [0.7, 1.3]), ("top_k", [0, 5]), ("top_p", [0.8]), ("min_p", [0.05]), ("typical_p", [0.9]),
                                ("epsilon_cutoff", [0.01]), ("eta_cutoff", [0.01]), ("top_h", [0.5])):
                if r.random() < 0.3:
                    s[key] = r.choice(values)
            if r.random() < 0.3:
                s["num_return_sequences"] = 2
        for key, values in (("repetition_penalty", [1.2]), ("no_repeat_ngram_size", [2, 3]), ("min_length", [6]), ("min_new_tokens", [5]),
                            ("bad_words_ids", [[[4], [1, 2]]]), ("forced_eos_token_id", [1]), ("suppress_tokens", [[2, 4]]),
                            ("begin_suppress_tokens", [[0]]), ("exponential_decay_length_penalty", [[2, 1.2]]), ("renormalize_logits", [True]),
                            ("sequence_bias", [[[[0], 2.0], [[1, 2], -3.0]]]), ("remove_invalid_values", [True])):
            if r.random() < 0.15:
                s[key] = r.choice(values)
        if vocab == tokenizer.vocab_size and r.random() < 0.7:
            s["stop_strings"] = r.choice([["e"], ["the", "a "], ["in"]])
        s["return_dict_in_generate"] = s["output_scores"] = True
        seed = r.randrange(1000)
        model = TableModel(table).eval()
        torch.manual_seed(seed)
        try:
            out = model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=GenerationConfig(**s, use_cache=False),
                                 **({"tokenizer": tokenizer} if "stop_strings" in s else {}))
        except RuntimeError:
            continue  # every token is banned
        yield ({"generate": s, "seed": seed}, {"prompt": prompt, "table": table},
               {"out": out.sequences, "steps": torch.stack(out.scores, 1)})


def same(name, key, found, expected):
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{list(found.shape)} {found.dtype}, expected {list(expected.shape)} {expected.dtype}"
    if expected.dtype == torch.int64:
        return "" if torch.equal(found, expected) else f"{found.tolist()}, expected {expected.tolist()}"
    exact = key == "out" and name not in APPROXIMATE
    tolerance = 0 if exact else 1e-2 if expected.dtype == torch.bfloat16 else 2e-6
    close = torch.isclose(found.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if close.all():
        return ""
    at = (~close).nonzero()[0].tolist()
    return f"{(~close).sum()} scores differ, first at {at}: {found[tuple(at)]}, expected {expected[tuple(at)]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=os.path.join(os.environ.get("CALQUE_BUILD", ""), "bin/sampling_peer"))
    parser.add_argument("--all", action="store_true", help="ten times as many cases")
    args = parser.parse_args()
    logging.set_verbosity_error()
    torch.manual_seed(0)
    r = random.Random(0)
    scale = 10 if args.all else 1
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(TINY, "tokenizer.json"))
    cases = list(processor_cases(r, 1500 * scale)) + list(generate_cases(r, 100 * scale, tokenizer))
    with tempfile.TemporaryDirectory() as folder:
        lines, given, made = (os.path.join(folder, n) for n in ("cases", "given", "made"))
        with open(lines, "w") as f:
            f.writelines(json.dumps(c) + "\n" for c, _, _ in cases)
        save_file({f"{k}.{i}": v.contiguous() for i, (_, t, _) in enumerate(cases) for k, v in t.items()}, given)
        subprocess.run([args.program, lines, given, TINY, made], check=True)
        found = load_file(made)
    counts, failed = {}, 0
    for i, (case, _, expected) in enumerate(cases):
        name = case.get("processor", "generate, sampled" if case.get("generate", {}).get("do_sample") else "generate, greedy")
        problems = [p for k, v in expected.items() if (p := f"{k}.{i} is missing" if f"{k}.{i}" not in found
                                                      else same(name, k, found[f"{k}.{i}"], v))]
        counts.setdefault(name, [0, 0])[bool(problems)] += 1
        if problems:
            failed += 1
            if failed <= 10:
                print("DIFFERENT", json.dumps(case)[:400], "\n  ", problems[0][:500])
    for name, (equal, wrong) in sorted(counts.items()):
        print(f"{name:45} {equal:5} equal, {wrong} differ")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""generate beside transformers: greedy, sampled from the same seeds, with beams and with candidates of an assistant or of the prompt,
with padding, processors and stop conditions, from ids and from embeddings that no ids have (with ids beside them, or none), on tiny-lm and on tiny random models of other architectures. The ids must be equal. --all takes ten times as many cases, and every
decoder of src/zoo; --only ARCH takes one architecture. Where the two likeliest tokens are within 1e-4 of each other at some step, a case proves nothing and is left out.
"""
import argparse
import copy
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import warnings

import models
import torch
import transformers
import zoo_cases
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TINY = os.path.join(ROOT, "assets", "tiny-lm")
PEER = os.path.join(os.environ.get("CALQUE_BUILD", os.path.join(ROOT, "build", "release")), "bin", "generate_peer")

SMALL = dict(vocab_size=99, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None, forced_bos_token_id=None)
DECODER = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64, bos_token_id=0, eos_token_id=2, pad_token_id=1)
XLNET = dict(vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=40, mem_len=None, bos_token_id=0, eos_token_id=2, pad_token_id=1)
XLM = dict(vocab_size=99, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=64, mask_token_id=5, bos_token_id=0, eos_token_id=2, pad_token_id=1)
NEXT_WORD = ("xlnet", "xlm", "flaubert")  # say one word at a time, after ids
MODELS = {  # architecture: class, configuration; those whose files Calque has
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    "gptj": ("GPTJForCausalLM", dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4, bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    # As many words as make greedy search look for the largest logit in an 8-bit copy of the head, whose bias counts too.
    "gptj wide": ("GPTJForCausalLM", dict(vocab_size=20000, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4, bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    "bloom": ("BloomForCausalLM", dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    "opt": ("OPTForCausalLM", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=37, max_position_embeddings=64, word_embed_proj_dim=16, bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    "falcon": ("FalconForCausalLM", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=40, alibi=True, bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    "mistral": ("MistralForCausalLM", dict(DECODER, sliding_window=4)),
    "gemma2": ("Gemma2ForCausalLM", dict(DECODER, head_dim=8, sliding_window=3)),
    "gemma3_text": ("Gemma3ForCausalLM", dict(DECODER, head_dim=8, sliding_window=3, layer_types=["sliding_attention", "full_attention"])),
    "mixtral": ("MixtralForCausalLM", dict(DECODER, num_local_experts=4)),
    "gpt_oss": ("GptOssForCausalLM", dict(DECODER, num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=3)),
    "deepseek_v3": ("DeepseekV3ForCausalLM", dict(DECODER, num_key_value_heads=4, moe_intermediate_size=24, n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3, kv_lora_rank=16, q_lora_rank=24, qk_rope_head_dim=8, v_head_dim=12, qk_nope_head_dim=16, first_k_dense_replace=1)),
    "xlnet": ("XLNetLMHeadModel", dict(XLNET)),
    "xlnet short memory": ("XLNetLMHeadModel", dict(XLNET, mem_len=5, clamp_len=3, same_length=True, ff_activation="relu")),
    "xlnet reused": ("XLNetLMHeadModel", dict(XLNET, mem_len=0, reuse_len=4, tie_word_embeddings=False)),
    "xlnet no memory": ("XLNetLMHeadModel", dict(XLNET, use_mems_eval=False)),
    "xlnet one way": ("XLNetLMHeadModel", dict(XLNET, attn_type="uni")),
    "xlnet one way, same length": ("XLNetLMHeadModel", dict(XLNET, attn_type="uni", same_length=True, mem_len=6)),
    "xlm": ("XLMWithLMHeadModel", dict(XLM, n_langs=3, lang_id=2)),
    "xlm causal": ("XLMWithLMHeadModel", dict(XLM, causal=True, gelu_activation=False, sinusoidal_embeddings=True)),
    "flaubert": ("FlaubertWithLMHeadModel", dict(XLM, n_langs=2, lang_id=1)),
    "bart": ("BartForConditionalGeneration", dict(SMALL, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64)),
    "t5": ("T5ForConditionalGeneration", dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_decoder_layers=2, num_heads=4, relative_attention_num_buckets=8, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)),
}


def every_decoder():
    """MODELS, and the other architectures of src/zoo/decoder in their first configurations."""
    out = dict(MODELS)
    for arch, task, cls in zoo_cases.classes(os.path.join(HERE, "zoo.tsv")):
        ours = os.path.exists(os.path.join(ROOT, "src", "zoo", "decoder", arch + ".cpp"))
        if task != "causal-lm" or not ours or arch in out or arch in ("speech_to_text_2", "trocr"):  # these go on from an encoder
            continue
        out[arch] = (cls, dict(models.module_of(arch).CONFIGS[0], bos_token_id=0, eos_token_id=2, pad_token_id=1))
    return out


def random_model(name, folder):
    cls, settings = every_decoder()[name]
    torch.manual_seed(0)
    config = type(transformers.AutoConfig.for_model(name.split()[0]))(**settings)
    model = getattr(transformers, cls)(config).eval()
    with torch.no_grad():  # larger, so that tokens are not all alike
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    return model


def assistant_of(model, folder):
    """A model that often, but not always, says what `model` says."""
    assistant = copy.deepcopy(model)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in assistant.parameters():
            parameter.add_(torch.randn_like(parameter) * parameter.abs().mean() * 0.15)
    assistant.save_pretrained(folder)
    return assistant


def settings_of(r, eos, vocab, tokenizer, encoder_decoder):
    s = {"eos_token_id": eos, "pad_token_id": r.choice([0, 1]) if encoder_decoder else 1 if vocab < 1000 else 0, "max_new_tokens": r.randrange(3, 20)}
    kind = r.choice(["greedy", "sample", "sample", "beams"])
    if kind == "sample":
        s["do_sample"] = True
        for key, values in (("temperature", [0.7, 1.3]), ("top_k", [0, 5]), ("top_p", [0.8]), ("min_p", [0.05]), ("typical_p", [0.9])):
            if r.random() < 0.35:
                s[key] = r.choice(values)
        if r.random() < 0.2:
            s["num_return_sequences"] = 2
    if kind == "beams":
        s["num_beams"] = r.choice([2, 3, 5])
        if r.random() < 0.4:
            s["num_return_sequences"] = 2
        if r.random() < 0.4:
            s["length_penalty"] = r.choice([0.0, 0.5, 2.0, -1.0])
        if r.random() < 0.4:
            s["early_stopping"] = r.choice([True, "never"])
    for key, values in (("repetition_penalty", [1.2]), ("no_repeat_ngram_size", [2]), ("min_new_tokens", [5]), ("suppress_tokens", [[5, 7]]),
                        ("bad_words_ids", [[[4], [5, 6]]]), ("forced_eos_token_id", [eos if isinstance(eos, int) else eos[0]]),
                        ("begin_suppress_tokens", [[3]]), ("renormalize_logits", [True])):
        if r.random() < 0.12:
            s[key] = r.choice(values)
    if r.random() < (0.3 if encoder_decoder else 0.15):  # without an encoder these look at the prompt
        key, value = r.choice([("forced_bos_token_id", 3), ("encoder_no_repeat_ngram_size", 2), ("encoder_repetition_penalty", 1.5)])
        s[key] = value
    if tokenizer and kind != "beams" and r.random() < 0.3:
        s["stop_strings"] = r.choice([["e"], [" the"], ["of the", "and"]])
    if r.random() < 0.15:
        s["use_cache"] = False
    elif tokenizer and r.random() < 0.2:  # beside masks of distances transformers has no static cache
        s["cache_implementation"] = r.choice(["dynamic", "static"])
    return s


def close_call(model, out, s):
    """Whether another order of rounding could have chosen another token."""
    for scores in out.scores:
        top = torch.topk(scores, 2, -1).values
        if ((top[:, 0] - top[:, 1]).abs() < 1e-4).any():
            return True
    return False


def embedded(r, model, x):
    """The inputs with embeddings in the place of the ids; beside them no ids, the same, or some of another length."""
    embeds = model.get_input_embeddings()(x["input_ids"]).detach()
    x = dict(x, inputs_embeds=embeds * r.choice([0.8, 1.1]))
    beside = "none" if model.config.is_encoder_decoder else r.choice(["none", "none", "same", "other"])
    if beside == "none":
        del x["input_ids"]
    if beside == "other":
        x["input_ids"] = torch.randint(3, model.config.vocab_size, (embeds.shape[0], r.randrange(1, 9)))
    return x


def cases(r, name, folder, model, tokenizer, count, embeds=False):
    encoder_decoder = model.config.is_encoder_decoder
    vocab = model.config.vocab_size
    next_word = name.startswith(NEXT_WORD)  # takes no mask, and no embeddings
    one_row = getattr(model.config, "attn_type", "bi") == "uni"  # transformers cannot add a mask of more than one row to its own
    made = 0
    while made < count:
        batch, length = 1 if one_row else r.choice([1, 1, 3]), r.randrange(1, 9)
        ids = torch.tensor([[r.randrange(3, vocab) for _ in range(length)] for _ in range(batch)])
        mask = torch.ones_like(ids)
        if batch > 1 and length > 2 and not next_word:
            for row in range(1, batch):
                pad = r.randrange(length - 1)
                mask[row, :pad] = 0
                if encoder_decoder:
                    mask[row] = mask[row].flip(0)
            ids[mask == 0] = 1 if vocab < 1000 else 0
        x = {"input_ids": ids} if next_word else {"input_ids": ids, "attention_mask": mask}
        if embeds:
            x = embedded(r, model, x)
        eos = model.config.eos_token_id if r.random() < 0.7 else [model.config.eos_token_id, 7]
        s = settings_of(r, eos, vocab, tokenizer, encoder_decoder)
        if embeds and r.random() < 0.4:
            s["max_length"] = s.pop("max_new_tokens") + max(length, x["input_ids"].shape[1] + length if "input_ids" in x else 0)
            s["min_length"] = s.pop("min_new_tokens", 0)
        if embeds and not encoder_decoder and batch == 1 and s.get("num_beams", s.get("num_return_sequences", 1)) == 1 and "input_ids" not in x and r.random() < 0.2:
            s.update(prompt_lookup_num_tokens=3, use_cache=True)
        if encoder_decoder:
            s["decoder_start_token_id"] = model.config.decoder_start_token_id
            if r.random() < 0.3:
                x["decoder_input_ids"] = torch.randint(3, vocab, (batch, r.randrange(1, 4)))
        if one_row and (s.pop("num_beams", 1), s.pop("num_return_sequences", 1)) != (1, 1):
            for key in ("length_penalty", "early_stopping"):
                s.pop(key, None)
        seed = r.randrange(1000)
        torch.manual_seed(seed)
        model.generation_config = GenerationConfig()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                out = model.generate(**x, generation_config=GenerationConfig(**s, return_dict_in_generate=True, output_scores=True),
                                     **({"tokenizer": tokenizer} if "stop_strings" in s else {}))
            except RuntimeError as e:
                if "probability tensor" not in str(e):
                    raise
                continue  # no numbers in transformers, where a window holds padding alone
        if any(scores.isnan().any() or (scores.amax(-1) == -torch.inf).any() for scores in out.scores):
            continue  # the settings forbid every token: which one comes then means nothing
        if not s.get("do_sample") and close_call(model, out, s):
            continue
        made += 1
        case = {"model": folder, "inputs": {k: v.tolist() for k, v in x.items()}, "settings": s, "seed": seed, "tokenizer": TINY if tokenizer else None}
        if next_word and not s.get("do_sample") and "num_beams" not in s and not name.startswith("flaubert"):  # which gives none in generate
            case["states"] = states_of(model, x, s)
        yield case, out.sequences.tolist()


def states_of(model, x, config):
    """By kind, token and layer: the sizes and the norm. Without candidates: with them transformers gives rows of the prompt where those of
    the first round's candidates belong."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    out = model.generate(**x, generation_config=GenerationConfig(**config, return_dict_in_generate=True, output_hidden_states=True, output_attentions=True))
    model.set_attn_implementation(before)
    prefix = "decoder_" if model.config.is_encoder_decoder else ""
    kinds = [out.get(prefix + "hidden_states"), out.get(prefix + "attentions"), out.get("cross_attentions")]
    both = [[[one for layer in token for one in (layer if isinstance(layer, tuple) else (layer,))] for token in kind or ()] for kind in kinds]  # streams
    return [[[[*layer.shape, layer.norm().item()] for layer in token] for token in kind] for kind in both]


def same_states(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same_states, a, b))
    return abs(a - b) <= 1e-5 * max(1, abs(b))


def assisted_cases(r, folder, model, place, count):
    """With an assistant or with prompt lookup, one row at a time; its greedy ids must also be those without."""
    assistant = assistant_of(model, place)
    vocab, pad = model.config.vocab_size, 1 if model.config.vocab_size < 1000 else 0
    made = 0
    while made < count:
        words = [r.randrange(3, vocab) for _ in range(r.randrange(1, 5))]
        x = {"input_ids": torch.tensor([(words * r.randrange(1, 4))[:9]])}
        s = {"eos_token_id": model.config.eos_token_id, "pad_token_id": r.choice([pad, r.randrange(3, vocab)]), "max_new_tokens": r.randrange(3, 25)}
        if model.config.is_encoder_decoder:
            s["decoder_start_token_id"] = model.config.decoder_start_token_id
            x["attention_mask"] = torch.ones_like(x["input_ids"])  # without it transformers 5 attends to padding, 4 and Calque do not
            if r.random() < 0.3:
                x["decoder_input_ids"] = torch.randint(3, vocab, (1, r.randrange(1, 4)))
                if r.random() < 0.5:
                    x["decoder_attention_mask"] = torch.ones_like(x["decoder_input_ids"])
        if r.random() < 0.5:
            s["do_sample"] = True
            for key, value in (("temperature", 0.5), ("top_k", 5)):
                if r.random() < 0.4:
                    s[key] = value
        for key, value in (("repetition_penalty", 1.2), ("no_repeat_ngram_size", 3), ("min_new_tokens", 5), ("suppress_tokens", [5, 7])):
            if r.random() < 0.15:
                s[key] = value
        theirs = {}
        if r.random() < 0.6:
            for key, values in (("num_assistant_tokens", [1, 3, 8]), ("num_assistant_tokens_schedule", ["heuristic", "heuristic_transient"]), ("assistant_confidence_threshold", [0.0, 0.2])):
                if r.random() < 0.5:
                    theirs[key] = r.choice(values)
            assistant.generation_config = GenerationConfig(**theirs)
            extra = {"assistant_model": assistant}
        else:
            s["prompt_lookup_num_tokens"] = r.choice([2, 4, 10])
            if r.random() < 0.5:
                s["max_matching_ngram_size"] = r.choice([1, 3])
            extra = {}
        seed = r.randrange(1000)
        torch.manual_seed(seed)
        model.generation_config = GenerationConfig()
        config = GenerationConfig(**s, return_dict_in_generate=True, output_scores=True)
        out = model.generate(**x, generation_config=config, **extra)
        if not s.get("do_sample"):
            if close_call(model, out, s):
                continue
            plain = GenerationConfig(**{k: v for k, v in s.items() if k not in ("prompt_lookup_num_tokens", "max_matching_ngram_size")})
            assert model.generate(**x, generation_config=plain).tolist() == out.sequences.tolist()
        made += 1
        case = {"model": folder, "inputs": {k: v.tolist() for k, v in x.items()}, "settings": s, "seed": seed, "tokenizer": None}
        # Where candidates may be taken back, layers with a window keep all keys, and their weights have a column for each.
        windowed = getattr(model.config, "sliding_window", None) is not None
        # Where all is padding, attention with and without its weights given back differs in transformers too.
        if not windowed and not s.get("do_sample") and (x["input_ids"] != s["pad_token_id"]).any() and r.random() < 0.4:
            case["states"] = states_of(model, x, {k: v for k, v in s.items() if k not in ("prompt_lookup_num_tokens", "max_matching_ngram_size")})
        if extra:
            case.update(assistant=place, assistant_settings=theirs)
        yield case, out.sequences.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    count = 200 if args.all else 20
    failed, total = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ["tiny-lm", *(every_decoder() if args.all or args.only else MODELS)]:
            if args.only and name not in args.only and name.split()[0] not in args.only:
                continue
            r = random.Random(name)
            if name == "tiny-lm":
                place, tokenizer = TINY, PreTrainedTokenizerFast(tokenizer_file=os.path.join(TINY, "tokenizer.json"))
                model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()
            else:
                place, tokenizer = os.path.join(folder, name), None
                model = random_model(name, place)
            made = list(cases(r, name, place, model, tokenizer, count))
            if not name.startswith(NEXT_WORD):
                made += cases(r, name, place, model, tokenizer, count // 2, embeds=True)
                made += assisted_cases(r, place, model, os.path.join(folder, name + "-assistant"), count // 2)
            lines = os.path.join(folder, "cases")
            with open(lines, "w") as f:
                f.writelines(json.dumps(c) + "\n" for c, _ in made)
            done = subprocess.run([PEER, lines], capture_output=True, text=True)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            found += [{"error": f"the program died: {done.stderr[-300:]}"}] * (len(made) - len(found))
            wrong = 0
            for (case, expected), answer in zip(made, found):
                total += 1
                if answer.get("ids") == expected and same_states(case.get("states", []), answer.get("states", [])):
                    continue
                wrong += 1
                if wrong <= 3:
                    print("DIFFERENT", name, json.dumps({k: case[k] for k in ("inputs", "settings", "seed", "assistant_settings") if k in case})[-500:], "\n   found", answer.get("ids", answer.get("error")), "\n   expected", expected)
            failed += wrong
            print(f"{name:10} {len(made) - wrong:5} equal, {wrong} differ", flush=True)
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

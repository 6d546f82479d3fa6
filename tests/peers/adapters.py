#!/usr/bin/env python3
"""Adapters beside PEFT: for each option of LoRA, IA3, prompt and prefix tuning an adapter that peft made is read by Calque. Compared are outputs, the
gradients of a training step, weights with the adapter merged in and taken out again, switching, and the files that Calque writes, which peft
opens; new adapters from equal seeds are equal bit for bit.

--all: LoRA on all linear layers of every class of zoo.tsv, by default of every twelfth.
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import parts
from parts import check

PEER = os.path.join(parts.BUILD, "bin", "peft_peer")
OPTION = os.environ.get("OPTION", "")  # those alone that have this in their name


# ---- base models --------------------------------------------------------------------------------------------------------------------------

def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attention_bias=True, tie_word_embeddings=False))


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def bert():
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=3))


def t5():
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0, decoder_start_token_id=0))


def bart():
    return transformers.BartForConditionalGeneration(transformers.BartConfig(
        vocab_size=96, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
        decoder_ffn_dim=48, max_position_embeddings=64, dropout=0, attention_dropout=0, activation_dropout=0, scale_embedding=True))


def gemma3():
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        max_position_embeddings=64, sliding_window=16))


def mixtral():
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=96, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2))


def gpt_oss():
    return transformers.GptOssForCausalLM(transformers.GptOssConfig(
        vocab_size=96, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2, sliding_window=16))


def convnext():
    return transformers.ConvNextForImageClassification(transformers.ConvNextConfig(
        hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32, num_labels=3))


def resnet():
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3))


def wav2vec2():
    return transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(
        vocab_size=24, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16), conv_kernel=(5, 3),
        conv_stride=(4, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, hidden_dropout=0,
        attention_dropout=0, activation_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0, mask_time_prob=0))


def batch_of(model):
    torch.manual_seed(3)
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 2])}
    if model.main_input_name == "input_values":
        return {"input_values": torch.randn(2, 400), "labels": torch.randint(1, 24, (2, 3))}
    ids = torch.randint(3, 96, (2, 9))
    out = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder:
        out["labels"] = torch.randint(3, 96, (2, 5))
    elif isinstance(model, transformers.BertForSequenceClassification):
        out["labels"] = torch.tensor([0, 2])
    else:
        out["labels"] = ids.clone()
    return out


def llama16():
    return llama()


# Statistics of two pictures: float32 leaves little of small gradients.
DTYPES = {resnet: torch.float64, llama16: torch.bfloat16}


class Bases:
    """Each base model once, in a folder."""

    def __init__(self, folder):
        self.folder, self.made = folder, {}

    def __call__(self, make):
        if make not in self.made:
            torch.manual_seed(1)
            path = os.path.join(self.folder, make.__name__)
            model = make().to(DTYPES.get(make, torch.float32))
            with torch.no_grad():
                for p in model.parameters():
                    if p.dim() == 1:
                        p.add_(torch.randn_like(p) * 0.1)
            model.save_pretrained(path)
            inputs = os.path.join(self.folder, make.__name__ + ".safetensors")
            save_file({k: v.to(model.dtype) if v.is_floating_point() else v for k, v in batch_of(model).items()}, inputs)
            self.made[make] = (path, type(model), inputs)
        return self.made[make]


# ---- running -------------------------------------------------------------------------------------------------------------------------------

def run_peer(folder, base, steps, **settings):
    script, out = os.path.join(folder, "script.json"), os.path.join(folder, "out.safetensors")
    with open(script, "w") as f:
        json.dump({"model": base, "steps": steps, **settings}, f)
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run([PEER, script, out], capture_output=True, text=True, timeout=300)
    return (load_file(out) if os.path.exists(out) else {}), (done.stderr.strip() if done.returncode else "")


def quietly(fn, *args, **kwargs):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return fn(*args, **kwargs)


def apart(mine, there):
    """The distance over the size of the tensor."""
    if mine is None or mine.shape != there.shape:
        return float("inf")
    if not there.dtype.is_floating_point:
        return 0.0 if torch.equal(mine, there) else float("inf")
    if there.numel() == 0:
        return 0.0
    return ((mine.double() - there.double()).norm() / there.double().norm().clamp(min=1e-12)).item()


def differing(mine, there, bound, prefix=""):
    wrong = [f"{k}: {apart(mine.get(prefix + k), v):.1e}" for k, v in there.items() if not apart(mine.get(prefix + k), v) <= bound]
    return wrong


def tensors(output):
    return {k: v.detach().clone() for k, v in output.items() if isinstance(v, torch.Tensor)}


def stir(model, name="default"):
    """Other values than those that an adapter starts with, which do nothing."""
    torch.manual_seed(7)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if f".{name}." in key + "." and "base_layer" not in key:
                if "magnitude" in key or "ia3_l" in key or "modules_to_save" in key or "trainable_tokens" in key:
                    p.mul_(1 + 0.2 * torch.randn_like(p))
                else:
                    p.copy_(torch.randn_like(p) * 0.2)


def strip(key):
    return key.removeprefix("base_model.model.")


def peft_model(bases, make, config):
    path, cls, inputs = bases(make)
    base = cls.from_pretrained(path)
    torch.manual_seed(0)
    return quietly(peft.get_peft_model, base, config), path, inputs


def same_config(mine, there):
    wrong = []
    for key in sorted(set(mine) | set(there)):
        a, b = mine.get(key, "missing"), there.get(key, "missing")
        if isinstance(a, list) and isinstance(b, list):
            a, b = sorted(map(str, a)), sorted(map(str, b))
        if a != b:
            wrong.append(f"{key}: {a!r}, PEFT's {b!r}")
    return wrong


def read_json(path):
    with open(path) as f:
        return json.load(f)


# ---- the options -----------------------------------------------------------------------------------------------------------------------------

def lora(**settings):
    settings.setdefault("task_type", "CAUSAL_LM")
    return peft.LoraConfig(**{"r": 4, "lora_alpha": 6, **settings})


def options():
    qv = ["q_proj", "v_proj"]
    return {
        "lora": (llama, lambda: lora(target_modules=qv)),
        "lora without a task": (llama, lambda: lora(target_modules=qv, task_type=None)),
        "targets of the architecture": (llama, lambda: lora()),
        "rank_pattern": (llama, lambda: lora(target_modules=qv, rank_pattern={"q_proj": 2, "layers.1.self_attn.v_proj": 3, r"model.*\.0\..*v_proj": 5})),
        "alpha_pattern": (llama, lambda: lora(target_modules=qv, alpha_pattern={"v_proj": 16, "^model.layers.0.self_attn.q_proj": 3})),
        "rslora": (llama, lambda: lora(target_modules=qv, use_rslora=True)),
        "dora": (llama, lambda: lora(target_modules=qv + ["o_proj", "down_proj"], use_dora=True)),
        "dora, Conv1D": (gpt2, lambda: lora(target_modules=["c_attn", "c_proj"], use_dora=True, fan_in_fan_out=True)),
        "dora, embedding": (llama, lambda: lora(target_modules=["embed_tokens", "q_proj"], use_dora=True)),
        "bias all": (llama, lambda: lora(target_modules=qv, bias="all")),
        "bias lora_only": (llama, lambda: lora(target_modules=qv, bias="lora_only")),
        "lora_bias": (llama, lambda: lora(target_modules=qv, lora_bias=True)),
        "modules_to_save": (bert, lambda: lora(target_modules=["query", "value"], task_type="SEQ_CLS")),
        "modules_to_save, pooler": (bert, lambda: lora(target_modules=["query"], modules_to_save=["pooler", "classifier"], task_type="SEQ_CLS")),
        "embedding": (llama, lambda: lora(target_modules=["embed_tokens", "q_proj"])),
        "scaled embedding": (gemma3, lambda: lora(target_modules=["embed_tokens", "q_proj"])),
        "scaled embedding, BART": (bart, lambda: lora(target_modules=["embed_tokens", "q_proj"], task_type="SEQ_2_SEQ_LM")),
        "head": (llama, lambda: lora(target_modules=["lm_head", "q_proj"])),
        "Conv1D": (gpt2, lambda: lora(target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True)),
        "Conv1D, fan_in_fan_out put right": (gpt2, lambda: lora(target_modules=["c_attn"])),
        "Conv2d": (resnet, lambda: lora(target_modules=r".*layer\.\d\.convolution", task_type=None)),
        "Conv2d 1x1 and strided": (convnext, lambda: lora(target_modules=["patch_embeddings", "downsampling_layer.1", "pwconv1"], task_type=None)),
        "Conv2d, groups": (convnext, lambda: lora(r=16, target_modules=["dwconv"], task_type=None)),
        "Conv2d, dora": (resnet, lambda: lora(target_modules=r".*layer\.\d\.convolution", use_dora=True, task_type=None)),
        "Conv1d": (wav2vec2, lambda: lora(target_modules=["conv_layers.1.conv", "q_proj"], task_type=None)),
        "Conv1d, dora": (wav2vec2, lambda: lora(target_modules=["conv_layers.1.conv"], use_dora=True, task_type=None)),
        "targets by name": (llama, lambda: lora(target_modules=["model.layers.1.self_attn.q_proj", "layers.0.mlp.up_proj"])),
        "targets by pattern": (llama, lambda: lora(target_modules=r".*\.layers\.(0|2)\..*(q|v|down)_proj")),
        "all-linear": (llama, lambda: lora(target_modules="all-linear")),
        "all-linear, classifier": (bert, lambda: lora(target_modules="all-linear", task_type="SEQ_CLS")),
        "exclude_modules": (llama, lambda: lora(target_modules=qv, exclude_modules=["layers.1.self_attn.q_proj"])),
        "exclude_modules by pattern": (llama, lambda: lora(target_modules="all-linear", exclude_modules=r".*\.mlp\..*")),
        "layers_to_transform": (llama, lambda: lora(target_modules=qv, layers_to_transform=[0, 2])),
        "layers_to_transform, one": (llama, lambda: lora(target_modules=qv, layers_to_transform=1)),
        "layers_pattern": (llama, lambda: lora(target_modules=qv, layers_to_transform=[1], layers_pattern="layers")),
        "target_parameters": (mixtral, lambda: lora(target_modules=[], target_parameters=["experts.gate_up_proj", "experts.down_proj"])),
        "target_parameters, transposed": (gpt_oss, lambda: lora(target_modules=["q_proj"], target_parameters=["experts.down_proj"])),
        "target_parameters, two dimensions": (llama, lambda: lora(target_modules=[], target_parameters=["o_proj.weight"])),
        "trainable_token_indices": (llama, lambda: lora(target_modules=qv, trainable_token_indices=[5, 17, 80])),
        "trainable_token_indices, tied": (gpt2, lambda: lora(target_modules=["c_attn"], fan_in_fan_out=True, trainable_token_indices={"wte": [5, 17]})),
        "dropout": (llama, lambda: lora(target_modules=qv, lora_dropout=0.25)),
        "dropout, dora": (llama, lambda: lora(target_modules=qv, lora_dropout=0.25, use_dora=True)),
        "gaussian": (llama, lambda: lora(target_modules=qv, init_lora_weights="gaussian")),
        "init_lora_weights false": (llama, lambda: lora(target_modules=qv, init_lora_weights=False)),
        "bfloat16": (llama16, lambda: lora(target_modules=qv)),
        "bfloat16, dora": (llama16, lambda: lora(target_modules=qv, use_dora=True)),
        "encoder-decoder": (t5, lambda: lora(task_type="SEQ_2_SEQ_LM")),
        "ia3": (llama, lambda: peft.IA3Config(task_type="CAUSAL_LM")),
        "ia3, Conv1D": (gpt2, lambda: peft.IA3Config(task_type="CAUSAL_LM", fan_in_fan_out=True)),
        "ia3, encoder-decoder": (t5, lambda: peft.IA3Config(task_type="SEQ_2_SEQ_LM")),
        "ia3, Conv2d": (resnet, lambda: peft.IA3Config(target_modules=r".*layer\.\d\.convolution", feedforward_modules=r".*layer\.1\.convolution")),
        "ia3, feedforward by pattern": (llama, lambda: peft.IA3Config(target_modules=["k_proj", "up_proj"], feedforward_modules=r".*up_proj", task_type="CAUSAL_LM")),
        "ia3, modules_to_save": (bert, lambda: peft.IA3Config(task_type="SEQ_CLS")),
    }


OUTPUT, GRADIENT = 3e-6, 2e-5
SIXTEEN_BITS = 5000  # times as much


def one_option(name, bases, folder, make, config):
    """peft makes the adapter; everything else is compared."""
    times = SIXTEEN_BITS if make is llama16 else 1
    model, base, inputs = peft_model(bases, make, config())
    batch = load_file(inputs)
    fresh = {strip(k): v.clone() for k, v in model.state_dict().items() if "base_layer" not in k or "token" in k}
    stir(model)
    theirs, ours, pickled = (os.path.join(folder, p) for p in ("theirs", "ours", "pickled"))
    quietly(model.save_pretrained, theirs)
    model.eval()
    with torch.no_grad():
        before = tensors(model(**batch))
        with model.disable_adapter():
            disabled = tensors(model(**batch))
    model.train()
    torch.manual_seed(11)
    loss = model(**batch).loss
    loss.backward()
    grads = {strip(k): p.grad for k, p in model.named_parameters() if p.grad is not None}
    model.eval()
    # What cannot be merged: convolutions with groups.
    groups = any(getattr(m, "groups", 1) > 1 and hasattr(m, "kernel_size") for n, m in model.named_modules() if n.endswith("base_layer"))
    merged, after = {}, {}
    with torch.no_grad():
        if not groups:
            quietly(model.base_model.merge_adapter)
            merged = {strip(k): v.clone() for k, v in model.state_dict().items()}
            after = tensors(model(**batch))
            quietly(model.base_model.unmerge_adapter)
        again = tensors(model(**batch))

    steps = [{"op": "load", "path": theirs, "trains": True},
             {"op": "state", "as": "loaded"},
             {"op": "forward", "inputs": inputs, "as": "before"},
             {"op": "save", "path": ours}, {"op": "save", "path": pickled, "safe": False},
             {"op": "disable"}, {"op": "forward", "inputs": inputs, "as": "disabled"}, {"op": "enable"},
             {"op": "backward", "inputs": inputs, "as": "grad", "seed": 11}]
    if not groups:
        steps += [{"op": "merge"}, {"op": "state", "as": "merged"}, {"op": "forward", "inputs": inputs, "as": "after"}, {"op": "unmerge"}]
    steps += [{"op": "forward", "inputs": inputs, "as": "again"}, {"op": "merge_and_unload" if not groups else "unload"}, {"op": "state", "as": "plain"}]
    out, error = run_peer(folder, base, steps)
    if error:
        return check(name, [error])
    wrong = [f"outputs {w}" for w in differing(out, before, OUTPUT * times, "before.")]
    own = {k.removeprefix("loaded.") for k in out if k.startswith("loaded.")}
    there = {strip(k) for k in model.state_dict()}
    if own != there:
        wrong.append(f"names of the state: {sorted(own - there)[:2]}, PEFT's {sorted(there - own)[:2]}")
    wrong += [f"disabled: {w}" for w in differing(out, disabled, OUTPUT * times, "disabled.")]
    mine = {k.removeprefix("grad."): v for k, v in out.items() if k.startswith("grad.") and k != "grad.loss"}
    if set(mine) != set(grads):
        wrong.append(f"gradients: {sorted(set(mine) - set(grads))[:2]} and {sorted(set(grads) - set(mine))[:2]}")
    total = torch.stack([g.norm() for g in grads.values()]).norm() / (1000 if times == 1 else 10)  # 16 bits round small gradients away
    wrong += [f"gradient of {k}: {(mine[k] - g).norm() / max(g.norm(), total):.1e}" for k, g in grads.items()
              if k in mine and not (mine[k] - g).norm() <= GRADIENT * times * max(g.norm(), total)]
    wrong += [f"loss {out['grad.loss']}, PEFT's {loss}"] if apart(out["grad.loss"], loss.detach()) > OUTPUT * times else []
    wrong += [f"merged {w}" for w in differing(out, merged, OUTPUT * times, "merged.")]
    wrong += [f"outputs when merged {w}" for w in differing(out, after, 1e-5 * max(1, times / 5), "after.")]
    wrong += [f"outputs when unmerged {w}" for w in differing(out, again, 1e-5 * max(1, times / 5), "again.")]
    if leftover := [k for k in out if k.startswith("plain.") and ("lora_" in k or "base_layer" in k or "ia3_l" in k or "modules_to_save" in k or "token_adapter" in k)]:
        wrong.append(f"left behind: {leftover[:3]}")
    wrong += files_of(model, theirs, ours, pickled, bases(make), batch, before)
    wrong += fresh_of(folder, base, config(), theirs, fresh)
    check(name, wrong)


def files_of(model, theirs, ours, pickled, base, batch, before):
    wrong = same_config(read_json(os.path.join(ours, "adapter_config.json")), read_json(os.path.join(theirs, "adapter_config.json")))
    there = load_file(os.path.join(theirs, "adapter_model.safetensors"))
    for mine in (load_file(os.path.join(ours, "adapter_model.safetensors")), torch.load(os.path.join(pickled, "adapter_model.bin"), weights_only=True)):
        if set(mine) != set(there):
            wrong.append(f"tensors of the file: {sorted(set(mine) - set(there))[:2]} and {sorted(set(there) - set(mine))[:2]}")
        wrong += [f"{k} in the file" for k in set(mine) & set(there) if not torch.equal(mine[k], there[k])]
    path, cls, _ = base
    for folder in (ours, pickled):
        again = quietly(peft.PeftModel.from_pretrained, cls.from_pretrained(path), folder).eval()
        with torch.no_grad():
            wrong += [f"peft with {os.path.basename(folder)}: {w}" for w in differing(tensors(again(**batch)), before, 1e-6)]
    return wrong


def fresh_of(folder, base, config, theirs, fresh):
    """A new adapter from the same seed."""
    said = read_json(os.path.join(theirs, "adapter_config.json"))
    said["inference_mode"] = False
    out, error = run_peer(folder, base, [{"op": "add", "config": said, "seed": 0}, {"op": "state", "as": "fresh"}])
    if error:
        return [f"a new adapter: {error}"]
    if said.get("modules_to_save"):
        return []  # a copy of the base model's
    return [f"new {k}: {apart(out.get('fresh.' + k), v):.1e}" for k, v in fresh.items()
            if ("lora_" in k or "ia3_l" in k or "trainable_tokens" in k) and not torch.equal(out.get("fresh." + k, torch.zeros(0)), v)
            and not ("magnitude" in k and apart(out.get("fresh." + k), v) < 1e-6)]


def lora_and_ia3(folder, args):
    bases = Bases(folder)
    for i, (name, (make, config)) in enumerate(options().items()):
        if OPTION and OPTION not in name:
            continue
        scratch = os.path.join(folder, str(i))
        os.mkdir(scratch)
        try:
            one_option(name, bases, scratch, make, config)
        except Exception as e:
            import traceback
            check(name, [repr(e)] + traceback.format_exc().split("\n")[-4:])


# ---- several adapters ---------------------------------------------------------------------------------------------------------------------------

def made(bases, make, config, path, seed):
    """An adapter in a folder, whose values are others for each seed."""
    model, base, inputs = peft_model(bases, make, config)
    torch.manual_seed(seed)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.requires_grad:
                p.copy_(1 + 0.2 * torch.randn_like(p) if "ia3_l" in key else torch.randn_like(p) * 0.2)
    quietly(model.save_pretrained, path)
    return base, inputs


def several(folder, args):
    """Switched, together, weighted, deleted; merged one after the other."""
    bases = Bases(folder)
    kinds = {
        "lora": (llama, [lambda: lora(target_modules=["q_proj", "v_proj"]), lambda: lora(r=4, lora_alpha=9, target_modules=["q_proj", "down_proj"]),
                         lambda: lora(r=4, target_modules=["v_proj", "embed_tokens"], use_rslora=True)]),
        "dora": (llama, [lambda: lora(target_modules=["q_proj"], use_dora=True), lambda: lora(target_modules=["q_proj", "v_proj"], use_dora=True)]),
        "Conv2d": (convnext, [lambda: lora(target_modules=["downsampling_layer.1"], task_type=None)] * 2),
        "target_parameters": (mixtral, [lambda: lora(target_modules=[], target_parameters=["experts.gate_up_proj"])] * 2),
        "ia3": (llama, [lambda: peft.IA3Config(task_type="CAUSAL_LM"), lambda: peft.IA3Config(task_type="CAUSAL_LM", target_modules=["k_proj"], feedforward_modules=[])]),
    }
    for kind, (make, configs) in kinds.items():
        scratch = os.path.join(folder, "several-" + kind)
        paths = [os.path.join(scratch, f"a{i}") for i in range(len(configs))]
        for i, config in enumerate(configs):
            base, inputs = made(bases, make, config(), paths[i], 20 + i)
        names = [f"a{i}" for i in range(len(configs))]
        _, cls, _ = bases(make)
        model = quietly(peft.PeftModel.from_pretrained, cls.from_pretrained(base), paths[0], adapter_name="a0")
        for name, path in zip(names[1:], paths[1:]):
            quietly(model.load_adapter, path, adapter_name=name)
        model.eval()
        batch = load_file(inputs)
        expected, steps = {}, [{"op": "load", "path": path, "name": name} for name, path in zip(names, paths)]

        def now(label, step, call):
            quietly(call)
            with torch.no_grad():
                expected[label] = tensors(model(**batch))
            steps.extend(step + [{"op": "forward", "inputs": inputs, "as": label}])

        now("second", [{"op": "set", "names": ["a1"]}], lambda: model.set_adapter("a1"))
        now("first", [{"op": "set", "names": ["a0"]}], lambda: model.set_adapter("a0"))
        now("together", [{"op": "set", "names": names}], lambda: model.base_model.set_adapter(names))
        now("merged", [{"op": "merge"}], lambda: model.base_model.merge_adapter())
        now("unmerged", [{"op": "unmerge"}], lambda: model.base_model.unmerge_adapter())
        if kind not in ("target_parameters", "dora"):
            for combination in ("linear", "cat") if kind != "ia3" else ("cat",):
                weights = [0.7, -1.3, 0.4][:len(names)]
                more = {} if kind == "ia3" else {"combination_type": combination}
                quietly(model.add_weighted_adapter, names, weights, "sum-" + combination, **more)
                steps.append({"op": "weighted", "names": names, "weights": weights, "name": "sum-" + combination, "combination": combination})
                now("sum " + combination, [{"op": "set", "names": ["sum-" + combination]}], lambda c=combination: model.set_adapter("sum-" + c))
                steps.append({"op": "adapter_state", "name": "sum-" + combination, "as": "state " + combination})
                expected["state " + combination] = {strip(k): v for k, v in quietly(peft.get_peft_model_state_dict, model, adapter_name="sum-" + combination).items()}
        now("first again", [{"op": "set", "names": ["a0"]}], lambda: model.set_adapter("a0"))
        now("deleted", [{"op": "delete", "name": "a1"}], lambda: model.delete_adapter("a1"))
        now("merged and unloaded", [{"op": "merge_and_unload"}], lambda: None)
        out, error = run_peer(folder, base, steps)
        wrong = [error] if error else []
        for label, there in expected.items():
            wrong += [f"{label}: {w}" for w in differing(out, there, 1e-5, label + ".")] if not error else []
        check(f"several adapters: {kind}", wrong)


# ---- prompts -------------------------------------------------------------------------------------------------------------------------------------

def prompts(folder, args):
    """Prompt and prefix tuning: outputs with and without a mask, gradients, files both ways, generation."""
    bases = Bases(folder)
    P, X = peft.PromptTuningConfig, peft.PrefixTuningConfig
    cases = {
        "prompt, llama": (llama, P(num_virtual_tokens=5, task_type="CAUSAL_LM")),
        "prompt, gpt2": (gpt2, P(num_virtual_tokens=5, task_type="CAUSAL_LM")),
        "prompt, bert": (bert, P(num_virtual_tokens=5, task_type="SEQ_CLS")),
        "prompt, t5": (t5, P(num_virtual_tokens=5, task_type="SEQ_2_SEQ_LM")),
        "prompt, bart": (bart, P(num_virtual_tokens=5, task_type="SEQ_2_SEQ_LM")),
        "prefix, llama": (llama, X(num_virtual_tokens=5, task_type="CAUSAL_LM")),
        "prefix, gpt2": (gpt2, X(num_virtual_tokens=5, task_type="CAUSAL_LM")),
        "prefix, gemma3": (gemma3, X(num_virtual_tokens=5, task_type="CAUSAL_LM")),
        "prefix with a projection, gpt2": (gpt2, X(num_virtual_tokens=5, task_type="CAUSAL_LM", prefix_projection=True, encoder_hidden_size=24)),
        "prefix, t5": (t5, X(num_virtual_tokens=5, task_type="SEQ_2_SEQ_LM")),
        "prefix, bart": (bart, X(num_virtual_tokens=5, task_type="SEQ_2_SEQ_LM")),
    }
    for i, (name, (make, config)) in enumerate(cases.items()):
        if OPTION and OPTION not in name:
            continue
        try:
            one_prompt(name, bases, os.path.join(folder, f"prompt{i}"), make, config)
        except Exception as e:
            import traceback
            check(name, [repr(e)] + traceback.format_exc().split("\n")[-6:])


def one_prompt(name, bases, scratch, make, config):
    os.mkdir(scratch)
    model, base, inputs = peft_model(bases, make, config)
    torch.manual_seed(9)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.requires_grad and "prompt_encoder" in key:
                p.copy_(torch.randn_like(p) * 0.5)
    theirs, ours, fresh = (os.path.join(scratch, p) for p in ("theirs", "ours", "fresh"))
    quietly(model.save_pretrained, theirs)
    batch = load_file(inputs)
    unmasked = os.path.join(scratch, "unmasked.safetensors")
    save_file({k: v for k, v in batch.items() if k != "attention_mask"}, unmasked)
    model.eval()
    with torch.no_grad():
        before = tensors(quietly(model, **batch))
        plain = tensors(quietly(model, **load_file(unmasked)))
        if make is not bert:  # peft fails there: its wrapper of a classifier has no prepare_inputs_for_generation to put back
            with model.disable_adapter():
                disabled = tensors(quietly(model, **batch))
        else:
            disabled = {}
    projected = getattr(config, "prefix_projection", False)
    steps = [{"op": "load", "path": theirs, "trains": not projected},
             {"op": "forward", "inputs": inputs, "as": "before"}, {"op": "forward", "inputs": unmasked, "as": "plain"},
             {"op": "disable"}, {"op": "forward", "inputs": inputs, "as": "disabled"}, {"op": "enable"}, {"op": "save", "path": ours}]
    expected = {"before": before, "plain": plain, "disabled": disabled}
    if not projected:
        model.train()
        loss = quietly(model, **batch).loss
        loss.backward()
        expected["grad"] = {k.removeprefix("base_model."): p.grad for k, p in model.named_parameters() if p.grad is not None and p.requires_grad}
        model.eval()
        steps.append({"op": "backward", "inputs": inputs, "as": "grad"})
    wanted = {}
    if make in (llama, gpt2, gemma3, t5, bart):
        model.generation_config.eos_token_id = model.generation_config.forced_eos_token_id = None
        given = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
        for beams in (1, 3):
            with torch.no_grad():
                wanted[beams] = quietly(model.generate, **given, max_new_tokens=8, num_beams=beams, do_sample=False, pad_token_id=0, eos_token_id=None)
        ids = os.path.join(scratch, "ids.safetensors")
        save_file(given, ids)
        start = {"start": model.config.decoder_start_token_id} if model.config.is_encoder_decoder else {}
        steps += [{"op": "generate", "inputs": ids, "tokens": 8, "beams": beams, "as": f"written.{beams}", **start} for beams in wanted]
    out, error = run_peer(scratch, base, steps)
    if error:
        return check(name, [error])
    wrong = []
    for label, there in expected.items():
        skipped = {k: v for k, v in there.items() if k != "past_key_values"}
        wrong += [f"{label} {w}" for w in differing(out, skipped, 1e-5 if label != "grad" else 5e-5, label + ".")]
    for beams, there in wanted.items():
        if not torch.equal(out[f"written.{beams}"], there):
            wrong.append(f"writes with {beams} beams {out[f'written.{beams}'].tolist()[0]}, peft {there.tolist()[0]}")
    wrong += same_config(read_json(os.path.join(ours, "adapter_config.json")), read_json(os.path.join(theirs, "adapter_config.json")))
    mine, there = (load_file(os.path.join(p, "adapter_model.safetensors")) for p in (ours, theirs))
    if set(mine) != set(there) or any(not torch.equal(mine[k], there[k]) for k in there):
        wrong.append(f"the file: {sorted(mine)}, PEFT's {sorted(there)}")
    path, cls, _ = bases(make)
    with torch.no_grad():
        again = tensors(quietly(quietly(peft.PeftModel.from_pretrained, cls.from_pretrained(path), ours).eval(), **batch))
    wrong += [f"peft with what Calque wrote: {w}" for w in differing(again, before, 1e-5)]
    check(name, wrong)


# ---- transformers' own -------------------------------------------------------------------------------------------------------------------------

def pretrained(folder, args):
    """Model folders with adapters, as transformers loads and saves them."""
    bases = Bases(folder)
    for make, config in ((llama, lambda: lora(target_modules=["q_proj", "v_proj"])), (bert, lambda: lora(target_modules=["query"], modules_to_save=["classifier"], task_type=None))):
        base, cls, inputs = bases(make)
        batch = load_file(inputs)
        model = cls.from_pretrained(base)
        model.add_adapter(config())
        stir(model)
        theirs, ours = os.path.join(folder, make.__name__ + "-theirs"), os.path.join(folder, make.__name__ + "-ours")
        quietly(model.save_pretrained, theirs)
        model.eval()
        with torch.no_grad():
            before = tensors(model(**batch))
        out, error = run_peer(folder, theirs, [{"op": "forward", "inputs": inputs, "as": "out"}, {"op": "save_pretrained", "path": ours}])
        wrong = [error] if error else differing(out, before, OUTPUT, "out.")
        if not error:
            with torch.no_grad():
                again = tensors(quietly(cls.from_pretrained, ours).eval()(**batch))
            wrong += [f"transformers with what Calque wrote: {w}" for w in differing(again, before, 1e-6)]
            wrong += [f"files {sorted(os.listdir(ours))}"] if sorted(os.listdir(ours)) != ["adapter_config.json", "adapter_model.safetensors"] else []
        check(f"a folder of transformers with an adapter: {make.__name__}", wrong)


# ---- every class -------------------------------------------------------------------------------------------------------------------------------

# transformers 5 renamed modules of these, and peft's files have the names of the release that wrote them; Calque has those of their checkpoints.
RENAMED = ("dinov2", "segformer", "swin", "vit")


def every_class(folder, args):
    """LoRA on all linear layers of each class of zoo.tsv; by default of every twelfth."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import models
    import zoo_cases

    classes = [c for c in zoo_cases.classes(os.path.join(models.HERE, "zoo.tsv")) if models.module_of(c[0])]
    refused = []
    for arch, task, cls in classes if args.all or OPTION else classes[::12]:
        if OPTION and OPTION not in cls or arch in RENAMED or cls.endswith("Backbone"):  # a backbone gives a tuple of maps
            continue
        cases = models.module_of(arch)
        model = models.make(arch, cls, cases.CONFIGS[0], cases)
        if model is None:
            continue
        name, x, _, _, _ = next(models.scenarios(arch, task, cls, model, cases))
        x = {k: v for k, v in x.items() if isinstance(v, torch.Tensor) and k != "return_loss"}
        scratch = os.path.join(folder, cls)
        base, theirs, inputs = (os.path.join(scratch, p) for p in ("base", "theirs", "inputs.safetensors"))
        wrong = []
        try:
            quietly(model.save_pretrained, base)
            save_file({k: v.contiguous() for k, v in x.items()}, inputs)
            try:
                wrapped = quietly(peft.get_peft_model, model, peft.LoraConfig(r=2, target_modules="all-linear"))
            except Exception as e:  # without linear layers, and where peft stumbles
                refused.append(f"{cls} ({type(e).__name__})")
                continue
            stir(wrapped)
            quietly(wrapped.save_pretrained, theirs)
            wrapped.eval()
            with torch.no_grad():
                torch.manual_seed(5)
                before = {k: v for k, v in tensors(wrapped.get_base_model()(**x)).items() if "past" not in k}
            out, error = run_peer(folder, base, [{"op": "load", "path": theirs}, {"op": "forward", "inputs": inputs, "as": "out", "seed": 5}], **{"class": cls})
            wrong = [error] if error else differing(out, before, 5e-5, "out.")
            if not wrong and not before:
                wrong = ["nothing to compare"]
        except Exception as e:
            wrong = [repr(e)[:200]]
        check(f"all linear layers of {cls}", wrong)
    if refused:
        print("peft refuses:", ", ".join(refused))


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(parts.main([lora_and_ia3, several, prompts, pretrained, every_class], __doc__, "every class of zoo.tsv"))

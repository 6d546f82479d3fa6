#!/usr/bin/env python3
"""Each configuration option of the models of pictures and sound by itself, beside transformers: OPTIONS has values of each option that changes
what a class computes, and every class of the architecture is run with the usual configuration but for that value, with labels, so that losses
are compared too. An option of a configuration class that stands in no table fails; so does a value of OPTIONS that changes the outputs of no
class in transformers, for then it proves nothing, and one of IDLE that does. By default each value with the first class that it changes, --all with every
class; --only NAME takes architectures. It also runs under transformers 4.40, which has architectures that 5 dropped.
"""

import argparse
import copy
import logging
import re
import sys
import tempfile
import warnings

import models
import torch
import transformers
import zoo_cases

# Values that transformers itself cannot run: Calque refuses them or not, but there is nothing to compare.
BROKEN = {"donut-swin": {"use_absolute_embeddings": True}}
# Options of training and of how weights start, or that another program reads: with any value the outputs are the same.
IDLE = {
    r"(^|_)(dropout|layerdrop)(_prob)?$|_dropout$|drop_path_rate": 0.3,
    r"^initializer_(range|factor)$|^init_std$": 0.5,
    r"^mask_(time|feature)_(length|min_masks)$": 3,
    r"^mask_feature_prob$": 0.4,
}
# Of an architecture: options that say nothing about the forward, each with why and with another value.
IDLE_OF = {
    "convnext": {"image_size": 64},  # any size is taken
    "dinov2": {"layerscale_value": 0.3},  # what the scales start with
    "segformer": {"layer_norm_eps": 0.1},  # transformers' norms have the usual one
    "wav2vec2": {"num_negatives": 7, "bos_token_id": 5, "eos_token_id": 6},  # negatives are sampled outside
    "hubert": {"bos_token_id": 5, "eos_token_id": 6},
    "speech_to_text": {"bos_token_id": 7, "eos_token_id": 8, "max_source_positions": 70, "max_target_positions": 70},  # sines of any length
    "whisper": {"bos_token_id": 7, "eos_token_id": 8, "suppress_tokens": [3], "begin_suppress_tokens": [4], "median_filter_width": 3, "mask_time_prob": 0.5, "apply_spec_augment": True, "scale_embedding": True},
    "speech_to_text_2": {"max_target_positions": 70},
    "lxmert": {"bos_token_id": 7, "eos_token_id": 8},
    "clip": {"text_config.bos_token_id": 7, "logit_scale_init_value": 1.5},
    "siglip": {"text_config.bos_token_id": 7, "text_config.eos_token_id": 8},
    "altclip": {"text_config.bos_token_id": 7, "text_config.eos_token_id": 8, "vision_config.projection_dim": 24, "logit_scale_init_value": 1.5},
}
# What a configuration computes from its other options, or the parts of which it consists.
DERIVED = {"stage_names", "num_feat_extract_layers", "text_config", "vision_config"}
DERIVED_OF = {"swin": {"num_layers", "hidden_size"}, "donut-swin": {"num_layers", "hidden_size"}, "speech_to_text_2": {"num_hidden_layers"}, "lxmert": {"num_hidden_layers"}, "siglip": {"text_config.projection_dim", "vision_config.projection_dim"}, "git": set(), "convnext": {"num_stages"}, "segformer": {"num_encoder_blocks"}}

LABELS = {"num_labels": [1, 5], "problem_type": [dict(num_labels=3, problem_type="multi_label_classification"), dict(num_labels=1, problem_type="regression"), dict(num_labels=4, problem_type="single_label_classification")]}
STATES = {"output_hidden_states": [True], "output_attentions": [True]}
BACKBONE = {"out_features": [["stage1"], ["stem", "stage2"]], "out_indices": [[0, -1], [1]]}
ENCODER = {"hidden_size": [16], "num_hidden_layers": [1, 3], "num_attention_heads": [2], "hidden_act": ["relu", "gelu_new", "silu"], "layer_norm_eps": [1e-2]}
PICTURES = {**ENCODER, "intermediate_size": [24], "image_size": [24, 36], "patch_size": [10], "num_channels": [1]}
WORDS = {**ENCODER, "vocab_size": [120], "intermediate_size": [24], "max_position_embeddings": [20]}
SOUND = {
    **ENCODER, **LABELS, **STATES, "hidden_size": [32], "num_attention_heads": [4], "intermediate_size": [24], "vocab_size": [40], "feat_extract_norm": ["layer"], "feat_extract_activation": ["relu", "silu"], "conv_bias": [True],
    "conv_dim": [(24, 32, 16)], "conv_stride": [(4, 2, 4)], "conv_kernel": [(8, 6, 3)], "num_conv_pos_embeddings": [5, 8], "num_conv_pos_embedding_groups": [4],
    "do_stable_layer_norm": [True, dict(do_stable_layer_norm=True, feat_extract_norm="layer")], "apply_spec_augment": [False], "mask_time_prob": [0.0],
    "ctc_loss_reduction": ["mean"], "ctc_zero_infinity": [True, dict(ctc_zero_infinity=True, ctc_loss_reduction="mean")], "use_weighted_layer_sum": [True], "classifier_proj_size": [8], "pad_token_id": [31],
}
SWIN = {
    **STATES, "num_channels": [1], "image_size": [64, [32, 64]], "patch_size": [dict(patch_size=4, image_size=64)], "embed_dim": [16], "depths": [[1, 1, 1], dict(depths=[2, 1], num_heads=[2, 2])], "num_heads": [[1, 2, 2]],
    "window_size": [2, 3, dict(window_size=8, image_size=64)], "mlp_ratio": [1.5], "qkv_bias": [False],
    "hidden_act": ["relu", "silu"], "use_absolute_embeddings": [True], "layer_norm_eps": [1e-2],
}
SPEECH_TO_TEXT = {
    **STATES, "vocab_size": [120], "activation_function": ["gelu", "silu"], "d_model": [24], "scale_embedding": [False], "decoder_layers": [1, 3], "decoder_ffn_dim": [24], "decoder_attention_heads": [2],
    "use_cache": [False], "tie_word_embeddings": [False],
}
OPTIONS = {
    "vit": {**PICTURES, **LABELS, **STATES, "qkv_bias": [False], "encoder_stride": [dict(encoder_stride=12, patch_size=12, image_size=24)], "pooler_output_size": [16], "pooler_act": ["relu", "sigmoid"], "chunk_size_feed_forward": []},
    "dinov2": {**{k: v for k, v in PICTURES.items() if k != "intermediate_size"}, **LABELS, **STATES, **BACKBONE, "mlp_ratio": [1], "qkv_bias": [False], "use_swiglu_ffn": [True], "apply_layernorm": [False], "reshape_hidden_states": [False],
               "use_mask_token": [False]},
    "swin": {**SWIN, **LABELS, **BACKBONE, "encoder_stride": [dict(encoder_stride=4, patch_size=2, image_size=32, depths=[1, 1], num_heads=[2, 2])],},
    "donut-swin": {**{k: v for k, v in SWIN.items() if k != "use_absolute_embeddings"}, **LABELS},
    "convnext": {**LABELS, **BACKBONE, "output_hidden_states": [True], "num_channels": [1], "patch_size": [2], "hidden_sizes": [[8, 8, 8, 8], dict(hidden_sizes=[8, 8], depths=[1, 1], num_stages=2)], "depths": [[2, 1, 1, 1]], "hidden_act": ["relu", "silu"],
                 "layer_norm_eps": [1e-2], "layer_scale_init_value": [0.0]},
    "resnet": {**LABELS, **BACKBONE, "output_hidden_states": [True], "num_channels": [1], "embedding_size": [16], "hidden_sizes": [[8, 8, 8, 8], dict(hidden_sizes=[8, 8], depths=[1, 1])], "depths": [[2, 1, 1, 1]], "layer_type": ["bottleneck"],
               "hidden_act": ["gelu", "silu"], "downsample_in_first_stage": [True], "downsample_in_bottleneck": [dict(downsample_in_bottleneck=True, layer_type="bottleneck")]},
    "segformer": {**LABELS, **STATES, "num_labels": [1, 2, 7], "num_channels": [1], "depths": [[2, 1, 1, 1], dict(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 8], patch_sizes=[3, 3], strides=[2, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2])],
                  "sr_ratios": [[2, 2, 2, 1]], "hidden_sizes": [[8, 16, 16, 32]], "patch_sizes": [[3, 3, 5, 3]], "strides": [[2, 2, 2, 2]], "num_attention_heads": [[2, 2, 4, 4]], "mlp_ratios": [[1, 2, 3, 1]], "hidden_act": ["relu", "silu"],
                  "decoder_hidden_size": [24], "semantic_loss_ignore_index": [0, 2], "reshape_last_stage": [False]},
    "wav2vec2": {**SOUND, "num_codevectors_per_group": [6], "num_codevector_groups": [4], "contrastive_logits_temperature": [0.5], "codevector_dim": [8], "proj_codevector_dim": [12], "diversity_loss_weight": [0.7],
                 "tdnn_dim": [(6, 8)], "tdnn_kernel": [(1, 2)], "tdnn_dilation": [(2, 1)], "xvector_output_dim": [9], "adapter_attn_dim": [dict(adapter_attn_dim=6, do_stable_layer_norm=True)], "add_adapter": [True], "adapter_kernel_size": [dict(add_adapter=True, num_adapter_layers=1, adapter_kernel_size=5)],
                 "adapter_stride": [dict(add_adapter=True, adapter_stride=3)], "num_adapter_layers": [dict(add_adapter=True, num_adapter_layers=1)], "output_hidden_size": [dict(add_adapter=True, output_hidden_size=24)]},
    "hubert": {**SOUND, "feat_proj_layer_norm": [False], "conv_pos_batch_norm": [True]},
    "speech_to_text": {**SPEECH_TO_TEXT, "encoder_layers": [1, 3], "encoder_ffn_dim": [24], "encoder_attention_heads": [2], "decoder_start_token_id": [5], "pad_token_id": [3], "num_conv_layers": [dict(num_conv_layers=1, conv_kernel_sizes=(5,))],
                       "conv_kernel_sizes": [(3, 5)], "conv_channels": [16], "input_feat_per_channel": [20], "input_channels": [dict(input_channels=2, input_feat_per_channel=10)]},
    "speech_to_text_2": {k: v for k, v in SPEECH_TO_TEXT.items() if k != "tie_word_embeddings"},
    "whisper": {**{k: v for k, v in SPEECH_TO_TEXT.items() if k != "scale_embedding"}, "num_labels": [1, 5], "num_mel_bins": [6], "encoder_layers": [1, 3], "encoder_ffn_dim": [24], "encoder_attention_heads": [2], "decoder_start_token_id": [5], "pad_token_id": [6], "max_source_positions": [14], "max_target_positions": [40],
                "use_weighted_layer_sum": [True], "classifier_proj_size": [8], "activation_function": ["relu", "silu"]},
    "lxmert": {**{k: v for k, v in WORDS.items() if k not in ("num_hidden_layers", "layer_norm_eps")}, **STATES, "num_qa_labels": [4], "num_object_labels": [6], "num_attr_labels": [6], "type_vocab_size": [3], "l_layers": [1], "x_layers": [2], "r_layers": [2],
               "visual_feat_dim": [], "visual_pos_dim": [], "visual_loss_normalizer": [2.5], "task_matched": [False], "task_mask_lm": [False], "task_obj_predict": [False], "task_qa": [False], "visual_obj_loss": [False], "visual_attr_loss": [False],
               "visual_feat_loss": [False], "tie_word_embeddings": [False], "pad_token_id": []},
}
OPTIONS["lxmert"]["num_attention_heads"] = [2]


def inside(part, options):
    return {f"{part}.{name}": values for name, values in options.items()}


WORDS, PICTURES = {**WORDS, **STATES}, {**PICTURES, **STATES}
OPTIONS["clip"] = {"projection_dim": [24], **LABELS, **inside("text_config", {**WORDS, "projection_dim": [24], "eos_token_id": [98], "pad_token_id": []}), **inside("vision_config", {**PICTURES, "projection_dim": [24]})}
OPTIONS["siglip"] = {**LABELS, **inside("text_config", {**{k: v for k, v in WORDS.items() if k != "hidden_size"}, "hidden_size": [16], "projection_size": [24], "pad_token_id": []}), **inside("vision_config", PICTURES)}
OPTIONS["altclip"] = {"projection_dim": [24], **inside("text_config", {**WORDS, "type_vocab_size": [3], "project_dim": [24], "pad_token_id": [3]}), **inside("vision_config", PICTURES)}
OPTIONS["git"] = inside("vision_config", PICTURES)
TEXTS_OF_GIT = {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act", "max_position_embeddings", "layer_norm_eps", "pad_token_id", "use_cache", "tie_word_embeddings", "bos_token_id", "eos_token_id",
                "num_image_with_embedding", "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"}  # Calque has GIT's pictures alone

# Options that do something beside another one: what they change is what they change there.
ALONE = {"adapter_attn_dim", "adapter_kernel_size", "adapter_stride", "num_adapter_layers", "output_hidden_size", "downsample_in_bottleneck", "ctc_zero_infinity", "do_stable_layer_norm", "input_channels", "window_size"}
# Inputs without which an option of a class would not be asked.
SCENARIOS = {"Wav2Vec2ForPreTraining": ["negatives"], "Wav2Vec2Model": ["frames that are not heard"], "HubertModel": ["frames that are not heard"], "Dinov2Model": ["masked patches"], "LxmertForPreTraining": ["objects"],
             "LxmertModel": ["token types and a mask of the objects"], "AltCLIPTextModel": ["token types"]}


def updated(settings, option, value):
    """The settings with the option's value, or with the values of a dict that has it."""
    out = copy.deepcopy(settings)
    for name, one in (value if isinstance(value, dict) else {option: value}).items():
        at = out
        *path, last = name.split(".")
        for part in path:
            at = at.setdefault(part, {})
        at[last] = one
    return out


def ctc_labels(model, x):
    """One row longer than its frames, which no path can say."""
    marked = torch.randint(1, model.config.vocab_size - 1, (x["input_values"].shape[0], 40), generator=torch.Generator().manual_seed(2))
    marked[1, 2:] = -100
    return {"labels": marked}


def runs(arch, task, cls, model, cases):
    """Inputs with labels, and those that some options of the class need."""
    torch.manual_seed(1)
    own = [one for one in models.scenarios(arch, task, cls, model, cases) if one[4] == torch.float32]
    yield own[0][1], {}
    for name, x, flags, _, _ in own:
        if name in SCENARIOS.get(cls, ()):
            yield x, flags
    x = own[0][1]
    if "decoder_input_ids" in x and "labels" in x:  # the decoder reads the labels
        yield {name: t for name, t in x.items() if name != "decoder_input_ids"}, {}
    if "CTC" in cls:
        yield {**own[1][1], **ctc_labels(model, own[1][1])}, {}


def with_channels(x, model):
    """As many colours, and features of a sound, as the configuration says."""
    count = getattr(getattr(model.config, "vision_config", model.config), "num_channels", 3)
    x = {**x, "pixel_values": x["pixel_values"][:, :count]} if "pixel_values" in x else x
    if hasattr(model.config, "input_feat_per_channel"):
        x = {**x, "input_features": x["input_features"][..., : model.config.input_feat_per_channel * model.config.input_channels]}
    return x


def outputs_of(model, inputs):
    found = {}
    for i, (x, flags) in enumerate(inputs):
        with torch.no_grad():
            found.update({f"{i}.{name}": t for name, t in models.plain(copy.deepcopy(model)(**models.accepted(model, {**x, **flags}))).items()})
    return found


def finite(outputs):
    """Infinities are compared as a large number."""
    return {name: t.nan_to_num(nan=1e9, posinf=1e8, neginf=-1e8) if t.is_floating_point() else t for name, t in outputs.items()}


def same(a, b):
    return set(a) == set(b) and all(a[k].shape == b[k].shape and torch.equal(a[k], b[k]) for k in a)


class Case:
    """A class with one configuration: transformers' outputs, and Calque's."""

    def __init__(self, arch, task, cls, settings, cases, weights=None):
        self.cls, self.model = cls, models.make(arch, cls, settings, cases)
        if self.model is None:
            return
        if weights:  # the same where they have the same sizes: what changes then is the forward's
            mine = self.model.state_dict()
            self.model.load_state_dict({name: weights[name] if name in weights and weights[name].shape == t.shape else t for name, t in mine.items()})
        if hasattr(self.model, "set_attn_implementation"):
            self.model, _ = models.attending(self.model, "eager")
        self.inputs = [(with_channels(x, self.model), flags) for x, flags in runs(arch, task, cls, self.model, cases)]
        self.expected = finite(outputs_of(self.model, self.inputs))

    def differences(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            found = {}
            for i, (x, flags) in enumerate(self.inputs):
                one = models.run(folder, self.cls, {**x, **{k: torch.tensor(v) for k, v in flags.items()}}, ["--attention", "eager"])
                if isinstance(one, str):
                    return [one]
                found.update({f"{i}.{name}": t for name, t in one.items()})
        return models.differences(finite(found), self.expected, models.TOLERANCE[torch.float32])


def idle_values(arch, options):
    """{option: another value} of those that change nothing."""
    out = dict(IDLE_OF.get(arch, {}))
    for option in options:
        for pattern, value in IDLE.items():
            if option not in OPTIONS[arch] and re.search(pattern, option.split(".")[-1]):
                out.setdefault(option, value)
    return out


def options_of(arch, cases):
    """What the configuration class has beside what every one has."""
    usual = set(transformers.PretrainedConfig().to_dict())
    config = type(transformers.AutoConfig.for_model(arch))(**cases.CONFIGS[0]).to_dict()
    parts = {f"{part}.{name}" for part in ("text_config", "vision_config") if isinstance(config.get(part), dict) for name in config[part]}
    options = {name for name in (*config, *parts) if name.split(".")[-1] not in usual}
    derived = DERIVED | DERIVED_OF.get(arch, set()) | (TEXTS_OF_GIT if arch == "git" else set())
    return {name for name in options if name not in derived and name.split(".")[-1] not in ("_attn_implementation_internal", "transformers_version", "attn_implementation")}


def check(arch, classes, cases, every_class):
    """(cases, failures)"""
    base = {name: value for name, value in cases.CONFIGS[0].items() if name != "out_features"}
    own = options_of(arch, cases)
    idle = idle_values(arch, own)
    failures = [f"{arch}: {option} stands in no table" for option in sorted(own - set(OPTIONS[arch]) - set(idle) - set(BROKEN.get(arch, {})))]
    plain = {cls: Case(arch, task, cls, base, cases) for task, cls in classes}
    plain = {cls: case for cls, case in plain.items() if case.model is not None}
    values = [(option, value, False) for option, some in OPTIONS[arch].items() for value in (some if every_class else some[:1])]
    values += [(option, value, True) for option, value in idle.items() if every_class]
    count = 0
    for option, value, is_idle in values:
        changed, tried, wrong = False, 0, []
        for task, cls in classes:
            if cls not in plain or (changed and not every_class):
                continue
            what = f"{cls}, {option} = {value}"
            usual = plain[cls].model.state_dict()
            try:
                case = Case(arch, task, cls, updated(base, option, value), cases, None if option == "tie_word_embeddings" else usual)
                without = plain[cls]
                if isinstance(value, dict) and option in ALONE:
                    without = Case(arch, task, cls, updated(base, None, {k: v for k, v in value.items() if k != option}), cases, usual)
            except Exception as error:  # noqa: BLE001: values that this class does not take
                wrong.append(f"{what}: transformers: {type(error).__name__}: {str(error)[:200]}")
                continue
            changes = not same(case.expected, without.expected)
            if is_idle and changes:
                failures.append(f"{what}: changes transformers' outputs, but stands among those that do not")
            if not changes and not is_idle and not every_class:
                continue
            changed, tried, count = changed or changes, tried + 1, count + 1
            failures += [f"{what}: {text}" for text in case.differences()[:3]]
            if is_idle and not every_class:
                break
        if not changed and not is_idle:
            failures.append(f"{arch}: {option} = {value} changes nothing in transformers" + ("; " + "; ".join(wrong) if wrong else ""))
        elif wrong and not tried:
            failures += wrong
    return count, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    by_arch = {}
    for arch, task, cls in zoo_cases.classes(models.os.path.join(models.HERE, "zoo.tsv")):
        by_arch.setdefault(arch, []).append((task, cls))
    total, failed = 0, 0
    for arch in OPTIONS:
        if args.only and arch not in args.only or arch not in transformers.CONFIG_MAPPING:
            continue
        count, failures = check(arch, by_arch[arch], models.module_of(arch), args.all)
        for text in failures:
            print(f"FAILED {text}")
        print(f"{arch:16} {count} cases of {len(OPTIONS[arch])} options, {len(failures)} fail", flush=True)
        total, failed = total + count, failed + len(failures)
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

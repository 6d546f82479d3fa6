#!/usr/bin/env python3
"""Masks, heads and pruned models of transformers 4: tests/hub/golden/{masks,heads}.safetensors and tests/hub/golden/prune.

Run by a Python with transformers 4.40, the last that has all of them.
"""

import os
import shutil

import torch
import transformers
from safetensors.torch import save_file
from transformers import modeling_utils
from transformers.modeling_attn_mask_utils import AttentionMaskConverter

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "tests", "hub", "golden")


def masks():
    out = {}
    padded = torch.ones(3, 7, dtype=torch.long)
    padded[0, :2] = 0
    padded[1, 5:] = 0
    out["padded"] = padded
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        for causal, window in ((True, None), (True, 5), (False, None)):
            converter = AttentionMaskConverter(causal, window)
            for query in (1, 3, 7):
                kind = f"{name}/{'causal' if causal else 'plain'}/{window or 0}/{query}"
                out["to_4d/" + kind] = converter.to_4d(padded, query, dtype, key_value_length=7).contiguous()
                if causal:
                    made = converter.to_causal_4d(3, query, 7, dtype)
                    if made is not None:
                        out["to_causal_4d/" + kind] = made.contiguous()
    full = AttentionMaskConverter(True).to_4d(padded, 7, torch.float32, key_value_length=7)
    out["unmasked"] = AttentionMaskConverter._unmask_unattended(full, torch.finfo(torch.float32).min)

    class Model(modeling_utils.ModuleUtilsMixin):
        dtype = torch.float32
        config = transformers.PretrainedConfig(is_decoder=True)

    model = Model()
    out["inverted_2d"] = model.invert_attention_mask(padded)
    cube = (torch.arange(3 * 4 * 7).reshape(3, 4, 7) % 3 > 0).long()
    out["cube"] = cube
    out["inverted_3d"] = model.invert_attention_mask(cube)
    out["decoder"] = model.create_extended_attention_mask_for_decoder((3, 4), padded)
    out["extended_decoder"] = model.get_extended_attention_mask(padded, (3, 4), dtype=torch.float32)
    Model.config = transformers.PretrainedConfig(is_decoder=False)
    out["extended_encoder"] = model.get_extended_attention_mask(padded, (3, 7), dtype=torch.float32)
    heads = torch.tensor([1.0, 0.0, 1.0, 1.0])
    out["heads_1d"] = heads
    out["head_mask_1d"] = model.get_head_mask(heads, 3).contiguous()
    two = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    out["heads_2d"] = two
    out["head_mask_2d"] = model.get_head_mask(two, 3).contiguous()
    out["head_mask_chunked"] = model.get_head_mask(two, 3, True).contiguous()
    save_file({k: v.clone() for k, v in out.items()}, os.path.join(OUT, "masks.safetensors"))


def heads():
    torch.manual_seed(3)
    config = transformers.PretrainedConfig(hidden_size=8, layer_norm_eps=1e-5, start_n_top=3, end_n_top=2)
    head = modeling_utils.SQuADHead(config).eval()
    out = {"state/" + k: v for k, v in head.state_dict().items()}
    x = torch.randn(2, 6, 8)
    p_mask = torch.zeros(2, 6)
    p_mask[0, 4:] = 1
    start, end, cls_index, impossible = torch.tensor([1, 2]), torch.tensor([2, 4]), torch.tensor([0, 3]), torch.tensor([0.0, 1.0])
    out.update({"hidden_states": x, "p_mask": p_mask, "start": start, "end": end, "cls_index": cls_index, "impossible": impossible})
    with torch.no_grad():
        out["start_logits"] = head.start_logits(x, p_mask)
        out["end_logits"] = head.end_logits(x, start_positions=start, p_mask=p_mask)
        out["answer_class"] = head.answer_class(x, start_positions=start, cls_index=cls_index)
        out["answer_class_last"] = head.answer_class(x, start_positions=start)
        out["loss"] = head(x, start, end, return_dict=True).loss
        out["loss_with_class"] = head(x, start[:, None].clone(), end[:, None].clone(), cls_index.clone(), impossible.clone(), p_mask, return_dict=True).loss
        for key, value in head(x, cls_index=cls_index, p_mask=p_mask, return_dict=True).items():
            out["found/" + key] = value.contiguous()
        for i, settings in enumerate((
                dict(summary_type="last", summary_use_proj=True, summary_activation="tanh", summary_proj_to_labels=True, num_labels=3, summary_first_dropout=0.1),
                dict(summary_type="first", summary_use_proj=True, summary_proj_to_labels=False, num_labels=3),
                dict(summary_type="mean"),
                dict(summary_type="cls_index", summary_use_proj=True, summary_activation="gelu", summary_last_dropout=0.1))):
            summary = modeling_utils.SequenceSummary(transformers.PretrainedConfig(hidden_size=8, **settings)).eval()
            for key, value in summary.state_dict().items():
                out[f"summary/{i}/state/{key}"] = value
            out[f"summary/{i}/plain"] = summary(x).contiguous()
            out[f"summary/{i}/indexed"] = summary(x, cls_index).contiguous()
    save_file({k: v.clone() for k, v in out.items()}, os.path.join(OUT, "heads.safetensors"))


def prune():
    for name, config, cls in (
            ("bert", transformers.BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=20,
                                             max_position_embeddings=16), transformers.BertForMaskedLM),
            ("gpt2", transformers.GPT2Config(vocab_size=30, n_embd=16, n_layer=2, n_head=4, n_positions=16), transformers.GPT2LMHeadModel),
            ("albert", transformers.AlbertConfig(vocab_size=30, embedding_size=8, hidden_size=16, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=1,
                                                 num_attention_heads=4, intermediate_size=20, max_position_embeddings=16), transformers.AlbertForMaskedLM),
            ("distilbert", transformers.DistilBertConfig(vocab_size=30, dim=16, n_layers=2, n_heads=4, hidden_dim=20, max_position_embeddings=16),
             transformers.DistilBertForMaskedLM),
            ("t5", transformers.T5Config(vocab_size=30, d_model=16, d_kv=4, d_ff=20, num_layers=2, num_heads=4, relative_attention_num_buckets=8),
             transformers.T5EncoderModel)):
        torch.manual_seed(5)
        folder = os.path.join(OUT, "prune", name)
        shutil.rmtree(folder, ignore_errors=True)
        model = cls(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.save_pretrained(folder)
        ids = torch.tensor([[3, 1, 4, 1, 5, 9]])
        out = {"input_ids": ids}
        with torch.no_grad():
            out["before"] = model(ids)[0]
            model.prune_heads({0: [1, 2]})
            model.prune_heads({0: [3, 1], 1: [0]})
            out["after"] = model(ids)[0]
        for key, value in model.state_dict().items():
            out["shape/" + key] = torch.tensor(value.shape, dtype=torch.long)
        save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(folder, "pruned.safetensors"))
        model.save_pretrained(os.path.join(OUT, "prune", name + "_pruned"))
        for extra in (folder, folder + "_pruned"):
            if os.path.exists(os.path.join(extra, "generation_config.json")):
                os.remove(os.path.join(extra, "generation_config.json"))


os.makedirs(OUT, exist_ok=True)
masks()
heads()
prune()

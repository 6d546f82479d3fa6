"""Tiny random models of every class in the list of architectures that the installed transformers has, with inputs."""

import importlib

import torch
import transformers

TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, type_vocab_size=2, pad_token_id=0)
GPT = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, n_inner=37, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=37, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
SEQ2SEQ = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64,
               pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
T5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_decoder_layers=2, num_heads=4, relative_attention_num_buckets=8, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
VIT = dict(image_size=30, patch_size=6, num_channels=3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)
AUDIO = dict(hidden_size=16, feat_extract_norm="group", conv_dim=(32, 32, 32), conv_stride=(4, 4, 4), conv_kernel=(8, 8, 8), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2,
             num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, vocab_size=32, mask_time_prob=0.0)
SPEECH = dict(vocab_size=99, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=4, decoder_ffn_dim=4, num_conv_layers=2,
              conv_kernel_sizes=(5, 5), conv_channels=32, input_feat_per_channel=24, input_channels=1, max_source_positions=60, max_target_positions=20, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
CLIP_TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, projection_dim=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
CLIP_VISION = dict(VIT, projection_dim=32)

CONFIGS = {
    "albert": dict(TEXT, embedding_size=16, num_hidden_groups=1),
    "altclip": dict(text_config=dict(TEXT, projection_dim=32, project_dim=32), vision_config=CLIP_VISION, projection_dim=32),
    "bart": SEQ2SEQ,
    "bert": TEXT,
    "blenderbot": SEQ2SEQ,
    "blenderbot-small": SEQ2SEQ,
    "bloom": dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4, pad_token_id=0),
    "clip": dict(text_config=CLIP_TEXT, vision_config=CLIP_VISION, projection_dim=32),
    "cohere": LLAMA,
    "convnext": dict(num_channels=3, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1], image_size=32, num_stages=4),
    "deberta": dict(TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False),
    "deberta-v2": dict(TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True),
    "dinov2": VIT,
    "distilbert": dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=37, max_position_embeddings=64, pad_token_id=0),
    "donut-swin": dict(image_size=32, patch_size=2, num_channels=3, embed_dim=8, depths=[1, 2, 1], num_heads=[2, 2, 4], window_size=2, mlp_ratio=2.0),
    "electra": dict(TEXT, embedding_size=16),
    "git": dict(TEXT, vision_config=VIT),
    "gpt2": GPT,
    "gpt_neo": dict(vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=37, max_position_embeddings=64, attention_types=[[["global", "local"], 1]], window_size=7, bos_token_id=1, eos_token_id=2, pad_token_id=0),
    "gptj": dict(GPT, rotary_dim=4),
    "hubert": AUDIO,
    "layoutlm": dict(TEXT, max_2d_position_embeddings=64),
    "llama": LLAMA,
    "lxmert": dict(vocab_size=99, hidden_size=32, num_attention_heads=4, intermediate_size=37, l_layers=2, x_layers=1, r_layers=1, visual_feat_dim=16, visual_pos_dim=4, max_position_embeddings=64, num_qa_labels=7, num_object_labels=5, num_attr_labels=4),
    "m2m_100": SEQ2SEQ,
    "marian": dict(SEQ2SEQ, decoder_vocab_size=99),
    "mbart": SEQ2SEQ,
    "megatron-bert": TEXT,
    "mobilebert": dict(vocab_size=99, hidden_size=32, embedding_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64, intra_bottleneck_size=16, true_hidden_size=16, num_feedforward_networks=2, pad_token_id=0),
    "mt5": T5,
    "opt": dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=37, max_position_embeddings=64, word_embed_proj_dim=16, pad_token_id=1, bos_token_id=0, eos_token_id=2),
    "pegasus": SEQ2SEQ,
    "plbart": SEQ2SEQ,
    "resnet": dict(num_channels=3, embedding_size=8, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1], layer_type="basic"),
    "roberta": dict(TEXT, pad_token_id=1),
    "segformer": dict(num_channels=3, num_encoder_blocks=4, depths=[1, 1, 1, 1], sr_ratios=[4, 2, 1, 1], hidden_sizes=[8, 8, 16, 16], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16),
    "siglip": dict(text_config=dict(CLIP_TEXT, projection_size=32), vision_config=VIT),
    "speech_to_text": SPEECH,
    "swin": dict(image_size=32, patch_size=2, num_channels=3, embed_dim=8, depths=[1, 2, 1], num_heads=[2, 2, 4], window_size=2, mlp_ratio=2.0, encoder_stride=8),
    "t5": T5,
    "trocr": dict(vocab_size=99, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=37, max_position_embeddings=64, cross_attention_hidden_size=32, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2),
    "vit": dict(VIT, encoder_stride=6),
    "wav2vec2": dict(AUDIO, num_codevectors_per_group=8, codevector_dim=16, proj_codevector_dim=8),
    "xglm": dict(vocab_size=99, d_model=32, num_layers=2, attention_heads=4, ffn_dim=37, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2),
}
IMAGE = {"convnext": 32, "donut-swin": 32, "swin": 32, "resnet": 32, "segformer": 32}
ENCODER_DECODER = {"bart", "blenderbot", "blenderbot-small", "m2m_100", "marian", "mbart", "mt5", "pegasus", "plbart", "t5", "speech_to_text"}
# Some classes take their configuration from a part.
PARTS = {"CLIPTextModel": "text_config", "CLIPTextModelWithProjection": "text_config", "CLIPVisionModel": "vision_config", "CLIPVisionModelWithProjection": "vision_config",
         "AltCLIPTextModel": "text_config", "AltCLIPVisionModel": "vision_config", "GitVisionModel": "vision_config",
         "SiglipTextModel": "text_config", "SiglipVisionModel": "vision_config"}


def ids(*size, high=99):
    return torch.randint(3, high, size)


def patches(config):
    """How many patches a picture of the configuration's size has."""
    pair = [x if isinstance(x, (list, tuple)) else (x, x) for x in (config.image_size, config.patch_size)]
    return (pair[0][0] // pair[1][0]) * (pair[0][1] // pair[1][1])


def model(arch, cls):
    """The model, in evaluation mode; None when this transformers does not have it."""
    cls_object = getattr(transformers, cls, None)
    if cls_object is None and arch in CONFIGS:  # parts that are not exported at the top
        try:
            cls_object = getattr(importlib.import_module(f"transformers.models.{arch}.modeling_{arch}".replace("-", "_")), cls, None)
        except ImportError:  # a class of a later release
            return None
    if cls_object is None or arch not in CONFIGS:
        return None
    settings = dict(CONFIGS[arch])
    if cls.endswith("Backbone"):
        settings["out_indices"] = [1, 2]
    if cls.endswith("ForCausalLM") or cls.endswith("LMHeadModel"):
        if arch in ("bert", "electra", "roberta", "megatron-bert"):
            settings["is_decoder"] = True
    whole = type(transformers.AutoConfig.for_model(arch if arch in transformers.CONFIG_MAPPING else arch.replace("_", "-")))
    config = whole(**settings)
    if cls in PARTS:
        config = getattr(config, PARTS[cls])
    if hasattr(config, "use_cache"):
        config.use_cache = False
    torch.manual_seed(0)
    return cls_object(config).eval()


def inputs(arch, task, cls, batch=2, length=7):
    """Keyword arguments, and which of their dimensions are the batch (0) and the length (1)."""
    torch.manual_seed(1)
    if arch in ("hubert", "wav2vec2"):
        return {"input_values": torch.randn(batch, 400 + 64 * length)}, {"input_values": (0, 1)}
    if arch == "whisper":  # its features are made by its cases: their size follows from the configuration
        return {"input_features": torch.randn(batch, 8, 20), "decoder_input_ids": ids(batch, length)}, {"input_features": (0, None), "decoder_input_ids": (0, 1)}
    if arch == "speech_to_text":
        return ({"input_features": torch.randn(batch, 4 * length, 24), "attention_mask": torch.ones(batch, 4 * length, dtype=torch.long), "decoder_input_ids": ids(batch, length)},
                {"input_features": (0, None), "attention_mask": (0, None), "decoder_input_ids": (0, 1)})
    vision_part = cls.endswith("VisionModel") or "VisionModelWith" in cls
    if arch in IMAGE or arch in ("dinov2", "vit") or vision_part or cls.endswith("ForImageClassification"):
        size = IMAGE.get(arch, 30)
        x = {"pixel_values": torch.randn(batch, 3, size, size)}
        return x, {"pixel_values": (0, None)}
    if arch == "lxmert":
        return ({"input_ids": ids(batch, length), "attention_mask": torch.ones(batch, length, dtype=torch.long), "visual_feats": torch.randn(batch, 5, 16), "visual_pos": torch.rand(batch, 5, 4)},
                {"input_ids": (0, 1), "attention_mask": (0, 1), "visual_feats": (0, None), "visual_pos": (0, None)})
    lead = (batch, 3) if "MultipleChoice" in cls or "DoubleHeads" in cls else (batch,)
    dims = (0, 2) if len(lead) == 2 else (0, 1)
    x = {"input_ids": ids(*lead, length), "attention_mask": torch.ones(*lead, length, dtype=torch.long)}
    x["attention_mask"][0, ..., -2:] = 0
    if arch == "layoutlm":
        box = torch.sort(torch.randint(0, 60, (*lead, length, 4)), -1).values
        x["bbox"] = torch.stack([box[..., 0], box[..., 1], box[..., 2], box[..., 3]], -1)
    if cls == "GPT2DoubleHeadsModel":
        x["mc_token_ids"] = torch.randint(0, length, lead)
    if arch in ("clip", "altclip", "siglip") and cls not in PARTS:
        x["pixel_values"] = torch.randn(batch, 3, 30, 30)
    seq2seq = arch in ENCODER_DECODER and not cls.endswith("ForCausalLM") and not cls.endswith("EncoderModel") and "ForTokenClassification" not in cls
    if seq2seq:
        if "SequenceClassification" in cls:
            eos = 1 if arch in ("t5", "mt5") else 2
            x["input_ids"][..., -1] = eos
            x["attention_mask"][:] = 1
        elif "QuestionAnswering" not in cls:
            x["decoder_input_ids"] = ids(batch, length)
    return x, {k: (0, None) if k in ("pixel_values",) else (0, dims[1] if k != "mc_token_ids" else None) for k in x}


def classes(path):
    """(arch, task, class), each class once."""
    seen, out = set(), []
    with open(path) as f:
        next(f)
        for line in f:
            arch, task, cls = line.rstrip("\n").split("\t")[:3]
            if cls not in seen:
                seen.add(cls)
                out.append((arch, task, cls))
    return out

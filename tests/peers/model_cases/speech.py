"""What the cases of models of raw sound share: small encoders, sounds of several lengths, labels."""

import torch
import transformers

SIZES = dict(hidden_size=16, feat_extract_norm="group", conv_dim=(32, 32, 32), conv_stride=(4, 4, 4), conv_kernel=(8, 8, 8), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2,
             num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, vocab_size=32, classifier_proj_size=12, mask_time_length=2)
LARGE = dict(SIZES, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True, num_conv_pos_embeddings=5, hidden_act="relu", feat_extract_activation="silu", layer_norm_eps=1e-3, num_attention_heads=4,
             use_weighted_layer_sum=True, num_labels=5, ctc_loss_reduction="mean", ctc_zero_infinity=True, num_hidden_layers=3)


def sounds(x):
    """A mask over the samples: the first sound is shorter."""
    values = x["input_values"]
    mask = torch.ones(values.shape, dtype=torch.long)
    mask[0, values.shape[1] * 3 // 4 :] = 0
    return {"input_values": values, "attention_mask": mask}


def frames(model, samples):
    return int(model._get_feat_extract_output_lengths(torch.tensor(samples)))


def labels(cls, x, model, y):
    batch = x["input_values"].shape[0]
    if "CTC" in cls:
        marked = torch.randint(1, model.config.vocab_size, (batch, 3))
        marked[0, 2] = -100
        return {"labels": marked}
    if "SequenceClassification" in cls or "XVector" in cls:
        return {"labels": torch.randint(0, model.config.num_labels, (batch,))}
    if "AudioFrame" in cls:
        count = frames(model, x["input_values"].shape[1])
        return {"labels": torch.nn.functional.one_hot(torch.randint(0, model.config.num_labels, (batch, count)), model.config.num_labels)}
    return {}


def hidden_frames(model, x):
    """mask_time_indices: frames that the model does not hear."""
    torch.manual_seed(5)
    count = frames(model, x["input_values"].shape[1])
    mask = torch.rand(x["input_values"].shape[0], count) > 0.5
    mask[:, 0] = True
    return mask


def no_bfloat16(cls, model):
    return transformers.__version__ < "5"  # its masked_spec_embed stays in float32, and so the file says that all of it is

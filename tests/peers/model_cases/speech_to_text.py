import torch

SIZES = dict(vocab_size=99, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=20, decoder_ffn_dim=20, num_conv_layers=2, conv_kernel_sizes=(5, 5), conv_channels=32,
             input_feat_per_channel=24, input_channels=1, max_source_positions=60, max_target_positions=40, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, scale_embedding=False, num_conv_layers=1, conv_kernel_sizes=(3,), activation_function="gelu", encoder_attention_heads=2, decoder_layers=3, tie_word_embeddings=False),
    dict(SIZES, input_feat_per_channel=12, input_channels=2, num_conv_layers=3, conv_kernel_sizes=(3, 5, 3), encoder_layers=1, output_hidden_states=True, use_cache=False),
]
GOLDEN_CLASS = "Speech2TextForConditionalGeneration"
GOLDEN_CASES = ("padded, with labels and hidden states", "eager, with attentions")


def inputs(cls, x, model):
    # Two frames or more behind the convolutions, also of the shortest: a program is bound to that side, as torch.export's is.
    more = torch.randn(x["input_features"].shape[0], 12, x["input_features"].shape[2], generator=torch.Generator().manual_seed(4))
    x["input_features"] = torch.cat([x["input_features"], more], 1)
    x["attention_mask"] = torch.ones(x["input_features"].shape[:2], dtype=torch.long)
    x["attention_mask"][0, x["attention_mask"].shape[1] * 2 // 3 :] = 0
    return x


def no_embeds(cls, model):
    return True


def extra(cls, x, model):
    mask = (x["decoder_input_ids"] != 0).long()
    mask[0, -2:] = 0
    padded = x["decoder_input_ids"].clone()
    padded[0, -2:] = 1
    yield "padding of the decoder", dict(x, decoder_input_ids=padded, decoder_attention_mask=mask), {"output_hidden_states": True}

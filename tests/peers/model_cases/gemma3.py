import torch

TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40, head_dim=8, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
VISION = dict(image_size=24, patch_size=6, num_channels=3, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, vision_use_head=False)
SIZES = dict(mm_tokens_per_image=4, image_token_index=98)
CONFIGS = [
    dict(SIZES, text_config=TEXT, vision_config=VISION),
    dict(SIZES, text_config=dict(TEXT, sliding_window=3, layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=False), vision_config=dict(VISION, image_size=30, layer_norm_eps=1e-3), tie_word_embeddings=False, num_labels=1),
    dict(mm_tokens_per_image=1, image_token_index=120, text_config=dict(TEXT, num_key_value_heads=1), vision_config=dict(VISION, vision_use_head=True), num_labels=5, problem_type="multi_label_classification"),
]
GOLDEN_CLASS = "Gemma3ForConditionalGeneration"
GOLDEN_CONFIG = dict(SIZES, text_config=dict(TEXT, vocab_size=40, hidden_size=16, intermediate_size=16, sliding_window=3, layer_types=["sliding_attention", "full_attention"]), vision_config=dict(VISION, image_size=12, num_hidden_layers=1), image_token_index=39)


def inputs(cls, x, model):
    """Ids that stand for no picture."""
    x["input_ids"] = x["input_ids"] % (model.config.text_config.vocab_size - 3) + 2
    return x


def with_pictures(x, model, count=1):
    config = model.config
    ids = x["input_ids"].repeat(1, 2)
    for i in range(count):
        ids[:, 2 + 6 * i:2 + 6 * i + config.mm_tokens_per_image] = config.image_token_index
    size = config.vision_config.image_size
    return dict(x, input_ids=ids, attention_mask=x["attention_mask"].repeat(1, 2), pixel_values=torch.randn(count * ids.shape[0], 3, size, size))


def extra(cls, x, model):
    y = with_pictures(x, model)
    types = (y["input_ids"] == model.config.image_token_index).long()
    labels = {"labels": y["input_ids"] % model.config.text_config.vocab_size} if cls.endswith("Generation") else {}
    yield "picture", {**y, **labels}, {"output_hidden_states": True}, "sdpa", torch.float32
    yield "picture that sees itself", dict(y, token_type_ids=types), {"output_attentions": True}, "eager", torch.float32
    two = with_pictures(x, model, 2)
    yield "two pictures a text", dict(two, token_type_ids=(two["input_ids"] == model.config.image_token_index).long()), {}, "sdpa", torch.float32
    if model.config.image_token_index < model.config.text_config.vocab_size and "Classification" not in cls:
        embeds = model.get_input_embeddings()(y["input_ids"]).detach()
        yield "picture in embeddings", {**{k: v for k, v in y.items() if k != "input_ids"}, "inputs_embeds": embeds}, {}, "sdpa", torch.float32

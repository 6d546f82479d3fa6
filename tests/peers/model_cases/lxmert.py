import torch

SIZES = dict(vocab_size=99, hidden_size=32, num_attention_heads=4, intermediate_size=37, l_layers=2, x_layers=1, r_layers=1, visual_feat_dim=16, visual_pos_dim=4, max_position_embeddings=64, num_qa_labels=7, num_object_labels=5, num_attr_labels=4)
CONFIGS = [
    dict(SIZES),
    dict(SIZES, hidden_act="relu", num_attention_heads=2, x_layers=2, r_layers=2, l_layers=1, tie_word_embeddings=False, visual_attr_loss=False, visual_loss_normalizer=2.5, type_vocab_size=3),
    dict(SIZES, task_qa=False, task_matched=False, task_obj_predict=False, output_hidden_states=True),
]
GOLDEN_CONFIG = dict(SIZES, hidden_size=16, intermediate_size=20, vocab_size=99, max_position_embeddings=16, l_layers=1)
GOLDEN_CASES = ("padded, with labels and hidden states",)


def labels(cls, x, model, y):
    batch = x["input_ids"].shape[0]
    if cls == "LxmertForQuestionAnswering":
        return {"labels": torch.randint(0, model.config.num_qa_labels, (batch,))}
    if cls == "LxmertForPreTraining":
        marked = x["input_ids"].clone()
        marked[:, 0] = -100
        return {"labels": marked, "matched_label": torch.randint(0, 2, (batch,)), "ans": torch.randint(0, model.config.num_qa_labels, (batch,))}
    return {}


def extra(cls, x, model):
    y = dict(x, token_type_ids=torch.randint(0, model.config.type_vocab_size, x["input_ids"].shape), visual_attention_mask=torch.ones(x["visual_feats"].shape[:2], dtype=torch.long))
    y["visual_attention_mask"][1, 3:] = 0
    yield "token types and a mask of the objects", y, {"output_attentions": True}
    if cls == "LxmertForPreTraining":
        c, shape = model.config, x["visual_feats"].shape[:2]
        given = {"obj": (torch.randint(0, c.num_object_labels, shape), torch.rand(shape)), "attr": (torch.randint(0, c.num_attr_labels, shape), torch.rand(shape)), "feat": (torch.randn(*shape, c.visual_feat_dim), torch.rand(shape))}
        yield "objects", dict(x, obj_labels=given), {}

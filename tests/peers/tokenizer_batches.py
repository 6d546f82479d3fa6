"""Batches as the tokenizers library cuts and pads them, for the options that tokenizer_peer and batch_test.cpp read."""

# Of texts and of pairs; "only_second" is for pairs alone.
OPTIONS = [
    {"pad": False},
    {},
    {"padding_side": "left"},
    {"pad_to_multiple_of": 8},
    {"pad_to": 3000, "padding_side": "left"},
    {"max_length": 12},
    {"max_length": 12, "overflow": True},
    {"max_length": 12, "overflow": True, "stride": 2},
    {"max_length": 15, "overflow": True, "stride": 3, "truncation_side": "left", "padding_side": "left"},
    {"max_length": 9, "overflow": True, "add_special_tokens": False},
    {"max_length": 16, "pad_to_multiple_of": 16, "pad": True},
]
PAIR_OPTIONS = [
    {"max_length": 40, "strategy": "only_first", "overflow": True, "stride": 2},
    {"max_length": 40, "strategy": "only_second", "overflow": True, "stride": 5},
    {"max_length": 40, "strategy": "only_second", "overflow": True, "truncation_side": "left"},
    {"max_length": 4},
]


def batch(tokenizer, inputs, options, pad_token):
    """The rows of a batch, or what the library says against it."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    try:
        if "max_length" in options:
            tokenizer.enable_truncation(options["max_length"], stride=options.get("stride", 0),
                                        strategy=options.get("strategy", "longest_first"),
                                        direction=options.get("truncation_side", "right"))
        if options.get("pad", True):
            tokenizer.enable_padding(direction=options.get("padding_side", "right"), pad_id=tokenizer.token_to_id(pad_token),
                                     pad_token=pad_token, length=options.get("pad_to"),
                                     pad_to_multiple_of=options.get("pad_to_multiple_of"))
        encoded = tokenizer.encode_batch(inputs, add_special_tokens=options.get("add_special_tokens", True))
    except BaseException as e:  # a panic of the library is one
        return {"error": str(e)}
    finally:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    rows, row_of = [], []
    for i, first in enumerate(encoded):
        for e in [first] + (first.overflowing if options.get("overflow") else []):
            row_of.append(i)
            rows.append({"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets], "type_ids": e.type_ids,
                         "special": e.special_tokens_mask, "mask": e.attention_mask,
                         "sequences": [-1 if s is None else s for s in e.sequence_ids]})
    return {"row_of": row_of, "rows": rows}

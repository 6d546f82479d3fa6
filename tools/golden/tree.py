"""Writes tests/op/golden/tree.jsonl: trees with what PyTorch's pytree says of them, one JSON object a line.

`tree` describes the tree in tags that the test builds it from; `dumps` is treespec_dumps, `repr` the TreeSpec's repr,
`paths` the leaves' key paths, `leaves` and `nodes` their numbers, `namedtuples` the field names of the namedtuples.

    python tools/golden/tree.py
"""

import json
import pathlib
import random
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import torch
import torch.utils._pytree as pytree
from transformers.cache_utils import DynamicCache
from transformers.integrations.executorch import register_dynamic_cache_export_support
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutputWithPast

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "op" / "golden" / "tree.jsonl"
cases = []

Point = namedtuple("Point", "x y")
Empty = namedtuple("Empty", "")


@dataclass
class Settings:
    scale: object
    bias: object = None
    mask: object = None


# Under these names both the serialised form and the repr of the class can be told from one fact.
for cls in (Point, Empty):
    cls.__module__ = "golden"
    cls.__qualname__ = cls.__name__
    pytree._register_namedtuple(cls, serialized_type_name=f"golden.{cls.__name__}")
pytree.register_dataclass(Settings, serialized_type_name="golden.Settings")
register_dynamic_cache_export_support()



def describe(tree):
    """The tree in tags; None where the test cannot build it natively."""
    kids = lambda items: [describe(x) for x in items]
    if isinstance(tree, (Point, Empty)):
        return {"t": "namedtuple", "name": f"golden.{type(tree).__name__}", "fields": list(tree._fields), "c": kids(tree)}
    if isinstance(tree, tuple):
        return {"t": "tuple", "c": kids(tree)}
    if isinstance(tree, list):
        return {"t": "list", "c": kids(tree)}
    if isinstance(tree, (BaseModelOutput, CausalLMOutputWithPast)):
        fields = list(tree.__dataclass_fields__)
        name = f"{type(tree).__module__}.{type(tree).__name__}"
        return {"t": "output", "name": name, "fields": fields, "c": kids(getattr(tree, f) for f in fields)}
    if isinstance(tree, OrderedDict):
        return {"t": "odict", "k": list(tree), "c": kids(tree.values())}
    if isinstance(tree, (defaultdict, deque, Settings, DynamicCache)):
        return {"t": "other"}
    if isinstance(tree, dict):
        return {"t": "dict", "k": list(tree), "c": kids(tree.values())}
    return {"t": "none"} if tree is None else {"t": "leaf"}


def has_other(d):
    return d["t"] == "other" or any(map(has_other, d.get("c", [])))


def fields_of(spec, out):
    if spec.type is namedtuple:
        out[pytree.SUPPORTED_SERIALIZED_TYPES[spec.context].serialized_type_name] = list(spec.context._fields)
    for child in spec.children():
        fields_of(child, out)
    return out


def add(tree):
    spec = pytree.tree_structure(tree)
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(tree)]
    description = describe(tree)
    case = {"dumps": pytree.treespec_dumps(spec), "repr": repr(spec), "paths": paths}
    case |= {"leaves": spec.num_leaves, "nodes": spec.num_nodes, "namedtuples": fields_of(spec, {})}
    if not has_other(description):
        case["tree"] = description
    cases.append(case)


one = torch.ones(1)
add(one)
add(None)
for tree in [(), [], {}, OrderedDict(), deque(), deque(maxlen=4), defaultdict(int), Empty()]:
    add(tree)
add(((1, 2), {}))
add(((one, [one, (one,)]), {"mask": None, "options": {"a": 1, "b": (1, [2])}}))
add({"é": 1, 'quo"te': 2, "back\\slash": 3, "new\nline": 4, "\t": 5, "\x7f": 6, "😀": 7, "it's": 8, "": 9, "/": 10})
add({1: 1, -5: 2, None: 3, 2.5: 4, 1e300: 5, 1e-7: 6, True: 7, "1": 8})
add({0: [1], "0": (2,)})
add(OrderedDict(b=1, a=OrderedDict(c=2)))
add(defaultdict(int, {"a": 1, 2: [3]}))
add(defaultdict(list, {"é": (1, 2)}))
add([defaultdict(OrderedDict, a=1), deque([1, (2,)]), deque([1, 2], maxlen=5)])
add(Point(1, Point([2], {"k": 3})))
add([Point(None, 2), Empty(), Point(1, 2)])
add(Settings(1))
add(Settings(scale=[1, 2], mask=one))
add(Settings(scale=1, bias=2, mask=3))
add(BaseModelOutput(last_hidden_state=one))
add(BaseModelOutput(last_hidden_state=one, hidden_states=(one, one), attentions=None))
add(CausalLMOutputWithPast(logits=one, past_key_values=None))
add((CausalLMOutputWithPast(loss=one, logits=one, hidden_states=(one,) * 3), [BaseModelOutput(attentions=(one,))]))
cache = DynamicCache()
add(cache)
cache.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 0)
cache.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 1)
add(cache)
add(((one,), {"past_key_values": cache, "input_ids": one}))
add(CausalLMOutputWithPast(logits=one, past_key_values=cache))
deep = one
for _ in range(60):
    deep = [deep]
add(deep)

rng = random.Random(2026)


def random_tree(depth):
    kind = rng.choice(["leaf", "leaf", "none", "tuple", "list", "dict", "odict", "point", "output"])
    if depth == 0 or kind == "leaf":
        return 1
    if kind == "none":
        return None
    kids = [random_tree(depth - 1) for _ in range(rng.randrange(4))]
    names = rng.sample(["a", "b", "input_ids", "x.y", "ключ", "0", 0, 1, 77, "q'q"], len(kids))
    if kind == "tuple":
        return tuple(kids)
    if kind == "list":
        return kids
    if kind == "dict":
        return dict(zip(names, kids))
    if kind == "odict":
        return OrderedDict(zip(names, kids))
    if kind == "point":
        return Point(random_tree(depth - 1), random_tree(depth - 1))
    return BaseModelOutput(last_hidden_state=one, hidden_states=random_tree(depth - 1))


while len(cases) < 160:
    add([random_tree(4), random_tree(4), random_tree(3)])

with OUT.open("w", encoding="utf-8") as f:
    for case in cases:
        f.write(json.dumps(case) + "\n")
print(f"{len(cases)} cases, {OUT.stat().st_size} bytes, PyTorch {torch.__version__}")

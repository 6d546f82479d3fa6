"""Which operators the sweep covers, and how an operator's overloads belong together."""

import os

import torch

from calls import find_op, op_name

HERE = os.path.dirname(os.path.abspath(__file__))


def all_aten():
    names = []
    for n in torch._C._dispatch_get_all_op_names():
        if n.startswith("aten::"):
            names.append(n)
    return sorted(names)


def lookup(name):
    try:
        return find_op(name)
    except (AttributeError, RuntimeError):
        return None


def is_out(op):
    return any(a.is_out for a in op._schema.arguments)


def is_inplace(op):
    s = op._schema
    base = s.name.split("::")[1]
    return base.endswith("_") and not base.endswith("__") and bool(s.arguments) and s.arguments[0].alias_info is not None \
        and s.arguments[0].alias_info.is_write


def parameters(op):
    """Name and type of each argument that is not an out= one: what two forms of an operator have in common."""
    return [(a.name, str(a.type)) for a in op._schema.arguments if not a.is_out]


class Families:
    """Finds the functional form of an in-place or out= overload and the other way round."""

    def __init__(self):
        self.by_base = {}
        for n in all_aten():
            self.by_base.setdefault(n.split("::")[1].split(".")[0], []).append(n)

    def overloads(self, base):
        return [op for op in (lookup(n) for n in self.by_base.get(base, [])) if op is not None]

    def functional_of(self, op):
        base = op._schema.name.split("::")[1]
        if is_inplace(op):
            base = base[:-1]
        elif not is_out(op):
            return None
        want = parameters(op)
        for o in self.overloads(base):
            if is_out(o) or is_inplace(o):
                continue
            if parameters(o) == want:
                return o
        # Factories: the functional form also takes dtype, layout, device, pin_memory.
        for o in self.overloads(base):
            have = [p for p in parameters(o) if p[0] not in ("dtype", "layout", "device", "pin_memory")]
            if not is_out(o) and have == [p for p in want if p[0] != "dtype"]:
                return o
        return None

    def variants(self, op):
        base = op._schema.name.split("::")[1]
        found = []
        for o in self.overloads(base) + self.overloads(base + "_"):
            if (is_out(o) or is_inplace(o)) and self.functional_of(o) is op:
                found.append(o)
        return found


def default_list():
    """What traced transformer models use, PyTorch's core operators, and the in-place and out= forms of both."""
    with open(os.path.join(HERE, "model_ops.txt")) as f:
        names = [line.strip() for line in f if line.strip()]
    for n in all_aten():
        op = lookup(n)
        if op is not None and torch.Tag.core in op.tags:
            names.append(n)
    families = Families()
    for n in list(names):
        op = lookup(n)
        if op is not None:
            names += [op_name(v) for v in families.variants(op)]
    return sorted(set(names))


def read_list(path):
    with open(path) as f:
        return sorted({line.split()[0] for line in f if line.startswith("aten::")})

#!/usr/bin/env python3
"""Which overload PyTorch takes for a call by name: NAME<tab>kinds of the positional arguments<tab>overload, a line each.

Kinds: T tensor, i int, f float, b bool, L list of ints, TL list of tensors, s string. Names come from a list of operators
(opcheck --list) and are those with two overloads or more there; calls that PyTorch refuses, that it resolves to an overload
which the list lacks, or that only Python's conversions between kinds allow (a bool for an int), are left out.
"""

import itertools
import sys

import torch

VALUES = {"T": torch.ones(2, 2), "i": 2, "f": 2.5, "b": True, "L": [1, 1], "TL": [torch.ones(2, 2)], "s": "mean"}


# What a kind may stand for, as torch's schemas spell types. A number for a tensor is PyTorch's own rule.
FITS = {"T": {"Tensor"}, "i": {"int", "float", "number", "Tensor", "List[int]", "List[float]"}, "f": {"float", "number", "Tensor"},
        "b": {"bool", "number", "Tensor"}, "L": {"List[int]"}, "TL": {"List[Tensor]", "List[Optional[Tensor]]"}, "s": {"str"}}


def fits(kind, argument):
    text = str(argument.type)
    if text.startswith("Optional["):
        text = text[len("Optional["):-1]
    # In the typed schema an enumeration reads as an int.
    return text in FITS[kind] and not (kind == "i" and text == "int" and str(argument.real_type) not in ("int", "Optional[int]", "SymInt", "Optional[SymInt]"))


def main():
    listed = open(sys.argv[1]).read().split()
    names = sorted({n.split(".")[0] for n in listed})
    for name in names:
        known = {n for n in listed if n.split(".")[0] == name}
        if len(known) < 2:
            continue
        for count in (1, 2, 3):
            for kinds in itertools.product(VALUES, repeat=count):
                if count == 3 and not set(kinds[1:]) <= {"T", "i", "f", "b"}:
                    continue
                try:
                    overload = torch._C._jit_resolve_packet(name, *[VALUES[k] for k in kinds])
                except RuntimeError:
                    continue
                full = name + ("." + overload if overload not in ("", "default") else "")
                arguments = getattr(getattr(torch.ops.aten, name[6:]), overload or "default")._schema.arguments
                if full in known and all(fits(k, a) for k, a in zip(kinds, arguments)):
                    print(name, " ".join(kinds), full, sep="\t")


if __name__ == "__main__":
    main()

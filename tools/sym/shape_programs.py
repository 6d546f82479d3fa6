#!/usr/bin/env python3
"""Writes tests/sym/golden/shape_programs.jsonl: random programs of size arithmetic, run on PyTorch's ShapeEnv.

A program has tensor inputs (their sizes are its first registers) and steps; each step makes a register or asks something.
A row holds the program, every answer, and what the ShapeEnv knows afterwards: guards, runtime asserts, ranges,
replacements, the guards as Python, and for many other input sizes whether they are accepted. Symbols are numbered in
order of creation instead of by a hash of their source. No sample has a size of 0: PyTorch takes sizes to be positive even
where it does not specialise 0 and 1.

    python tools/sym/shape_programs.py [ROWS] [SEED] > tests/sym/golden/shape_programs.jsonl
"""
import json
import logging
import random
import sys
import warnings

import sympy
import torch
import torch.fx.experimental.symbolic_shapes as shapes
from torch._dynamo.source import LocalSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils._sympy.numbers import int_oo

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)


def numbered(self, name):
    self._count = getattr(self, "_count", -1) + 1
    return self._count


ShapeEnv._generate_unique_id = numbered
RELATIONS = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
             "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
BINARY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
          "mod": lambda a, b: a % b, "max": torch.sym_max, "min": torch.sym_min}


def plain(step, registers):
    """What the step gives for plain integers."""
    op = step[0]
    if op == "const":
        return step[1]
    return int(BINARY[op](registers[step[1]], registers[step[2]]))


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, registers):
        """Inputs more often than what was made of them."""
        n = len(registers)
        return self.rng.randrange(min(n, self.inputs)) if self.rng.random() < 0.6 else self.rng.randrange(n)

    def program(self):
        rng = self.rng
        inputs = []
        for _ in range(rng.randint(1, 3)):
            sizes = [rng.choice([2, 3, 4, 5, 6, 8, 9, 12, 16, 1]) for _ in range(rng.randint(1, 3))]
            strides = [1] * len(sizes)
            for i in range(len(sizes) - 1, 0, -1):
                strides[i - 1] = strides[i] * sizes[i]
            if rng.random() < 0.15:
                strides = strides[::-1] if len(set(sizes)) == 1 else [s * 2 for s in strides]
            inputs.append([sizes, strides])
        registers = [s for sizes, _ in inputs for s in sizes]
        self.inputs = len(registers)
        steps = []
        for _ in range(rng.randint(3, 12)):
            pick = rng.random()
            if pick < 0.12:
                step = ["const", rng.randint(1, 9)]
            elif pick < 0.5:
                op = rng.choice(["add", "sub", "mul", "mul", "floordiv", "mod", "max", "min", "add"])
                a, b = self.pick(registers), self.pick(registers)
                if op in ("floordiv", "mod") and (registers[b] == 0 or rng.random() < 0.7):
                    steps.append(["const", rng.choice([2, 3, 4])])
                    registers.append(steps[-1][1])
                    b = len(registers) - 1
                step = [op, a, b]
            else:
                steps.append(self.question(registers))
                continue
            value = plain(step, registers)
            if abs(value) > 100000:
                continue
            steps.append(step)
            registers.append(value)
        return {"inputs": inputs, "duck": rng.random() < 0.5, "specialize": rng.random() < 0.85, "steps": steps}

    def question(self, registers):
        rng = self.rng
        kind = rng.choice(["guard"] * 6 + ["known", "guard_or_false", "check"])
        a = self.pick(registers)
        if rng.random() < 0.5:
            b, other = self.pick(registers), "register"
        else:
            b, other = registers[a] + rng.choice([0, 0, -1, 1, 2, -3]), "number"
        relation = rng.choice(["eq", "eq", "ne", "lt", "le", "gt", "ge"])
        if rng.random() < 0.03:
            return ["guard_int", a]
        if rng.random() < 0.12 and registers[a] > 1:
            return ["divides", a, rng.choice([2, 3, 4])]
        value = registers[b] if other == "register" else b
        if kind == "check" and not RELATIONS[relation](registers[a], value):
            kind = "guard"
        return [kind, relation, a, other, b]


def run(program):
    env = ShapeEnv(duck_shape=program["duck"], specialize_zero_one=program["specialize"])
    mode = FakeTensorMode(shape_env=env)
    fakes = []
    for i, (sizes, strides) in enumerate(program["inputs"]):
        context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DUCK] * len(sizes))
        fakes.append(mode.from_tensor(torch.empty_strided(sizes, strides), source=LocalSource(f"t{i}"), symbolic_context=context))
    registers = [s for f in fakes for s in f.size()]
    answers = []
    for step in program["steps"]:
        op = step[0]
        if op == "const":
            registers.append(step[1])
        elif op in BINARY:
            registers.append(BINARY[op](registers[step[1]], registers[step[2]]))
        elif op == "guard_int":
            answers.append(int(registers[step[1]]))
        elif op == "divides":
            answers.append(bool(registers[step[1]] % step[2] == 0))
        else:
            _, relation, a, other, b = step
            condition = RELATIONS[relation](registers[a], registers[b] if other == "register" else b)
            if op == "guard":
                answers.append(bool(condition))
            elif op == "known":
                answers.append(shapes.statically_known_true(condition))
            elif op == "guard_or_false":
                answers.append(shapes.guard_or_false(condition))
            else:
                torch._check(condition)
                answers.append(True)
    return env, fakes, registers, answers


def samples(rng, program, code, env):
    """Other input sizes, and whether the guards accept them; sizes that PyTorch made static stay. Inputs that were
    contiguous stay so, others stay as they are."""
    out = []
    for n in range(40):
        args, flat = [], []
        # Most guards tie dimensions together: change values, not places.
        values = sorted({s for sizes, _ in program["inputs"] for s in sizes})
        if n % 4 == 3:
            changed = None
        else:
            changed = {v: max(1, v + rng.choice([0, 0, 1, 2, -1, v, 2 * v, rng.randint(0, 20)])) if v > 1 or not program["specialize"] else v
                       for v in values}
        for sizes, strides in program["inputs"]:
            new = [changed[s] if changed else (s if s == 1 and program["specialize"] else max(1, s + rng.choice([0, 0, 0, 1, -1, s])))
                   for s in sizes]
            new_strides = [1] * len(new)
            contiguous = [1] * len(sizes)
            for i in range(len(new) - 1, 0, -1):
                contiguous[i - 1] = contiguous[i] * sizes[i]
                new_strides[i - 1] = new_strides[i] * new[i]
            if contiguous != strides:
                new, new_strides = sizes, strides
            args.append(torch.empty_strided(new, new_strides, device="meta"))
            flat.append(list(new))
        try:
            accepted = True if code is None else bool(env.evaluate_guards_expression(code, args))
        except ZeroDivisionError:
            accepted = False
        if [flat, accepted] not in out and len(out) < 16:
            out.append([flat, accepted])
    return out


def bound(v):
    return None if v in (int_oo, -int_oo, sympy.oo, -sympy.oo) else int(v)


def row(rng, program):
    env, fakes, registers, answers = run(program)
    result = dict(program)
    result["answers"] = answers
    result["guards"] = [str(g.expr) for g in env.guards]
    result["ranges"] = {str(s): [bound(r.lower), bound(r.upper)] for s, r in env.var_to_range.items()}
    result["replacements"] = {str(s): str(env._find(s)) for s in list(env.replacements)}
    result["geometry"] = [[[str(s) for s in f.size()], [str(s) for s in f.stride()]] for f in fakes]
    result["exprs"] = env.produce_guards(fakes, [LocalSource(f"t{i}") for i in range(len(fakes))])
    code = env.produce_guards_expression(fakes, ignore_static=False)
    result["samples"] = samples(rng, program, code, env)
    return result


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    errors, made, number = {}, 0, 0
    while made < wanted:
        rng = random.Random(seed * 1000003 + number)
        number += 1
        program = Maker(rng).program()
        if not any(s[0] not in BINARY and s[0] != "const" for s in program["steps"]):
            continue
        try:
            line = json.dumps(row(rng, program), separators=(",", ":"))
        except Exception as error:
            errors[type(error).__name__ + str(error)[:80]] = errors.get(type(error).__name__ + str(error)[:80], 0) + 1
            continue
        print(line)
        made += 1
    print(errors, file=sys.stderr)


main()

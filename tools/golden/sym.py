#!/usr/bin/env python3
"""Writes tests/sym/golden/sympy.tsv: how sympy, with PyTorch's functions, prints expressions. Needs torch.

Each row is an expression as it was written, sympy's str() of what it becomes, and its srepr(), with symbols
shortened to their names. s0, s1, ... are positive integers, u0, u1 any integers.

    python tools/golden/sym.py [RANDOM_ROWS] [SEED] > tests/sym/golden/sympy.tsv
"""
import ast
import random
import re
import sys

import sympy
from sympy import srepr
from torch.utils._sympy import functions as F

NAMES = {f"s{i}": sympy.Symbol(f"s{i}", positive=True, integer=True) for i in (0, 1, 2, 9, 10)}
NAMES |= {f"u{i}": sympy.Symbol(f"u{i}", integer=True) for i in range(2)}
FUNCTIONS = "FloorDiv CleanDiv Mod PythonMod Max Min Where ToFloat IntTrueDiv FloatTrueDiv FloatPow CeilToInt FloorToInt TruncToInt PowByNatural".split()
NAMES |= {f: getattr(F, f) for f in FUNCTIONS}
NAMES |= {f: getattr(sympy, f) for f in "Eq Ne Lt Le Gt Ge And Or Not Float".split()}

HANDMADE = """
2*s0+1; 1-2*s0; 1-s0; s1-2*s0+1; s0*s1; s0-s1; s1-s0; -s0; -s0-s1; -2*s0*s1; Max(1,s0); Max(1,u0); Max(s0,s1,3)
Min(s0,2*s1); Max(s1,s0); FloorDiv(s0,2); FloorDiv(s0+1,2); 2*FloorDiv(s0,2); FloorDiv(s0,2)+1; s0*FloorDiv(s0,2)
-FloorDiv(s0,2); FloorDiv(FloorDiv(s0,2),s1); FloorDiv(s0*s1,s1); FloorDiv(2*s0,2); FloorDiv(4*s0+2,2)
FloorDiv(4*s0+1,2); FloorDiv(4*s0+2*s1,6); FloorDiv(6*s0,4); FloorDiv(s0*s1,s2*s1); FloorDiv(2*s0+2,s0+1)
FloorDiv((s0+1)*s1,s0+1); FloorDiv(s0*s1+s1,s0+1); FloorDiv(-s0,2); FloorDiv(s0,-1); FloorDiv(s0,-2)
FloorDiv(s0-1,s1-1); FloorDiv(Max(1,u0),2); FloorDiv(s0**2,2); FloorDiv(7,s0); FloorDiv(s0*s1+s0,s0)
FloorDiv(2*s0*s1,4); FloorDiv(s0*(s1+1),2); FloorDiv(2*s0*(s1+1),2); FloorDiv(s0+2,2); FloorDiv(s0-3,2)
FloorDiv(3*s0+3*s1,3*s2); FloorDiv(s0,2*s0); Mod(s0,2); Mod(s0+1,2); Mod(2*s0,2); Mod(2*s0+1,2); Mod(2*s0+3,2)
Mod(s0*s1,s0); Mod(s0,s0); 1+Mod(s0,2); 2*Mod(s0,2); Mod(1,s0); Mod(s0,2*s0); Mod(s0+s1,s0+s1); Mod(6*s0,4)
Mod(s0*s1*4,2*s0); PythonMod(u0,2)+s0; s0*(s1+1); 2*s0*(s1+1); 2*(s0+1); (s0+1)*(s1+1); (s0+1)**2; -(s0+1)*(s1+1)
s0*s0; s0**2*s1+s0+1; s0**2+s0*s1+s1**2+1; (2*s0+2)*s1; (2*s0+2)**2; (s0+1)*(s0+1)*3; s0*s1*s2+s0*s1+s1*s2+s2
s2*s1*s0; u0+s0; u0*s0; s0+FloorDiv(s1,2)+Mod(s2,2)+Max(1,u0); s0*FloorDiv(s1,2)*Mod(s2,2)*Max(1,u0)
(s0+1)*FloorDiv(s1,2); (s0+1)*s0**2*s1; s0*s1**2*s2; s0**2*s1**2+s0**3; FloorDiv(s0,2)**2; Mod(s0,2)**2; Max(1,u0)**2
Eq(s0,s1); Ne(s0,s1); Lt(s0,s1); Ge(s0,3); Gt(s0,3); Le(s0,3); Lt(FloorDiv(s0,2),3); Lt(s0+1,2*s1)
And(Lt(s0,3),Eq(s1,2)); Or(Lt(s0,3),Eq(s1,2)); And(Or(Lt(s0,3),Eq(s1,2)),Ne(s2,4)); Not(And(Lt(s0,3),Eq(s1,2)))
Not(Lt(s0,3)); Not(Or(Lt(s0,3),Eq(s1,2))); ToFloat(s0); IntTrueDiv(s0,s1); IntTrueDiv(s0,2)+1.5; ToFloat(s0)*0.5
CeilToInt(IntTrueDiv(s0,s1)); FloorToInt(ToFloat(s0)*0.5); Where(Lt(s0,3),s0,s1); TruncToInt(IntTrueDiv(s0,s1))
PowByNatural(s0,u0); PowByNatural(2,u0); CleanDiv(s0,2); CleanDiv(s0,2)+1; Max(s0,3); s0*(-1-s1); s0*(1-s1)
(s0-s1)*(s1-s0); 1-s0*s1; 1-2*s0*s1; 3-s0**2; -1-s0; Max(s0-1,s1); Min(Max(1,u0),s0); s10+s0+s9
Mod(s0,2)*s1+FloorDiv(s0,2)*s1+s0; FloorDiv(s0,2)-FloorDiv(s1,3); FloorDiv(s0,2)*FloorDiv(s0,3)
FloorDiv(s0,3)+FloorDiv(s0,2); FloorDiv(s0+1,3)+FloorDiv(s0,2)+FloorDiv(s1,2); (s0+s1)*(s0+s2); (s0+2)*(s0+1)
(2*s0+1)*(s0+1); (s0*s1+1)*(s0+1); (s0**2+1)*(s0+1); Eq(2*s0,4); Eq(u0+1,4); Lt(2*s0,4); Max(2*s0,s0); Min(2*s0,s0)
Max(2,s0); Min(1,s0); Max(0,u0); Max(s0,Max(s1,s2)); Max(s0,Min(s0,s1)); Max(1,u0)+1; 2*Max(1,u0); Max(5,3)
Max(1,u0)*Max(1,FloorDiv(u0,2)); Max(1,u0)+s0; Min(s0,s1)+Max(s0,s1); Lt(Max(1,u0),3); ToFloat(s0)+1; ToFloat(s0)*2
FloatTrueDiv(ToFloat(s0),ToFloat(s1)); Lt(ToFloat(s0),2.5); FloatPow(ToFloat(s0),0.5); -FloorDiv(s0,2)-1
-2*FloorDiv(s0,2)*s1; -Max(1,u0); s0*s1*(s0+s1)*(s0-s1); -s0*(s1+1); s0*PowByNatural(2,u0); -s0*PowByNatural(2,u0)
Eq(Mod(s0,2),0); Ge(s0-1,s1); Le(-s0,u0); ToFloat(s0)*-0.5; ToFloat(s0)-1.5; 1.5-ToFloat(s0)
""".replace("\n", ";")


def literal(node):
    """The expression as a nested call, not evaluated."""
    if isinstance(node, ast.Expression):
        return literal(node.body)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return f"Float('{node.value!r}')" if isinstance(node.value, float) else str(node.value)
    if isinstance(node, ast.UnaryOp):
        return f"Mul(-1, {literal(node.operand)})"
    if isinstance(node, ast.Call):
        return f"{node.func.id}({', '.join(map(literal, node.args))})"
    a, b = literal(node.left), literal(node.right)
    if isinstance(node.op, ast.Sub):
        return f"Add({a}, Mul(-1, {b}))"
    return {ast.Add: "Add", ast.Mult: "Mul", ast.Pow: "Pow"}[type(node.op)] + f"({a}, {b})"


def shortened(text):
    return re.sub(r"Symbol\('(\w+)'(, positive=True)?, integer=True\)", r"\1", text)


def value(text):
    numbers = re.sub(r"(?<![\w.])(\d+)(?![\w.])", r"I(\1)", text)
    numbers = re.sub(r"\*\*I\((\d+)\)", r"**\1", numbers)
    return eval(numbers, dict(NAMES, I=sympy.Integer))


def random_text(rng, depth):
    pick = rng.random()
    if depth == 0 or pick < 0.15:
        return rng.choice(["s0", "s1", "s2", "u0", "s0", "s1", str(rng.randint(1, 5))])
    a, b = random_text(rng, depth - 1), random_text(rng, depth - 1)
    if pick < 0.45:
        return f"({a}+{b})"
    if pick < 0.60:
        return f"({a}-{b})"
    if pick < 0.80:
        return f"({a}*{b})"
    if pick < 0.90:
        return f"FloorDiv({a},{rng.choice(['2', '3', 's0', 's2'])})"
    if pick < 0.95:
        return f"PythonMod({a},{rng.choice(['2', '3'])})"
    return f"Max({a},u1)"


def main():
    rows, seen = [], set()
    handmade = [t.strip() for t in HANDMADE.split(";") if t.strip()]
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    texts = handmade + [random_text(rng, rng.randint(2, 5)) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 400)]
    for text in texts:
        if text in seen:
            continue
        seen.add(text)
        try:
            e = value(text)
        except Exception as error:
            print(text, error, file=sys.stderr)
            continue
        if "PythonMod(PythonMod" in str(e):  # Calque goes further: the inner one is small already
            continue
        rows.append((literal(ast.parse(text, mode="eval")), str(e), shortened(srepr(e))))
    for row in rows:
        print("\t".join(row))


main()

"""Writes src/kernel/cpu/simd/vec_tables.h: piecewise polynomials for functions of a >= 0 in 32 steps of equal width.

    python piecewise.py > src/kernel/cpu/simd/vec_tables.h      (needs mpmath)

The value at a = (n + d) * step, n the nearest integer to a / step, is the sum of c[k][n] * (d * step)^k. Each polynomial
is a Remez fit in relative error; in the first step of a function that vanishes at 0 the constant term is 0.
"""

import struct

import mpmath as mp

mp.mp.dps = 40
STEPS = 32


def remez(f, lo, hi, degree, points=160):
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * points)) for i in range(points)]
    ys = [f(x) for x in xs]
    n = degree + 1
    at = [round((points - 1) * i / n) for i in range(n + 1)]
    for _ in range(20):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for row, i in enumerate(at):
            for k in range(n):
                a[row, k] = xs[i] ** k / ys[i]
            a[row, n] = (-1) ** row
            b[row] = 1
        c = mp.lu_solve(a, b)
        error = [(mp.polyval([c[k] for k in reversed(range(n))], x) - y) / y for x, y in zip(xs, ys)]
        peaks = [0]
        for i in range(1, points):
            if (error[i] > 0) != (error[peaks[-1]] > 0):
                peaks.append(i)
            elif abs(error[i]) > abs(error[peaks[-1]]):
                peaks[-1] = i
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < n + 1 or peaks == at:
            break
        at = peaks
    return [c[k] for k in range(n)], max(abs(e) for e in error)


def single(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def table(f, step, degree):
    columns, worst = [], mp.mpf(0)
    for n in range(STEPS):
        middle = n * step
        if n == 0 and f(mp.mpf(0)) == 0:
            c, error = remez(lambda d: f(d) / d, step / 1000, step / 2, degree - 1)
            c = [mp.mpf(0)] + c
        elif n == 0:
            c, error = remez(f, mp.mpf(0), step / 2, degree)
        else:
            c, error = remez(lambda d: f(middle + d), -step / 2, step / 2, degree)
        columns.append(c)
        worst = max(worst, error)
    return columns, worst


def emit(name, what, f, end, degree):
    step = mp.mpf(single(mp.mpf(end) / (STEPS - mp.mpf("0.5"))))
    columns, worst = table(f, step, degree)
    print(f"// {what}, 0 <= a <= {end}; the fit's relative error is {float(worst):.1e}.")
    print(f"constexpr float {name}_step = {float(step).hex()}F;")
    print(f"constexpr float {name}_end = {end}F;")
    print("// clang-format off")
    print(f"constexpr float {name}_table[{degree + 1}][{STEPS}] = {{")
    for k in range(degree + 1):
        items = [repr(single(c[k])) + "F" for c in columns]
        print("    {" + ",\n     ".join(", ".join(items[i:i + 6]) for i in range(0, STEPS, 6)) + "},")
    print("};\n// clang-format on\n")


def main():
    print("// Made by tools/fit/piecewise.py; see there for the meaning. For *.simd.cpp files only.")
    print("#pragma once\n\nnamespace calque {\nnamespace {\n")
    emit("tanh", "tanh(a)", mp.tanh, "9.1", 6)
    emit("normal_tail", "Phi(-a), the normal distribution's tail", lambda a: mp.erfc(a / mp.sqrt(2)) / 2, "8.4", 7)
    print("}  // namespace\n}  // namespace calque")


if __name__ == "__main__":
    main()

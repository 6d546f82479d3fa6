"""Writes tests/file/golden/npy/: small arrays as numpy.save writes them, by every dtype that Calque reads, in both orders and byte orders, with versions 1 to 3
of the header; values.json says what they hold. python tools/golden/npy.py
"""
import json
import os

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "file", "golden", "npy")


def main():
    os.makedirs(FOLDER, exist_ok=True)
    said = {}

    def save(name, array, version=(1, 0)):
        with open(os.path.join(FOLDER, name + ".npy"), "wb") as f:
            np.lib.format.write_array(f, array, version=version, allow_pickle=True)
        if array.dtype != object:
            said[name] = {"dtype": {"bool": "bool"}.get(array.dtype.name, array.dtype.name), "sizes": list(array.shape),
                          "values": [[v.real.item(), v.imag.item()] if array.dtype.kind == "c" else v.item() for v in array.reshape(-1)]}

    for code in "b1 u1 i1 i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16".split():
        values = (np.arange(6) - (0 if code[0] in "ub" else 2)).reshape(2, 3)
        save(code, (values % 2 == 0 if code == "b1" else values * (1.5 if code[0] == "f" else 1 + 0.5j if code[0] == "c" else 1)).astype("<" + code))
    save("big_endian", np.arange(6, dtype=">i4").reshape(3, 2))
    save("big_endian_complex", np.array([1 + 2j, -3j], dtype=">c8"))
    save("fortran", np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4)))
    save("scalar", np.array(2.5, dtype="<f8"))
    save("empty", np.zeros((0, 3), dtype="<f4"))
    save("one_dimension", np.arange(4, dtype="<i8"))
    save("version_2", np.arange(3, dtype="<i2"), (2, 0))
    save("version_3", np.arange(3, dtype="<i2"), (3, 0))
    save("objects", np.array([{"a": 1}, None], dtype=object))
    save("structure", np.zeros(2, dtype=[("a", "<i4"), ("b", "<f4")]))
    save("text", np.array(["one", "two"]))
    del said["structure"], said["text"]
    with open(os.path.join(FOLDER, "values.json"), "w") as f:
        json.dump(said, f, indent=0)


if __name__ == "__main__":
    main()

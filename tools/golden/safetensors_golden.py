"""Writes tests/file/golden/safetensors.jsonl: what the `safetensors` library writes, and which files it takes.

    python tools/golden/safetensors_golden.py

Kinds of line:
  "save":  tensors (as storage bytes, sizes, strides, offset), metadata, and the library's file, all bytes as hex.
           Non-contiguous tensors are made contiguous first, which the library demands.
  "open":  a file, as hex, and whether the library opens it; "strict" marks files that the library opens although the
           format's description forbids them, which Calque refuses.
  "shared": views [first element, elements] of one storage by name, and whether the library saves them. Views without elements are
           left out: the library refuses those that point into another one.
"""

import json
import pathlib
import random
import struct

import safetensors
import torch
from safetensors.torch import save

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "file" / "golden" / "safetensors.jsonl"
DTYPES = """bool uint8 int8 float8_e5m2 float8_e4m3fn float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz int16 uint16 float16
bfloat16 int32 uint32 float32 complex64 float64 int64 uint64""".split()
lines = []


def raw(t):
    return bytes(torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage()).tolist()).hex()


def saved(tensors, metadata=None):
    case = {"kind": "save", "tensors": [], "metadata": metadata}
    for name, t in tensors.items():
        case["tensors"].append({
            "name": name, "dtype": str(t.dtype).removeprefix("torch."), "sizes": list(t.shape), "strides": list(t.stride()),
            "offset": t.storage_offset(), "data": raw(t),
        })
    case["file"] = save({k: t.contiguous() for k, t in tensors.items()}, metadata=metadata).hex()
    lines.append(case)


def of(dtype, *sizes):
    n = 1
    for s in sizes:
        n *= s
    return (torch.arange(n) % 5).to(getattr(torch, dtype)).reshape(sizes)


saved({"test": torch.zeros(2, 2, dtype=torch.int32)})
saved({})
saved({}, {"format": "pt"})
saved({"a": torch.zeros(3)}, {"format": "pt"})
for d in DTYPES:
    saved({"x": of(d, 2, 3), "empty": of(d, 2, 0), "scalar": of(d)})
saved({"t." + d: of(d, 3) for d in DTYPES})
saved({"t." + d: of(d, 3) for d in reversed(DTYPES)}, {"k": "v"})
saved({n: of("float32", 1) for n in ["b", "a", "a.b", "a-b", "A", "ab", "é", "", "layer.10", "layer.9", "𝄞", "~", "z"]})
saved({'quote" back\\ slash/ \b\f\n\r\t \x01\x1f\x7f é ☃ 𝄞 \u2028': of("int8", 3)}, {'k"é\n': 'v\\\x02\u2029 </script>'})
saved({"t": of("float32", 4, 6).t(), "s": of("int16", 4, 6)[1:4:2, 1:5:3], "p": of("float64", 2, 3, 4).permute(2, 0, 1)})
saved({"e": of("float32", 1, 3).expand(4, 3), "u": of("uint8", 7)[3:], "o": of("bool", 5, 5)[:, 2], "c": of("complex64", 3, 2).t()})
saved({"cl": of("float16", 2, 3, 4, 5).to(memory_format=torch.channels_last), "n": of("int64", 3, 1, 2).transpose(0, 2)})
for n in range(1, 10):  # every padding
    saved({"x" * n: of("uint8", n)})


def opened(header, data=b"", strict=False, length=None):
    if isinstance(header, str):
        header = header.encode()
    file = struct.pack("<Q", len(header) if length is None else length) + header + data
    whole(file, strict)


def whole(file, strict=False):
    try:
        found = safetensors.deserialize(file)
        case = {"kind": "open", "file": file.hex(), "ok": True, "names": sorted(n for n, _ in found)}
    except safetensors.SafetensorError as e:
        case = {"kind": "open", "file": file.hex(), "ok": False, "why": str(e)}
    if strict:
        case["strict"] = True
        assert case["ok"], "the library refuses it too"
    lines.append(case)


def entry(name="a", dtype="F32", shape="[1]", offsets="[0,4]", extra=""):
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{extra}}}'


four = bytes(4)
for n in range(10):
    whole(bytes(n))
opened("", length=60)
opened("{}", length=100_000_001)
opened("{}", length=2**64 - 1)
opened("{}", length=2**63)
opened("{" + entry() + "}", four, length=1000)
for header in ["", "{}", "{} ", "{}\n\t ", "{} x", "{}}", "[]", "1", "null", '"a"', "{", "}", '{"a"}', '{"a":}', '{"a":1}', '{"a":null}',
               '{"a":[]}', '{"a":{}}', "{a:1}", "{'a':1}", '{"a":{},}', '{"__metadata__":{}}', '{"__metadata__":null}',
               '{"__metadata__":1}', '{"__metadata__":[]}', '{"__metadata__":"x"}', '{"__metadata__":{"a":1}}', '{"__metadata__":{"a":null}}',
               '{"__metadata__":{"a":{}}}', '{"__metadata__":{"a":["x"]}}', '{"__metadata__":{"a":"b","c":"d"}}', '{"__metadata__":{"a":true}}',
               '{"__metadata__":{},"__metadata__":{}}', '{"__metadata__":{"a":"\\ud800"}}', '{"__metadata__":{"a":"\\ud834\\udd1e"}}',
               '{"__metadata__":{"a":"\\u0000"}}', '{"__metadata__":{"a":"\\x"}}', '{"__metadata__":{"a":"\n"}}', "{}\0", "{}\0x", "\0"]:
    opened(header)
opened(" {}", strict=True)
opened('{"__metadata__":{"a":"1","a":"2"}}', strict=True)
opened(b"\xff{}")
opened(b'{"\xff":1}')
opened(b'{"__metadata__":{"a":"\xc0\x80"}}')
opened(b'{"__metadata__":{"a":"\xed\xa0\x80"}}')
opened(b"\xef\xbb\xbf{}")
for shape, offsets, data in [
    ("[1]", "[0,4]", 4), ("[1]", "[0,4]", 3), ("[1]", "[0,4]", 5), ("[1]", "[0,4]", 0), ("[2]", "[0,4]", 4), ("[1]", "[0,8]", 8),
    ("[1]", "[4,0]", 4), ("[1]", "[4,8]", 8), ("[]", "[0,4]", 4), ("[]", "[0,0]", 0), ("[0]", "[0,0]", 0), ("[2,0]", "[0,0]", 0),
    ("[0]", "[4,4]", 0), ("[0]", "[0,4]", 4), ("[-1]", "[0,4]", 4), ("[1.0]", "[0,4]", 4), ("[1e0]", "[0,4]", 4), ('["1"]', "[0,4]", 4),
    ("[[1]]", "[0,4]", 4), ("1", "[0,4]", 4), ("null", "[0,4]", 4), ("{}", "[0,4]", 4), ("[1]", "[0]", 4), ("[1]", "[0,4,8]", 4),
    ("[1]", "[]", 4), ("[1]", '["0","4"]', 4), ("[1]", "[0.0,4]", 4), ("[1]", "[-0,4]", 4), ("[1]", "[0,-4]", 4), ("[1]", "null", 4),
    ("[true]", "[0,4]", 4), ("[2,18446744073709551614]", "[0,4]", 4), ("[2,9223372036854775807]", "[0,4]", 4),
    ("[4611686018427387904]", "[0,4]", 4), ("[4611686018427387904,4]", "[0,0]", 0), ("[1000000000000000000000]", "[0,4]", 4),
    ("[18446744073709551616]", "[0,4]", 4), ("[1]", "[18446744073709551612,18446744073709551616]", 4),
    ("[1]", "[18446744073709551611,18446744073709551615]", 4), ("[1]", "[0,9223372036854775808]", 4), ("[01]", "[0,4]", 4),
    ("[1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]", 4), ("[1,]", "[0,4]", 4), ("[4294967296,4294967296]", "[0,4]", 4),
]:
    opened("{" + entry(shape=shape, offsets=offsets) + "}", bytes(data))
for dtype, bits in [("BOOL", 8), ("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6), ("U8", 8), ("I8", 8), ("F8_E5M2", 8), ("F8_E4M3", 8),
                    ("F8_E8M0", 8), ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8), ("I16", 16), ("U16", 16), ("F16", 16), ("BF16", 16),
                    ("I32", 32), ("U32", 32), ("F32", 32), ("C64", 64), ("F64", 64), ("I64", 64), ("U64", 64)]:
    n = 8 * bits // 8
    opened("{" + entry(dtype=dtype, shape="[2,4]", offsets=f"[0,{n}]") + "}", bytes(n))
for dtype in ["", "f32", "F32 ", "F128", "C128", "bool", "FLOAT", "F8"]:
    opened("{" + entry(dtype=dtype) + "}", four)
opened("{" + entry(dtype="F4", offsets="[0,1]") + "}", bytes(1))
opened("{" + entry(dtype="F4", shape="[3]", offsets="[0,2]") + "}", bytes(2))
opened("{" + entry(dtype="F6_E2M3", shape="[2]", offsets="[0,2]") + "}", bytes(2))
for header in ['{"a":{"shape":[1],"data_offsets":[0,4]}}', '{"a":{"dtype":"F32","data_offsets":[0,4]}}', '{"a":{"dtype":"F32","shape":[1]}}',
               '{"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}}', '{"a":{"dtype":null,"shape":[1],"data_offsets":[0,4]}}',
               '{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}', '{ "a" : { "dtype" : "F32" , "shape" : [ 1 ] ,"data_offsets":[0,4]} }',
               "{" + entry(extra=',"x":1') + "}", "{" + entry(extra=',"x":{"y":[1,{"z":null}],"dtype":"I8"}') + "}",
               "{" + entry(extra=',"x":[[],[[]]],"y":"s"') + "}", "{" + entry(extra=',"shape":[1]') + "}", "{" + entry(extra=',"dtype":"F32"') + "}",
               "{" + entry(extra=',"data_offsets":[0,4]') + "}", "{" + entry(extra=',"x":01') + "}",
               "{" + entry(name="\\u0061\\n") + "}", "{" + entry(name="") + "}", '{"__metadata__":{"a":"b"},' + entry() + "}",
               "{" + entry() + ',"__metadata__":{"a":"b"}}']:
    opened(header, four)
opened('{"a":["F32",[1],[0,4]]}', b"")
opened("{" + entry() + "," + entry() + "}", four, strict=True)
opened("{" + entry() + "," + entry("b") + "}", four)
opened("{" + entry() + "," + entry("b", offsets="[4,8]") + "}", bytes(8))
opened("{" + entry("b", offsets="[4,8]") + "," + entry() + "}", bytes(8))
opened("{" + entry() + "," + entry("b", offsets="[8,12]") + "}", bytes(12))
opened("{" + entry() + "," + entry("b", offsets="[3,7]") + "}", bytes(8))
opened("{" + entry() + "," + entry("b", offsets="[3,7]") + "}", bytes(7))
opened("{" + entry() + "," + entry("b", shape="[0]", offsets="[4,4]") + "," + entry("c", shape="[0,7]", offsets="[4,4]") + "}", four)
opened("{" + entry() + "," + entry("b", shape="[0]", offsets="[0,0]") + "}", four)
opened("{" + entry() + "," + entry("b", shape="[0]", offsets="[2,2]") + "}", four)
opened("{" + ",".join(entry(f"t{i}") for i in range(1000)) + "}", four)
r = random.Random(0)
for _ in range(80):
    elements = r.choice([6, 12, 30])
    views = {}
    for name in "abcd"[: r.randrange(1, 5)]:
        first = r.randrange(elements)
        views[name] = [first, r.randrange(1, min(5, elements - first) + 1)]
    base = torch.arange(float(elements))
    try:
        save({name: base[first:first + count] for name, (first, count) in views.items()})
        done = True
    except RuntimeError as e:
        assert "Some tensors share memory" in str(e)
        done = False
    lines.append({"kind": "shared", "elements": elements, "views": views, "saved": done})
OUT.parent.mkdir(parents=True, exist_ok=True)
OUT.write_text("".join(json.dumps(line) + "\n" for line in lines))
print(f"{OUT}: {len(lines)} cases, {OUT.stat().st_size} bytes")

"""Writes the seeds of the fuzz targets: fuzz/corpus/safetensors (from tests/file/golden/safetensors.jsonl), fuzz/corpus/zip
and fuzz/corpus/tokenizer (from tests/text/golden/tokenizers.jsonl).

    python tools/golden/fuzz_seeds.py
"""

import io
import json
import pathlib
import pickle
import struct
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write(target, name, data):
    folder = ROOT / "fuzz" / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


count = 0
for line in (ROOT / "tests" / "file" / "golden" / "safetensors.jsonl").read_text().splitlines():
    case = json.loads(line)
    data = bytes.fromhex(case["file"])
    # Every fourth is enough to show the grammar; long ones only slow the fuzzer down.
    if len(data) <= 600 and count % 4 == 0:
        write("safetensors", f"{case['kind']}{count:03}", data)
    count += 1


def archive(entries, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        z.comment = comment
        for name, data in entries:
            z.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


one = archive([("archive/version", b"3\n")])
write("zip", "empty", archive([]))
write("zip", "one", one)
write("zip", "two", archive([("archive/data.pkl", b"\x80\x02}q\x00."), ("archive/data/0", bytes(16))]))
write("zip", "comment", archive([("a", b"x")], b"comment"))
write("zip", "cut", one[:-5])
write("zip", "prefixed", b"junk" + one)
out = io.BytesIO()
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr(zipfile.ZipInfo("c"), b"aaaaaaaaaaaaaaaa", compress_type=zipfile.ZIP_DEFLATED)
write("zip", "deflated", out.getvalue())
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as z:
    with z.open(zipfile.ZipInfo("big"), "w", force_zip64=True) as f:
        f.write(b"zip64")
write("zip", "zip64_entry", out.getvalue())
# A zip64 end record: the directory's numbers moved there.
plain = archive([("a", b"x")])
end = plain.rindex(b"PK\5\6")
size, offset = struct.unpack("<II", plain[end + 12 : end + 20])
end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, offset)
locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
write("zip", "zip64_end", plain[:end] + end64 + locator + tail)

# Programs: the JSON without stack traces, which are most of it.
exported = ROOT / "tests" / "export" / "golden"
for name in "basic cond constant_inputs constant_outputs custom_list custom_optional derived infinities complex_argument optional_tensors list_result state auto_functionalized_two nested_inputs".split():
    with zipfile.ZipFile(exported / f"{name}.pt2") as z:
        program = json.loads(z.read(f"{name}/models/model.json"))

    def strip(graph):
        for node in graph["nodes"]:
            node["metadata"].pop("stack_trace", None)
            for argument in node["inputs"]:
                if "as_graph" in argument["arg"]:
                    strip(argument["arg"]["as_graph"]["graph"])

    strip(program["graph_module"]["graph"])
    write("pt2", name, json.dumps(program, separators=(",", ":")).encode())
write("pt2", "archive", (exported / "basic.pt2").read_bytes())

files = ROOT / "tests" / "file" / "golden"
for name in ("checkpoint.pt", "nested.pt"):
    with zipfile.ZipFile(files / name) as z:
        write("pickle", name.replace(".pt", "_pickle"), z.read(f"{name[:-3]}/data.pkl"))
write("pickle", "legacy", (files / "checkpoint_legacy.pt").read_bytes())
write("pickle", "protocol4", pickle.dumps({"a": [1, 2.5, None, "text", b"bytes", {1, 2}], "b": (1, (2, (3,)))}, 4))
write("pickle", "object", pickle.dumps(pathlib.PurePosixPath("a/b"), 2))
write("pickle", "code", b"cos\nsystem\n(S'true'\ntR.")

for i, text in enumerate(
    [
        "Symbol('s77', positive=True, integer=True)",
        "Add(Integer(1), Mul(Integer(2), Symbol('s0', positive=True, integer=True)))",
        "FloorDiv(Add(Symbol('u0', integer=True), Integer(-1)), Integer(4))",
        "Max(Integer(1), Mod(Symbol('s1', positive=True, integer=True), Integer(8)))",
        "GreaterThan(Symbol('u0', integer=True), Integer(2))",
        "And(Equality(Symbol('s0', positive=True, integer=True), Integer(3)), StrictLessThan(Symbol('u1', integer=True), Integer(5)))",
        "Pow(Symbol('s0', positive=True, integer=True), Integer(2))",
        "FloatTrueDiv(ToFloat(Symbol('s0', positive=True, integer=True)), Float('2.0', precision=53))",
    ]
):
    write("srepr", f"{i}", text.encode())

for i, text in enumerate(['{"a": [1, -2.5e3, true, null, "\\u00e9\\ud83d\\ude00"], "b": {}}', "[]", '"text"', "[[[[1]]]]", '{"k": "Infinity", "k": NaN}']):
    write("json", f"{i}", text.encode())


# Tokenizers without most of their vocabulary, with a text in their member "texts"; texts and regular expressions, whose first
# byte says which they are. The seeds with a name and no number are written by hand.
patterns = set()
for number, line in enumerate((ROOT / "tests" / "text" / "golden" / "tokenizers.jsonl").read_text().strip("\n").split("\n")):
    case = json.loads(line)
    text = case["lines"][number % len(case["lines"])]["text"].encode()
    write("tokenizer", f"text{number:02}", b"\0" + text)
    if case["tokenizer"] is None:
        continue
    tokenizer = case["tokenizer"]
    model = tokenizer["model"]
    model["merges"] = model["merges"][:6]
    used = {t for a, b in model["merges"] for t in (a, b, a + b.removeprefix(model["continuing_subword_prefix"] or "")) }
    special = {t["content"] for t in tokenizer["added_tokens"]} | {model["unk_token"]}
    kept = [t for t in model["vocab"] if t in used or t in special][:60]
    model["vocab"] = {t: i for i, t in enumerate(kept)}
    tokenizer["added_tokens"] = tokenizer["added_tokens"][:6]
    tokenizer.pop("truncation"), tokenizer.pop("padding")
    tokenizer["texts"] = [text.decode()]
    write("tokenizer", f"json{number:02}", json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode())
    steps = (tokenizer["pre_tokenizer"] or {}).get("pretokenizers", [])
    for pattern in (step["pattern"]["Regex"] for step in steps if step["type"] == "Split"):
        if pattern not in patterns:
            patterns.add(pattern)
            write("tokenizer", f"regex{len(patterns):02}", b"\2" + pattern.encode() + b"\0" + text)

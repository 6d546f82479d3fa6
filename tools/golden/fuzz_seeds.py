"""Writes the seeds of the fuzz targets: fuzz/corpus/safetensors (from tests/file/golden/safetensors.jsonl) and fuzz/corpus/zip.

    python tools/golden/fuzz_seeds.py
"""

import io
import json
import pathlib
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

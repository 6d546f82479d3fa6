#!/usr/bin/env python3
"""Writes tests/file/golden/big_endian.pt and little_endian.pt, and tests/hub/golden/pickles/big_endian.bin: the same tensors as torch.save
writes them on machines of either byte order. The bytes of the first are turned round by PyTorch's own storages, and torch.load gives the
values back (but not of uint16, uint32 and uint64, whose storages have no dtype there: it leaves them turned round)."""
import contextlib
import pathlib
import sys

import torch

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"


def tensors():
    torch.manual_seed(0)
    out = {}
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64):
        out[str(dtype)[6:]] = torch.randint(0, 2 if dtype == torch.bool else 120, (5,)).to(dtype) * (1 if dtype in (torch.bool, torch.uint8, torch.int8) else 259)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float8_e4m3fn):
        out[str(dtype)[6:]] = torch.randn(5, dtype=torch.float32 if dtype == torch.float8_e4m3fn else dtype).to(dtype)
    whole = torch.arange(12.0).view(3, 4)
    out.update(whole=whole, row=whole[1], turned=whole.t(), scalar=torch.tensor(7.5), empty=torch.zeros(0, 2))
    out["parameter"] = torch.nn.Parameter(torch.arange(3.0))
    return out


@contextlib.contextmanager
def big_endian(state):
    """The storages' bytes, and what torch.save says of this machine, the other way round."""
    storages = {t.untyped_storage().data_ptr(): t for t in state.values() if t.numel()}.values()
    native = sys.byteorder
    for t in storages:
        t.untyped_storage().byteswap(t.dtype)
    sys.byteorder = "big"
    yield
    sys.byteorder = native
    for t in storages:
        t.untyped_storage().byteswap(t.dtype)


def main():
    state = tensors()
    torch.save(state, TESTS / "file/golden/little_endian.pt")
    with big_endian(state):
        torch.save(state, TESTS / "file/golden/big_endian.pt")
    again = torch.load(TESTS / "file/golden/big_endian.pt")
    for name, tensor in state.items():
        same = torch.equal(again[name].view(torch.uint8) if tensor.dtype.itemsize == 1 else again[name], tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor)
        assert same != (name in ("uint16", "uint32", "uint64")), name

    pickles = TESTS / "hub/golden/pickles"
    state = torch.load(pickles / "zip.bin")
    with big_endian(state):
        torch.save(state, pickles / "big_endian.bin")
    assert all(torch.equal(t, state[name]) for name, t in torch.load(pickles / "big_endian.bin").items())


if __name__ == "__main__":
    main()

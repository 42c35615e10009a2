"""The MX unit of the vector engine at the sizes of all named configurations: which lane has what of which block."""

import numpy as np
import pytest

from rtl.contract.config import named
from rtl.contract.formats import FORMATS, MX_EMAX
from rtl.contract.isa import MX_ROWS, mx_scale_partition
from rtl.numeric.formats.quantize import Quantize
from sim.build import build
from sim.native.streaming import STREAM_SOURCES, stream
from verif.golden.quantize import RULES, columns

pytestmark = pytest.mark.sim


def _held(value: int) -> np.ndarray:
    return np.array([value], np.uint8)


@pytest.mark.parametrize("name", ["tiny", "small", "full"])
def test_every_block_goes_to_its_lanes(name: str) -> None:
    """Elements of every partition and scales on the partitions of every slot; of half of the blocks too."""
    cfg = named(name)
    total, count = cfg.partitions, 64
    binary = build("quantize_mx", cfg, kind="native", extra_cpp=STREAM_SOURCES).binary
    rng = np.random.default_rng(1)
    largest = np.repeat(rng.integers(0x2000, 0x5000, (total // MX_ROWS, 1)), MX_ROWS, axis=0)  # another in each block
    codes = largest - rng.integers(0, 0x1000, (total, 4 * count)) | rng.integers(0, 2, (total, 4 * count)) << 15
    codes = codes.astype(np.uint16)
    words = np.ascontiguousarray(codes.reshape(total, count, 4).transpose(1, 0, 2)).reshape(count, -1)
    for number, (slot, fmt) in enumerate((s, f) for s in range(4) for f in MX_EMAX):
        src, rule = ("bf16", "fp16")[number % 2], number // 2 % 2
        active = total if number % 3 or total == MX_ROWS else total // 2
        mask = np.packbits(np.arange(total) < active, bitorder="little")
        given = {
            "words": words, "valid": _held(1), "src": _held(FORMATS[src].code), "dst": _held(FORMATS[fmt].code),
            "rule": _held(rule), "slot": _held(slot), "partitions": mask.reshape(1, -1),
        }  # fmt: skip
        seen = {
            "out": np.empty((count, total), np.uint64), "out_valid": np.empty(count, np.uint8),
            "scales": np.empty((count, total), np.uint64), "scales_valid": np.empty(count, np.uint8),
            "scale_lanes": np.empty((count, total // 8), np.uint8),
        }  # fmt: skip
        stream(binary, Quantize.LATENCY, given, seen)
        assert seen["out_valid"].tolist() == [0, 1] * (count // 2)
        assert seen["scales_valid"].tolist() == [0, 0, 0, 1] * (count // 4)
        elements, scales = columns(codes, fmt, RULES[rule], src)
        pairs = elements.view(np.uint32 if fmt == "e2m1" else np.uint64)  # two columns, the first lowest
        got = seen["out"][1::2].T
        if fmt == "e2m1":
            assert np.array_equal(got >> np.uint64(32), got & np.uint64(0xFFFFFFFF)), "repeated over the word"
            got = got & np.uint64(0xFFFFFFFF)
        assert np.array_equal(got, pairs)
        lanes = np.unpackbits(seen["scale_lanes"][3], bitorder="little")
        expected = {mx_scale_partition(row, slot, total): row // MX_ROWS for row in range(0, active, MX_ROWS)}
        assert np.flatnonzero(lanes).tolist() == sorted(expected)
        for lane, block in expected.items():
            wide = seen["scales"][3::4, lane]
            four = np.ascontiguousarray(scales[block]).view(np.uint32).astype(np.uint64)
            assert np.array_equal(wide, four | four << np.uint64(32)), f"scales of block {block} in lane {lane}"

"""Convert: codes of every format to every other, and FP32 codes around the rounding boundaries.

tests/sim/test_convert.py pushes every 8-bit and 16-bit code through the same unit.
"""

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.formats import FORMATS
from rtl.numeric.formats.convert import Convert
from verif.agents.bench import Bench
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.conversion import container, convert

_PLANTED = (
    "a conversion rounds ties up instead of to even",
    "results of a conversion below the normal range become zero",
    "NaN payloads survive in BF16",
    "numbers beyond a format saturate although nobody asked for it",
    "infinities that come in do not saturate",
    "negative integers beyond the range wrap",
    "32-bit integers are cut instead of rounded",
    "subnormal numbers count as zero in a conversion",
    "NaN payloads survive in FP32",
    "signed integers are read as unsigned ones",
)

RUNS = (Run("convert", faults=_PLANTED),)

NAMES = tuple(FORMATS)
IEEE = ("fp32", "bf16", "fp16", "e5m2", "e4m3")
COVERAGE = Coverage(
    "numeric.convert",
    [f"{a} to {b}" for a in NAMES for b in NAMES]
    + ["nan", "infinity", "subnormal result", "tie", "overflow", "underflow to zero", "formats change each cycle"]
    + ["infinity saturated", "overflow saturated"],
)


async def push(bench: Bench, items: list[tuple[int, int, int, int]]) -> list[int]:
    """Results of (x, src, dst, saturate), one a cycle."""
    dut = bench.dut
    results: list[int] = []
    pending: deque[None] = deque()
    edge = RisingEdge(bench.clk)
    last = (-1, -1, -1, -1)
    for number in range(len(items) + Convert.LATENCY + 1):
        if number < len(items):
            item = items[number]
            dut.x.value = item[0]
            if item[1] != last[1]:
                dut.src.value = item[1]
            if item[2] != last[2]:
                dut.dst.value = item[2]
            if item[3] != last[3]:
                dut.saturate.value = item[3]
            last = item
        await edge
        # what was driven before this edge is at the output LATENCY edges later, before the next one
        pending.append(None)
        if len(pending) > Convert.LATENCY and len(results) < len(items):
            results.append(int(dut.out.value))
    return results


async def check(bench: Bench, codes: np.ndarray, src: str, dst: str, saturate: bool = False) -> None:
    COVERAGE.hit(f"{src} to {dst}")
    s, d = FORMATS[src].code, FORMATS[dst].code
    got = np.array(await push(bench, [(int(x), s, d, int(saturate)) for x in codes]), dtype=np.uint64)
    wanted = convert(codes.astype(container(src)), src, dst, saturate).astype(np.uint64)
    wrong = np.flatnonzero(got != wanted)
    assert wrong.size == 0, (
        f"{src} {codes[wrong[0]]:#x} to {dst}: {got[wrong[0]]:#x}, not {wanted[wrong[0]]:#x} "
        f"({wrong.size} of {codes.size} differ)"
    )


def fp32_codes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random codes, half of them close to a rounding boundary of BF16 or FP16, in the range of FP16."""
    codes = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    near = rng.integers(0, 3, count).astype(np.uint32)
    tail16 = rng.choice(np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32), count)
    codes = np.where(near == 1, codes & np.uint32(0xFFFF0000) | tail16, codes)
    # FP16's range and 13 places below its subnormals
    exponent = rng.integers(127 - 27, 127 + 18, count, dtype=np.uint32) << np.uint32(23)
    places = rng.integers(12, 24, count).astype(np.uint32)
    low = np.left_shift(np.uint32(1), places) - np.uint32(1)
    tail = rng.choice(np.array([0, 1, 2], np.uint32), count)
    half = np.right_shift(low + np.uint32(1), np.uint32(1))
    mantissa = codes & np.uint32(0x7FFFFF) & ~low | ((half + tail - np.uint32(1)) & low & np.uint32(0x7FFFFF))
    return np.where(near == 2, codes & np.uint32(0x80000000) | exponent | mantissa, codes)


@cocotb.test()
async def converts_codes_of_every_format(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    for src in NAMES:
        bits = FORMATS[src].bits
        if src == "fp32":
            continue
        ends = np.array([0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 1 << (bits - 2)])
        codes = np.concatenate([ends, bench.rng.integers(0, 1 << bits, 150)]) if bits > 8 else np.arange(1 << bits)
        for dst in NAMES:
            await check(bench, codes if dst in IEEE or bits > 8 else codes[:: 1 + bool(bench.plant)], src, dst)


@cocotb.test()
async def converts_fp32_codes(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    specials = [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF, 0x7FC00000]
    specials += [0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FF001, 0x33000000, 0x33000001, 0x32FFFFFF, 0x387FFFFF]
    codes = np.array(specials + [s | 1 << 31 for s in specials], dtype=np.uint32)
    codes = np.concatenate([codes, fp32_codes(bench.rng, 3000)])
    for dst in NAMES:
        await check(bench, codes, "fp32", dst)
        await check(bench, codes[:500], "fp32", dst, saturate=True)
        if dst not in IEEE:
            continue
        out = convert(codes, "fp32", dst).astype(np.int64)
        fmt = FORMATS[dst]
        magnitude = out & ((1 << (fmt.bits - 1)) - 1)
        source = codes.astype(np.int64) & 0x7FFFFFFF
        infinity = ((1 << fmt.exponent) - 1) << fmt.mantissa
        COVERAGE.when(np.any(magnitude > infinity), "nan")
        COVERAGE.when(np.any(magnitude == infinity), "infinity")
        COVERAGE.when(np.any((magnitude == infinity) & (source < 0x7F800000)), "overflow")
        COVERAGE.when(np.any((magnitude > 0) & (magnitude < 1 << fmt.mantissa)), "subnormal result")
        COVERAGE.when(np.any((magnitude == 0) & (source > 0)), "underflow to zero")
        await check(bench, codes[:2000], "fp32", dst, saturate=True)
        held = convert(codes[:2000], "fp32", dst, True) != convert(codes[:2000], "fp32", dst)
        COVERAGE.when(np.any(held & (source[:2000] == 0x7F800000)), "infinity saturated")
        COVERAGE.when(np.any(held & (source[:2000] < 0x7F800000)), "overflow saturated")
        COVERAGE.when(dst == "bf16" and np.any(source & 0xFFFF == 0x8000), "tie")


@cocotb.test()
async def formats_may_change_every_cycle(dut: Any) -> None:
    bench = Bench(dut)
    await bench.start()
    rng = bench.rng
    items: list[tuple[int, int, int, int]] = []
    wanted: list[int] = []
    for _ in range(5000):
        src, dst = (str(n) for n in rng.choice(NAMES, 2))
        code = int(rng.integers(0, 1 << 32))
        saturate = int(rng.integers(0, 2))
        if rng.random() < 0.1:
            code |= 0x7C00 if src == "fp16" else 0x7F807F80  # infinity, NaN or near
            code &= ~0x7F if rng.random() < 0.5 else -1
        items.append((code, FORMATS[src].code, FORMATS[dst].code, saturate))  # bits above the element are don't care
        wanted.append(int(convert([code & ((1 << FORMATS[src].bits) - 1)], src, dst, bool(saturate))[0]))
    got = await push(bench, items)
    wrong = [n for n in range(len(items)) if got[n] != wanted[n]]
    assert not wrong, f"{items[wrong[0]]}: {got[wrong[0]]:#x}, not {wanted[wrong[0]]:#x}"
    COVERAGE.hit("formats change each cycle")
    COVERAGE.require_all()

"""Quantize: blocks of every kind to every format by both rules, side by side, with pauses, against the golden model.

tests/sim/test_quantize.py pushes every code against every exponent of the largest number through the same unit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import cocotb
import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS, MX_BLOCK, MX_EMAX, MX_SCALE_NAN
from rtl.contract.isa import ScaleRule
from rtl.numeric.formats.quantize import Quantize
from verif.agents.bench import Bench
from verif.agents.values import random_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.quantize import RULES, quantize_mx

_PLANTED = (
    "the scale divided by is not the clamped one",
    "infinities and NaNs count as large numbers",
    "a block of zeros has a scale other than 0",
    "the rule of quantisation is always the default",
    "the last number is not looked at for the largest",
    "elements of a block with a NaN are not zero",
    "the largest number counts as normal although it is subnormal",
    "what is too large to quantise becomes the code above the largest number",
    "quantisation rounds ties up instead of to even",
    "results of quantisation below the normal range become zero",
    "subnormal numbers that come in are taken for normal ones",
    "zeros lose their sign in quantisation",
)

RUNS = (Run("quantize", options={"blocks": 1}, regress=True), Run("quantize", options={"blocks": 2}, faults=_PLANTED))

STYLES = ("bits", "special", "normal", "subnormal", "narrow", "zeros", "one", "last", "least")
EVENTS = (
    "saturated",
    "tie to even",
    "subnormal result",
    "zero of a number",
    "clamped scale",
    "hold",
    "changes each cycle",
)
coverage = Coverage(
    "quantize",
    [
        f"{src} to {fmt} by {rule}: {style}"
        for src in ("bf16", "fp16")
        for fmt in MX_EMAX
        for rule in RULES
        for style in STYLES
    ]
    + [f"{fmt}: {event}" for fmt in MX_EMAX for event in EVENTS[:5]]
    + [f"{src}: block with NaN or infinity" for src in ("bf16", "fp16")]
    + [f"{src}: subnormal largest number" for src in ("bf16", "fp16")]
    + list(EVENTS[5:]),
)


class Item(NamedTuple):
    """A cycle's input: blocks [blocks, 32] and how to take them."""

    x: NDArray[np.uint16]
    src: str
    fmt: str
    rule: str


def packed(array: NDArray[Any], bits: int) -> int:
    """Numbers of so many bits, the first one lowest."""
    return int.from_bytes(array.astype(f"<u{bits // 8}").tobytes(), "little")


def block(rng: np.random.Generator, src: str, style: str) -> NDArray[np.uint16]:
    """32 codes: a flavour of random_codes, or one that isolates the largest number, its place or the smallest ones."""
    sign = rng.integers(0, 2, MX_BLOCK) << 15
    if style in ("bits", "special", "normal", "subnormal", "narrow"):
        codes = random_codes(rng, (MX_BLOCK,), src, style).astype(np.int64)
        if style == "bits":  # seldom a NaN
            codes = np.where(codes & 0x7FFF >= (0x7F80 if src == "bf16" else 0x7C00), codes & 0x83FF, codes)
        return codes.astype(np.uint16)
    codes = np.zeros(MX_BLOCK, np.int64)
    top = 0x7F00 if src == "bf16" else 0x7800
    if style == "one":
        codes[rng.integers(0, MX_BLOCK)] = rng.integers(1, top)
    if style == "last":
        codes[-1] = rng.integers(0x2000, top)
        codes[:-1] = codes[-1] - rng.integers(0x600, 0x1400, MX_BLOCK - 1)
    if style == "least":
        top = int(rng.integers(1, 11))
        codes = rng.integers(0, 1 << top, MX_BLOCK)
        if rng.random() < 0.5:  # one of them decides
            codes[rng.integers(0, MX_BLOCK)] = 1 << min(top, 9)
    return (codes | sign).astype(np.uint16)


def note(item: Item, style: str) -> None:
    """What the golden model made of it."""
    coverage.hit(f"{item.src} to {item.fmt} by {item.rule}: {style}")
    fmt = FORMATS[item.fmt]
    elements, scale = quantize_mx(item.x, item.fmt, item.rule, item.src)
    magnitude = elements & ((1 << (fmt.exponent + fmt.mantissa)) - 1)
    size = item.x & np.uint16(0x7FFF)
    most = size.max(axis=1)
    fine = scale != MX_SCALE_NAN
    largest = {"e4m3fn": 0x7E, "e5m2": 0x7B, "e2m1": 7}[item.fmt]
    coverage.when((~fine).any(), f"{item.src}: block with NaN or infinity")
    least = 0x80 if item.src == "bf16" else 0x400
    coverage.when(((most > 0) & (most < least)).any(), f"{item.src}: subnormal largest number")
    coverage.when((fine & (scale == 0) & (most > 0)).any(), f"{item.fmt}: clamped scale")
    small = (magnitude > 0) & (magnitude < 1 << fmt.mantissa)
    coverage.when(small.any(), f"{item.fmt}: subnormal result")
    coverage.when((fine[:, None] & (magnitude == 0) & (size > 0)).any(), f"{item.fmt}: zero of a number")
    # a largest number with all ones in its fraction would round up, if there were a next number
    ones = 0x7F if item.src == "bf16" else 0x3FF
    top = fine & (most & ones == ones) & (most >= least) & (scale > 0)
    coverage.when((top & (magnitude.max(axis=1) == largest)).any() and item.rule == "ocp", f"{item.fmt}: saturated")
    dropped = (7 if item.src == "bf16" else 10) - fmt.mantissa
    tie = (size & ((1 << dropped) - 1) == 1 << (dropped - 1)) & (magnitude >= 1 << fmt.mantissa) & (magnitude < largest)
    coverage.when((fine[:, None] & tie & (size >= least)).any(), f"{item.fmt}: tie to even")


async def push(bench: Bench, items: list[Item], pauses: float) -> None:
    """Drive an item a cycle, with pauses under `hold`, and compare what comes LATENCY cycles without pause later."""
    dut = bench.dut
    rng = bench.rng
    ahead: list[Item] = []
    source: Iterator[Item] = iter(items)
    compared = 0
    while compared < len(items):
        held = rng.random() < pauses
        dut.hold.value = int(held)
        if held:
            coverage.hit("hold")
            dut.x.value = packed(rng.integers(0, 1 << 16, MX_BLOCK * len(items[0].x)), 16)
        else:
            item = next(source, None)
            if item is not None:
                dut.x.value = packed(item.x, 16)
                dut.src.value = FORMATS[item.src].code
                dut.fmt.value = FORMATS[item.fmt].code
                dut.rule.value = RULES.index(item.rule)
                ahead.append(item)
            else:
                ahead.append(items[-1])
        await bench.edge
        # the value before the edge: results of what entered LATENCY edges ago
        if not held and len(ahead) > Quantize.LATENCY:
            done = ahead.pop(0)
            elements, scale = quantize_mx(done.x, done.fmt, done.rule, done.src)
            got = int(dut.elements.value), int(dut.scale.value)
            want = packed(elements, 8), packed(scale, 8)
            assert got == want, (
                f"item {compared}, {done.src} to {done.fmt} by {done.rule}, {done.x.tolist()}: elements {got[0]:#x}, "
                f"scale {got[1]:#x}, not {want[0]:#x}, {want[1]:#x}"
            )
            compared += 1


@cocotb.test()
async def quantizes_blocks_of_every_kind(dut: Any) -> None:
    bench = Bench(dut)
    dut.hold.value = 0
    await bench.start()
    assert [ScaleRule.OCP, ScaleRule.EMAX_1] == [0, 1] and len(RULES) == 2
    count = int(bench.options.get("blocks", 1))
    rng = bench.rng
    items: list[Item] = []
    for src in ("bf16", "fp16"):
        for fmt in MX_EMAX:
            for rule in RULES:
                for style in STYLES * 3:
                    item = Item(np.stack([block(rng, src, style) for _ in range(count)]), src, fmt, rule)
                    note(item, style)
                    items.append(item)
    await push(bench, items, 0.0)
    order = rng.permutation(len(items))
    await push(bench, [items[n] for n in order], 0.2)
    coverage.hit("changes each cycle")


def neighbours(rng: np.random.Generator, shape: tuple[int, int], src: str, fmt: str) -> NDArray[np.uint16]:
    """Blocks of numbers at, just above and just below half places of `fmt`, down to those that become zero and further.

    The largest number, at one place, has any fraction.
    """
    places, most = (7, 0x7F7F) if src == "bf16" else (10, 0x7BFF)
    dropped = places - FORMATS[fmt].mantissa
    top = rng.integers(1 << places, most, (shape[0], 1)) | rng.choice([0, (1 << places) - 1])
    reach = np.where(rng.random(shape) < 0.7, 2 * FORMATS[fmt].bias + 3, 40)
    below = rng.integers(0, reach) << places
    half = (rng.integers(0, 1 << places, shape) >> dropped << dropped) + (1 << (dropped - 1))
    size = (top >> places << places) - below + half + rng.integers(-1, 2, shape)
    size = np.where(size < 0, rng.integers(0, 1 << places, shape), size)
    codes = np.minimum(size, top)
    codes[:, rng.integers(0, shape[1])] = top[:, 0]
    return (codes | rng.integers(0, 2, shape) << 15).astype(np.uint16)


@cocotb.test()
async def rounds_neighbours_of_every_boundary(dut: Any) -> None:
    """Of every format, from both: each of the elements' units sees them."""
    bench = Bench(dut)
    dut.hold.value = 0
    await bench.start()
    shape = int(bench.options.get("blocks", 1)), MX_BLOCK
    rng = bench.rng
    items: list[Item] = []
    for _ in range(800):
        src, fmt = str(rng.choice(["bf16", "fp16"])), str(rng.choice(list(MX_EMAX)))
        if src == "fp16" and rng.random() < 0.4:
            style, x = "least", np.stack([block(rng, src, "least") for _ in range(shape[0])])
        else:
            style, x = "narrow", neighbours(rng, shape, src, fmt)
        item = Item(x, src, fmt, str(rng.choice(RULES)))
        note(item, style)
        items.append(item)
    await push(bench, items, 0.1)
    coverage.require_all()

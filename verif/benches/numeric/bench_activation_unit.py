"""Functions of the scalar engine against the golden model: tables loaded by their port, specials, every binade of both
signs, subnormal numbers of every length, numbers from every segment."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.activation_tables import BACK, FIRST_TABLE_FUNCTION, INDEX_BITS_MAX, POSITIVE, load_words, table
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Function
from rtl.numeric.functions.activation_unit import ActivationUnit
from verif.agents.bench import Bench
from verif.agents.pipe import push
from verif.agents.values import random_codes, special_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import expect_equal
from verif.golden.activation import direct, pre, through_table

_PLANTED = (
    "the row of an activation is that of the segment's neighbour",
    "t of an activation keeps the leading bits",
    "the second coefficient of an activation is left out",
    "subnormal results of an activation become zero",
    "zero is looked up like a subnormal number",
    "relu of an activation lets negative numbers through",
    "NaN is looked up like infinity",
    "subnormal numbers of log, sqrt and rsqrt are raised by a binade too many",
    "t of an activation is never measured back",
    "the top bit of the index is left out",
    "numbers beyond the last row of a binade are looked up behind it",
    "log, sqrt and rsqrt of negative numbers are looked up",
)

RUNS = (Run("activation", faults=_PLANTED),)

LOADED = (Function.GELU, Function.TANH, Function.LOG, Function.RSQRT, Function.ARCTAN, Function.RECIPROCAL)
DIRECT = tuple(f for f in Function if f < FIRST_TABLE_FUNCTION)
ONE = 0x3F800000
coverage = Coverage(
    "activation_unit",
    [f.name for f in (*LOADED, *DIRECT)]
    + ["subnormal result", "infinity", "nan", "scale and bias", "bias of zero keeps -0", "raised subnormal"]
    + ["none below zero", "t measured back", "index of all bits", "beyond the last row"],
)


async def load(bench: Bench) -> None:
    """The tables of LOADED, a word a cycle; the functions see nothing of it."""
    dut = bench.dut
    edge = RisingEdge(bench.clk)
    dut.load_valid.value = 1
    for address, word in load_words([f.name.lower() for f in LOADED], bench.cfg.scalar.table_rows):
        dut.load_address.value = address
        dut.load_word.value = word
        await edge
    dut.load_valid.value = 0


def cover(func: Function, x: Any) -> None:
    """What only some entries, or only functions of positive numbers, have."""
    field, finite = x >> 23 & 255, x >> 23 & 255 < 255
    if func in POSITIVE:
        coverage.when(((x > 0) & (x < 1 << 23)).any(), "raised subnormal")
        coverage.when(((x > 1 << 31) & finite).any(), "none below zero")
    entries = table(func.name.lower()).entries
    mode = np.array([e.mode for e in entries])[(x >> 31) * 256 + field]
    bits = np.array([e.bits for e in entries])[(x >> 31) * 256 + field]
    top = bits == INDEX_BITS_MAX
    coverage.when((finite & (mode == BACK)).any(), "t measured back")
    coverage.when((finite & top & (x >> 22 & 1 == 1)).any(), "index of all bits")
    coverage.when(
        (finite & (mode > BACK) & (x >> 20 & 7 >= mode) & (x << 12 & 0xFFFFFFFF != 0)).any(), "beyond the last row"
    )


async def check(bench: Bench, func: Function, x: Any, scale: Any = ONE, bias: Any = 0, slope: Any = 0) -> None:
    """Push and compare."""
    given = {"x": x, "scale": scale, "bias": bias, "slope": slope, "func": int(func)}
    inputs = {n: np.broadcast_to(np.asarray(v), x.shape).astype(np.uint32) for n, v in given.items()}
    bias_zero = inputs["bias"] << np.uint32(1) == 0
    argument = pre(inputs["x"], inputs["scale"], inputs["bias"])
    name = func.name.lower()
    wanted = direct(argument, name, inputs["slope"]) if func in DIRECT else through_table(argument, table(name))
    seen = await push(bench, inputs, "out", ActivationUnit.LATENCY)
    size = wanted & np.uint32(0x7FFFFFFF)
    coverage.hit(func.name)
    if func not in DIRECT:
        cover(func, argument.astype(np.int64))
    coverage.when(((size > 0) & (size < 1 << 23)).any(), "subnormal result")
    coverage.when((size == 0x7F800000).any(), "infinity")
    coverage.when((size > 0x7F800000).any(), "nan")
    coverage.when((~bias_zero & (inputs["scale"] != ONE)).any(), "scale and bias")
    coverage.when((bias_zero & (inputs["x"] == 1 << 31) & (wanted == 1 << 31)).any(), "bias of zero keeps -0")
    expect_equal(seen, wanted, inputs)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def functions(dut: Any) -> None:
    """Specials, every exponent of both signs, random bits, and random scale and bias."""
    bench = Bench(dut)
    await bench.start()
    await load(bench)
    rng = bench.rng
    binades = (np.arange(512, dtype=np.uint32) << np.uint32(23)) | rng.integers(0, 1 << 23, 512).astype(np.uint32)
    corners = special_codes(FORMATS["fp32"]).astype(np.uint32)
    lengths = np.concatenate([1 << np.arange(23), (2 << np.arange(23)) - 1, rng.integers(0, 1 << np.arange(1, 24))])
    small = np.concatenate([lengths, lengths | 1 << 31]).astype(np.uint32)
    hot = np.arange(0x3E00, 0x4300, dtype=np.uint32) << np.uint32(16) | rng.integers(0, 1 << 16, 0x500).astype(
        np.uint32
    )
    hot = hot | rng.integers(0, 2, hot.size).astype(np.uint32) << np.uint32(31)
    for func in (*LOADED, *DIRECT):
        await check(bench, func, np.concatenate([corners, binades, small]), slope=0x3E800000)
        if func in LOADED:
            await check(bench, func, hot)
        near = rng.uniform(-8, 8, 300).astype(np.float32).view(np.uint32)
        scale, bias, slope = (random_codes(rng, (300,), "fp32", "narrow").astype(np.uint32) for _ in range(3))
        await check(bench, func, near, scale, bias, slope)
        scale, bias, slope = (random_codes(rng, (100,), "fp32", "normal").astype(np.uint32) for _ in range(3))
        await check(bench, func, near[:100], scale, bias, slope)
    coverage.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def functions_change_every_cycle(dut: Any) -> None:
    """One number each of random functions, back to back."""
    bench = Bench(dut)
    await bench.start()
    await load(bench)
    funcs = bench.rng.choice([int(f) for f in (*LOADED, *DIRECT)], 600)
    x = random_codes(bench.rng, (600,), "fp32", "special").astype(np.uint32)
    inputs = {"x": x, "func": funcs.astype(np.uint32), "scale": np.full(600, ONE), "bias": np.zeros(600), "slope": x}
    seen = await push(bench, {n: v.astype(np.uint32) for n, v in inputs.items()}, "out", ActivationUnit.LATENCY)
    argument = pre(x, inputs["scale"].astype(np.uint32), np.zeros(600, np.uint32))
    wanted = np.zeros(600, np.uint32)
    for func in (*LOADED, *DIRECT):
        name, here = func.name.lower(), funcs == int(func)
        made = direct(argument, name, x) if func in DIRECT else through_table(argument, table(name))
        wanted[here] = made[here]
    expect_equal(seen, wanted, {"x": x, "func": funcs.astype(np.uint32)})

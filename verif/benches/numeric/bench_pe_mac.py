"""Arithmetic of a PE: fused and dot beats in any order, unused ones, FP8 at double rate; builds without `mx`, too."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.formats import FORMATS
from rtl.numeric.pe.pe_mac import PeMac
from verif.agents.bench import Bench, manifest
from verif.agents.dot_rows import FLAVOURS, accumulators, hard_rows
from verif.agents.elements import lane_words
from verif.agents.operands import operand_words, random_wide_values
from verif.agents.pipe import push
from verif.agents.values import companions, random_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.mx import SCALE_FORMATS, dot_pair, dot_product, mx_dot
from verif.golden.numeric import canonical, decode, fused

_PLANTED = (
    "bits shifted out by alignment are forgotten",
    "a difference of zero has a sign",
    "a sum rounds ties up, not to even",
    "a subnormal sum becomes zero",
    "infinity times zero is infinity in a PE",
    "an unused element adds its product",
    "a dot product adds the product of operands",
    "scales of a PE are always E8M0",
)

RUNS = (
    Run("pe_mac", faults=_PLANTED),
    Run("pe_mac", options={"mx": False}, seeds=(1,)),  # in make test, or `fused_beats_alone` would never run there
    Run("pe_mac", options={"nvfp4": False}, seeds=(1,), regress=True),
)

MX = bool(manifest().options.get("mx", True))
PAIRS = (("e5m2", "e5m2"), ("e4m3fn", "e5m2"), ("e2m1", "e4m3fn"), ("e4m3", "e4m3"), ("e2m1", "e2m1"))
MODES = ("fused", "dot", "nvfp4 dot", "double rate")
CORNERS = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan], np.float32)
NOT_COUNTED = ("nvfp4 dot: subnormal", "nvfp4 dot: negative zero", "double rate: negative zero")
"""Their dot products are zeros only if exact, then +0. Subnormal accumulators meet NVFP4 too seldom to count on."""

coverage = Coverage(
    "pe_mac",
    [f"{mode}: {outcome}" for mode in MODES for outcome in OUTCOMES if f"{mode}: {outcome}" not in NOT_COUNTED]
    + [f"{mode} unused" for mode in MODES]
    + [f"{first} then {second}" for first in MODES for second in MODES],
)
fused_only = Coverage("pe_mac without mx", [*OUTCOMES, "unused"])


def fused_beats(bench: Bench, count: int) -> dict[str, Any]:
    """Operands of all widths and formats, with don't-care bits where a dot product has its others."""
    rng = bench.rng
    with np.errstate(all="ignore"):
        sides = []
        for _ in range(2):
            values = [random_wide_values(rng, count // 4, spread) for spread in (149, 12)]
            for flavour in ("special", "subnormal"):
                codes = random_codes(rng, (count // 4,), "bf16", flavour).astype(np.uint16)
                values.append(decode(codes, "bf16"))
            sides.append(np.concatenate(values))
        sides[0][: CORNERS.size**2], sides[1][: CORNERS.size**2] = (x.ravel() for x in np.meshgrid(CORNERS, CORNERS))
        acc = companions(rng, (sides[0] * sides[1]).view(np.uint32))
        out = canonical(fused(sides[0], sides[1], acc.view(np.float32)))
    return {"a": operand_words(sides[0]), "b": operand_words(sides[1]), "acc": acc, "out": out, "mode": "fused"}


def dot_beats(bench: Bench, count: int, mode: str) -> dict[str, Any]:
    """Rows of all flavours; double rate: elements 2 and 3 are zero, scales 127."""
    rng = bench.rng
    scale_fmt = SCALE_FORMATS[mode == "nvfp4 dot"]
    parts = []
    for fmt_a, fmt_b in PAIRS:
        for flavour in FLAVOURS:
            a, b, sa, sb = hard_rows(rng, count // len(PAIRS) // len(FLAVOURS), fmt_a, fmt_b, scale_fmt, flavour)
            if mode == "double rate":
                a[:, 2:] = b[:, 2:] = 0
                sa[:] = sb[:] = FORMATS["e8m0"].bias
            tiny = rng.random(len(a)) < 0.05 * (mode == "dot")  # products below all of FP32, and a zero of either sign
            sa[tiny] = sb[tiny] = 0
            acc = accumulators(rng, dot_product(a, b, sa, sb, fmt_a, fmt_b, scale_fmt))
            acc = np.where(tiny, rng.integers(0, 2, len(acc)) << 31, acc).astype(np.uint32)
            out = mx_dot(a, b, sa, sb, acc, fmt_a, fmt_b, scale_fmt)
            if mode == "double rate":
                out = dot_pair(a[:, :2], b[:, :2], acc, fmt_a, fmt_b)
            parts.append((lane_words(a, sa, fmt_a), lane_words(b, sb, fmt_b), acc, out))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return dict(zip(("a", "b", "acc", "out"), columns, strict=True)) | {"mode": mode}


def garnish(bench: Bench, beats: dict[str, Any]) -> dict[str, Any]:
    """Adds the control inputs and what comes out of beats that are not used."""
    count = len(beats["out"])
    mode = beats.pop("mode")
    use = bench.rng.random(count) < 0.9
    dot = np.full(count, mode != "fused")
    # only a dot product with `nvfp4` reads it
    e4m3 = np.full(count, mode == "nvfp4 dot") if mode != "fused" else bench.rng.random(count) < 0.5
    beats |= {"enable": use, "dot": dot, "scale_e4m3": e4m3, "number": np.full(count, MODES.index(mode))}
    beats["out"] = np.where(use, beats["out"], beats["acc"])
    if mode == "fused":
        for side in ("a", "b"):
            dont_care = bench.rng.integers(0, 1 << 26, count, dtype=np.uint64) << np.uint64(22)
            beats[side] = beats[side].astype(np.uint64) | dont_care
    return beats


def note(beats: dict[str, Any]) -> None:
    """Outcomes and neighbours of each mode."""
    for number, mode in enumerate(MODES):
        mine = beats["number"] == number
        used = mine & beats["enable"]
        outcomes = Coverage("outcomes", OUTCOMES)
        note_outcomes(outcomes, beats["out"][used].astype(np.uint32))
        for outcome, hits in outcomes.hits.items():
            if f"{mode}: {outcome}" not in NOT_COUNTED:
                coverage.hit(f"{mode}: {outcome}", hits)
        coverage.when((mine & ~beats["enable"]).any(), f"{mode} unused")
        for after, second in enumerate(MODES):
            coverage.when((mine[:-1] & (beats["number"][1:] == after)).any(), f"{mode} then {second}")


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=not MX)
async def modes_change_every_cycle(dut: Any) -> None:
    """Beats of all modes in random order."""
    bench = Bench(dut)
    await bench.start()
    nvfp4 = bench.options.get("nvfp4", True)
    parts = [garnish(bench, fused_beats(bench, 2000))]
    parts += [garnish(bench, dot_beats(bench, 1800, mode)) for mode in MODES[1:] if nvfp4 or mode != "nvfp4 dot"]
    order = bench.rng.permutation(sum(len(part["out"]) for part in parts))
    beats = {n: np.concatenate([part[n] for part in parts])[order] for n in parts[0]}
    inputs = {n: beats[n] for n in ("a", "b", "acc", "enable", "dot", "scale_e4m3")}
    wanted = beats["out"].astype(np.uint32)
    for part in np.array_split(np.arange(len(wanted)), 4):
        some = {n: v[part] for n, v in inputs.items()}
        expect_equal(await push(bench, some, "out", PeMac.LATENCY), wanted[part], some)
    note(beats)
    if nvfp4:
        coverage.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=MX)
async def fused_beats_alone(dut: Any) -> None:
    """What a build without `mx` has, which has no other ports."""
    bench = Bench(dut)
    await bench.start()
    beats = fused_beats(bench, 4000)
    use = bench.rng.random(4000) < 0.9
    wanted = np.where(use, beats["out"], beats["acc"]).astype(np.uint32)
    inputs = {"a": beats["a"], "b": beats["b"], "acc": beats["acc"], "enable": use}
    seen = await push(bench, inputs, "out", PeMac.LATENCY)
    expect_equal(seen, wanted, inputs)
    fused_only.when((~use).any(), "unused")
    note_outcomes(fused_only, wanted)
    fused_only.require_all()

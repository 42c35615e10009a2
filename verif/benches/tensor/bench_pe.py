"""Processing element: weights, swap, tokens, sums and shifts, cycle by cycle against a small model."""

from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from verif.agents.array_lanes import ArrayLanes
from verif.agents.bench import Bench
from verif.agents.elements import element_words
from verif.agents.operands import operand_words
from verif.agents.values import FLAVOURS, random_codes
from verif.checks.coverage import Coverage
from verif.golden.mx import mx_dot
from verif.golden.numeric import canonical, decode, fused

coverage = Coverage(
    "pe",
    [
        "load", "load in the cycle of a swap", "swap", "swap of an unused beat", "unused beat", "load after load",
        "bubble", "dot product", "shift", "shift after load", "load after shift", "shift in the cycle of a swap",
        "raw weight shifts out", "number shifts out",
    ],
)  # fmt: skip


@dataclass(frozen=True)
class Weight:
    """A weight as bits, and what it means as a number or as elements."""

    bits: int = 0
    raw: bool = False
    value: np.float32 = np.float32(0)
    codes: tuple[int, ...] = (0, 0, 0, 0)
    scale: int = 0


class Model:
    """What the PE holds, and what must leave it."""

    def __init__(self) -> None:
        self.shadow = Weight()
        self.working = Weight()

    def step(self, x: Weight, dot: bool, use: bool, swap: bool, north: int) -> int:
        """The sum that a cycle's beat leads to."""
        if swap:
            self.working = self.shadow
        if not use:
            return north
        acc = np.array([north], dtype=np.uint32)
        w = self.working
        if dot:
            one, other = np.array([x.codes], np.uint8), np.array([w.codes], np.uint8)
            return int(mx_dot(one, other, [x.scale], [w.scale], acc, "e5m2", "e5m2")[0])
        return int(canonical(fused(np.array([x.value]), np.array([w.value]), acc.view(np.float32)))[0])


class Source:
    """Random operands."""

    def __init__(self, rng: np.random.Generator, lanes: ArrayLanes):
        self.rng = rng
        self.lanes = lanes

    def number(self, flavour: str) -> Weight:
        """A BF16 or FP16."""
        fmt = ("bf16", "fp16")[int(self.rng.integers(2))]
        value = decode(random_codes(self.rng, (1,), fmt, flavour).astype(np.uint16), fmt)
        return Weight(bits=int(operand_words(value)[0]), value=value[0])

    def quad(self, flavour: str) -> Weight:
        """Four E5M2 and a scale."""
        codes = random_codes(self.rng, (4,), "e5m2", flavour).astype(np.uint8)
        scale = int(self.rng.integers(117, 138))
        words = [int(word) for word in element_words(codes, "e5m2")]
        return Weight(bits=self.lanes.elements(words, scale), codes=tuple(codes.tolist()), scale=scale)

    def raw(self) -> Weight:
        """Any 32 bits."""
        return Weight(bits=int(self.rng.integers(1 << 32)), raw=True)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def computes_and_passes_on(dut: Any) -> None:
    """Every output in every cycle, for every flavour of numbers; numbers and dot products in turn."""
    bench = Bench(dut)
    rng = bench.rng
    lanes = ArrayLanes(bench.cfg.tensor)
    source = Source(rng, lanes)
    idle(dut)
    await bench.start()
    edge = RisingEdge(bench.clk)
    for dots in (False, True, False) if bench.cfg.tensor.mx else (False,):
        idle(dut)
        await bench.reset(1)
        await run(dut, source, lanes, edge, dots)
    if bench.cfg.tensor.mx:
        coverage.require_all()


def idle(dut: Any) -> None:
    """Nothing enters."""
    for name in ("west", "west_weight", "north", "north_raw"):
        getattr(dut, name).value = 0


async def run(dut: Any, source: Source, lanes: ArrayLanes, edge: RisingEdge, dots: bool) -> None:
    """Random cycles with weights of one class, and raw ones that are never used."""
    rng = source.rng
    model = Model()
    sums: list[int] = []
    easts: list[int] = []
    tokens: list[int] = []
    raws: list[tuple[int, bool] | None] = []
    before = ""
    for i in range(2500):
        flavour = FLAVOURS[i // 100 % len(FLAVOURS)]
        make = source.quad if dots else source.number
        x = make(flavour)
        use = bool(rng.random() < 0.8)
        swap = bool(rng.random() < 0.2) and not model.shadow.raw
        what = str(rng.choice(["load", "shift", "nothing"], p=[0.3, 0.2, 0.5]))
        north = int(canonical(random_codes(rng, (1,), "fp32", flavour).view(np.float32))[0])
        lane = lanes.moving(x.bits, use, swap, dots)
        # what comes from above fits into 32 bits: raw, or a number
        sunk = source.raw() if rng.random() < 0.5 or dots else source.number(flavour)
        dut.west.value = lane
        dut.north.value = north
        dut.north_raw.value = sunk.bits | int(sunk.raw) << 32
        sums.append(model.step(x, dots, use, swap, north))
        easts.append(lane)
        token, raw = 0, None
        old = model.shadow
        if what == "load":
            model.shadow = source.raw() if rng.random() < 0.3 else make(flavour)
            token = lanes.weight(old.bits, old.raw)
            dut.west_weight.value = lanes.weight(model.shadow.bits, model.shadow.raw)
        elif what == "shift":
            model.shadow = sunk
            token, raw = lanes.shift(), (old.bits & 0xFFFFFFFF, old.raw)
            dut.west_weight.value = lanes.shift() | int(rng.integers(1 << 32))
            coverage.hit("raw weight shifts out" if old.raw else "number shifts out")
        else:
            dut.west_weight.value = int(rng.integers(1 << 32))
        tokens.append(token)
        raws.append(raw)
        note(what, before, use, swap, dots)
        before = what
        await edge
        check(dut, lanes, i, sums, easts, tokens, raws)


def note(what: str, before: str, use: bool, swap: bool, dots: bool) -> None:
    """Situations of a cycle."""
    coverage.when(what == "load", "load")
    coverage.when(what == before == "load", "load after load")
    coverage.when(what == "load" and swap, "load in the cycle of a swap")
    coverage.when(swap, "swap")
    coverage.when(swap and not use, "swap of an unused beat")
    coverage.when(not use, "unused beat")
    coverage.when(not use and what == "nothing" and not swap, "bubble")
    coverage.when(use and dots, "dot product")
    coverage.when(what == "shift", "shift")
    coverage.when(what == "shift" and before == "load", "shift after load")
    coverage.when(what == "load" and before == "shift", "load after shift")
    coverage.when(what == "shift" and swap, "shift in the cycle of a swap")


def check(
    dut: Any,
    lanes: ArrayLanes,
    i: int,
    sums: list[int],
    easts: list[int],
    tokens: list[int],
    raws: list[tuple[int, bool] | None],
) -> None:
    """What leaves in cycle i."""
    if i >= 2:
        seen = int(dut.south.value)
        assert seen == sums[i - 2], f"cycle {i}: south is {seen:#010x}, should be {sums[i - 2]:#010x}"
        raw = raws[i - 2]
        if raw is not None:
            word = int(dut.south_raw.value)
            assert word >> 32 == raw[1] and word & 0xFFFFFFFF == raw[0], f"cycle {i}: {word:#x} shifted out, not {raw}"
    if i >= 1:
        assert int(dut.east.value) == easts[i - 1], f"cycle {i}: the lane that went east changed"
        token, want = int(dut.east_weight.value), tokens[i - 1]
        flags = lanes.weight(0) | lanes.shift()
        assert token & flags == want & flags, f"cycle {i}: what went east was not what came"
        if want & lanes.weight(0):
            assert token == want, f"cycle {i}: weight {token:#x} went east, should be {want:#x}"

"""Processing element: weights, swap, tokens, sums and shifts, cycle by cycle against a small model."""

from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.tensor.lanes import NUMBERS, OTHERS
from verif.agents.array_lanes import ArrayLanes
from verif.agents.bench import Bench
from verif.agents.elements import element_words
from verif.agents.operands import operand_words
from verif.agents.values import FLAVOURS, random_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.mx import mx_dot
from verif.golden.numeric import canonical, decode, fused

_PLANTED = (
    "a swap takes effect one beat late",
    "the weight that arrives goes east, not the one it replaces",
    "a load goes straight into the working weight",
    "a swap is ignored in a beat that is not used",
    "an unused element adds its product",
    "a shift takes the working weight too",
    "a weight that shifts out was raw, whatever it was",
    "the weight that enters shifts out, not the one before",
    "the slot of a sparse weight is ignored",
    "the slot is that of the shadow weight",
)

RUNS = (Run("pe", faults=_PLANTED),)

coverage = Coverage(
    "pe",
    [
        "load", "load in the cycle of a swap", "swap", "swap of an unused beat", "unused beat", "load after load",
        "bubble", "dot product", "shift", "shift after load", "load after shift", "shift in the cycle of a swap",
        "raw weight shifts out", "number shifts out", "sparse", "sparse, weight swapped in",
        "slot of the shadow differs",
        *(f"slot {slot}" for slot in range(NUMBERS)),
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
    slot: int = 0
    values: tuple[np.float32, ...] = ()  # of a sparse beat
    others: int = 0  # their words but the first


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
        value = x.values[w.slot] if x.values else x.value
        return int(canonical(fused(np.array([value]), np.array([w.value]), acc.view(np.float32)))[0])


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

    def sparse_weight(self, flavour: str) -> Weight:
        """A number and the slot of what it meets."""
        number = self.number(flavour)
        slot = int(self.rng.integers(NUMBERS))
        return Weight(bits=self.lanes.sparse_weight(number.bits, slot), value=number.value, slot=slot)

    def numbers(self, flavour: str) -> Weight:
        """The sixteen numbers of a sparse beat."""
        some = [self.number(flavour) for _ in range(NUMBERS)]
        others = self.lanes.numbers([n.bits for n in some[1:]])
        return Weight(bits=some[0].bits, values=tuple(n.value for n in some), others=others)

    def raw(self) -> Weight:
        """Any 32 bits."""
        return Weight(bits=int(self.rng.integers(1 << 32)), raw=True)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def computes_and_passes_on(dut: Any) -> None:
    """Every output in every cycle, for every flavour of numbers; numbers, dot products and sparse beats in turn."""
    bench = Bench(dut)
    rng = bench.rng
    lanes = ArrayLanes(bench.cfg.tensor)
    source = Source(rng, lanes)
    idle(dut)
    await bench.start()
    edge = RisingEdge(bench.clk)
    tensor = bench.cfg.tensor
    others = [name for name, there in (("dots", tensor.mx), ("sparse", tensor.sparsity)) if there]
    for what in ("numbers", *others, "numbers"):
        idle(dut)
        await bench.reset(1)
        await run(dut, source, lanes, edge, what)
    if tensor.mx and tensor.sparsity:
        coverage.require_all()


def idle(dut: Any) -> None:
    """Nothing enters."""
    for name in ("west", "west_others", "west_weight", "north", "north_raw"):
        if hasattr(dut, name):
            getattr(dut, name).value = 0


async def run(dut: Any, source: Source, lanes: ArrayLanes, edge: RisingEdge, kind: str) -> None:
    """Random cycles with weights of one class, and raw ones that are never used."""
    dots, sparse = kind == "dots", kind == "sparse"
    rng = source.rng
    model = Model()
    sums: list[int] = []
    easts: list[tuple[int, int | None]] = []
    tokens: list[int] = []
    raws: list[tuple[int, bool] | None] = []
    before = ""
    for i in range(1500):
        flavour = FLAVOURS[i // 100 % len(FLAVOURS)]
        make = source.quad if dots else source.sparse_weight if sparse else source.number
        x = source.numbers(flavour) if sparse else make(flavour)
        use = bool(rng.random() < 0.8)
        swap = bool(rng.random() < 0.2) and not model.shadow.raw
        what = str(rng.choice(["load", "shift", "nothing"], p=[0.3, 0.2, 0.5]))
        north = int(canonical(random_codes(rng, (1,), "fp32", flavour).view(np.float32))[0])
        lane = lanes.moving(x.bits, use, swap, dots, sparse)
        # what comes from above fits into 32 bits: raw, or a number
        sunk = source.raw() if rng.random() < 0.5 or dots else make(flavour)
        dut.west.value = lane
        if lanes.tensor.sparsity:
            dut.west_others.value = x.others if sparse else int.from_bytes(rng.bytes(OTHERS.size // 8), "little")
        dut.north.value = north
        dut.north_raw.value = sunk.bits | int(sunk.raw) << 32
        old = model.shadow
        sums.append(model.step(x, dots, use, swap, north))
        if sparse and use:
            coverage.hit(f"slot {model.working.slot}")
            coverage.when(swap, "sparse, weight swapped in")
            coverage.when(old.slot != model.working.slot and not old.raw, "slot of the shadow differs")
        easts.append((lane, x.others if sparse else None))
        token, raw = 0, None
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
        coverage.when(sparse, "sparse")
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
    easts: list[tuple[int, int | None]],
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
        lane, others = easts[i - 1]
        assert int(dut.east.value) == lane, f"cycle {i}: the lane that went east changed"
        assert others is None or int(dut.east_others.value) == others, f"cycle {i}: numbers that went east changed"
        token, want = int(dut.east_weight.value), tokens[i - 1]
        flags = lanes.weight(0) | lanes.shift()
        assert token & flags == want & flags, f"cycle {i}: what went east was not what came"
        if want & lanes.weight(0):
            assert token == want, f"cycle {i}: weight {token:#x} went east, should be {want:#x}"

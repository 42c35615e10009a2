"""Pattern walker and last-element finder against the sum that defines an access pattern."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from rtl.base.pattern import LastElement, PatternWalker
from rtl.contract.access_pattern import PATTERN, AccessPattern
from rtl.contract.config import named
from rtl.contract.formats import FORMATS, by_code
from verif.checks.coverage import Coverage
from verif.golden.memory import offsets

CFG = named("small")
SHAPES = [f"{n} dimensions" for n in range(1, 5)] + [f"elements of {size} bytes" for size in (1, 2, 4)]
SHAPES += [f"{way} step" for way in ("no", "a forward", "a backward")]
SHAPES += ["one element", "a dimension of one inside others", "turns back at the end of a dimension"]
FAR = [way * step for way in (1, -1) for step in (127, 255, 510, 1021, 1364, 2047)]
"""Steps whose bits are all 1 and 0 in turn; two of them stay within the partition."""
FORWARDS = Coverage("pattern.walk", SHAPES)
BACKWARDS = Coverage("pattern.backwards", SHAPES)


def note(coverage: Coverage, p: AccessPattern) -> None:
    """What a pattern is an example of; dimensions of one element have no step."""
    steps = [step for step, count in p.dims if count > 1]
    coverage.hit(f"{len(p.dims)} dimensions")
    coverage.hit(f"elements of {by_code(p.dtype).bytes} bytes")
    coverage.when(0 in steps, "no step")
    coverage.when(any(step > 0 for step in steps), "a forward step")
    coverage.when(any(step < 0 for step in steps), "a backward step")
    coverage.when(not steps, "one element")
    counts = [count for _, count in p.dims]
    coverage.when(any(n == 1 < max(counts[:k], default=0) for k, n in enumerate(counts[:-1])), SHAPES[-2])
    coverage.when(any(a * b < 0 for a, b in pairwise(steps)), SHAPES[-1])


class Backwards(wiring.Component):
    """A walk in reverse: finds the last element, then walks from there."""

    def __init__(self) -> None:
        self.walker = PatternWalker(CFG, reverse=True)
        super().__init__({"pattern": In(PATTERN.width), "run": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.walker = self.walker
        m.submodules.last = last = LastElement(CFG)
        payload = self.walker.command.payload
        m.d.comb += [
            last.pattern.eq(self.pattern),
            last.run.eq(self.run),
            payload.eq(self.pattern),
            payload.offset.eq(last.address),
            self.walker.command.valid.eq(last.found & self.run),  # once: `found` falls a cycle after `run`
        ]
        return m


def patterns(seed: int, count: int = 40) -> list[AccessPattern]:
    rng = random.Random(seed)
    found = []
    for n in range(count):
        most = (9, 9, 3, 3) if n % 8 else (1, 1, 1, 1)
        steps = {1: (0,), 2: FAR}.get(n % 8, range(-20, 21))
        most = (2, 2, 1, 1) if n % 8 == 2 else most
        dims = tuple((rng.choice(steps), rng.randint(1, most[k])) for k in range(rng.randint(1, 4)))
        dtype = rng.choice([FORMATS[name].code for name in ("fp32", "bf16", "fp16", "uint8")])
        found.append(
            AccessPattern(
                space=1,
                dtype=dtype,
                partition_start=0,
                partition_count=1,
                offset=rng.randint(7000, 8000) * 4,
                dims=dims,
            )
        )
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("eager", [True, False])
def test_walks_every_element_without_a_gap(seed: int, eager: bool) -> None:
    dut = PatternWalker(CFG)
    rng = random.Random(seed)
    todo = patterns(seed)
    wanted = [offsets(p).tolist() for p in todo]
    got: list[list[int]] = []
    gaps = 0

    async def commands(ctx) -> None:
        for p in todo:
            ctx.set(dut.command.payload.as_value(), PATTERN.pack(p.fields()))
            ctx.set(dut.command.valid, 1)
            await ctx.tick().until(dut.command.ready)
        ctx.set(dut.command.valid, 0)

    async def elements(ctx) -> None:
        nonlocal gaps
        current: list[int] = []
        promised = None
        while len(got) < len(todo):
            step = eager or rng.random() < 0.6
            ctx.set(dut.step, step)
            seen = await ctx.tick().sample(dut.valid, dut.address, dut.last, dut.next_address)
            valid, address, last, following = seen[2:]
            gaps += not valid
            if valid and step:
                assert promised in (None, address)
                current.append(address)
                promised = None if last else following
                if last:
                    got.append(current)
                    current = []

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(commands)
    sim.add_testbench(elements)
    sim.run()
    assert got == wanted
    assert gaps == 1  # before the first element
    for p in todo:
        note(FORWARDS, p)
    FORWARDS.require_all()


@pytest.mark.parametrize("seed", [1, 2])
def test_walks_backwards(seed: int) -> None:
    dut = Backwards()

    async def walk(ctx) -> None:
        ctx.set(dut.walker.step, 1)
        for p in patterns(seed, 25):
            ctx.set(dut.pattern, PATTERN.pack(p.fields()))
            ctx.set(dut.run, 1)
            cycles = 0
            while not ctx.get(dut.walker.command.valid):
                await ctx.tick()
                cycles += 1
            assert cycles <= 2 + sum((count - 1).bit_length() for _, count in p.dims)
            await ctx.tick()
            ctx.set(dut.run, 0)
            got = []
            while ctx.get(dut.walker.valid):
                got.append(ctx.get(dut.walker.address))
                await ctx.tick()
            assert got == offsets(p).tolist()[::-1]
            note(BACKWARDS, p)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(walk)
    sim.run()
    BACKWARDS.require_all()


LONG = [(0x1FFF,), (1, 0x1555), (1, 1, 0x0AAA), (1, 1, 1, 0x1333), (0xE001,)]


@pytest.mark.parametrize("counts", LONG, ids=lambda c: f"{len(c)}-{c[-1]:x}")
def test_every_bit_of_a_count_counts(counts: tuple[int, ...]) -> None:
    """Engines see long operands, but no bench of theirs has one as long as a count can say."""
    dut = PatternWalker(CFG)
    dims = tuple((0, count) for count in counts)
    p = AccessPattern(space=1, dtype=0, partition_start=0, partition_count=1, offset=64, dims=dims)

    async def walk(ctx) -> None:
        ctx.set(dut.step, 1)
        ctx.set(dut.command.payload.as_value(), PATTERN.pack(p.fields()))
        ctx.set(dut.command.valid, 1)
        await ctx.tick()
        ctx.set(dut.command.valid, 0)
        length = 0
        while ctx.get(dut.valid):
            length += 1
            await ctx.tick()
        assert length == counts[-1]

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(walk)
    sim.run()


@pytest.mark.parametrize("width", [1, 2])
def test_walks_several_neighbours_at_once(width: int) -> None:
    dut = PatternWalker(CFG)
    rng = random.Random(width)
    group = 1 << width
    todo = [
        AccessPattern(
            space=1,
            dtype=rng.choice([0, 1]),
            partition_start=0,
            partition_count=1,
            offset=16 * rng.randint(400, 500),
            dims=((1, group * rng.randint(1, 6)), (group * rng.randint(-9, 9), rng.randint(1, 4)), (4, 2)),
        )
        for _ in range(20)
    ]

    async def walk(ctx) -> None:
        ctx.set(dut.width, width)
        ctx.set(dut.step, 1)
        for p in todo:
            ctx.set(dut.command.payload.as_value(), PATTERN.pack(p.fields()))
            ctx.set(dut.command.valid, 1)
            await ctx.tick()
            ctx.set(dut.command.valid, 0)
            got = []
            while ctx.get(dut.valid):
                got.append(ctx.get(dut.address))
                await ctx.tick()
            assert got == offsets(p).tolist()[::group]

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(walk)
    sim.run()

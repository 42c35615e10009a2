"""Vector engine: programs of copies against the golden conversion, its pace, and what it reports."""

from dataclasses import dataclass
from math import gcd
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.access_pattern import AccessPattern, start_partition_rule
from rtl.contract.config import load
from rtl.contract.formats import by_code
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space
from rtl.contract.rates import width
from rtl.contract.timing import STALLS, Engine
from verif.agents.bench import Bench
from verif.agents.memory_port import MemoryPorts
from verif.agents.patterns import command_word, contiguous, random_partitions, random_pattern
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.bench import SEEDS, Run
from verif.checks.coverage import Coverage
from verif.golden.memory import Memory, offsets
from verif.golden.vector import tensor_copy

_RATIOS = tuple(load("tiny", [f"vector.clock_mhz={mhz}"]) for mhz in (960, 1800))
"""Other than half the clock."""

_PLANTED = (
    "the stride of a pattern's second dimension is forgotten",
    "the last element of a pattern with more than one dimension is left out",
    "read data are not held until the engine's edge",
    "requests are made between the engine's edges too",
    "done lasts until the engine's next edge",
    "the vector engine's read of SBUF does not wait for the writes before it",
    "an element's place in the word is that of the vector engine's next request",
    "quadrants are not rotated in the vector engine",
    "a 16-bit element is written over its neighbour as well",
    "done does not wait for the memory to take the last element",
    "partitions outside the destination are written too",
)

RUNS = (
    Run("vector_engine", faults=_PLANTED),
    *(Run("vector_engine", config=ratio, seeds=SEEDS[:1], regress=True) for ratio in _RATIOS),
)

FLOATS = ("fp32", "bf16", "fp16")
STATES = ("busy", "", *STALLS[Engine.VECTOR])
COVERAGE = Coverage(
    "vector.engine",
    [f"{a} to {b}" for a in FLOATS for b in FLOATS]
    + [f"{n} quadrants up" for n in range(4)]
    + ["from psum", "from sbuf", "one element", "all partitions", "some partitions"]
    + ["sbuf read refused", "psum read refused", "sbuf write refused"]
    + ["reads what the copy before wrote", "fill", "drain", "sbuf", "psum", "clock stands still"],
)
TURNAROUND = 8  # vector cycles between two instructions, at most
LANE_CYCLES = 6  # an element is in the lanes for so long, whatever became of it


@dataclass(frozen=True)
class Copy:
    """One TENSOR_COPY."""

    src: AccessPattern
    dst: AccessPattern


class EngineBench:
    """The engine with memories around it and everything that is measured on the way."""

    def __init__(self, dut: Any, style: str = "never"):
        self.bench = Bench(dut)
        self.cfg = self.bench.cfg
        self.rng = self.bench.rng
        self.style = style
        cfg = self.cfg
        self.sbuf = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.psum = Memory(cfg.partitions, cfg.psum.partition_bytes)
        for memory in (self.sbuf, self.psum):
            memory.bytes[:] = self.rng.integers(0, 256, memory.bytes.shape, dtype=np.uint8)
        self.program: list[Copy] = []
        self.dones: list[int] = []
        self.ticks: list[int] = []
        self.states: dict[str, int] = {}
        self.trace: list[str] = []
        divisor = gcd(cfg.vector.clock_mhz, cfg.tensor.clock_mhz)
        self.num, self.den = cfg.vector.clock_mhz // divisor, cfg.tensor.clock_mhz // divisor

    async def start(self) -> None:
        """Connect the agents and reset."""
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(4)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        self.ports.add_sbuf_read("sbuf_read", stalls[1])
        self.ports.add_psum_read("psum_read", stalls[2])
        self.ports.add_sbuf_write("sbuf_write", stalls[3])
        dut = self.bench.dut
        self._watched = (
            dut.tick,
            dut.queue__done,
            dut.queue__status__holds,
            dut.queue__status__state,
            dut.queue__status__draining,
        )
        self._valids = (dut.sbuf_read__valid, dut.psum_read__valid, dut.sbuf_write__valid)
        self.ports.on_cycle.append(self._watch)
        await self.bench.start()
        self.ports.start()

    def _watch(self, now: int) -> None:
        tick, done, holds, state, draining = (int(s.value) for s in self._watched)
        if tick:
            self.ticks.append(now)
        else:
            assert not any(v.value == 1 for v in self._valids), f"cycle {now}: a request without a vector edge"
        what = STATES[state] if holds else "drain" if draining else "idle"
        self.trace.append(what)
        self.states[what] = self.states.get(what, 0) + 1
        if done:
            assert tick, f"cycle {now}: done without a vector edge"
            number = len(self.dones)
            assert number < len(self.program), "done without an instruction"
            self.dones.append(now)
            beats = sum(self.beats(c) for c in self.program[: number + 1])
            assert len(self.ports.written) == beats, (
                f"copy {number} is done with {len(self.ports.written)} of {beats} writes made"
            )

    def beats(self, c: Copy) -> int:
        """Writes that a copy makes: rtl.contract.rates says how many elements go at once."""
        return c.dst.elements // width(Opcode.TENSOR_COPY, self.cfg, c.src, None, c.dst)

    async def run(self, program: list[Copy]) -> None:
        """Send the program, wait for its end, compare SBUF with what the golden copies leave."""
        self.program = program
        golden = Memory(self.cfg.partitions, self.cfg.sbuf.partition_bytes)
        golden.bytes[:] = self.sbuf.bytes
        for c in program:
            memory = self.psum if c.src.space == Space.PSUM else golden
            names = by_code(c.src.dtype).name, by_code(c.dst.dtype).name
            golden.write(c.dst, tensor_copy(memory.read(c.src), *names))
        self.commands.send(command_word(Opcode.TENSOR_COPY, n, src0=c.src, dst=c.dst) for n, c in enumerate(program))
        limit = 2000 + (10 if self.style == "never" else 60) * sum(c.src.elements + 10 for c in program)
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            assert self.ports.cycle < limit, f"{len(self.dones)} of {len(program)} copies after {limit} cycles"
        ticks = len(self.ticks)
        await self.bench.cycles(40)
        assert len(self.dones) == len(program), "a copy was done twice"
        COVERAGE.when(len(self.ticks) == ticks, "clock stands still")
        assert len(self.ticks) <= ticks + LANE_CYCLES, "the clock runs without work"
        assert self.trace[-1] == "idle"
        wrong = np.argwhere(self.sbuf.bytes != golden.bytes)
        assert wrong.size == 0, (
            f"SBUF partition {wrong[0][0]} byte {wrong[0][1]} differs ({len(wrong)} bytes in all) after {program}"
        )
        self.cover()

    def random_program(self, length: int) -> list[Copy]:
        """Legal copies of all kinds; none overlaps itself, some read what the one before wrote."""
        rng, cfg = self.rng, self.cfg
        program: list[Copy] = []
        while len(program) < length:
            start, count = random_partitions(rng, cfg.partitions)
            legal = [q * (cfg.partitions // 4) for q in range(4)]
            legal = [s for s in legal if start_partition_rule(s, count, cfg.partitions)]
            elsewhere = int(rng.choice([s for s in legal if s + count <= cfg.partitions]))
            elements = 1 if rng.random() < 0.1 else int(rng.integers(1, 50))
            if rng.random() < 0.35:
                src = random_pattern(
                    rng, space=Space.PSUM, dtype="fp32", partitions=(start, count), elements=elements,
                    partition_bytes=cfg.psum.partition_bytes,
                )  # fmt: skip
            elif program and rng.random() < 0.4:
                src = program[-1].dst
                start, count, elements = src.partition_start, src.partition_count, src.elements
                elsewhere = start
            else:
                src = random_pattern(
                    rng, space=Space.SBUF, dtype=str(rng.choice(FLOATS)), partitions=(start, count),
                    elements=elements, partition_bytes=cfg.sbuf.partition_bytes,
                )  # fmt: skip
            dst = random_pattern(
                rng, space=Space.SBUF, dtype=str(rng.choice(FLOATS)), partitions=(elsewhere, count),
                elements=elements, partition_bytes=cfg.sbuf.partition_bytes,
            )  # fmt: skip
            if src.space == Space.SBUF and _meet(src, dst):
                continue
            program.append(Copy(src, dst))
        return program

    def cover(self) -> None:
        """Bins of the program that ran."""
        before: Copy | None = None
        quarter = self.cfg.partitions // 4
        for c in self.program:
            COVERAGE.hit(f"{by_code(c.src.dtype).name} to {by_code(c.dst.dtype).name}")
            up = (c.dst.partition_start - c.src.partition_start) // quarter % 4
            COVERAGE.hit(f"{up} quadrants up")
            COVERAGE.hit("from psum" if c.src.space == Space.PSUM else "from sbuf")
            COVERAGE.when(c.src.elements == 1, "one element")
            COVERAGE.hit("all partitions" if c.src.partition_count == self.cfg.partitions else "some partitions")
            COVERAGE.when(before is not None and c.src == before.dst, "reads what the copy before wrote")
            before = c
        for port, name in (
            ("sbuf_read", "sbuf read refused"),
            ("psum_read", "psum read refused"),
            ("sbuf_write", "sbuf write refused"),
        ):
            COVERAGE.when(self.ports.refusals[port], name)
        for state in ("fill", "drain", "sbuf", "psum"):
            COVERAGE.when(self.states.get(state), state)


def _meet(a: AccessPattern, b: AccessPattern) -> bool:
    """Whether two patterns of SBUF share a byte offset (whatever their partitions)."""
    spans = [{int(at) + n for at in offsets(p) for n in range(by_code(p.dtype).bytes)} for p in (a, b)]
    return bool(spans[0] & spans[1])


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_copies_leave_the_golden_bytes(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    await bench.run(bench.random_program(60 if style == "never" else 25))


@cocotb.test()
@cocotb.parametrize(space=[Space.PSUM, Space.SBUF], dtype=FLOATS)
async def copies_keep_the_pace(dut: Any, space: Space, dtype: str) -> None:
    """As many elements a vector cycle as the table of rates says, without a bubble."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    everyone = (0, cfg.partitions)
    elements, copies = 100, 4
    src = contiguous(space=space, dtype="fp32", partitions=everyone, elements=elements)
    program = [
        Copy(
            src,
            contiguous(
                space=Space.SBUF, dtype=dtype, partitions=everyone, elements=elements,
                offset=4 * elements * (n + 1),
            ),
        )
        for n in range(copies)
    ]  # fmt: skip
    await bench.run(program)
    busy = bench.states["busy"]
    beats = bench.beats(program[0])
    exact = copies * beats * bench.den / bench.num
    assert abs(busy - exact) <= copies * 2, f"busy for {busy} cycles, {exact} expected"
    writes = np.searchsorted(bench.ticks, bench.ports.written)  # as vector cycles
    gaps = np.diff(writes)
    ends = np.arange(beats - 1, beats * copies - 1, beats)
    inside = np.delete(gaps, ends)
    assert (inside == 1).all(), f"a bubble of {inside.max() - 1} vector cycles inside a copy"
    most = 1 if space == Space.PSUM else TURNAROUND + 1
    assert gaps[ends].max() <= most, f"{gaps[ends].max() - 1} vector cycles between two copies"
    assert set(bench.states) <= {"idle", "busy", "fill", "drain"}


@cocotb.test()
async def moves_any_quadrant_to_any(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    quarter = bench.cfg.partitions // 4
    program = []
    for a in range(4):
        for b in range(4):
            src = contiguous(space=Space.PSUM, dtype="fp32", partitions=(a * quarter, quarter), elements=3)
            place = 16 * (4 * a + b)
            dst = contiguous(
                space=Space.SBUF, dtype="fp32", partitions=(b * quarter, quarter), elements=3, offset=place
            )
            program.append(Copy(src, dst))
    await bench.run(program)


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

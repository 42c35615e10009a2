"""Tensor engine: programs of loads and matmuls against the golden array, its pace, and what it reports."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import cocotb
import ml_dtypes
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.formats import by_code
from rtl.contract.isa import INSTRUCTION, AccessPattern, Opcode
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.timing import MATMUL_MIN_CYCLES, STALLS, Engine, array_latency
from verif.agents.bench import Bench, manifest
from verif.agents.memory_port import MemoryPorts, add_fp32
from verif.agents.patterns import command_word, contiguous, random_columns, random_pattern
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.checks.coverage import Coverage
from verif.golden.array_kinds import KindsState, operand_columns
from verif.golden.groups import WeightKinds, formats_of
from verif.golden.memory import Memory

STATES = ("busy", "", *STALLS[Engine.TENSOR])
COVERAGE = Coverage(
    "tensor.engine",
    [f"{Kind(k).name} {by_code(d).name}" for k in range(8) for d in formats_of(k, manifest().config)]
    + ["accumulate", "overwrite", "one column", "as many columns as allowed", "matmul without a load"]
    + ["two loads in a row", "some rows only", "some columns only", "moving refused", "stationary refused"]
    + ["load hidden", "load exposed", "fill", "drain", "starved by SBUF", "matmul shorter than the minimum"],
)


@dataclass(frozen=True)
class Step:
    """One instruction."""

    opcode: Opcode
    src: AccessPattern
    dst: AccessPattern | None = None
    accumulate: bool = False
    kind: int = Kind.ONE
    scales: AccessPattern | None = None
    table: int = 0

    def word(self, sequence: int) -> int:
        """As the port has it."""
        fields = {"accumulate": int(self.accumulate), "kind": self.kind}
        fields |= {"imm0": self.table & (1 << 64) - 1, "imm1": self.table >> 64}
        return command_word(self.opcode, sequence, src0=self.src, src1=self.scales, dst=self.dst, fields=fields)

    def fields(self) -> dict[str, int]:
        """Of the instruction word."""
        return INSTRUCTION.unpack(self.word(0))


class EngineBench:
    """The engine with memories around it and everything that is measured on the way."""

    def __init__(self, dut: Any, style: str = "never", moving: Iterator[bool] | None = None):
        self.bench = Bench(dut)
        self.cfg = self.bench.cfg
        self.rng = self.bench.rng
        self.style = style
        self.moving = moving  # when moving reads are refused, if not by `style`
        cfg = self.cfg
        self.sbuf = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.psum = Memory(cfg.partitions, cfg.psum.partition_bytes)
        self.program: list[Step] = []
        self.beats: list[int] = []  # cycles
        self.sums: list[int] = []
        self.dones: list[int] = []
        self.states: dict[str, int] = {}
        self.fill_memories()

    def fill_memories(self) -> None:
        """Ordinary 16-bit numbers, and a few special ones, in SBUF; ordinary FP32 numbers in PSUM."""
        shape = (self.cfg.partitions, self.cfg.sbuf.partition_bytes // 2)
        exponents = self.rng.integers(-6, 7, shape)
        numbers = np.ldexp(self.rng.uniform(-1, 1, shape), exponents)
        codes = numbers.astype(ml_dtypes.bfloat16).view(np.uint16)
        codes = np.where(self.rng.random(shape) < 0.002, self.rng.integers(0, 1 << 16, shape), codes)
        self.sbuf.bytes[:] = np.ascontiguousarray(codes.astype("<u2")).view(np.uint8)
        sums = self.rng.normal(size=(self.cfg.partitions, self.cfg.psum.partition_bytes // 4))
        self.psum.bytes[:] = np.ascontiguousarray(sums.astype("<f4")).view(np.uint8)

    async def start(self) -> None:
        """Connect the agents and reset."""
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(3)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        self.ports.add_sbuf_read("sbuf_moving", self.moving or stalls[1])
        self.ports.add_sbuf_read("sbuf_stationary", stalls[2])
        self.ports.add_psum_accumulate("psum")
        dut = self.bench.dut
        self._watched = (
            dut.first_beat,
            dut.last_sum,
            dut.queue__done,
            dut.queue__status__holds,
            dut.queue__status__state,
            dut.queue__status__draining,
        )
        self.ports.on_cycle.append(self._watch)
        await self.bench.start()
        self.ports.start()

    def _watch(self, now: int) -> None:
        beat, last, done, holds, state, draining = (int(s.value) for s in self._watched)
        if beat:
            self.beats.append(now)
        if last:
            self.sums.append(now)
        what = STATES[state] if holds else "drain" if draining else "idle"
        self.states[what] = self.states.get(what, 0) + 1
        assert (what == "busy") == bool(beat), f"cycle {now}: status says {what}, beat is {beat}"
        if done:
            self._check_done(now)

    def _check_done(self, now: int) -> None:
        number = len(self.dones)
        assert number < len(self.program), "done without an instruction"
        self.dones.append(now)
        rows = sum(s.dst.elements for s in self.program[: number + 1] if s.dst is not None)
        assert len(self.ports.committed) >= rows, (
            f"instruction {number} is done with {len(self.ports.committed)} of {rows} rows in PSUM"
        )

    async def run(self, program: list[Step]) -> None:
        """Send the program, wait for its end, compare PSUM with the golden engine's."""
        self.program = program
        golden = golden_psum(self.cfg, self.sbuf, self.psum, program)
        self.commands.send([s.word(n) for n, s in enumerate(program)])
        elements = sum(s.src.elements for s in program)
        limit = 2000 + (4 if self.style == "never" else 20) * elements + 20 * len(program)
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            assert self.ports.cycle < limit, f"{len(self.dones)} of {len(program)} instructions after {limit} cycles"
        await self.bench.cycles(array_latency(self.cfg.tensor) + 8)
        assert len(self.dones) == len(program), "an instruction was done twice"
        assert len(self.sums) == sum(s.dst.elements for s in program if s.dst is not None)
        wrong = np.argwhere(self.psum.bytes != golden.bytes)
        assert wrong.size == 0, (
            f"PSUM partition {wrong[0][0]} byte {wrong[0][1]} differs ({len(wrong)} bytes in all) after {program}"
        )

    def random_program(self, length: int) -> list[Step]:
        """Legal instructions of all shapes and kinds."""
        rng, cfg = self.rng, self.cfg
        weights = WeightKinds(cfg.tensor.rows, cfg.tensor.cols)
        steps: list[Step] = []
        last = 0  # column that the matmul before ended with: the next may not start beside it
        for _ in range(length):
            if rng.random() < 0.45:
                columns = cfg.tensor.cols if rng.random() < 0.3 else int(rng.integers(1, cfg.tensor.cols + 1))
                steps.append(self.source(Opcode.LOAD_STATIONARY, columns))
                weights.load(steps[-1].fields())
                continue
            kind = rng.random()
            most = cfg.tensor.moving_max
            columns = 1 if kind < 0.1 else most if kind < 0.25 else int(rng.integers(1, most + 1))
            if kind > 0.7:
                columns = int(rng.integers(1, 3 * MATMUL_MIN_CYCLES))
            step = self.target(self.source(Opcode.MULTIPLY_MOVING, columns))
            while not weights.agree(step.fields()):
                step = self.target(self.source(Opcode.MULTIPLY_MOVING, columns))
            dst = step.dst
            assert dst is not None
            if rng.random() < 0.2 and last:  # meets the end of the matmul before
                offset = last
                if offset + 4 * columns <= cfg.psum.partition_bytes:
                    dst = contiguous(
                        space=Space.PSUM, dtype="fp32", partitions=(0, dst.partition_count),
                        elements=columns, offset=offset,
                    )  # fmt: skip
            last = dst.offset + 4 * sum(s * (c - 1) for s, c in dst.dims)
            steps.append(replace(step, dst=dst, accumulate=bool(rng.random() < 0.6)))
        return steps

    def target(self, step: Step) -> Step:
        """The same matmul with a random destination."""
        rng, cfg = self.rng, self.cfg
        dst = random_pattern(
            rng, space=Space.PSUM, dtype="fp32", partitions=(0, int(rng.integers(1, cfg.tensor.cols + 1))),
            elements=step.src.elements, partition_bytes=cfg.psum.partition_bytes, ascending=True,
        )  # fmt: skip
        return replace(step, dst=dst)

    def source(self, opcode: Opcode, columns: int) -> Step:
        """An instruction with a random operand, plain numbers half of the time; a matmul lacks its destination."""
        kinds = [k for k in range(8) if formats_of(k, self.cfg)]
        kind = int(Kind.ONE if self.rng.random() < 0.5 else self.rng.choice(kinds))
        dtype = int(self.rng.choice(formats_of(kind, self.cfg)))
        src, scales = random_columns(self.rng, self.cfg, kind, dtype, columns)
        table = int.from_bytes(self.rng.bytes(16), "little") if by_code(dtype).name == "e2m1" else 0
        return Step(opcode, src, kind=kind, scales=scales, table=table)

    def cover(self) -> None:
        """Bins of the program that ran."""
        cfg = self.cfg
        loaded = False
        before: Step | None = None
        for s in self.program:
            COVERAGE.hit(f"{Kind(s.kind).name} {by_code(s.src.dtype).name}")
            COVERAGE.when(s.src.partition_count < cfg.tensor.rows, "some rows only")
            if s.dst is None:
                COVERAGE.when(before is not None and before.dst is None, "two loads in a row")
                loaded = True
            else:
                COVERAGE.hit("accumulate" if s.accumulate else "overwrite")
                COVERAGE.when(s.dst.partition_count < cfg.tensor.cols, "some columns only")
                COVERAGE.when(s.src.elements == 1, "one column")
                COVERAGE.when(s.src.elements == cfg.tensor.moving_max, "as many columns as allowed")
                COVERAGE.when(s.src.elements < MATMUL_MIN_CYCLES, "matmul shorter than the minimum")
                COVERAGE.when(not loaded, "matmul without a load")
                loaded = False
            before = s
        COVERAGE.when(self.ports.refusals["sbuf_moving"], "moving refused")
        COVERAGE.when(self.ports.refusals["sbuf_stationary"], "stationary refused")
        for state, name in (
            ("load", "load exposed"),
            ("fill", "fill"),
            ("drain", "drain"),
            ("sbuf", "starved by SBUF"),
        ):
            COVERAGE.when(self.states.get(state), name)


def golden_psum(cfg: Any, sbuf: Memory, psum: Memory, program: list[Step]) -> Memory:
    """PSUM after the program, from the golden array."""
    result = Memory(cfg.partitions, cfg.psum.partition_bytes)
    result.bytes[:] = psum.bytes
    state = KindsState(cfg.tensor.rows, cfg.tensor.cols)
    for s in program:
        columns = operand_columns(sbuf, s.src, s.kind, s.scales, s.table)
        if s.dst is None:
            state.load(columns, s.src.partition_start)
            continue
        sums = state.matmul(columns, s.src.partition_start)[: s.dst.partition_count]
        if s.accumulate:
            sums = add_fp32(result.read(s.dst), sums)
        result.write(s.dst, sums.astype("<u4"))
    return result


def gemm_steps(cfg: Any, tiles: int, columns: int, *, step: int = 1, load: int | None = None) -> list[Step]:
    """`tiles` times a load of the whole array (or `load` columns) and a stream of `columns`."""
    rows = (0, cfg.tensor.rows)
    loads = load or cfg.tensor.cols
    steps: list[Step] = []
    for tile in range(tiles):
        src = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=loads, offset=2 * loads * tile)
        steps.append(Step(Opcode.LOAD_STATIONARY, src))
        src = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=columns, step=step)
        dst = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, cfg.tensor.cols), elements=columns)
        steps.append(Step(Opcode.MULTIPLY_MOVING, src, dst, tile > 0))
    return steps


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_sums(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    await bench.run(bench.random_program(60 if style == "never" else 30))
    bench.cover()


@cocotb.test()
@cocotb.parametrize(step=[1, 4, 5])
async def streams_follow_each_other_without_a_gap(dut: Any, step: int) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    columns, tiles = cfg.tensor.moving_max, 6
    await bench.run(gemm_steps(cfg, tiles, columns, step=step))
    assert len(bench.beats) == tiles * columns
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == 0, f"{gaps} cycles without a beat between the first and the last"
    assert bench.sums[0] - bench.beats[0] == array_latency(cfg.tensor)
    words = {1: tiles * columns // 4, 4: tiles * columns, 5: tiles * columns}
    assert bench.ports.grants["sbuf_moving"] == words[step]
    assert bench.states.get("sbuf", 0) == 0
    assert bench.states["load"] >= cfg.tensor.cols - 8  # the first load, which nothing hides
    COVERAGE.hit("load hidden")


@cocotb.test()
async def a_load_hides_behind_a_stream_of_its_length(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    tiles = 12
    await bench.run(gemm_steps(cfg, tiles, cfg.tensor.cols))
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == 0, f"{gaps} cycles without a beat in {tiles} streams"


@cocotb.test()
async def short_matmuls_keep_their_distance(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    rows = (0, cfg.tensor.rows)
    steps = gemm_steps(cfg, 1, 3)
    for n in range(70):
        src = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=3, offset=6 * n)
        dst = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, cfg.tensor.cols), elements=3)
        steps.append(Step(Opcode.MULTIPLY_MOVING, src, dst, True))
    await bench.run(steps)
    starts = bench.beats[::3]
    assert all(b - a == MATMUL_MIN_CYCLES for a, b in zip(starts, starts[1:], strict=False)), np.diff(starts)


@cocotb.test()
async def a_refused_read_now_and_then_costs_no_bubble(dut: Any) -> None:
    bench = EngineBench(dut, moving=cycle([True, False, False, False, False]))
    await bench.start()
    cfg = bench.cfg
    columns, tiles = cfg.tensor.moving_max, 6

    await bench.run(gemm_steps(cfg, tiles, columns))
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == 0, f"{gaps} cycles without a beat"
    assert bench.ports.refusals["sbuf_moving"] > 0


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

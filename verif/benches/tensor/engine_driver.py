"""The tensor engine with memories around it, random programs for it, and what they must leave; its benches drive it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import by_code
from rtl.contract.isa import Opcode, Rounding
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS
from rtl.contract.timing import MATMUL_MIN_CYCLES, array_latency
from verif.agents.bench import Bench
from verif.agents.memory_port import MemoryPorts
from verif.agents.patterns import contiguous, random_columns, random_pattern
from verif.agents.stall import styled
from verif.agents.stream import StreamSource
from verif.agents.tags import random_tags
from verif.benches.tensor.engine_coverage import COVERAGE, NAN, OF_TILES, STATES
from verif.benches.tensor.engine_flight import Flight
from verif.benches.tensor.engine_steps import GROUPS, Step, golden_psum
from verif.golden.groups import RAW_FORMATS, WeightKinds, formats_of
from verif.golden.memory import Memory
from verif.golden.sparsity import tags_of, tags_stand
from verif.golden.tensor_instructions import turned

__all__ = ["EngineBench"]


class EngineBench:
    """The engine with memories around it and everything that is measured on the way."""

    def __init__(self, dut: Any, style: str = "never", moving: Callable[[], Iterator[bool]] | None = None):
        self.bench = Bench(dut)
        self.cfg = self.bench.cfg
        self.rng = self.bench.rng
        self.style = style
        self.moving = moving  # when moving reads are refused, if not by `style`
        cfg = self.cfg
        self.sbuf = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.psum = Memory(cfg.partitions, cfg.psum.partition_bytes)
        self.operands = Memory(cfg.partitions, cfg.sbuf.partition_bytes)  # SBUF as the program finds it
        self.program: list[Step] = []
        self.beats: list[int] = []  # cycles
        self.sums: list[int] = []
        self.turned: list[int] = []  # rows of transposes
        self.dones: list[int] = []
        self.tags: list[tuple[AccessPattern, int, int]] = []  # columns, pattern
        self.causes: dict[int, int] = {}  # of instructions that failed
        self.states: dict[str, int] = {}
        self.fill_memories()
        self.flight = Flight(cfg, self.sbuf, [])

    def fill_memories(self) -> None:
        """Ordinary 16-bit numbers, and a few special ones, in SBUF; ordinary FP32 numbers in PSUM."""
        shape = (self.cfg.partitions, self.cfg.sbuf.partition_bytes // 2)
        exponents = self.rng.integers(-6, 7, shape)
        numbers = np.ldexp(self.rng.uniform(-1, 1, shape), exponents)
        codes = numbers.astype(ml_dtypes.bfloat16).view(np.uint16)
        codes = np.where(self.rng.random(shape) < 0.002, self.rng.integers(0, 1 << 16, shape), codes)
        last = codes[:, -(codes.shape[1] // 8) :]  # NaN of all formats, with payloads
        last[:] = self.rng.integers(1, 1 << 7, last.shape) | self.rng.choice([0x7F80, 0xFF80, 0x7C00], last.shape)
        self.sbuf.bytes[:] = np.ascontiguousarray(codes.astype("<u2")).view(np.uint8)
        sums = self.rng.normal(size=(self.cfg.partitions, self.cfg.psum.partition_bytes // 4))
        self.psum.bytes[:] = np.ascontiguousarray(sums.astype("<f4")).view(np.uint8)

    async def start(self) -> None:
        """Connect the agents and reset."""
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(1 + 2 * GROUPS)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        for g in range(GROUPS):
            self.ports.add_sbuf_read(f"sbuf_moving__{g}", self.moving() if self.moving else stalls[1 + 2 * g])
            self.ports.add_sbuf_read(f"sbuf_stationary__{g}", stalls[2 + 2 * g])
            self.ports.add_psum_accumulate(f"psum__{g}")
            self.ports.add_psum_transpose(f"transposed__{g}")
        dut = self.bench.dut
        self._sums = [getattr(dut, f"psum__{g}__valid") for g in range(GROUPS)]
        self._turned = [getattr(dut, f"transposed__{g}__valid") for g in range(GROUPS)]
        self._watched = (
            dut.first_beat,
            dut.last_sum,
            dut.queue__done,
            dut.queue__status__holds,
            dut.queue__status__state,
            dut.queue__status__draining,
            dut.sbuf_moving__0__valid,
            dut.sbuf_moving__0__ready,
            self.commands.valid,
            self.commands.ready,
        )
        self.ports.on_cycle.append(self._watch)
        await self.bench.start()
        self.ports.start()

    def _watch(self, now: int) -> None:
        beat, last, done, holds, state, draining, *reads_and_commands = (int(s.value) for s in self._watched)
        asks, granted, offered, accepts = reads_and_commands
        rows = sum(int(s.value) for s in self._turned)
        self.turned += [now] * rows
        COVERAGE.when(rows and last, "rows of a transpose beside sums")
        OF_TILES.when(rows > 1, "transposes of two tiles in one cycle")
        if beat:
            self.beats.append(now)
        if last:
            leaving = sum(int(s.value) for s in self._sums)
            self.sums += [now] * leaving
            OF_TILES.when(leaving > 1, "sums of two tiles in one cycle")
            OF_TILES.when(leaving == GROUPS, "sums of all groups in one cycle")
        what = STATES[state] if holds else "drain" if draining else "idle"
        self.states[what] = self.states.get(what, 0) + 1
        assert (what == "busy") == bool(beat), f"cycle {now}: status says {what}, beat is {beat}"
        assert granted or not asks or what != "fill", f"cycle {now}: SBUF refuses a read, status says {what}"
        self.flight.check(now, holds=holds, draining=draining)
        self.flight.beats += beat
        if offered and accepts:
            self.flight.take(now)
        if done:
            self._check_done(now)

    def _check_done(self, now: int) -> None:
        number = len(self.dones)
        assert number < len(self.program), "done without an instruction"
        self.dones.append(now)
        if cause := int(self.bench.dut.queue__cause.value):
            self.causes[number] = cause
        rows = [0] * (2 * GROUPS)
        for s in self.program[: number + 1]:
            if s.dst is not None:
                rows[s.exit(self.cfg.tensor.rows) + GROUPS * s.turns] += s.dst.elements
        there = [self.ports.rows[f"{way}__{g}"] for way in ("psum", "transposed") for g in range(GROUPS)]
        assert all(a >= b for a, b in zip(there, rows, strict=True)), (
            f"instruction {number} is done with {there} of {rows} rows in PSUM"
        )
        self.flight.end(now)

    async def run(self, program: list[Step], causes: dict[int, int] | None = None) -> None:
        """Send the program, wait for its end, compare PSUM with the golden engine's; `causes`: what fails."""
        self.program = program
        golden = golden_psum(self.cfg, self.sbuf, self.psum, program)
        self.operands.bytes[:] = self.sbuf.bytes
        self.flight = Flight(self.cfg, self.sbuf, program)
        self.commands.send([s.word(n) for n, s in enumerate(program)])
        elements = sum(s.src.elements for s in program)
        limit = 2000 + (4 if self.style == "never" else 20) * elements + 20 * len(program)
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            assert self.ports.cycle < limit, f"{len(self.dones)} of {len(program)} instructions after {limit} cycles"
        await self.bench.cycles(array_latency(self.cfg.tensor) + 8)
        assert len(self.dones) == len(program), "an instruction was done twice"
        expected = self.flight.causes | (causes or {})
        wrong_causes = sorted(self.causes.items() ^ expected.items())
        assert not wrong_causes, f"told or expected, and not both: {wrong_causes}"
        for leaving, turns in ((self.sums, False), (self.turned, True)):
            assert len(leaving) == sum(s.dst.elements for s in program if s.dst is not None and s.turns == turns)
        wrong = np.argwhere(self.psum.bytes != golden.bytes)
        assert wrong.size == 0, (
            f"PSUM partition {wrong[0][0]} byte {wrong[0][1]} differs ({len(wrong)} bytes in all) after {program}"
        )

    def random_program(self, length: int) -> list[Step]:
        """Legal instructions of all shapes, kinds and tiles; sums and transposes of each row group have own banks."""
        rng, cfg = self.rng, self.cfg
        weights = WeightKinds(cfg.tensor.rows, cfg.tensor.cols, GROUPS)
        steps: list[Step] = []
        last = [0] * GROUPS  # column that the matmul before of a group ended with: the next may not start beside it
        room = cfg.psum.partition_bytes // GROUPS - cfg.psum.bank_bytes
        for _ in range(length):
            turning = self.transpose()
            if rng.random() < 0.2 and weights.taken(turning.fields()):
                steps.append(turning)
                weights.issue(turning.fields())
                continue
            if rng.random() < 0.45:
                columns = cfg.tensor.cols if rng.random() < 0.3 else int(rng.integers(1, cfg.tensor.cols + 1))
                steps.append(self.source(Opcode.LOAD_STATIONARY, columns))
                weights.issue(steps[-1].fields())
                continue
            kind = rng.random()
            most = cfg.tensor.moving_max
            columns = 1 if kind < 0.1 else most if kind < 0.25 else int(rng.integers(1, most + 1))
            if kind > 0.7:
                columns = int(rng.integers(1, 3 * MATMUL_MIN_CYCLES))
            # Half of them take up what was loaded before, or kinds with many patterns would hardly ever meet.
            before = steps[-1] if steps and steps[-1].dst is None and rng.random() < 0.5 else None
            step = self.target(self.source(Opcode.MULTIPLY_MOVING, columns, before), room)
            while not weights.agree(step.fields()):
                before = before if rng.random() < 0.9 else None
                step = self.target(self.source(Opcode.MULTIPLY_MOVING, columns, before), room)
            weights.issue(step.fields())
            dst = step.dst
            assert dst is not None
            exit_ = step.exit(cfg.tensor.rows)
            offset = last[exit_]
            if rng.random() < 0.2 and 0 < offset <= room - 4 * columns:  # meets the end of the matmul before
                dst = contiguous(
                    space=Space.PSUM, dtype="fp32", partitions=(0, dst.partition_count), elements=columns, offset=offset
                )
            last[exit_] = dst.offset + 4 * sum(s * (c - 1) for s, c in dst.dims)
            dst = replace(dst, offset=dst.offset + room * exit_)
            rounding = int(rng.choice([0, 0, 0, 1, 2]))
            seed = int(rng.integers(1 << 32)) if rounding == Rounding.STOCHASTIC else 0
            step = replace(step, rounding=rounding, seed=seed)
            steps.append(replace(step, dst=dst, accumulate=bool(rng.random() < 0.6)))
        return steps

    def transpose(self) -> Step:
        """A transpose to the banks behind all sums, where each row group has one."""
        rng, cfg = self.rng, self.cfg
        columns = cfg.tensor.cols if rng.random() < 0.3 else int(rng.integers(1, cfg.tensor.cols + 1))
        step = self.source(Opcode.TENSOR_TRANSPOSE, columns)
        dst = random_pattern(
            rng, space=Space.PSUM, dtype="fp32", partitions=(0, columns), elements=step.src.partition_count,
            partition_bytes=cfg.psum.bank_bytes,
        )  # fmt: skip
        bank = cfg.psum.banks - GROUPS + step.exit(cfg.tensor.rows)
        return replace(step, dst=replace(dst, offset=dst.offset + bank * cfg.psum.bank_bytes))

    def target(self, step: Step, room: int) -> Step:
        """The same matmul with a random destination in the first bytes of PSUM."""
        rng, cfg = self.rng, self.cfg
        dst = random_pattern(
            rng, space=Space.PSUM, dtype="fp32", partitions=(0, int(rng.integers(1, cfg.tensor.cols + 1))),
            elements=step.src.elements, partition_bytes=room, ascending=True,
        )  # fmt: skip
        return replace(step, dst=dst)

    def source(self, opcode: Opcode, columns: int, like: Step | None = None) -> Step:
        """An instruction with a random operand, plain numbers half of the time; a matmul lacks its destination. `like`:
        of the kind, on the rows and in the tile of this one."""
        rng, rows = self.rng, self.cfg.tensor.rows
        kinds = [k for k in range(8) if formats_of(k, self.cfg)]
        kind = int(Kind.ONE if rng.random() < 0.25 else rng.choice(kinds)) if like is None else like.kind
        if opcode == Opcode.TENSOR_TRANSPOSE:
            kind = int(Kind.RAW)
        dtype = int(rng.choice(RAW_FORMATS if kind == Kind.RAW else formats_of(kind, self.cfg)))
        tile = int(rng.integers(GROUPS.bit_length())) if like is None else like.tile
        sparsity = int(rng.integers(len(PATTERNS))) if kind == Kind.SPARSE else 0
        sparsity = sparsity if like is None else like.sparsity
        how = kind, dtype, columns, sparsity, opcode == Opcode.MULTIPLY_MOVING
        src, scales = random_columns(rng, self.cfg, *how)
        while src.partition_count > rows >> tile or not self.tagged(kind, sparsity, scales, columns):
            src, scales = random_columns(rng, self.cfg, *how)
        if like is not None and scales is None:
            place = like.src.partition_start, like.src.partition_count
            src = replace(src, partition_start=place[0], partition_count=place[1])
        table = int.from_bytes(rng.bytes(16), "little") if by_code(dtype).name == "e2m1" else 0
        return Step(opcode, src, kind=kind, scales=scales, table=table, tile=tile, sparsity=sparsity)

    def tagged(self, kind: int, sparsity: int, tags: AccessPattern | None, columns: int) -> bool:
        """Put right tags of a sparse operand into SBUF, unless they would spoil those that are there."""
        if kind != Kind.SPARSE or tags is None:
            return True
        before = self.sbuf.bytes.copy()
        self.sbuf.write(tags, random_tags(self.rng, sparsity, tags.partition_count, columns, wrong=0))
        every = [*self.tags, (tags, columns, sparsity)]
        if all(tags_stand(tags_of(self.sbuf, where, n), code) for where, n, code in every):
            self.tags = every
            return True
        self.sbuf.bytes[:] = before
        return False

    def cover(self) -> None:
        """Bins of the program that ran."""
        cfg = self.cfg
        loaded = False
        before: Step | None = None
        for s in self.program:
            self._cover_tile(s, before)
            if s.turns:
                self._cover_transpose(s, before)
                before = s
                continue
            COVERAGE.when(before is not None and before.turns and s.dst is None, "load after a transpose")
            COVERAGE.when(
                before is not None and before.turns and s.dst is not None, "matmul without a load after a transpose"
            )
            COVERAGE.hit(f"{Kind(s.kind).name} {by_code(s.src.dtype).name}")
            COVERAGE.when(s.src.partition_count < cfg.tensor.rows, "some rows only")
            if s.kind == Kind.SPARSE and s.dst is not None:
                COVERAGE.hit(f"sparsity {next(p.name for p in PATTERNS.values() if p.code == s.sparsity)}")
            if s.dst is None:
                COVERAGE.when(before is not None and before.dst is None, "two loads in a row")
                loaded = True
            else:
                COVERAGE.hit("accumulate" if s.accumulate else "overwrite")
                COVERAGE.hit(f"result {Rounding(s.rounding).name}")
                COVERAGE.when(s.dst.partition_count < cfg.tensor.cols, "some columns only")
                COVERAGE.when(s.src.elements == 1, "one column")
                COVERAGE.when(s.src.elements == cfg.tensor.moving_max, "as many columns as allowed")
                COVERAGE.when(s.src.elements < MATMUL_MIN_CYCLES, "matmul shorter than the minimum")
                COVERAGE.when(not loaded, "matmul without a load")
                loaded = False
            before = s
        for side in ("moving", "stationary"):
            COVERAGE.when(self.ports.refusals[f"sbuf_{side}__0"], f"{side} refused")
        for state, name in (
            ("load", "load exposed"),
            ("fill", "fill"),
            ("drain", "drain"),
            ("sbuf", "starved by SBUF"),
        ):
            COVERAGE.when(self.states.get(state), name)

    def _cover_transpose(self, s: Step, before: Step | None) -> None:
        """Bins of a transpose and the instruction before it."""
        assert s.dst is not None
        COVERAGE.hit(f"transpose {by_code(s.src.dtype).name}")
        COVERAGE.when(s.src.partition_count < self.cfg.tensor.rows, "transpose of some rows")
        COVERAGE.when(s.src.elements < self.cfg.tensor.cols, "transpose of some columns")
        words = turned(self.operands, s.src)
        COVERAGE.when(((words & 0x7FC0_0000 == 0x7F80_0000) & (words & 0x3F_FFFF != 0)).any(), NAN)
        steps = [step for step, count in s.dst.dims if count > 1]
        COVERAGE.when(any(step > 0 for step in steps), "transpose that goes up")
        COVERAGE.when(any(step < 0 for step in steps), "transpose that goes down")
        COVERAGE.when(before is not None and before.turns, "transpose twice")

    def _cover_tile(self, s: Step, before: Step | None) -> None:
        """Bins of an instruction and the one before it."""
        rows = self.cfg.tensor.rows
        OF_TILES.hit(f"{'transpose in ' * s.turns}tile {s.place(rows)} of {1 << s.tile}")
        OF_TILES.when(s.src.partition_count <= (rows >> s.tile) - rows // GROUPS, "a group without a row")
        if before is None or before.tile == s.tile:
            return
        OF_TILES.hit("tiles of two sizes in a row")
        if before.dst is None and s.dst is not None:
            OF_TILES.when(s.tile == 0, "whole array after a load of one tile")
            OF_TILES.when(before.tile == 0, "one tile after a load of the whole array")

"""The scalar engine with its memories and golden machine; what its bench drives."""

from math import gcd
from typing import Any

import numpy as np
from cocotb.triggers import RisingEdge

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.contract.isa import INSTRUCTION, Opcode, Reduce
from rtl.contract.timing import STALLS, Engine
from verif.agents.bench import Bench
from verif.agents.current import CurrentOpcode
from verif.agents.memory_port import MemoryPorts
from verif.agents.stall import styled
from verif.agents.stream import StreamSource
from verif.benches.scalar.engine_coverage import COVERAGE, cover
from verif.benches.scalar.engine_programs import Fields, Programs
from verif.benches.scalar.pair_coverage import beat
from verif.golden.memory import Memory
from verif.golden.operands import Operands, pattern_of
from verif.golden.scalar_instructions import ScalarInstructions

__all__ = ["BITS_TURNAROUND", "GAP", "TURNAROUND", "EngineBench"]


STATES = ("busy", "", *STALLS[Engine.SCALAR])
LATENCY = 16  # scalar cycles from the grant of a read to its write
TURNAROUND = LATENCY + 2  # from the last write of an instruction to the first one of one that waited for it
BITS_TURNAROUND = 2 + 2  # the same of a copy of bits, whose results take 2 cycles
GAP = {Reduce.RESET_REDUCE: 8, Reduce.REDUCE: 17}  # from the last write of a reduction to the next write


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
            self._some_numbers(memory)
        self.programs = Programs(cfg, self.rng, self.sbuf)
        self.accumulator = np.zeros(cfg.partitions, np.uint32)
        self.program: list[Fields] = []
        self.writes: list[int] = []  # of each instruction
        self.dones: list[int] = []
        self.ticks: list[int] = []
        self.states: dict[str, int] = {}
        self.trace: list[str] = []
        divisor = gcd(cfg.scalar.clock_mhz, cfg.tensor.clock_mhz)
        self.num, self.den = cfg.scalar.clock_mhz // divisor, cfg.tensor.clock_mhz // divisor

    def _some_numbers(self, memory: Memory) -> None:
        """FP32 numbers of ordinary size in half the words, some of few digits: random bits are mostly huge or tiny."""
        words = memory.bytes.view("<u4")
        numbers = self.rng.standard_normal(words[:, ::2].shape) * 3
        few = self.rng.random(numbers.shape) < 0.4
        words[:, ::2] = np.where(few, np.round(numbers * 2) / 2, numbers).astype(np.float32).view(np.uint32)

    async def start(self) -> None:
        """Connect the agents and reset."""
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(5)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        self.ports.add_sbuf_read("sbuf_read", stalls[1])
        self.ports.add_psum_read("psum_read", stalls[2])
        self.ports.add_sbuf_write("sbuf_write", stalls[3])
        self.ports.add_psum_write("psum_write", stalls[4])
        dut = self.bench.dut
        self._watched = (
            dut.tick,
            dut.queue__done,
            dut.queue__status__holds,
            dut.queue__status__state,
            dut.queue__status__draining,
        )
        self._valids = (dut.sbuf_read__valid, dut.psum_read__valid, dut.sbuf_write__valid, dut.psum_write__valid)
        self.ports.on_cycle += [self._watch, CurrentOpcode(dut, Engine.SCALAR).watch]
        await self.bench.start()
        self.ports.start()

    def _watch(self, now: int) -> None:
        tick, done, holds, state, draining = (int(s.value) for s in self._watched)
        if tick:
            self.ticks.append(now)
        else:
            assert not any(v.value == 1 for v in self._valids), f"cycle {now}: a request without a scalar edge"
        what = STATES[state] if holds else "drain" if draining else "idle"
        self.trace.append(what)
        self.states[what] = self.states.get(what, 0) + 1
        if done:
            assert tick, f"cycle {now}: done without a scalar edge"
            number = len(self.dones)
            assert number < len(self.program), "done without an instruction"
            self.dones.append(now)
            made = sum(self.writes[: number + 1])
            assert len(self.ports.written) == made, (
                f"instruction {number} is done with {len(self.ports.written)} of {made} writes made"
            )

    async def run(self, program: list[Fields]) -> None:
        """Send the program, wait for its end, compare the memories with what the golden engine leaves."""
        self.program = program
        self.writes = [
            0 if f["opcode"] == Opcode.LOAD_TABLE else pattern_of(f, "dst").elements // beat(f, self.cfg) + f["store"]
            for f in program
        ]
        sbuf = Memory(self.cfg.partitions, self.cfg.sbuf.partition_bytes)
        psum = Memory(self.cfg.partitions, self.cfg.psum.partition_bytes)
        sbuf.bytes[:] = self.sbuf.bytes
        psum.bytes[:] = self.psum.bytes
        golden = ScalarInstructions(Operands(sbuf, psum), self.cfg.scalar.table_rows)
        golden.operands.accumulator[:] = self.accumulator
        changed = [np.full(memory.bytes.shape, -1, np.int32) for memory in (sbuf, psum)]  # last by which instruction
        for n, f in enumerate(program):
            before = [memory.bytes.copy() for memory in (sbuf, psum)]
            golden.write(f, golden.read(f))
            for by, old, memory in zip(changed, before, (sbuf, psum), strict=True):
                by[old != memory.bytes] = n
        self.accumulator[:] = golden.operands.accumulator
        self.commands.send(
            INSTRUCTION.pack(f) | (n % (1 << SEQUENCE_BITS)) << INSTRUCTION.width for n, f in enumerate(program)
        )
        work = max(_cycles(f) + 60 for f in program)
        slowness = {"never": 4, "rarely": 6, "half": 20, "bursty": 20, "mostly": 60}
        limit = 2000 + slowness[self.style] * self.den * work // self.num  # from one end to the next
        ended, since = len(self.dones), self.ports.cycle
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            if len(self.dones) != ended:
                ended, since = len(self.dones), self.ports.cycle
            assert self.ports.cycle - since < limit, f"{ended} of {len(program)} ended, then none in {limit} cycles"
        ticks = len(self.ticks)
        await self.bench.cycles(80)
        assert len(self.dones) == len(program), "an instruction was done twice"
        COVERAGE.when(len(self.ticks) <= ticks + 20, "clock stands still")
        assert len(self.ticks) <= ticks + 20, "the clock runs without work"
        assert self.trace[-1] == "idle"
        for by, found, right in zip(changed, (self.sbuf, self.psum), (sbuf, psum), strict=True):
            wrong = np.argwhere(found.bytes != right.bytes)
            if wrong.size:
                p, at = min(wrong.tolist(), key=lambda w: by[tuple(w)] % len(program))
                n = by[p, at]
                text = {k: v for k, v in program[n].items() if v} if n >= 0 else "no instruction"
                name = "SBUF" if right is sbuf else "PSUM"
                raise AssertionError(
                    f"{name} partition {p} byte {at} is {found.bytes[p, at]:#x}, must be {right.bytes[p, at]:#x} "
                    f"({len(wrong)} bytes differ); {n}: {text}"
                )
        cover(program, self.cfg)
        for port in ("sbuf_read", "psum_read", "sbuf_write", "psum_write"):
            COVERAGE.when(self.ports.refusals[port], f"{port.replace('_', ' ')} refused")
        for state in ("fill", "drain", "sbuf", "psum", "unit"):
            COVERAGE.when(self.states.get(state), state)


def _cycles(f: Fields) -> int:
    """Scalar cycles of an instruction without overheads."""
    src = pattern_of(f, "src0")
    return src.elements * (src.partition_count // 2 + 1 if f["opcode"] == Opcode.LOAD_TABLE else 1)

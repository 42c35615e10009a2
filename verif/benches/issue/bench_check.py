"""Instruction checks against the golden check: legal words, near misses, noise; rate as promised."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.isa import Cause, Opcode, Queue
from verif.agents.bench import Bench, manifest
from verif.agents.stall import bursty, never
from verif.agents.stream import StreamSink, StreamSource
from verif.benches.issue.words import legal, pack, spoiled
from verif.checks.coverage import Coverage
from verif.golden.issue import check

_NEVER_HERE = {Cause.NO_ROUTE, Cause.BAD_DESCRIPTOR, Cause.BUS_ERROR, Cause.NOT_LOADED}
_OPERANDS_ONLY = {
    Cause.ILLEGAL_DTYPE,
    Cause.BAD_SPACE,
    Cause.BAD_PARTITION,
    Cause.BAD_PATTERN,
    Cause.MISALIGNED,
    Cause.OUT_OF_RANGE,
}
_WORD_BITS = 1024


def _coverage() -> Coverage:
    queue = Queue(manifest().options["queue"])
    engine = {Queue.TENSOR: (16, 17), Queue.VECTOR: (32, 33, 34, 35, 36, 43, 50)}.get(queue, ())
    causes = [c for c in Cause if c not in _NEVER_HERE and (engine or c not in _OPERANDS_ONLY)]
    causes = [c for c in causes if c != Cause.BAD_OPERATOR or queue == Queue.VECTOR]
    bins = [c.name for c in causes] + [f"legal_{Opcode(o).name}" for o in (0, 1, *engine)]
    if engine:
        bins += ["downwards", "broadcast", "several_dimensions", "at_the_end_of_memory"]
    return Coverage(f"check_{queue.name.lower()}", bins)


COVERAGE = _coverage()


class CheckBench(Bench):
    """Words in, (word, cause, address) out, compared in order."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.queue = int(self.options["queue"])
        self.source = StreamSource(self, "i")
        self.sink = StreamSink(self, "o")
        self.expected: list[tuple[int, int, int]] = []
        self.sink.on_taken = self.compare

    def add(self, fields: dict[str, int]) -> Cause:
        """One more word to check."""
        word = pack(fields)
        cause, address = check(word, self.cfg, self.queue)
        self.expected.append((word, int(cause), address))
        self.source.send([word])
        COVERAGE.hit(cause.name)
        if cause == Cause.NONE:
            COVERAGE.hit(f"legal_{Opcode(fields['opcode']).name}")
            if "src0_step0" in fields:
                used = [fields[f"src0_step{i}"] for i in range(4) if fields[f"src0_count{i}"] > 1]
                COVERAGE.when(any(s < 0 for s in used), "downwards")
                COVERAGE.when(0 in used, "broadcast")
                COVERAGE.when(len(used) > 1, "several_dimensions")
        if cause == Cause.OUT_OF_RANGE:
            COVERAGE.hit("at_the_end_of_memory")
        return cause

    def compare(self, payload: int) -> None:
        """The next result."""
        word, cause, address = self.expected[len(self.sink.taken) - 1]
        got = payload >> _WORD_BITS
        assert payload & ((1 << _WORD_BITS) - 1) == word, "the word changed on its way"
        assert (got & 0xFF, got >> 8) == (cause, address), (
            f"word {word:#x}: cause {Cause(got & 0xFF).name} at {got >> 8:#x}, not {Cause(cause).name} at {address:#x}"
        )

    async def finish(self) -> None:
        """Wait for all results."""
        for _ in range(40 * len(self.expected) + 100):
            if len(self.sink.taken) == len(self.expected):
                return
            await self.edge
        raise AssertionError(f"{len(self.sink.taken)} of {len(self.expected)} words came through")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agrees_with_the_golden_check(dut: Any) -> None:
    """Random words with random stalls on both sides."""
    bench = CheckBench(dut)
    bench.source.stall = bursty(bench.rng)
    bench.sink.stall = bursty(bench.rng)
    await bench.start()
    for n in range(1500):
        fields = legal(bench.rng, bench.cfg, bench.queue)
        bench.add(spoiled(bench.rng, bench.cfg, bench.queue) if n % 3 else fields)
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_what_breaks_one_rule(dut: Any) -> None:
    """Each rule at its edge: the last legal value and the first that is not."""
    bench = CheckBench(dut)
    await bench.start()
    rng = np.random.default_rng(7)
    for name, last, width in (
        ("op0", 0, 6), ("reduce", 0, 2), ("flags", 0, 1),
        ("header_reserved", 0, 16), ("header_pad", 0, 64), ("imm2", 0, 64),
    ):  # fmt: skip
        assert bench.add({"opcode": 0, name: last}) == Cause.NONE
        for bit in (0, width - 1):
            assert bench.add({"opcode": 0, name: 1 << bit}) == Cause.ILLEGAL_OPCODE
    for which in ("wait0", "wait1", "update"):
        for index in (0, 255, 256, 4095):
            expected = Cause.BAD_SEMAPHORE if index >= bench.cfg.issue.semaphores else Cause.NONE
            assert bench.add({"opcode": 0, which: 1, f"{which}_semaphore": index}) == expected
        bench.add({"opcode": 0, which: 3})
        bench.add({"opcode": 0, f"{which}_semaphore": 4000})  # not used, not looked at
    for ring in (0, bench.cfg.dma.rings - 1, bench.cfg.dma.rings, 16, 1 << 63):
        for count in (0, 1, (1 << 32) - 1, 1 << 32, 1 << 63):
            bench.add({"opcode": 1, "imm0": ring, "imm1": count})
    for opcode in (2, 15, 16, 17, 18, 31, 32, 33, 255):
        base = legal(rng, bench.cfg, 0 if opcode < 18 else 1, opcode if opcode in (16, 17, 32) else 0)
        bench.add(base | {"opcode": opcode})
    for opcode in {0: (16, 17), 1: (32, 33, 35, 36, 50)}.get(bench.queue, ()):
        for _ in range(40 if bench.queue == 0 else 12):
            base = legal(rng, bench.cfg, bench.queue, opcode)
            bench.add(base)
            for operand in ("src0", "src1", "dst"):
                if f"{operand}_space" not in base:
                    continue
                size = 4 if base[f"{operand}_dtype"] in (0, 11, 14) else 2
                for change in (1, 2, size, -size):
                    bench.add(base | {f"{operand}_offset": base[f"{operand}_offset"] + change})
                for field in ("partition_start", "partition_count", "dtype", "space", "count3", "count0"):
                    for change in (1, -1):
                        bench.add(base | {f"{operand}_{field}": max(0, base[f"{operand}_{field}"] + change)})
                bench.add(base | {f"{operand}_reserved": 1})
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_rate(dut: Any) -> None:
    """One instruction in 7 cycles with operands, in 2 without."""
    bench = CheckBench(dut)
    bench.source.stall = never()
    await bench.start()
    for opcode, most in ((17 if bench.queue == 0 else 32, 7), (0, 3)):
        queue_has_it = opcode == 0 or bench.queue < 2
        if not queue_has_it:
            continue
        first = len(bench.sink.taken)
        for _ in range(64):
            bench.add(legal(bench.rng, bench.cfg, bench.queue, opcode))
        cycles = 0
        while len(bench.sink.taken) < first + 64:
            await bench.edge
            cycles += 1
            assert cycles <= 64 * most + 4, f"more than {most} cycles an instruction with opcode {opcode}"
    COVERAGE.require_all()

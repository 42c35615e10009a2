"""QUANTIZE_MX in the vector engine: elements and scales in memory against the golden model, refusals, pace."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.access_pattern import AccessPattern, start_partition_rule
from rtl.contract.config import load
from rtl.contract.formats import FORMATS, MX_EMAX, by_code
from rtl.contract.isa import MX_ROWS, Opcode
from rtl.contract.memmap import Space
from verif.agents.bench import Bench, manifest
from verif.agents.patterns import contiguous
from verif.agents.stall import STYLES
from verif.bench import SEEDS, Run
from verif.benches.vector.bench_instructions import InstructionBench
from verif.benches.vector.items import OPCODES, Item
from verif.checks.coverage import Coverage
from verif.golden.memory import Memory
from verif.golden.operands import Operands
from verif.golden.quantize import RULES
from verif.golden.vector_instructions import VectorInstructions

_RATIOS = tuple(load("tiny", [f"vector.clock_mhz={mhz}"]) for mhz in (960, 1800))
"""Other than half the clock."""
_WIDE = load("tiny", ["partitions=64", "sbuf.partition_bytes=2048"])
"""Several blocks of MX elements, two groups of their scales."""
_FAULTS = (
    "every column of MX elements takes a place among the results",
    "elements of MX blocks go before their scales",
    "the first column of a pair is that of the pair before",
    "scales go to the partitions of slot 0",
    "the scales of a group come in the wrong order",
    "E2M1 codes keep the room of a byte",
)

RUNS = (
    Run("vector_engine", faults=_FAULTS),
    Run("vector_engine", config=_WIDE, seeds=SEEDS[:1], faults=("blocks outside the operand have scales too",)),
    *(Run("vector_engine", config=ratio, seeds=SEEDS[:1], regress=True) for ratio in _RATIOS),
)

SOURCES = ("bf16", "fp16")
SLOTS = range(4)
COVERAGE = Coverage(
    "vector.quantize",
    [f"{src} to {fmt} by {rule}" for src in SOURCES for fmt in MX_EMAX for rule in RULES]
    + [f"slot {slot}" for slot in SLOTS]
    + ["four columns", "many columns", "before another instruction", "behind another instruction", "read refused"]
    + ["write refused", "block with NaN or infinity", "scales of four tensors side by side"]
    + (["quadrants differ", "some blocks", "two groups of scales"] if manifest().config.partitions > 32 else []),
)
FIRST_AND_LAST = 24  # vector cycles of an instruction that are not columns


def mx_item(
    partitions: tuple[int, int], columns: int, src: str, fmt: str, places: tuple[int, int, int], slot: int, rule: int,
    source_start: int | None = None,
) -> Item:  # fmt: skip
    """An instruction; `places`: bytes of source, elements and scales."""
    start, count = partitions
    source = contiguous(
        space=Space.SBUF, dtype=src, partitions=(start if source_start is None else source_start, count),
        elements=4 * columns, offset=places[0],
    )  # fmt: skip
    target = AccessPattern(
        space=Space.SBUF, dtype=FORMATS[fmt].code, partition_start=start, partition_count=count, offset=places[1],
        dims=((1, columns),),
    )  # fmt: skip
    return Item(Opcode.QUANTIZE_MX, target, source, None, {"imm0": places[2] | slot << 24 | rule << 26})


class QuantizeBench(InstructionBench):
    """The engine with memories around it, all of SBUF small numbers of 16 bits with some special ones."""

    def __init__(self, dut: Any, style: str = "never"):
        super().__init__(dut, style)
        halves = self.sbuf.bytes.view(np.uint16)
        base = self.rng.integers(0x2000, 0x5000, (halves.shape[0], halves.shape[1] // 16))
        near = np.repeat(base, 16, axis=1) - self.rng.integers(0, 0x1000, halves.shape)
        wild = self.rng.random(halves.shape) < 0.01
        codes = np.where(
            wild, self.rng.integers(0, 1 << 16, halves.shape), near | self.rng.integers(0, 2, halves.shape) << 15
        )
        halves[:] = codes.astype(np.uint16)

    def item(self) -> Item:
        """A random legal instruction: three thirds of SBUF hold its source, elements and scales, in any order."""
        rng, cfg = self.rng, self.cfg
        third = cfg.sbuf.partition_bytes // 24 * 8
        columns = 4 * int(rng.choice([1, int(rng.integers(1, 8)), third // 32]))
        total = cfg.partitions
        count = MX_ROWS * int(rng.integers(1, total // MX_ROWS + 1))
        starts = [s for s in range(0, total, MX_ROWS) if s + count <= total and start_partition_rule(s, count, total)]
        fmt = str(rng.choice(list(MX_EMAX)))
        spans = (8 * columns, (2 if fmt == "e2m1" else 4) * columns, columns)
        order = rng.permutation(3)
        steps = (8, 4 if fmt == "e2m1" else 8, 4)
        places = [0, 0, 0]
        for i in range(3):
            most = (third - spans[i]) // steps[i]
            places[i] = third * int(order[i]) + steps[i] * int(rng.integers(most + 1))
        item = mx_item(
            (int(rng.choice(starts)), count), columns, str(rng.choice(SOURCES)), fmt, (places[0], places[1], places[2]),
            int(rng.integers(4)), int(rng.integers(2)), int(rng.choice(starts)),
        )  # fmt: skip
        return item

    def note(self, program: list[Item]) -> None:
        """Bins of a program that ran."""
        before = None
        for item in program:
            if item.opcode == Opcode.QUANTIZE_MX:
                assert item.src0 is not None
                imm = item.fields["imm0"]
                COVERAGE.hit(
                    f"{by_code(item.src0.dtype).name} to {by_code(item.dst.dtype).name} by {RULES[imm >> 26 & 1]}"
                )
                COVERAGE.hit(f"slot {imm >> 24 & 3}")
                if self.cfg.partitions > 32:
                    COVERAGE.when(item.src0.partition_start != item.dst.partition_start, "quadrants differ")
                    COVERAGE.when(item.dst.partition_count < self.cfg.partitions, "some blocks")
                    COVERAGE.when(item.dst.partition_count > 32, "two groups of scales")
                COVERAGE.when(item.dst.elements == 4, "four columns")
                COVERAGE.when(item.dst.elements > 64, "many columns")
                COVERAGE.when(before not in (None, Opcode.QUANTIZE_MX), "behind another instruction")
            else:
                COVERAGE.when(before == Opcode.QUANTIZE_MX, "before another instruction")
            before = item.opcode
        for port, name in (("sbuf_read", "read refused"), ("sbuf_write", "write refused")):
            COVERAGE.when(self.ports.refusals[port], name)

    def golden(self, program: list[Item]) -> Memory:
        """SBUF after the program."""
        sbuf, psum = (Memory(*m.bytes.shape) for m in (self.sbuf, self.psum))
        sbuf.bytes[:], psum.bytes[:] = self.sbuf.bytes, self.psum.bytes
        engine = VectorInstructions(Operands(sbuf, psum), self.cfg.partitions)
        for item in program:
            stored = engine.read(item.decoded)
            if stored.scales is not None:
                COVERAGE.when((stored.scales == 0xFF).any(), "block with NaN or infinity")
            engine.write(item.decoded, stored)
        return sbuf


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_bytes(dut: Any, style: str) -> None:
    """QUANTIZE_MX alone and between other instructions, under every style of refusals."""
    bench = QuantizeBench(dut, style)
    await bench.start()
    program: list[Item] = [bench.everyone_sums()]
    for _ in range(28 if style == "never" else 12):
        program.append(bench.item())
        if bench.rng.random() < 0.3:
            program.append(bench.items.item(OPCODES[int(bench.rng.integers(len(OPCODES)))]))
    bench.golden(program)
    await bench.run(program)
    bench.note(program)


@cocotb.test()
@cocotb.parametrize(style=("half", "mostly"))
async def all_is_in_memory_when_it_is_done(dut: Any, style: str) -> None:
    """In the cycle of `done` the last scales have been written, however long the write port was refused."""
    bench = QuantizeBench(dut, style)
    await bench.start()
    for columns in (4, 8, 64):
        item = mx_item((0, bench.cfg.partitions), columns, "bf16", "e4m3fn", (0, 512, 768), 1, 0)
        wanted = bench.golden([item]).bytes.copy()
        before = len(bench.dones)
        seen: list[np.ndarray] = []

        def look(now: int, before: int = before, seen: list[np.ndarray] = seen) -> None:
            if len(bench.dones) > before and not seen:
                seen.append(bench.sbuf.bytes.copy())

        bench.ports.on_cycle.append(look)
        bench.commands.send([item.word(0)])
        while not seen:
            await bench.bench.edge
        bench.ports.on_cycle.remove(look)
        assert np.array_equal(seen[0], wanted), f"{columns} columns: done before all was written"
        await bench.bench.cycles(20)
    bench.note([])


@cocotb.test()
async def four_tensors_share_a_tile_of_scales(dut: Any) -> None:
    """Slots 0 to 3 at one place: each leaves the others' scales alone."""
    bench = QuantizeBench(dut)
    await bench.start()
    program = [
        mx_item((0, bench.cfg.partitions), 16, "bf16", "e5m2", (128 * slot, 512 + 64 * slot, 768), slot, 0)
        for slot in SLOTS
    ]
    await bench.run(program)
    bench.note(program)
    COVERAGE.hit("scales of four tensors side by side")


@cocotb.test()
@cocotb.parametrize(fmt=tuple(MX_EMAX))
async def keeps_four_elements_a_cycle(dut: Any, fmt: str) -> None:
    """Long rows: at least 0.95 of four elements a partition a vector cycle, overheads included."""
    bench = QuantizeBench(dut)
    await bench.start()
    columns = bench.cfg.sbuf.partition_bytes // 32 * 2
    columns -= columns % 4
    end = 8 * columns
    item = mx_item((0, bench.cfg.partitions), columns, "bf16", fmt, (0, end, end + 4 * columns), 0, 0)
    await bench.run([item, item, item])
    gap = bench.dones[2] - bench.dones[1]
    dut._log.info(f"{fmt}: {columns} columns in {gap} vector cycles, {4 * columns / gap:.3f} elements a cycle")
    assert gap <= columns + FIRST_AND_LAST, f"{gap} vector cycles for {columns} columns"
    assert columns < 480 or 4 * columns / gap >= 0.95 * 4


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    Bench(dut)
    COVERAGE.require_all()

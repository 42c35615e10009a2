"""Scalar engine: programs of activations and table loads against the golden machine's, its pace, what it reports."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.isa import AluOp, Function, Opcode, Reduce
from rtl.contract.memmap import Space
from verif.agents.patterns import contiguous
from verif.agents.stall import STYLES
from verif.bench import SEEDS, Run, noticed_by
from verif.benches.scalar.engine_coverage import COVERAGE
from verif.benches.scalar.engine_driver import GAP, TURNAROUND, EngineBench
from verif.benches.scalar.engine_programs import Fields, instruction
from verif.golden.operands import pattern_of

_HAZARDS = (
    "the scalar engine's read of SBUF does not wait for the writes before it",
    "the scalar engine's read of PSUM does not wait for the writes before it",
)
"""Only a read close behind a write shows them: the whole bench, for one program may hold none."""

_PLANTED = (
    "read data are not held until the engine's edge",
    "requests are made between the engine's edges too",
    "done lasts until the engine's next edge",
    "the stride of a pattern's second dimension is forgotten",
    "the last element of a pattern with more than one dimension is left out",
    "an element's place in the word is that of the scalar engine's next request",
    "elements follow a reduction before it is through",
    "columns of the scalar engine are not awaited",
    "words of a table are read before there is room",
    "the counters take the load of a table for an activation",
    "the first pair of every column is left out",
    "addresses are those of the partition above",
    "every element is the first of its partial result",
    "b takes the place of the accumulator",
    "a new reduction goes on from the accumulator",
    "quadrants are not rotated in the scalar engine",
    "bytes are picked from their half word",
    "the accumulator of partitions outside the instruction changes",
    "the function is that of the instruction behind",
    "an 8-bit element is written over its neighbour as well",
    "a 16-bit element is written over its neighbour as well",
    "done does not wait for the memory to take the last element",
    "partitions outside the destination are written too",
    "the accumulator goes where the last element went",
    "the first operation of a scalar lane is not reversed",
    "a difference is a sum in a scalar lane",
    "the column of the second operation is that of the first",
    "a scalar lane leaves out the accumulator",
    "subnormal results of an activation become zero",
    "the second coefficient of an activation is left out",
    "partial results go on from the group before",
    "the tree leaves out the last pair",
    "a conversion rounds ties up instead of to even",
    "signed integers are read as unsigned ones",
)

RUNS = (
    Run("scalar_engine", faults=(*_HAZARDS, *noticed_by("a_program_of_everything", *_PLANTED))),  # at half the clock
    *(
        Run("scalar_engine", config=load("tiny", [f"scalar.clock_mhz={mhz}"]), seeds=SEEDS[:1], regress=True)
        for mhz in (960, 1800)
    ),
)


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_bytes(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    await bench.run(bench.programs.random(120 if style == "never" else 32))


@cocotb.test()
async def tables_give_their_functions(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    load = bench.programs.load(["sqrt", "reciprocal"])
    await bench.run([load, *bench.programs.random(40, (Function.SQRT, Function.RECIPROCAL))])
    COVERAGE.hit("a table of its own")


@cocotb.test()
@cocotb.parametrize(style=["never", "half"])
async def random_cubics_are_looked_up(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    first = bench.programs.load(partitions=bench.cfg.partitions if style == "never" else 4)
    before = bench.programs.random(3)
    await bench.run([*before, first, *bench.programs.random(25, (Function.SIGMOID,))])
    COVERAGE.hit("a table of random cubics")
    if style == "never":
        done = len(bench.dones)
        second = bench.programs.load(first=0)  # what a loader that does not stop would write over
        bench.dones.clear()
        bench.ports.written.clear()
        await bench.run([second, *bench.programs.random(25, (Function.SIGMOID,))])
        assert done and bench.dones
        COVERAGE.hit("a table over another")


@cocotb.test()
async def a_program_of_everything(dut: Any) -> None:
    """The one that planted faults must not pass."""
    bench = EngineBench(dut, "rarely")
    await bench.start()
    everyone = (0, bench.cfg.partitions)
    end = bench.cfg.sbuf.partition_bytes - 256  # nothing random comes here
    ties = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=16, offset=end)
    bench.sbuf.write(ties, np.tile(np.arange(-7.5, 8, dtype=np.float32).view(np.uint32), (everyone[1], 1)))
    narrow = contiguous(space=Space.SBUF, dtype="int8", partitions=everyone, elements=16, offset=end + 64)
    closely = [
        instruction(
            Opcode.ACTIVATION,
            src0=contiguous(space=Space.PSUM, dtype="fp32", partitions=everyone, elements=5),
            dst=contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=5, offset=end + 128 + 20 * n),
            imm2=function << 32,
        )
        for n, function in enumerate((Function.SQUARE, Function.COPY, Function.SIGN))
    ]
    program = [*bench.programs.random(2), bench.programs.load(), *bench.programs.random(80, (Function.SIGMOID,))]
    sums = {"reduce": Reduce.RESET_REDUCE, "store": 1, "imm2": AluOp.ADD << 40 | end + 192}
    program += [instruction(Opcode.ACTIVATION, src0=ties, dst=narrow, **sums), *closely]
    await bench.run([*program, *_reductions(bench, Reduce.REDUCE, 12, store=1)])
    # large numbers, whose reciprocals are subnormal
    bench.dones.clear()
    bench.ports.written.clear()
    bench.sbuf.write(ties, np.full((everyone[1], 16), 0x7F123456, np.uint32))
    target = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=16, offset=end + 128)
    one = instruction(Opcode.ACTIVATION, src0=ties, dst=target, imm2=Function.RECIPROCAL << 32)
    await bench.run([bench.programs.load(["reciprocal"]), one])


@cocotb.test()
@cocotb.parametrize(space=[Space.PSUM, Space.SBUF], dtype=["fp32", "bf16", "uint8"])
async def activations_one_element_a_scalar_cycle(dut: Any, space: Space, dtype: str) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    everyone = (0, cfg.partitions)
    elements, instructions = 99, 4  # an odd number: one by one in any format
    src = contiguous(
        space=space, dtype="fp32" if space == Space.PSUM else dtype, partitions=everyone, elements=elements
    )
    program = [
        instruction(
            Opcode.ACTIVATION,
            src0=src,
            dst=contiguous(
                space=Space.SBUF, dtype=dtype, partitions=everyone, elements=elements, offset=4 * elements * (n + 1)
            ),
            op0=AluOp.MULTIPLY,
            imm0=0x40000000,
            imm2=Function.SQUARE << 32,
        )
        for n in range(instructions)
    ]
    await bench.run(program)
    busy = bench.states["busy"]
    exact = instructions * elements * bench.den / bench.num
    assert abs(busy - exact) <= instructions * 2, f"busy for {busy} cycles, {exact} expected"
    gaps, ends = _gaps(bench, elements)
    assert (np.delete(gaps, ends) == 1).all(), "a bubble inside an activation"
    right = 1 if space == Space.PSUM else TURNAROUND
    assert (gaps[ends] == right).all(), f"{gaps[ends]} scalar cycles between two activations"
    assert set(bench.states) <= {"idle", "busy", "fill", "drain"}


@cocotb.test()
@cocotb.parametrize(reduce=[Reduce.RESET_REDUCE, Reduce.REDUCE], store=[0, 1])
async def reductions_end_in_time(dut: Any, reduce: Reduce, store: int) -> None:
    bench = EngineBench(dut)
    await bench.start()
    elements = 20
    program = _reductions(bench, reduce, elements, store)
    await bench.run(program)
    if not store:
        gaps, ends = _gaps(bench, elements)
        assert (np.delete(gaps, ends) == 1).all(), "a bubble inside a reduction"
        assert (gaps[ends] == GAP[reduce]).all(), f"{gaps[ends]} scalar cycles between two reductions"
    assert bench.states["unit"] > 0


@cocotb.test()
async def a_table_is_loaded_at_a_word_a_cycle(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    load = bench.programs.load(["selu"])
    await bench.run([load])
    src = pattern_of(load, "src0")
    pairs = src.elements * src.partition_count // 2
    took = len(bench.ticks)
    assert took == pairs + 4, f"{took} scalar cycles for {pairs} words"
    assert bench.states["busy"] > 0 and bench.states["unit"] > 0


@cocotb.test()
async def moves_any_quadrant_to_any(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    quarter = bench.cfg.partitions // 4
    program = []
    for a in range(4):
        for b in range(4):
            src = contiguous(space=Space.PSUM, dtype="fp32", partitions=(a * quarter, quarter), elements=3)
            dst = contiguous(
                space=Space.SBUF, dtype="fp32", partitions=(b * quarter, quarter), elements=3,
                offset=16 * (4 * a + b),
            )  # fmt: skip
            fields = {"op0": AluOp.ADD, "column0": 1, "imm0": 2048 + 4 * a, "reduce": Reduce.LOAD_REDUCE}
            place = 3072 + 4 * (4 * a + b)
            more = {"column1": 1, "imm1": 2080, "store": 1, "imm2": AluOp.MAX << 40 | place}
            program.append(instruction(Opcode.ACTIVATION, src0=src, dst=dst, **fields, **more))
    await bench.run(program)


def _reductions(bench: EngineBench, reduce: Reduce, elements: int, store: int) -> list[Fields]:
    """Four that follow each other as closely as reductions can."""
    everyone = (0, bench.cfg.partitions)
    return [
        instruction(
            Opcode.ACTIVATION,
            src0=contiguous(space=Space.PSUM, dtype="fp32", partitions=everyone, elements=elements),
            dst=contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=elements, offset=64 * n),
            reduce=reduce,
            store=store,
            imm2=AluOp.ADD << 40 | (2048 + 4 * n if store else 0),
        )
        for n in range(4)
    ]


def _gaps(bench: EngineBench, elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Scalar cycles between neighbouring writes, and which of them lie between instructions."""
    gaps = np.diff(np.searchsorted(bench.ticks, bench.ports.written))
    return gaps, np.arange(elements - 1, len(gaps), elements)


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

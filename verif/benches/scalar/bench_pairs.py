"""Scalar engine: two elements a lane a cycle, copies of bits, NaNs that keep theirs."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from rtl.contract.isa import AluOp, Function, Opcode, Reduce
from rtl.contract.memmap import Space
from verif.agents.patterns import contiguous
from verif.bench import Run, noticed_by
from verif.benches.scalar.engine_driver import BITS_TURNAROUND, TURNAROUND, EngineBench
from verif.benches.scalar.engine_programs import SMALL, Fields, instruction
from verif.benches.scalar.pair_coverage import PAIR_COVERAGE

_PLANTED = (
    "the second element of a pair begins where the first one does",
    "a pair of bytes leaves as half words",
    "the second slots stop with the last pair that enters",
    "neighbours go in pairs from any byte on",
    "a copy of bits overtakes the results of the activation in front of it",
    "an affine instruction makes every NaN canonical",
)

RUNS = (Run("scalar_engine", faults=noticed_by("pairs_of_every_kind", *_PLANTED)),)

_COUNT = 96


def _pairs(bench: EngineBench, opcode: Opcode, n: int, elements: int = _COUNT, **fields: int) -> Fields:
    """BF16 to BF16 in SBUF, the nth destination."""
    everyone = (0, bench.cfg.partitions)
    src, dst = (
        contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=elements, offset=2 * elements * place)
        for place in (0, n + 1)
    )
    return instruction(opcode, src0=src, dst=dst, **fields)


@cocotb.test()
async def pairs_of_every_kind(dut: Any) -> None:
    """Planted faults must not pass it: what goes two at a time, what must not, copies of bits behind other results."""
    bench = EngineBench(dut, "rarely")
    await bench.start()
    everyone = (0, bench.cfg.partitions)
    numbers = np.array([0x7F812345, 0xFFC00001, 0x7F800000, 0x3F800000], np.uint32)
    at = bench.cfg.sbuf.partition_bytes - 64  # nothing random comes here
    nans = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=4, offset=at)
    bench.sbuf.write(nans, np.tile(numbers, (everyone[1], 1)))
    passed = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=4, offset=at + 16)
    psum = contiguous(space=Space.PSUM, dtype="fp32", partitions=everyone, elements=3)
    targets = [
        contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=3, offset=at + 32 + 16 * n)
        for n in range(2)
    ]
    closely = [
        instruction(Opcode.ACTIVATION, src0=psum, dst=targets[0], imm2=Function.SQUARE << 32),
        instruction(Opcode.SCALAR_COPY, src0=psum, dst=targets[1]),
        instruction(Opcode.SCALAR_COPY, src0=psum, dst=targets[0]),
    ]
    program = [instruction(Opcode.SCALAR_AFFINE, src0=nans, dst=passed), *closely]
    program += [
        _pairs(bench, opcode, n, elements, **fields)
        for n, (opcode, elements, fields) in enumerate(
            (
                (Opcode.ACTIVATION, 2, {"imm2": Function.SQUARE << 32}),
                (Opcode.SCALAR_COPY, 6, {}),
                (Opcode.SCALAR_AFFINE, 5, {"op0": AluOp.ADD, "imm0": 0x3F800000}),
                (Opcode.ACTIVATION, 8, {"reduce": Reduce.RESET_REDUCE, "imm2": AluOp.MAX << 40}),
            )
        )
    ]
    await bench.run([*program, *bench.programs.random(30)])
    found = bench.sbuf.read(passed)
    assert (found == numbers).all(), "a NaN that only passes lost its bits"
    PAIR_COVERAGE.hit("NaN with all its bits")


@cocotb.test()
async def pairs_of_every_format(dut: Any) -> None:
    """Random codes of each to each, in two rows, through a table, scaled by columns, beside copies and scale alone."""
    bench = EngineBench(dut, "rarely")
    await bench.start()
    rng, everyone = bench.rng, (0, bench.cfg.partitions)
    program = [bench.programs.load(["reciprocal"])]
    for n, (a, b) in enumerate((a, b) for a in SMALL for b in SMALL):
        elements = int(rng.choice([2, 6, 8]))
        src, dst = (
            replace(
                contiguous(space=Space.SBUF, dtype=name, partitions=everyone, elements=elements, offset=16 * place),
                dims=((1, 2), (2 * int(rng.integers(1, 3)), elements // 2)),
            )
            for name, place in ((a, int(rng.integers(16))), (b, 40 + n))
        )
        column = {"op0": AluOp.MULTIPLY, "column0": 1, "imm0": 16 * (40 + int(rng.integers(40)))}
        opcode, fields = (
            (Opcode.ACTIVATION, column | {"imm2": Function.RECIPROCAL << 32}),
            (Opcode.SCALAR_COPY, {}),
            (Opcode.SCALAR_AFFINE, column | {"op1": AluOp.SUBTRACT, "imm1": 0x3F800000}),
        )[n % 3]
        program.append(instruction(opcode, src0=src, dst=dst, **fields))
    await bench.run(program)


@cocotb.test()
@cocotb.parametrize(dtype=["bf16", "fp16", "e4m3fn", "e5m2"])
async def every_code_is_copied(dut: Any, dtype: str) -> None:
    """Bit for bit, those of NaNs too."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    bits = 16 if dtype in ("bf16", "fp16") else 8
    codes = np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)
    room = cfg.sbuf.partition_bytes // 2 * 8 // bits
    each = min(room, len(codes) // cfg.partitions)
    rows = np.lib.stride_tricks.sliding_window_view(codes, each)
    for first in range(0, len(codes), each * cfg.partitions):
        wanted = rows[first : first + each * cfg.partitions : each]
        src, dst = (
            contiguous(
                space=Space.SBUF, dtype=dtype, partitions=(0, cfg.partitions), elements=each,
                offset=place * cfg.sbuf.partition_bytes // 2,
            )
            for place in range(2)
        )  # fmt: skip
        bench.sbuf.write(src, wanted)
        bench.dones.clear()
        bench.ports.written.clear()
        await bench.run([instruction(Opcode.SCALAR_COPY, src0=src, dst=dst)])
        assert (bench.sbuf.read(dst) == wanted).all()
    PAIR_COVERAGE.hit(f"every code of {bits} bits copied")


@cocotb.test()
@cocotb.parametrize(opcode=[Opcode.ACTIVATION, Opcode.SCALAR_COPY, Opcode.SCALAR_AFFINE])
async def two_elements_a_scalar_cycle(dut: Any, opcode: Opcode) -> None:
    """BF16 to BF16: a pair is written in each scalar cycle, from the first to the last of an instruction."""
    bench = EngineBench(dut)
    await bench.start()
    instructions = 4
    fields = {
        Opcode.ACTIVATION: {"op0": AluOp.MULTIPLY, "imm0": 0x40000000, "imm2": Function.SQUARE << 32},
        Opcode.SCALAR_COPY: {},
        Opcode.SCALAR_AFFINE: {"op0": AluOp.SUBTRACT, "imm0": 0x40000000, "op1": AluOp.ADD, "imm1": 0x3F800000},
    }[opcode]
    await bench.run([_pairs(bench, opcode, n, **fields) for n in range(instructions)])
    beats = _COUNT // 2
    assert len(bench.ports.written) == instructions * beats
    gaps = np.diff(np.searchsorted(bench.ticks, bench.ports.written))
    ends = np.arange(beats - 1, len(gaps), beats)
    assert (np.delete(gaps, ends) == 1).all(), "a bubble inside an instruction"
    right = BITS_TURNAROUND if opcode == Opcode.SCALAR_COPY else TURNAROUND
    assert (gaps[ends] == right).all(), f"{gaps[ends]} scalar cycles between two instructions, not {right}"
    exact = instructions * beats * bench.den / bench.num
    assert abs(bench.states["busy"] - exact) <= 2 * instructions
    PAIR_COVERAGE.hit("two a cycle")


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    PAIR_COVERAGE.require_all()

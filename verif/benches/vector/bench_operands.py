"""Vector engine: every bit of every operand reaches every element of a beat, and beats are as wide as operands let."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from rtl.contract.isa import AluOp, Opcode
from rtl.contract.memmap import Space
from rtl.contract.rates import width
from verif.agents.patterns import contiguous
from verif.bench import Run
from verif.benches.vector.bench_instructions import InstructionBench
from verif.benches.vector.items import Item

RUNS = (Run("vector_engine"),)


@cocotb.test()
@cocotb.parametrize(number=[0, 1])
async def every_bit_of_a_column_reaches_every_element(dut: Any, number: int) -> None:
    """Numbers rounded to BF16, less the same with all their bits: what is left over are the low bits, as integers."""
    bench = InstructionBench(dut)
    await bench.start()
    everyone, n = (0, bench.cfg.partitions), 4
    program = []
    for k in range(16):
        column = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=1, offset=4 * k)
        source, target = (
            contiguous(space=Space.SBUF, dtype=dtype, partitions=everyone, elements=n, offset=at + 2 * n * k)
            for dtype, at in (("bf16", 256), ("int16", 512))
        )
        codes = bench.rng.integers(1 << 23, 1 << 24, (everyone[1], 1)).astype(np.float32).view(np.uint32)
        bench.sbuf.write(column, codes)
        bench.sbuf.write(source, np.repeat((codes + 0x8000) >> 16, n, axis=1).astype(np.uint16))
        fields = {f"column{number}": 1, f"imm{number}": 4 * k, f"op{number}": int(AluOp.SUBTRACT)}
        program.append(Item(Opcode.TENSOR_SCALAR, target, source, None, fields))
        assert width(Opcode.TENSOR_SCALAR, bench.cfg, source, None, target) == n
    await bench.run(program)


@cocotb.test()
@cocotb.parametrize(first=[Space.SBUF, Space.PSUM])
async def every_bit_of_the_other_source_counts(dut: Any, first: Space) -> None:
    """Ones times numbers that are read with them from the other memory, between all quadrants."""
    bench = InstructionBench(dut)
    await bench.start()
    quarter, n = bench.cfg.partitions // 4, 24
    spaces = first, Space.PSUM if first == Space.SBUF else Space.SBUF
    everyone = contiguous(space=first, dtype="fp32", partitions=(0, bench.cfg.partitions), elements=n)
    memory = bench.sbuf if first == Space.SBUF else bench.psum
    memory.write(everyone, np.full((bench.cfg.partitions, n), 0x3F800000, np.uint32))
    program = []
    for place in range(16):
        to, of = (q * quarter for q in divmod(place, 4))
        ones, numbers = (
            contiguous(space=space, dtype="fp32", partitions=(of, quarter), elements=n, offset=at)
            for space, at in zip(spaces, (0, 256), strict=True)
        )
        target = contiguous(
            space=Space.SBUF, dtype="fp32", partitions=(to, quarter), elements=n, offset=512 + 4 * n * (place % 4)
        )
        program.append(Item(Opcode.TENSOR_TENSOR, target, ones, numbers, {"op0": int(AluOp.MULTIPLY)}))
    await bench.run(program)


@cocotb.test()
@cocotb.parametrize(odd=["source", "second", "target"])
async def as_many_go_at_once_as_the_least_operand_lets(dut: Any, odd: str) -> None:
    """Two operands of neighbours, aligned, and one whose place, steps or counts are not."""
    bench = InstructionBench(dut)
    await bench.start()
    row = ((1, 8),)
    ways = (
        (0, row),
        (2, row),
        (4, row),
        (0, ((2, 8),)),
        (14, ((-1, 8),)),
        (0, ((1, 4), (5, 2))),
        (0, ((1, 4), (6, 2))),
    )
    ways += ((0, ((1, 2), (3, 4))), (0, ((1, 2), (2, 4))), (0, ((1, 1), (4, 8))))
    program = []
    for n, (at, dims) in enumerate(ways):
        operands = {
            name: replace(
                contiguous(space=Space.SBUF, dtype="bf16", partitions=(0, bench.cfg.partitions), elements=8),
                offset=512 * k + 64 * n % 512 + at * (name == odd),
                dims=dims if name == odd else row,
            )
            for k, name in enumerate(("source", "second", "target"))
        }
        item = Item(Opcode.TENSOR_TENSOR, operands["target"], operands["source"], operands["second"])
        program.append(replace(item, fields={"op0": int(AluOp.ADD)}))
    await bench.run(program)

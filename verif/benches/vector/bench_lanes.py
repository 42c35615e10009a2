"""Lanes in C++ and the loops of Verilog that they replace in a model that runs long: any inputs, every output."""

from typing import Any

import cocotb
import numpy as np

from verif.agents.bench import Bench
from verif.bench import Run
from verif.checks.coverage import Coverage

_OF_BOTH = (
    "a sum rounds ties up, not to even",
    "bits shifted out by alignment are forgotten",
    "a subnormal product becomes zero",
    "NaN payloads survive in FP32",
    "signed integers are read as unsigned ones",
    "negative integers beyond the range wrap",
    "numbers beyond a format saturate although nobody asked for it",
    "the tree leaves out the last pair",
    "the larger of two zeros is the first",
)
_OF_VECTOR = (
    "GE and LE of the ALU are true for NaN",
    "exp rounds down ties and all above them",
    "the last entry of the table of exp is the one before it",
    "a shift to the right copies the sign",
    "a scan begins anew with every element",
    "the second operator is left out",
)
_OF_SCALAR = (
    "numbers beyond the last row of a binade are looked up behind it",
    "t of an activation keeps the leading bits",
    "the second coefficient of an activation is left out",
    "the column of the second operation is that of the first",
    "a scalar lane leaves out the accumulator",
    "a pair of bytes leaves as half words",
)

RUNS = (
    Run("lanes_lockstep", options={"kind": "vector"}, faults=(*_OF_BOTH, *_OF_VECTOR)),
    Run("lanes_lockstep", options={"kind": "scalar"}, faults=(*_OF_BOTH, *_OF_SCALAR)),
)

COVERAGE = Coverage("lanes lockstep", ["clocks stand still", "reset in a run", "controls hold", "outputs change"])
_SPECIAL = np.array(
    [0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001]
    + [0x4B000000, 0x4F000000, 0xCF000000, 0x3F000000, 0x80008000, 0x7C007C00, 0x7F7F7F7F],
    np.uint32,
)


def _any_bits(rng: np.random.Generator, bits: int) -> int:
    return int.from_bytes(rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1


def _numbers(rng: np.random.Generator, bits: int) -> int:
    """Words of 32 bits: any, of few bits, near one another, or special ones."""
    words = rng.integers(1 << 32, size=-(-bits // 32), dtype=np.uint32)
    kind = rng.integers(5, size=len(words))
    words[kind == 1] = rng.choice(_SPECIAL, len(words))[kind == 1]
    words[kind == 2] = (words & 0x807FFFFF | 0x3F800000)[kind == 2]
    words[kind == 3] = (1 << (words & 31) | words & 0x80000000)[kind == 3]
    return int.from_bytes(words.astype("<u4").tobytes(), "little") & (1 << bits) - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(hold=(1, 2, 8, 30))
async def outputs_are_those_of_the_loops(dut: Any, hold: int) -> None:
    """Random numbers and controls; these stay for up to `hold` cycles, so that what takes some can come to its end."""
    bench = Bench(dut)
    rng = bench.rng
    dut.enables.value = (1 << len(dut.enables)) - 1
    dut.shared.value = dut.each.value = 0
    await bench.start()
    begin = int(dut.changes.value)
    left = 0
    for cycle in range(7000):
        if left == 0:
            dut.shared.value = _any_bits(rng, len(dut.shared))
            left = int(rng.integers(1, hold + 1))
            COVERAGE.when(left > 4, "controls hold")
        left -= 1
        dut.each.value = _numbers(rng, len(dut.each))
        still = rng.random() < 0.1
        dut.enables.value = _any_bits(rng, len(dut.enables)) if still else (1 << len(dut.enables)) - 1
        COVERAGE.when(still, "clocks stand still")
        dut.rst.value = int(rng.random() < 0.005)
        COVERAGE.when(dut.rst.value == 1, "reset in a run")
        await bench.edge
        assert dut.mismatches.value == 0, f"the lanes differ in cycle {cycle}"
    dut.rst.value = 0
    assert int(dut.changes.value) - begin > 2000, "the outputs hardly change, so little was compared"
    COVERAGE.hit("outputs change")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def all_was_covered(dut: Any) -> None:
    """Of what the tests before this one did."""
    await Bench(dut).start()
    COVERAGE.require_all()

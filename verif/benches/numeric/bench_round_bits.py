"""Words of random bits: the golden's hash of seed, ticket and element."""

from typing import Any

import cocotb
from cocotb.triggers import Timer

from rtl.contract.isa import Queue
from verif.agents.bench import Bench
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.rounding import row_words

RUNS = (Run("round_bits", seeds=(1,), faults=EVERY),)

coverage = Coverage("round_bits", ["seed 0", "first element", "an element from 2^15 on", "last ticket", "carries"])


@cocotb.test()
async def hashes_what_it_is_given(dut: Any) -> None:
    """Corners and random seeds, tickets and elements."""
    bench = Bench(dut)
    await bench.start()
    rng = bench.rng
    settle = Timer(1, "ns")
    cases = [(0, 0, 0), (0xFFFFFFFF, 0xFFFF, 4095), (1, 0, 1), (0, 0xFFFF, 0), (0x80000000, 1, 511)]
    cases += [tuple(int(rng.integers(n)) for n in (1 << 32, 1 << 16, 600)) for _ in range(400)]
    cases += [tuple(int(rng.integers(n)) for n in (1 << 32, 1 << 16, 1 << 16)) for _ in range(40)]
    for seed, sequence, element in cases:
        dut.seed.value, dut.ticket.value, dut.element.value = seed, sequence, element
        await settle
        want = row_words(seed, Queue.TENSOR, sequence, element + 1)[-1]
        seen = int(dut.word.value)
        assert seen == want, f"seed {seed:#x}, ticket {sequence}, element {element}: {seen:#x}, should be {want:#x}"
        coverage.when(seed == 0, "seed 0")
        coverage.when(element == 0, "first element")
        coverage.when(element >> 15, "an element from 2^15 on")
        coverage.when(sequence == 0xFFFF, "last ticket")
        coverage.when(seed + sequence > 0xFFFFFFFF, "carries")
    coverage.require_all()

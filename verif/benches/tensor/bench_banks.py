"""Banks of PSUM that a tensor engine watches: sums and transposes to destinations anywhere, and which of them fail."""

from dataclasses import replace
from typing import Any

import cocotb

from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import load
from rtl.contract.isa import Opcode
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from verif.agents.patterns import contiguous, random_pattern
from verif.bench import Run
from verif.benches.tensor.engine_coverage import OF_BANKS
from verif.benches.tensor.engine_driver import EngineBench
from verif.benches.tensor.engine_steps import Step

RUNS = (
    Run(
        "tensor_engine",
        config=load("tiny", ["tensor.nvfp4=true"]),
        options={"form": "native"},
        faults=(
            "a transpose has the exit of sums",
            "a bank is free when the first of its matmuls has retired",
            "banks behind that of the first element are not watched",
            "of a pattern that goes down the banks behind its first element are watched",
        ),
    ),
)


def _dimensions(bench: EngineBench, elements: int) -> list[tuple[int, int]]:
    """Of rows of a transpose: each of the four has some of the factors of their number, up or down."""
    rng = bench.rng
    counts = [1] * DIMENSIONS
    while elements > 1:
        factor = next(n for n in range(2, elements + 1) if elements % n == 0)
        counts[int(rng.integers(DIMENSIONS))] *= factor
        elements //= factor
    return [(int(rng.integers(-20, 21)), count) for count in counts]


def _somewhere(bench: EngineBench, step: Step) -> Step:
    """The same with another destination. Sums go to even elements and rows of transposes to odd ones: whichever of two
    that meet in a bank is there first, they leave the same."""
    cfg, dst = bench.cfg, step.dst
    assert dst is not None
    room = cfg.psum.partition_bytes // 8  # elements of either
    low, high = 0, room
    while step.turns and high - low >= room:
        dst = replace(dst, dims=tuple(_dimensions(bench, dst.elements)))
        spans = [each * (count - 1) for each, count in dst.dims]
        low, high = sum(min(0, span) for span in spans), sum(max(0, span) for span in spans)
    if step.turns:
        dst = replace(dst, offset=4 * int(bench.rng.integers(-low, room - high)))
    else:
        columns = dst.partition_start, dst.partition_count
        dst = random_pattern(
            bench.rng, space=Space.PSUM, dtype="fp32", partitions=columns, elements=dst.elements,
            partition_bytes=4 * room, ascending=True,
        )  # fmt: skip
    dims = tuple((2 * each, count) for each, count in dst.dims)
    return replace(step, dst=replace(dst, offset=2 * dst.offset + 4 * step.turns, dims=dims))


@cocotb.test()
@cocotb.parametrize(style=["never", "half"])
async def who_meets_another_exit_in_a_bank_fails(dut: Any, style: str) -> None:
    """Short matmuls on one set of weights among transposes: EngineBench knows which of them must fail."""
    bench = EngineBench(dut, style)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    rows = contiguous(space=Space.SBUF, dtype="bf16", partitions=(0, cfg.tensor.rows), elements=cfg.tensor.cols)
    load = Step(Opcode.LOAD_STATIONARY, rows, kind=Kind.ONE)
    steps = [load]
    for _ in range(300):
        if rng.random() < 0.5:
            steps.append(_somewhere(bench, bench.transpose()))
            continue
        matmul = bench.source(Opcode.MULTIPLY_MOVING, int(rng.choice([1, 3, 8, 12, 18, 24, 36])), load)
        matmul = _somewhere(bench, bench.target(matmul, cfg.psum.partition_bytes))
        steps.append(replace(matmul, accumulate=bool(rng.random() < 0.5)))
    await bench.run(steps)
    for n, step in enumerate(steps[1:], 1):
        fails = n in bench.causes
        banks = bench.flight.banks(step)
        OF_BANKS.when(fails and not step.turns, "sums meet a transpose")
        OF_BANKS.when(fails and step.turns, "a transpose meets sums")
        OF_BANKS.when(len(banks) > 1, "several banks")
        before = [s for s in steps[:n] if s.dst is not None and s.turns != step.turns]
        met = any(banks & bench.flight.banks(s) for s in before)
        OF_BANKS.when(met and not fails, "free again")
        down = step.dst is not None and any(each < 0 for each, count in step.dst.dims if count > 1)
        OF_BANKS.when(down and len(banks) > 1, "down over a bank's end")


@cocotb.test()
async def every_way_to_meet_was_seen(dut: Any) -> None:
    OF_BANKS.require_all()

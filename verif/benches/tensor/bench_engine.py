"""Tensor engine: programs of loads and matmuls against the golden array, its pace, and what it reports."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.isa import MX_ROWS, Cause, Opcode, block
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS
from rtl.contract.timing import MATMUL_MIN_CYCLES, array_latency
from verif.agents.bench import manifest
from verif.agents.patterns import contiguous
from verif.agents.stall import STYLES
from verif.agents.tags import random_tags
from verif.bench import Run, noticed_by
from verif.benches.tensor.engine_coverage import COVERAGE
from verif.benches.tensor.engine_driver import EngineBench
from verif.benches.tensor.engine_steps import Step, gemm_steps

_SETTINGS = ["tensor.cols=8", "tensor.moving_max=64", "psum.bank_bytes=256", "sbuf.partition_bytes=8192"]
_GROUPS = load("small", _SETTINGS)
"""Four row groups in the smallest array that has them."""
_NATIVE = {"form": "native"}
_EVERY_KIND = load("tiny", ["tensor.nvfp4=true"])

_PLANTED = (
    "the stride of a pattern's second dimension is forgotten",
    "the last element of a pattern with more than one dimension is left out",
    "the word buffer does not go on after the last element of a word",
    "the row mask of the next command is used",
    "scales come from the first slot",
    "scales are those of the element beside it",
    "two blocks of rows exchange their scales",
    "tags are those of the column beside it",
    "columns of the last element are counted from its end",
    "neighbouring entries of the map are exchanged",
    "the four numbers of a row are reversed",
    "negative numbers take the entries of positive ones",
    "a load does not wait for the stream that needs the weights before it",
    "rows outside the operand of a transpose leave too",
    "a transpose shifts once too little",
    "16 bits of a transpose stay in the lower half",
    "an element may recur inside the adder",
    "a stream does not wait for its load",
    "the first beat carries no swap",
    "every matmul overwrites its sums",
    "the last column of sums is not written",
    "a matmul is done when its last row leaves the array",
    "the seed of random bits is not used",
    "the ticket is not used for random bits",
    "every element has the random bits of the first",
    "the last column of a transpose is not written",
    "a transpose is done with its first row",
    "a load retires before the matmul in front of it",
    "a second load in a row takes the swap back",
    "a matmul swaps after a transpose",
    "a transpose ends as a load does",
    *noticed_by(
        "a_load_with_wrong_tags_fails/repeats=False",
        "tags may lie beyond the group",
        "a load with wrong tags ends like others",
        "the load before one with wrong tags fails",
    ),
    *noticed_by(
        "a_load_with_wrong_tags_fails/repeats=True",
        "tags may repeat or descend",
    ),
    *noticed_by(
        "elements_wait_for_scales_that_come_late",
        "elements do not wait for their scales and tags",
    ),
)

RUNS = (
    Run("tensor_engine", config=_EVERY_KIND, options=_NATIVE, faults=_PLANTED),
    Run("tensor_engine", config=_GROUPS, options=_NATIVE, seeds=(1,)),
)

TENSOR = manifest().config.tensor


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_sums(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    await bench.run(bench.random_program(80 if style == "never" else 40))
    bench.cover()


@cocotb.test()
@cocotb.parametrize(step=[1, 4, 5])
async def streams_follow_each_other_without_a_gap(dut: Any, step: int) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    columns, tiles = cfg.tensor.moving_max, 6
    await bench.run(gemm_steps(cfg, tiles, columns, step=step))
    assert len(bench.beats) == tiles * columns
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == 0, f"{gaps} cycles without a beat between the first and the last"
    assert bench.sums[0] - bench.beats[0] == array_latency(cfg.tensor)
    words = {1: tiles * columns // 4, 4: tiles * columns, 5: tiles * columns}
    assert bench.ports.grants["sbuf_moving__0"] == words[step]
    assert bench.states.get("sbuf", 0) == 0
    assert bench.states["load"] >= cfg.tensor.cols - 8  # the first load, which nothing hides
    COVERAGE.hit("load hidden")


@cocotb.test()
async def a_load_hides_behind_a_stream_of_its_length(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    tiles = 12
    await bench.run(gemm_steps(cfg, tiles, cfg.tensor.cols))
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == 0, f"{gaps} cycles without a beat in {tiles} streams"


def turn_step(cfg: Any, bank: int, at: int) -> Step:
    """A transpose of the whole array, FP32 words from byte `at`, to a bank; rows ascend there."""
    src = contiguous(
        space=Space.SBUF, dtype="fp32", partitions=(0, cfg.tensor.rows), elements=cfg.tensor.cols, offset=at
    )
    rows = cfg.tensor.rows
    dst = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, cfg.tensor.cols), elements=rows, step=-1)
    dst = replace(dst, offset=bank * cfg.psum.bank_bytes + 4 * (rows - 1))
    return Step(Opcode.TENSOR_TRANSPOSE, src, dst, kind=Kind.RAW)


@cocotb.test()
@cocotb.parametrize(spare=[0, -1])
async def a_transpose_hides_behind_a_stream(dut: Any, spare: int) -> None:
    """Beside a load and a transpose a stream as long as the beats of both runs on without a gap."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    shadow = 2 * cfg.tensor.cols + cfg.tensor.rows
    columns, count = shadow + spare, 10
    steps = gemm_steps(cfg, count, columns)
    program = [step for n, s in enumerate(steps) for step in ([s, turn_step(cfg, 3, 64 * n)] if n % 2 else [s])]
    await bench.run(program)
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == -spare * (count - 1), f"{gaps} cycles without a beat in {count} streams of {columns}"
    assert bench.turned[0] - bench.beats[0] >= array_latency(cfg.tensor)
    COVERAGE.when(spare == 0, "transpose hidden")


@cocotb.test()
async def transposes_follow_each_other_without_a_gap(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    count = 6
    await bench.run([turn_step(cfg, n % 2, 64 * n) for n in range(count)])
    each = cfg.tensor.cols + cfg.tensor.rows
    first = bench.turned[:: cfg.tensor.rows]
    assert all(b - a == each for a, b in zip(first, first[1:], strict=False)), f"rows of a transpose begin at {first}"


@cocotb.test()
async def short_matmuls_keep_their_distance(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    rows = (0, cfg.tensor.rows)
    steps = gemm_steps(cfg, 1, 3)
    for n in range(70):
        src = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=3, offset=6 * n)
        dst = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, cfg.tensor.cols), elements=3)
        steps.append(Step(Opcode.MULTIPLY_MOVING, src, dst, True))
    await bench.run(steps)
    starts = bench.beats[::3]
    assert all(b - a == MATMUL_MIN_CYCLES for a, b in zip(starts, starts[1:], strict=False)), np.diff(starts)


@cocotb.test()
async def a_refused_read_now_and_then_costs_no_bubble(dut: Any) -> None:
    bench = EngineBench(dut, moving=lambda: cycle([True, False, False, False, False]))
    await bench.start()
    cfg = bench.cfg
    columns, tiles = cfg.tensor.moving_max, 6

    await bench.run(gemm_steps(cfg, tiles, columns))
    gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
    assert gaps == 0, f"{gaps} cycles without a beat"
    assert bench.ports.refusals["sbuf_moving__0"] > 0


@cocotb.test(skip=not TENSOR.mx)
async def elements_wait_for_scales_that_come_late(dut: Any) -> None:
    """A word of scales for each element and half of the reads refused: elements, two in a word, are there before."""
    bench = EngineBench(dut, "half")
    await bench.start()
    cfg = bench.cfg
    size = block(cfg.partitions)
    steps: list[Step] = []
    for n in range(12):
        opcode, columns = ((Opcode.LOAD_STATIONARY, cfg.tensor.cols), (Opcode.MULTIPLY_MOVING, 48))[n % 2]
        rows = (0, min(size, cfg.tensor.rows))
        src = contiguous(space=Space.SBUF, dtype="e4m3fn", partitions=rows, elements=columns, offset=256 * n)
        scales = contiguous(
            space=Space.SBUF, dtype="e8m0", partitions=(0, size // MX_ROWS), elements=columns, offset=8 * n + 1, step=8
        )
        step = Step(opcode, src, kind=Kind.QUAD, scales=scales, accumulate=n > 1)
        steps.append(bench.target(step, cfg.psum.partition_bytes) if n % 2 else step)
    await bench.run(steps)


@cocotb.test(skip=not TENSOR.sparsity)
@cocotb.parametrize(style=["never", "half"])
async def every_pattern_of_sparsity(dut: Any, style: str) -> None:
    """Loads of all patterns in turn, each with a matmul on its rows."""
    bench = EngineBench(dut, style)
    await bench.start()
    cfg = bench.cfg
    steps: list[Step] = []
    for pattern in [*PATTERNS.values(), *PATTERNS.values()]:
        place = contiguous(space=Space.SBUF, dtype="bf16", partitions=(0, 4), elements=1)
        like = Step(Opcode.LOAD_STATIONARY, place, kind=Kind.SPARSE, sparsity=pattern.code)
        load = bench.source(Opcode.LOAD_STATIONARY, cfg.tensor.cols, like)
        multiply = bench.source(Opcode.MULTIPLY_MOVING, int(bench.rng.integers(1, 40)), load)
        steps += [load, replace(bench.target(multiply, cfg.psum.partition_bytes), accumulate=bool(steps))]
    await bench.run(steps)
    bench.cover()


def _tagged(bench: EngineBench, *, repeats: bool) -> tuple[Step, Step, Step]:
    """A load with right tags, one with wrong ones, and a matmul; pairs of rows share a bus."""
    cfg = bench.cfg
    pattern = PATTERNS["2:4"]
    rows, columns = (0, cfg.tensor.rows), cfg.tensor.cols
    source = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=columns)
    right, wrong = (
        contiguous(space=Space.SBUF, dtype="uint16", partitions=rows, elements=-(-columns // 4), offset=at)
        for at in (1024, 1088)
    )
    tags = random_tags(bench.rng, pattern.code, rows[1], columns, wrong=0)
    bench.sbuf.write(right, tags)
    tags[1::2, 0] = tags[0::2, 0] if repeats else tags[1::2, 0] | pattern.group
    bench.sbuf.write(wrong, tags)
    load = Step(Opcode.LOAD_STATIONARY, source, kind=Kind.SPARSE, scales=right, sparsity=pattern.code)
    moving = contiguous(space=Space.SBUF, dtype="uint32", partitions=rows, elements=cfg.tensor.moving_max, offset=2048)
    sums = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, columns), elements=cfg.tensor.moving_max)
    multiply = Step(Opcode.MULTIPLY_MOVING, replace(moving, dtype=1), sums, kind=Kind.SPARSE, sparsity=pattern.code)
    return load, replace(load, scales=wrong), multiply


@cocotb.test(skip=not TENSOR.sparsity)
@cocotb.parametrize(repeats=[False, True])
async def a_load_with_wrong_tags_fails(dut: Any, repeats: bool) -> None:
    """It retires with the cause, and no load before it does, however many have ended."""
    bench = EngineBench(dut)
    await bench.start()
    load, bad, multiply = _tagged(bench, repeats=repeats)
    await bench.run([load, multiply, load, bad, load], {3: Cause.TAGS})


@cocotb.test(skip=not TENSOR.sparsity)
@cocotb.parametrize(loads=range(1, 9), columns=range(1, 9))
async def wrong_tags_may_end_while_a_load_retires(dut: Any, loads: int, columns: int) -> None:
    """Loads that wait for a matmul retire before, while and after one behind them ends that fails; the queue halts."""
    bench = EngineBench(dut)
    await bench.start()
    load, bad, multiply = _tagged(bench, repeats=False)
    assert multiply.dst is not None
    dims = ((1, columns),)
    short = replace(multiply, src=replace(multiply.src, dims=dims), dst=replace(multiply.dst, dims=dims))
    steps = [load, short, *[load] * loads, bad, load]
    await bench.run(steps, {len(steps) - 2: Cause.TAGS})


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

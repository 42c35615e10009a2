"""Weights that instructions of the tensor queue leave, and which others may find: kinds, columns, transposes."""

from typing import Any

import cocotb

from rtl.contract.access_pattern import start_partition_rule
from rtl.contract.config import load
from rtl.contract.isa import Cause, Opcode
from rtl.contract.kinds import Kind
from verif.bench import Run
from verif.benches.issue.check_driver import OF_WEIGHTS, CheckBench, plain
from verif.benches.issue.words import Fields

_ONE_GROUP = load("tiny", ["tensor.nvfp4=true"])
_TILED = load("small", ["tensor.cols=8", "tensor.nvfp4=true"])
_TENSOR = {"queue": 0}
_FAULTS = (
    "weights may be of another kind",
    "the two E4M3 may be mixed",
    "a load counts for all rows",
    "a load of few columns counts for all columns",
    "columns of two loads of a kind are not added",
    "a transpose may overwrite weights that no matmul has taken",
    "a load finds what was there before a transpose",
)
_OF_TILES = ("a matmul takes the weights of all row tiles", "a transpose leaves nothing in other row tiles")

RUNS = (
    Run("check", config=_ONE_GROUP, options=_TENSOR, seeds=(1,), faults=_FAULTS),
    Run("check", config=_TILED, options=_TENSOR, seeds=(1,), faults=_OF_TILES),
)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def weights_and_moving_operands_are_of_one_kind(dut: Any) -> None:
    """Row by row; rows that nothing was loaded into go with all, and a start forgets the kinds."""
    bench = CheckBench(dut)
    await bench.start()
    whole, quarter = bench.cfg.partitions, bench.cfg.partitions // 4
    e4m3fn, e4m3, e5m2, bf16 = 4, 5, 6, 1
    assert bench.add(plain(17, Kind.PAIR, e4m3, 0, whole)) == Cause.NONE  # nothing is loaded
    assert bench.add(plain(16, Kind.PAIR, e4m3fn, 0, whole)) == Cause.NONE
    assert bench.add(plain(17, Kind.PAIR, e5m2, 0, whole)) == Cause.NONE
    assert bench.add(plain(17, Kind.PAIR, e4m3, 0, whole)) == Cause.ILLEGAL_DTYPE
    OF_WEIGHTS.hit("other E4M3")
    assert bench.add(plain(17, Kind.ONE, e4m3fn, 0, whole)) == Cause.ILLEGAL_DTYPE
    assert bench.add(plain(17, Kind.QUAD, e4m3fn, 0, whole)) == Cause.ILLEGAL_DTYPE
    OF_WEIGHTS.hit("other kind")
    assert bench.add(plain(16, Kind.ONE, bf16, quarter, quarter)) == Cause.NONE
    assert bench.add(plain(16, Kind.PAIR, e4m3, 2 * quarter, quarter)) == Cause.NONE
    for start, kind, dtype, expected in (
        (0, Kind.PAIR, e4m3fn, Cause.NONE),
        (0, Kind.ONE, bf16, Cause.ILLEGAL_DTYPE),
        (quarter, Kind.ONE, bf16, Cause.NONE),
        (quarter, Kind.PAIR, e4m3fn, Cause.ILLEGAL_DTYPE),
        (2 * quarter, Kind.PAIR, e4m3, Cause.NONE),
        (2 * quarter, Kind.PAIR, e4m3fn, Cause.ILLEGAL_DTYPE),
        (3 * quarter, Kind.PAIR, e4m3fn, Cause.NONE),
    ):
        assert bench.add(plain(17, kind, dtype, start, quarter)) == expected
    OF_WEIGHTS.hit("kinds by row")
    every = {"dst_partition_count": bench.cfg.tensor.cols}
    assert bench.add(plain(17, Kind.PAIR, e4m3fn, 0, quarter) | every) == Cause.NONE  # zeros beside one column
    assert bench.add(plain(16, Kind.HIGH, 0, 0, whole)) == Cause.NONE
    two = {"dst_partition_count": 2}
    assert bench.add(plain(17, Kind.LOW, 0, 0, whole) | two) == Cause.ILLEGAL_DTYPE  # column 1 holds what was there
    assert bench.add(plain(16, Kind.LOW, 0, 0, whole)) == Cause.NONE
    assert bench.add(plain(17, Kind.LOW, 0, 0, whole) | two) == Cause.NONE
    three = {"dst_partition_count": 3}
    assert bench.add(plain(17, Kind.LOW, 0, 0, whole) | three) == Cause.ILLEGAL_DTYPE
    OF_WEIGHTS.hit("kinds by column")
    assert bench.add(plain(16, Kind.HIGH, 0, 0, whole) | {"src0_count0": bench.cfg.tensor.cols}) == Cause.NONE
    assert bench.add(plain(17, Kind.LOW, 0, 0, whole) | every) == Cause.NONE
    assert bench.add(plain(17, Kind.LOW, 0, 0, whole)) == Cause.NONE
    await bench.finish()
    dut.start.value = 1
    await bench.edge
    dut.start.value = 0
    bench.forget()
    assert bench.add(plain(17, Kind.PAIR, e4m3, 0, whole)) == Cause.NONE
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_transpose_leaves_zeros_to_load_on(dut: Any) -> None:
    """No load may wait for a matmul; matmuls go on with what they took, and the next load finds nothing."""
    bench = CheckBench(dut)
    await bench.start()
    whole, quarter = bench.cfg.partitions, bench.cfg.partitions // 4
    fp32, bf16, e5m2, none, pending, other = 0, 1, 6, Cause.NONE, Cause.LOAD_PENDING, Cause.ILLEGAL_DTYPE
    turn = plain(18, Kind.RAW, fp32, 0, whole)
    every = {"dst_partition_count": bench.cfg.tensor.cols}
    assert bench.add(turn) == none  # nothing is loaded
    assert bench.add(plain(16, Kind.ONE, bf16, 0, whole)) == none
    assert bench.add(turn) == pending
    OF_WEIGHTS.hit("load before a transpose")
    assert bench.add(plain(17, Kind.ONE, bf16, 0, quarter)) == none
    assert bench.add(turn) == none  # a matmul of the whole array, on some rows of it
    assert bench.add(plain(17, Kind.ONE, bf16, 0, whole)) == none
    assert bench.add(plain(17, Kind.PAIR, e5m2, 0, whole)) == other
    OF_WEIGHTS.hit("weights beside a transpose")
    assert bench.add(plain(16, Kind.PAIR, e5m2, 0, quarter)) == none
    assert bench.add(plain(17, Kind.PAIR, e5m2, 0, whole) | every) == none
    OF_WEIGHTS.hit("zeros behind a transpose")
    if bench.cfg.tensor.groups > 1:
        last = {"tile": bench.cfg.tensor.groups.bit_length() - 1}
        assert bench.add(plain(16, Kind.ONE, bf16, 0, quarter) | last) == none
        assert bench.add(plain(18, Kind.RAW, bf16, quarter, quarter) | last) == none
        assert bench.add(plain(18, Kind.RAW, bf16, 0, quarter) | last) == pending
        assert bench.add(turn) == pending
        assert bench.add(plain(16, Kind.ONE, bf16, 0, whole) | {"src0_count0": bench.cfg.tensor.cols}) == none
        assert bench.add(plain(17, Kind.ONE, bf16, 0, quarter) | last) == none
        assert bench.add(plain(18, Kind.RAW, bf16, 3 * quarter, quarter) | last) == pending
        OF_WEIGHTS.hit("load in another tile")
        assert bench.add(plain(18, Kind.RAW, bf16, 0, quarter) | last) == none
        assert bench.add(plain(16, Kind.PAIR, e5m2, 3 * quarter, quarter // 2) | last) == none
        assert bench.add(plain(17, Kind.PAIR, e5m2, 3 * quarter, quarter) | last) == other
        OF_WEIGHTS.hit("transpose of another tile")
    assert bench.add(plain(16, Kind.ONE, bf16, 0, whole)) == none
    await bench.finish()
    dut.start.value = 1
    await bench.edge
    dut.start.value = 0
    bench.forget()
    assert bench.add(turn) == none
    await bench.finish()


def _word(bench: CheckBench, kind: int, dtype: int) -> Fields:
    """A load, a matmul or a transpose of random rows, often one or two; loads of few columns, which add up, and matmuls
    of as many as their rows hold, or one more."""
    rng, tensor, whole = bench.rng, bench.cfg.tensor, bench.cfg.partitions
    tile = int(rng.integers(tensor.groups.bit_length())) * int(rng.integers(2))
    count = int(rng.integers(1, min(rng.choice([2, tensor.rows]), tensor.rows >> tile) + 1))
    starts = [s for s in range(0, tensor.rows, whole // 4) if start_partition_rule(s, count, whole)]
    start = int(rng.choice([s for s in starts if s + count <= tensor.rows]))
    opcode = int(rng.choice([16, 17, 18], p=[0.45, 0.5, 0.05]))
    if opcode == Opcode.TENSOR_TRANSPOSE:
        return plain(opcode, Kind.RAW, 0, start, count) | {"tile": tile}
    fields = plain(opcode, kind, dtype, start, count) | {"tile": tile}
    if opcode == Opcode.LOAD_STATIONARY:
        return fields | {"src0_count0": int(rng.integers(1, rng.choice([2, tensor.cols]) + 1))}
    held = sum(bench.weights.agree(fields | {"dst_partition_count": n + 1}) for n in range(tensor.cols))
    return fields | {"dst_partition_count": min(max(1, held + int(rng.integers(2))), tensor.cols)}


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def each_row_keeps_what_its_loads_left(dut: Any) -> None:
    """Random loads and matmuls, some of another kind than those before."""
    bench = CheckBench(dut)
    await bench.start()
    e4m3fn, e4m3, bf16, fp32 = 4, 5, 1, 0
    kinds = ((Kind.ONE, bf16), (Kind.HIGH, fp32), (Kind.LOW, fp32), (Kind.PAIR, e4m3fn), (Kind.PAIR, e4m3))
    for _ in range(20):
        kind, dtype = kinds[0]
        for _ in range(40):
            if bench.rng.random() < 0.2:
                kind, dtype = kinds[int(bench.rng.integers(len(kinds)))]
            fields = _word(bench, kind, dtype)
            cause = bench.add(fields)
            OF_WEIGHTS.hit(f"random {Opcode(fields['opcode']).name} {cause.name}")
        await bench.finish()
        dut.start.value = 1
        await bench.edge
        dut.start.value = 0
        bench.forget()


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    OF_WEIGHTS.require_all()

"""Row tiles in the tensor engine: groups that work together and apart, their pace, and sums that come to one bank."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cocotb

from rtl.contract.config import load
from rtl.contract.isa import Cause, Opcode
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS
from rtl.contract.timing import array_latency
from verif.agents.patterns import contiguous
from verif.agents.stall import STYLES
from verif.agents.tags import random_tags
from verif.bench import Run, noticed_by
from verif.benches.tensor.engine_coverage import OF_TILES
from verif.benches.tensor.engine_driver import EngineBench
from verif.benches.tensor.engine_steps import GROUPS, Step, gemm_steps

_SETTINGS = ["tensor.cols=8", "tensor.moving_max=64", "psum.bank_bytes=256", "sbuf.partition_bytes=8192"]
_GROUPS = load("small", _SETTINGS)
"""Four row groups in the smallest array that has them."""
_NATIVE = {"form": "native"}
_FAULTS = (
    "a stream swaps the groups of all tiles",
    "the sums of a half or quarter leave at the last group of the array",
    "what has ended in any group retires the oldest command",
    "a load waits for the swaps of group 0",
    "a group does not wait for the others of its tile",
    "groups of a tile send what they have, of whatever command",
    *noticed_by(
        "rows_that_psum_loses_are_told",
        "a lost row of sums is not told",
        "a failed matmul ends like others",
    ),
    *noticed_by("a_transpose_and_sums_in_one_bank_fail/down=False", "a transpose has the exit of sums"),
    *noticed_by(
        "a_bank_is_free_when_all_its_matmuls_have_retired/late=False",
        "a bank is free when the first of its matmuls has retired",
    ),
    *noticed_by("wrong_tags_of_any_row_group_are_told", "wrong tags of a row group north of the last one are not told"),
    *noticed_by(
        "tiles_that_run_together_write_different_banks",
        "banks behind that of the first element are not watched",
    ),
    *noticed_by(
        "a_transpose_and_sums_in_one_bank_fail/down=True",
        "of a pattern that goes down the banks behind its first element are watched",
    ),
)
"""Only row tiles show them."""

RUNS = (Run("tensor_engine", config=_GROUPS, options=_NATIVE, faults=_FAULTS),)

QUARTERS = GROUPS.bit_length() - 1
"""The finest tiles: a row group each."""


def _turn(cfg: Any, at: int, bank: int, tile: int = QUARTERS) -> Step:
    """A transpose of tile `at` to a bank of PSUM, going up."""
    rows, offset = cfg.tensor.rows >> tile, bank * cfg.psum.bank_bytes
    src = contiguous(space=Space.SBUF, dtype="bf16", partitions=(at * rows, rows), elements=cfg.tensor.cols)
    dst = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, cfg.tensor.cols), elements=rows, offset=offset)
    return Step(Opcode.TENSOR_TRANSPOSE, src, dst, tile=tile, kind=Kind.RAW)


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def tiles_of_all_sizes_leave_the_golden_sums(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    await bench.run(bench.random_program(80 if style == "never" else 40))
    bench.cover()


@cocotb.test()
async def tiles_stream_side_by_side(dut: Any) -> None:
    """As many matmuls as there are row groups, in turn, take the time of one."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    columns, count = cfg.tensor.moving_max, 4
    room = cfg.psum.partition_bytes // GROUPS
    each = [gemm_steps(cfg, count, columns, tile=QUARTERS, at=g, offset=room * g) for g in range(GROUPS)]
    await bench.run([step for steps in zip(*each, strict=True) for step in steps])
    lead = 2 * GROUPS + cfg.tensor.cols  # commands come one a cycle, and the first load is waited for
    span = bench.beats[-1] - bench.beats[0] + 1
    assert span <= count * columns + lead, f"{span} cycles for {count} times {columns} columns of each tile"
    assert bench.sums[0] - bench.beats[0] == array_latency(cfg.tensor, 0)


@cocotb.test()
async def rows_that_psum_loses_are_told(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    port = f"psum__{GROUPS - 1}"
    seen = 0

    def lose(_: int) -> None:
        nonlocal seen
        seen += getattr(dut, f"{port}__valid").value == 1
        getattr(dut, f"{port}__lost").value = int(seen == 19)  # the row after this one: of the third matmul

    bench.ports.on_cycle.append(lose)
    await bench.run(gemm_steps(bench.cfg, 3, 8), {5: Cause.BANK_CONFLICT})
    OF_TILES.hit("lost row")


@cocotb.test()
async def wrong_tags_of_any_row_group_are_told(dut: Any) -> None:
    """Loads of the whole array and its tiles, a wrong tag in one row group at a time: only loads of its tile fail."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    pattern = PATTERNS["4:8"]
    rows, columns = cfg.tensor.rows, cfg.tensor.cols
    steps: list[Step] = []
    causes: dict[int, int] = {}
    for tile in range(QUARTERS + 1):
        for wrong in (-1, *range(GROUPS)):
            for at in range(1 << tile):
                size = rows >> tile
                place, offset = (at * size, size), 16 * (wrong + 1)
                tags = random_tags(bench.rng, pattern.code, size, columns, wrong=0)
                bad_row = wrong * (rows // GROUPS) - place[0]
                if wrong >= 0 and 0 <= bad_row < size:
                    tags[bad_row + 1, 0] = tags[bad_row, 0]
                    causes[len(steps)] = Cause.TAGS
                of_tags = contiguous(
                    space=Space.SBUF, dtype="uint16", partitions=place, elements=-(-columns // 4), offset=offset
                )
                of_tags = replace(of_tags, offset=offset + 128 * tile)
                bench.sbuf.write(of_tags, tags)
                source = contiguous(space=Space.SBUF, dtype="bf16", partitions=place, elements=columns, offset=1024)
                load = Step(
                    Opcode.LOAD_STATIONARY, source, tile=tile, kind=Kind.SPARSE, scales=of_tags, sparsity=pattern.code
                )
                steps.append(load)
    await bench.run(steps, causes)
    OF_TILES.hit("wrong tags")


@cocotb.test()
async def tiles_that_run_together_write_different_banks(dut: Any) -> None:
    """A matmul that comes to a bank where one of another tile has not retired fails."""
    bench = EngineBench(dut)
    await bench.start()
    cfg, bank = bench.cfg, bench.cfg.psum.bank_bytes
    first = gemm_steps(cfg, 1, 16, tile=QUARTERS, offset=2 * bank - 32)  # half of it in the third bank
    apart = gemm_steps(cfg, 1, 16, tile=QUARTERS, at=1)
    meets = gemm_steps(cfg, 1, 4, tile=QUARTERS, at=1, offset=2 * bank + 64)
    await bench.run(first + apart + meets, {5: Cause.BANK_CONFLICT})
    OF_TILES.hit("bank of another tile")


@cocotb.test()
@cocotb.parametrize(tile=range(GROUPS.bit_length()))
async def tiles_transpose_side_by_side(dut: Any, tile: int) -> None:
    """A transpose of each tile, all at once, takes the time of one."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    steps = [_turn(cfg, g, g, tile) for g in range(1 << tile)]
    await bench.run(steps * 3)
    bench.cover()
    each = cfg.tensor.cols + (cfg.tensor.rows >> tile)
    span = bench.turned[-1] - bench.turned[0] + 1
    lead = array_latency(cfg.tensor) - array_latency(cfg.tensor, (GROUPS >> tile) - 1)
    assert span <= 3 * each + lead + GROUPS, f"{span} cycles for 3 transposes of each tile"


@cocotb.test()
async def a_transpose_leaves_nothing_for_the_tile_below(dut: Any) -> None:
    """Behind transposes of all tiles at once, rows into which nothing is loaded give nothing to a product."""
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    each = cfg.tensor.rows // GROUPS
    products: list[Step] = []
    for g in range(GROUPS):
        load, matmul = gemm_steps(cfg, 1, 16, tile=QUARTERS, at=g, offset=g * cfg.psum.bank_bytes)
        products += [replace(load, src=replace(load.src, partition_count=each // 2)), matmul]
    turns = [_turn(cfg, g, cfg.psum.banks - GROUPS + g) for g in range(GROUPS)]
    await bench.run([*turns, *products])


@cocotb.test()
@cocotb.parametrize(down=[False, True])
async def a_transpose_and_sums_in_one_bank_fail(dut: Any, down: bool) -> None:
    """Whichever comes second, also where the destination goes down from one bank to the one before."""
    bench = EngineBench(dut)
    await bench.start()
    cfg, bank = bench.cfg, bench.cfg.psum.bank_bytes
    sums = gemm_steps(cfg, 1, 16, tile=QUARTERS, offset=bank)
    turn = _turn(cfg, 0, 2)
    assert turn.dst is not None
    dst = replace(turn.dst, offset=2 * bank + 8, dims=((-1, turn.dst.elements),)) if down else turn.dst
    turn = replace(turn, dst=dst if down else replace(dst, offset=bank + 128))
    await bench.run([*sums, turn], {2: Cause.BANK_CONFLICT})
    OF_TILES.hit("transpose to a bank of sums")


@cocotb.test()
async def sums_that_come_to_a_bank_of_a_transpose_fail(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg, bank = bench.cfg, bench.cfg.psum.bank_bytes
    sums = gemm_steps(cfg, 1, 16, tile=QUARTERS, offset=bank + 128)
    await bench.run([_turn(cfg, 0, 1), *sums], {2: Cause.BANK_CONFLICT})
    OF_TILES.hit("sums to a bank of a transpose")


def _until(bench: EngineBench, sent: int, ended: int) -> Iterator[bool]:
    """Holds commands after the first `sent` back until so many have been done."""
    while True:
        yield bench.commands.sent >= sent and len(bench.dones) < ended


@cocotb.test()
@cocotb.parametrize(late=[False, True])
async def a_bank_is_free_when_all_its_matmuls_have_retired(dut: Any, late: bool) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    first = gemm_steps(cfg, 2, 8, tile=QUARTERS) + gemm_steps(cfg, 1, 40, tile=QUARTERS, offset=64)
    meets = gemm_steps(cfg, 1, 4, tile=QUARTERS, at=1, offset=224)
    # early: the last one, to the same bank, is still under way
    bench.commands.stall = _until(bench, len(first), len(first) if late else 4)
    await bench.run(first + meets, {} if late else {7: Cause.BANK_CONFLICT})
    OF_TILES.when(late, "bank of another tile after its end")


@cocotb.test()
async def every_kind_of_tile_was_used(dut: Any) -> None:
    OF_TILES.require_all()

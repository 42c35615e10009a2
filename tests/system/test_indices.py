"""Rows that indices choose, in whole kernels: bits, order of sums, faults, what is said wrong, the share of HBM."""

from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import HbmView, Kernel, KernelError, Tile
from firmware.kernels.dma_copy import dma_copy
from firmware.kernels.embedding import embedding
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Cause, Queue
from sim.advice.bounding import bounds
from sim.energy.core.counts import events_of
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
P = TINY.partitions


def run(program: Program, cfg: Config = TINY, *, seeds: range = range(3)) -> RunResult:
    """On RTL, compared with the golden machine in order and under random orders."""
    image = build_image(program)
    with VerilatedDevice(cfg, build_core(cfg).binary) as device:
        device.load(image)
        got = device.run()
    for seed in (None, *seeds):
        machine = GoldenMachine(cfg, seed)
        machine.load(image)
        want = machine.run()
        assert {(f.queue, f.cause, f.sequence, f.address) for f in got.faults} == {
            (f.queue, f.cause, f.sequence, f.address) for f in want.faults
        }
        for name, bits in want.outputs.items():
            assert np.array_equal(got.outputs[name], bits), (name, seed)
    return got


def given(k: Kernel, name: str, values: np.ndarray) -> HbmView:
    """An int32 tensor."""
    return k.hbm(name, values.shape, "int32", values.astype(np.int32).view(np.uint32))


def in_sbuf(k: Kernel, name: str, values: np.ndarray) -> Tile:
    """An int32 tile of it."""
    tile = k.sbuf(name, partitions=values.shape[0], columns=values.shape[1], dtype="int32")
    k.dma(tile[:, :], given(k, f"{name}_given", values)[:, :])
    return tile


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("direct", [True, False])
def test_gathers_and_scatters_as_numpy_indexes(down: bool, direct: bool) -> None:
    """Embeddings of two blocks of tokens; then the rows go to another table in another order."""
    rng = np.random.default_rng(down)
    rows, n, t = 50, 24, 2
    table, ids = rng.integers(-9999, 9999, (rows, n)), rng.integers(0, rows, (P, t))
    to = rng.permutation(4 * P)[: P * t].reshape(P, t)
    k = Kernel(TINY, "embed")
    tile = k.sbuf("tile", partitions=P, columns=t * n, dtype="int32")
    chosen, places = (in_sbuf(k, name, x if down else x.T.reshape(1, -1)) for name, x in (("ids", ids), ("to", to)))
    out, other = k.hbm("out", (P, t, n), "int32"), k.hbm("other", (4 * P, n), "int32")
    k.gather(tile[:, :].split(0, n), given(k, "table", table)[:, :], chosen[:, :], direct=direct)
    k.dma(out[:, :, :], tile[:, :].split(0, n))
    zeros = k.sbuf("zeros", partitions=P, columns=4 * n, dtype="int32")
    k.vector.memset(zeros[:, :], 0)
    k.dma(other[:, :].split(0, P).permute((1, 0, 2)), zeros[:, :].split(0, n))
    k.scatter(other[:, :], tile[:, :].split(0, n), places[:, :], direct=direct)
    got = run(k.program())
    want = np.zeros((4 * P, n), np.int64)
    want[to] = table[ids]
    assert np.array_equal(got.outputs["out"].view(np.int32), table[ids])
    assert np.array_equal(got.outputs["other"].view(np.int32), want)


def test_rows_in_hbm_are_chosen_the_last_axis_fastest() -> None:
    rng = np.random.default_rng(8)
    table, ids = rng.integers(-9999, 9999, (11, 6)), rng.integers(0, 11, (5, 3))
    for down in (True, False):
        k = Kernel(TINY, "in_hbm")
        chosen = in_sbuf(k, "ids", ids if down else ids.reshape(1, -1))
        out = k.hbm("out", (5, 3, 6), "int32")
        k.gather(out[:, :, :], given(k, "table", table)[:, :], chosen[:, :])
        assert np.array_equal(run(k.program()).outputs["out"].view(np.int32), table[ids])


def test_rows_of_one_index_are_added_in_their_order() -> None:
    """A histogram of floats, whose sums depend on the order; the table lies in SBUF, a row a partition or in one."""
    rng = np.random.default_rng(5)
    n, count = 12, 40
    values = (rng.standard_normal((count, n)) * 10.0 ** rng.integers(-6, 6, (count, 1))).astype(np.float32)
    ids = rng.integers(0, 5, (1, count))
    k = Kernel(TINY, "sums")
    source = k.hbm("values", values.shape, "fp32", encode(values, "fp32"))
    sums, flat = (
        k.sbuf(name, partitions=parts, columns=columns, dtype="fp32")
        for name, parts, columns in (("sums", 5, n), ("flat", 1, 5 * n))
    )
    chosen = in_sbuf(k, "ids", ids)
    for tile in (sums, flat):
        k.vector.memset(tile[:, :], 0.0)
    k.scatter(sums[:, :], source[:, :], chosen[:, :], add="fp32", ring=0)
    k.scatter(flat[:, :].split(0, n), source[:, :], chosen[:, :], add="fp32", ring=0)
    out, same = k.hbm("out", (5, n), "fp32"), k.hbm("same", (1, 5 * n), "fp32")
    k.dma(out[:, :], sums[:, :])
    k.dma(same[:, :], flat[:, :])
    got = run(k.program())
    want = np.zeros((5, n), np.float32)
    for index, row in zip(ids[0], values, strict=True):
        want[index] += row
    assert np.array_equal(decode(got.outputs["out"], "fp32"), want)
    assert np.array_equal(decode(got.outputs["same"], "fp32").reshape(5, n), want)


def test_one_that_is_none_leaves_its_row_out_or_ends_the_run() -> None:
    ids = np.array([[3, 8, -1, 0, 7, 1 << 28]])
    for skip in (True, False):
        k = Kernel(TINY, "beyond")
        tile = k.sbuf("tile", partitions=6, columns=4, dtype="int32")
        k.vector.memset(tile[:, :], -5)
        chosen = in_sbuf(k, "ids", ids)
        k.gather(tile[:, :], given(k, "table", np.arange(32).reshape(8, 4))[:, :], chosen[:, :], skip=skip)
        k.dma(k.hbm("out", (6, 4), "int32")[:, :], tile[:, :])
        beside = k.hbm("beside", (1, 6), "int32")
        k.dma(beside[:, :], chosen[:, :], queue=Queue.SCALAR, direct=True)
        got = run(k.program())
        assert np.array_equal(got.outputs["beside"].view(np.int32), ids.astype(np.int32))
        if skip:
            rows = np.arange(32).reshape(8, 4)
            want = np.array([rows[i] if 0 <= i < 8 else [-5] * 4 for i in ids[0]])
            assert np.array_equal(got.outputs["out"].view(np.int32), want)
        else:
            (fault,) = got.faults
            assert (fault.cause, fault.address & 0x3FFFF) == (Cause.BAD_INDEX, chosen[:, :].first_byte % (1 << 18) + 4)


def test_rows_that_may_be_left_out_are_in_no_figure() -> None:
    """A bound is none of more than was moved."""
    k = Kernel(TINY, "left_out")
    tile, chosen = k.sbuf("tile", partitions=P, columns=64, dtype="int32"), in_sbuf(k, "ids", np.full((P, 1), -1))
    table = given(k, "table", np.zeros((9, 64), int))
    for _ in range(16):
        k.gather(tile[:, :], table[:, :], chosen[:, :], skip=True)
    k.dma(k.hbm("out", (P, 1), "int32")[:, :], chosen[:, :])
    program = k.program()
    got = run(program)
    assert (program.hbm_read_bytes, program.hbm_written_bytes) == (P * 4, P * 4)
    assert max(bounds(TINY, program, program.hbm_read_bytes + program.hbm_written_bytes).values()) <= got.cycles
    events = events_of(program)
    assert events["dma_bytes"] == 2 * P * 4 and events["sbuf_rows_written"]["dma"] == 2 * P
    assert events["sbuf_rows_read"]["dma"] == 2 * (16 * P + P)  # indices, and what is stored


def test_indices_that_engines_work_out() -> None:
    """What the vector engine has just written chooses: the kernel waits by itself."""
    k = Kernel(TINY, "worked_out")
    ids, table = np.arange(P).reshape(P, 1), np.arange(8 * P).reshape(P, 8)
    tile, chosen = k.sbuf("tile", partitions=P, columns=8, dtype="int32"), in_sbuf(k, "ids", ids)
    back = k.sbuf("back", partitions=P, columns=1, dtype="int32")
    k.vector.tensor_scalar(back[:, :], chosen[:, :], "multiply", -1.0, "add", float(P - 1))
    k.gather(tile[:, :], given(k, "table", table)[:, :], back[:, :])
    k.vector.memset(back[:, :], 99)  # behind the read of the indices
    k.dma(k.hbm("out", (P, 8), "int32")[:, :], tile[:, :])
    assert np.array_equal(run(k.program()).outputs["out"].view(np.int32), table[::-1])


@pytest.mark.parametrize("indices", ["down", "along"])
def test_rows_in_random_order_come_as_fast_as_in_order(indices: str) -> None:
    sizes: dict[str, Any] = {"direction": "read", "row_bytes": 512, "rows": 14 * P}
    chosen, plain = run(dma_copy(TINY, **sizes, indices=indices)), run(dma_copy(TINY, **sizes))
    assert chosen.hbm_bytes_read >= 14 * P * 512
    assert plain.cycles / chosen.cycles >= 0.7  # the indices come first


@pytest.mark.parametrize("indices", ["down", "along"])
def test_rows_go_to_random_places(indices: str) -> None:
    """Each once: the bytes are those of a permutation."""
    made = dma_copy(TINY, direction="write", row_bytes=48, rows=14 * P, indices=indices)
    got = run(made).outputs["scattered"]
    data = made.tensors["rows"].data
    assert data is not None and not np.array_equal(got, data)
    assert sorted(map(bytes, got)) == sorted(map(bytes, data))


def test_what_is_said_wrong_is_one_sentence() -> None:
    k = Kernel(TINY, "wrong")
    table, ids = given(k, "table", np.zeros((9, 4), int)), in_sbuf(k, "ids", np.zeros((1, 6), int))
    tile = k.sbuf("tile", partitions=6, columns=4, dtype="int32")
    wide = k.sbuf("wide", partitions=1, columns=12, dtype="int32")
    halves = k.sbuf("halves", partitions=1, columns=12, dtype="bf16")
    wrong: list[tuple[Any, str]] = [
        (lambda: k.gather(tile[:5, :], table[:, :], ids[:, :]), "ids has 1 x 6 indices; there are 5 x 1 rows to"),
        (lambda: k.gather(tile[:, :3], table[:, :], ids[:, :]), "the rows of table have 16 contiguous bytes"),
        (lambda: k.gather(tile[:, :], table[:, ::2], ids[:, :]), "a row of a table is contiguous"),
        (lambda: k.gather(tile[:, :], table[:, :], halves[:, :6]), "indices are int32 or uint32; halves is bf16"),
        (lambda: k.gather(tile[:, :], table[:, :], ids[:, ::2]), "lie one behind the other"),
        (lambda: k.gather(tile[:3, :], tile[:, :], ids[:, :3]), "which overlaps tile"),
        (lambda: k.gather(k.hbm("one", (4,), "int32").repeat(6), table[:, :], ids[:, :]), "one repeats elements"),
        (lambda: k.scatter(k.hbm("same", (4,), "int32").repeat(6), tile[:, :], ids[:, :]), "same repeats elements"),
        (lambda: k.gather(wide[:1, 2:6], table[:, :], wide[:1, 5:6]), "overlaps wide"),
        (lambda: k.gather(table[:, :], tile[:, :], ids[:, :]), "an input, so a kernel must not write"),
        (lambda: k.gather(tile[:, :], table[:, :], table[:, :]), "a view of a tile"),
    ]  # fmt: skip
    for call, text in wrong:
        with pytest.raises(KernelError, match=text):
            call()
    without = load("tiny", ["dma.indirect=false"])
    k = Kernel(without, "without")
    tile, ids = k.sbuf("tile", partitions=6, columns=4, dtype="int32"), in_sbuf(k, "ids", np.zeros((1, 6), int))
    with pytest.raises(KernelError, match="dma.indirect is false"):
        k.gather(tile[:, :], given(k, "table", np.zeros((9, 4), int))[:, :], ids[:, :])


@pytest.mark.parametrize(("tokens", "page"), [(1, 1), (P, 4), (2 * P + 5, 16), (30 * P - 1, 4)])
def test_an_embedding_is_rows_of_its_table(tokens: int, page: int) -> None:
    """Pages of which the last one is not full, a last block that is not, and more blocks than SBUF holds at once."""
    rng = np.random.default_rng(page)
    table, ids = rng.integers(0, 1 << 16, (50, 200), np.uint16), rng.integers(0, 50, tokens)
    made = embedding(TINY, table, ids, page=page, seed=3)
    got = run(made)
    assert np.array_equal(got.outputs["y"], table[ids])
    assert made.metrics(got.outputs) == {"wrong_elements": 0}


def test_an_embedding_refuses_what_it_cannot() -> None:
    table = np.zeros((50, 8), np.uint16)
    for ids, page, text in (([0], 3, "page must be a power of two, not 3"), ([50], 4, "numbers from 0 to 49")):
        with pytest.raises(KernelError, match=text):
            embedding(TINY, table, np.array(ids), page=page, seed=0)

"""Copies of scales to blocks of partitions: the same bytes as one copy a block, and few descriptors."""

import itertools

import numpy as np
import pytest

from firmware.engines.scales import scale_views
from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.kernels.scale_copies import copy_scales
from firmware.program import Program
from firmware.views import BlockView
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Queue, block
from rtl.contract.kinds import SCALE_ROWS, Kind, scale_partition
from rtl.contract.memmap import Space
from verif.golden.machine import GoldenMachine

FULL = named("full")
TWO_RINGS = load("full", ["dma.rings=2"])


def program(cfg: Config, kind: Kind, slot: int, start: int, count: int) -> tuple[Program, np.ndarray]:
    """A kernel that copies the scales of `count` partitions from `start` and writes all of their tile out."""
    k = Kernel(cfg, "test")
    rows = count // SCALE_ROWS[kind]
    bits = np.arange(1, rows * 5 + 1, dtype=np.uint8).reshape(rows, 5)
    source = k.hbm("scales", bits.shape, "e8m0", bits)
    first = start // block(cfg.partitions) * block(cfg.partitions)
    tile = k.sbuf("tile", partitions=cfg.partitions - first, columns=5, dtype="e8m0", start=first)
    zeros = k.hbm("zeros", (cfg.partitions - first, 5), "e8m0", np.zeros((cfg.partitions - first, 5), np.uint8))
    k.dma(tile[:, :], zeros[:, :])
    copy_scales(k, scale_views(tile[:, :], kind, cfg.partitions, slot, start, count), source[:, :])
    out = k.hbm("out", (cfg.partitions - first, 5), "e8m0")
    k.dma(out[:, :], tile[:, :])
    want = np.zeros((cfg.partitions, 5), np.uint8)
    for n in range(rows):
        want[scale_partition(kind, cfg.partitions, slot, start + n * SCALE_ROWS[kind])] = bits[n]
    return k.program(), want[first:]


@pytest.mark.parametrize(
    ("start", "count", "copies"),
    [(0, 128, 1), (0, 96, 1), (0, 72, 2), (32, 64, 1), (16, 32, 1), (16, 48, 2), (0, 32, 1), (120, 8, 1), (24, 80, 3)],
)
@pytest.mark.parametrize("slot", [0, 3])
def test_scales_come_where_their_rows_look_for_them(start: int, count: int, copies: int, slot: int) -> None:
    made, want = program(FULL, Kind.QUAD, slot, start, count)
    assert sum(len(ring) for ring in made.rings) == 2 + copies
    for seed in (None, 1, 2):
        machine = GoldenMachine(FULL, seed)
        machine.load(build_image(made))
        assert np.array_equal(machine.run().outputs["out"], want)


def test_without_a_third_ring_scales_go_with_the_data() -> None:
    made, want = program(TWO_RINGS, Kind.QUAD, 1, 0, 128)
    assert [len(ring) for ring in made.rings] == [2, 1]
    machine = GoldenMachine(TWO_RINGS)
    machine.load(build_image(made))
    assert np.array_equal(machine.run().outputs["out"], want)


def test_rows_of_different_movers_come_first() -> None:
    """A descriptor's rows go to the mover of their partition, the innermost dimension fastest."""
    made, _ = program(FULL, Kind.QUAD, 0, 0, 128)
    (scales,) = made.rings[2]
    assert scales.destination.space == Space.SBUF
    (blocks, _, far), (rows, _, near) = scales.dims
    assert (blocks, rows) == (4, 4) and far == 32 * near


def test_a_block_view_is_an_end_of_a_copy_and_waits_for_all_between() -> None:
    k = Kernel(FULL, "test")
    tile = k.sbuf("t", partitions=128, columns=4, dtype="fp32")
    view = BlockView(tile[8:12, :2], 3, 32)
    assert view.shape == (3, 4, 2) and view.box == ((8, 76), (view.first.offset, view.first.offset + 8))
    x = k.hbm("x", (12, 2), "fp32", np.zeros((12, 2), np.uint32))
    k.dma(view, x[:, :].split(0, 4))
    k.dma(k.hbm("y", (1, 4), "fp32")[:, :], tile[40:41, :])
    (release,) = k.program().queues[Queue.GPSIMD]
    assert release.waits  # the store, for what came to the partitions around it
    with pytest.raises(KernelError, match="same shape"):
        k.dma(view, x[:8, :].split(0, 4))
    with pytest.raises(KernelError):
        k.vector.copy(view, tile[:4, :2])  # type: ignore[arg-type]


def test_a_chunk_of_mx_operands_is_two_copies() -> None:
    """Data and scales of a chunk: were scales a copy a block, a ring's four descriptors would be scales."""
    made = find_workload("gemm").build(FULL, {"m": 16, "k": 4096, "n": 1024, "dtype": "mxfp8"}, 0)
    data, _, scales = made.rings
    chunks = list(itertools.chain(data))
    assert len(chunks) == len(scales) and len(chunks) >= 16

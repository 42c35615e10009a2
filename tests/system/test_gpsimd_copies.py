"""Programs on GPSIMD cores that copy between HBM and SBUF: compiled, in kernels, on RTL and golden machine."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from firmware.gpsimd.build import build
from firmware.gpsimd.options import Options
from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.views import KernelError
from rtl.contract.config import load, named
from rtl.contract.gpsimd import FAULT
from rtl.contract.isa import Cause
from rtl.contract.memmap import ADDRESS
from sim.report.programs import ended
from sim.toolchain import ROOT
from verif.checks.gpsimd_beside import Beside, beside
from verif.golden.machine import GoldenMachine

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang: make firmware-tools"),
]
TINY = named("tiny")
STREAM = ROOT / "firmware" / "gpsimd" / "apps" / "stream.cpp"

TURN = r"""
#include <plexus/view.h>
/* Rows of HBM, the last first, to HBM by way of a tile: its own copies, in and out, piece by piece. */
static gp_descriptor in[4], out[4];
GP_ENTRY(turn) {
    const gp::View<int32_t> tile(GP_DST);
    const uint32_t rows = tile.end() - tile.begin(), number = gp_core() * gp_lanes() + tile.begin();
    const uint32_t all = tile.pattern().partition_count, row_bytes = tile.count() * 4 / 4;
    const uint32_t here = uint32_t(gp_imm1() >> PLEXUS_CORE_ID_LSB), mine = number - tile.pattern().partition_start;
    if (!rows) return 0;
    for (uint32_t n = 0; n < 4; n++) {
        const uint64_t sbuf = uint64_t(number) * PLEXUS_PARTITION_STRIDE_BYTES + tile.pattern().offset + n * row_bytes;
        const uint64_t at = gp_address(PLEXUS_SPACE_SBUF, sbuf, here);
        gp_descriptor_copy(&in[n], at, gp_imm1() + mine * 4 * row_bytes + n * row_bytes, row_bytes, rows,
                           PLEXUS_PARTITION_STRIDE_BYTES, 4 * row_bytes);
        gp_dma_push(&in[n]);
    }
    for (uint32_t n = 0; n < 4; n++) {
        gp_dma_wait(n + 1);
        const uint64_t sbuf = uint64_t(number) * PLEXUS_PARTITION_STRIDE_BYTES + tile.pattern().offset + n * row_bytes;
        for (uint32_t p = 0; p < rows; p++)
            for (uint32_t i = 0; i < row_bytes / 4; i++) tile(tile.begin() + p, n * row_bytes / 4 + i) += int32_t(n);
        gp_descriptor_copy(&out[n], gp_imm2() + (all - 1 - mine) * 4 * row_bytes + n * row_bytes,
                           gp_address(PLEXUS_SPACE_SBUF, sbuf, here), row_bytes, rows,
                           -int64_t(4 * row_bytes), PLEXUS_PARTITION_STRIDE_BYTES);
        gp_dma_push(&out[n]);
    }
    return 0; /* the run waits for what is still under way */
}
"""

BAD = r"""
#include <plexus/gp.h>
static gp_descriptor d;
GP_ENTRY(bad) {
    if (gp_core() != 1) gp_wait_semaphore_ge(0, 1000);
    gp_descriptor_copy(&d, gp_address(PLEXUS_SPACE_SBUF, 0, 0), gp_imm1(), uint32_t(gp_imm2()), 1, 0, 0);
    gp_dma_push(&d);
    gp_wait_semaphore_ge(0, 1000);
    return 0;
}
"""


@pytest.fixture(scope="module")
def turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("turn"), TURN)


@pytest.fixture(scope="module")
def stream() -> Path:
    return build([STREAM], options=Options(vector=False)).path


def compiled(folder: Path, text: str) -> Path:
    source = folder / "program.cpp"
    source.write_text(text)
    return build([source], options=Options(vector=False), output=folder / "program.elf").path


def both(k: Kernel, seed: int | None = None) -> Beside:
    found = beside(k.cfg, build_image(k.program()), seed)
    assert found.differences == []
    return found


@pytest.mark.parametrize("columns", [1, 23, 24, 200])
def test_sums_of_rows_that_do_not_fit(stream: Path, columns: int) -> None:
    """A buffer of 24 columns: one piece, a part of one, both halves, many."""
    rng = np.random.default_rng(columns)
    x = rng.integers(-(1 << 31), 1 << 31, (TINY.partitions - 1, columns)).astype(np.int32)
    k = Kernel(TINY, "stream")
    matrix, y = k.hbm("x", x.shape, "int32", x.view(np.uint32)), k.hbm("y", (len(x), 1), "int32")
    buffer, sums = (k.sbuf(n, partitions=len(x), columns=c, dtype="int32") for n, c in (("buffer", 24), ("sums", 1)))
    k.gpsimd.run(
        stream, "row_sums", src=buffer[:, :], dst=sums[:, :], args=(matrix[:, :], columns), touches=[buffer[:, :]]
    )
    k.dma(y[:, :], sums[:, :])
    assert np.array_equal(both(k).result.outputs["y"].view(np.int32)[:, 0], x.sum(axis=1, dtype=np.int32))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_kernel_waits_for_the_copies_of_a_program(turn: Path, seed: int | None) -> None:
    """The program writes a tensor of HBM; the next copy of the kernel reads it."""
    rows, columns = TINY.partitions, 32
    x = np.random.default_rng(5).integers(0, 1 << 32, (rows, columns), dtype=np.uint32)
    k = Kernel(TINY, "turn")
    given, y, z = (k.hbm(n, x.shape, "int32", d) for n, d in (("x", x), ("y", None), ("z", None)))
    tile, back = (k.sbuf(n, partitions=rows, columns=columns, dtype="int32")[:, :] for n in ("tile", "back"))
    k.gpsimd.run(turn, "turn", dst=tile, args=(given[:, :], y[:, :]))
    k.dma(back, y[:, :])
    k.dma(z[:, :], back)
    found = both(k, seed).result
    want = (x.reshape(rows, 4, -1) + np.arange(4, dtype=np.uint32)[:, None]).reshape(rows, columns)[::-1]
    assert np.array_equal(found.outputs["y"], want) and np.array_equal(found.outputs["z"], want)
    read, written = found.hbm_bytes_read, found.hbm_bytes_written
    assert read >= 2 * x.nbytes and written == 2 * x.nbytes  # the program's copies are counted


def test_other_clocks(turn: Path) -> None:
    """An engine whose edges are not every second of the root clock."""
    cfg = load("tiny", ("gpsimd.clock_mhz=961", "hbm.ports=2"))
    x = np.arange(cfg.partitions * 16, dtype=np.uint32).reshape(cfg.partitions, 16)
    k = Kernel(cfg, "turn")
    given, y = k.hbm("x", x.shape, "int32", x), k.hbm("y", x.shape, "int32")
    tile = k.sbuf("tile", partitions=cfg.partitions, columns=16, dtype="int32")[:, :]
    k.gpsimd.run(turn, "turn", dst=tile, args=(given[:, :], y[:, :]))
    both(k)


@pytest.mark.parametrize(
    ("row_bytes", "address", "why", "says"),
    [
        (0, 0, Cause.BAD_DESCRIPTOR, "a row of 0 bytes"),
        (64, 3 << 40, Cause.BAD_SPACE, "neither in HBM nor in SBUF"),
        (64, (1 << 40) - 64, Cause.OUT_OF_RANGE, "lies outside its memory"),
        (64, 1 << 44, Cause.NO_ROUTE, "a core that cannot be reached"),
    ],
)
def test_a_bad_descriptor_is_a_sentence(tmp_path: Path, row_bytes: int, address: int, why: Cause, says: str) -> None:
    image = compiled(tmp_path, BAD)
    k = Kernel(TINY, "bad")
    k.gpsimd.run(
        image, "bad", args=(address, row_bytes), touches=[k.sbuf("t", partitions=1, columns=1, dtype="int32")[:, :]]
    )
    program = k.program()
    found = beside(TINY, build_image(program))
    assert found.differences == []
    (fault,) = found.result.faults
    record = FAULT.unpack(ADDRESS.unpack(fault.address)["offset"])
    assert (fault.cause, record["cause"], record["core"]) == (Cause.GP_DMA, why, 1)
    told = ended(fault, program)
    assert told.startswith("core gp1 of program.elf pushed a copy that failed: ") and says in told
    assert "gp.h:" in told or "program.cpp:" in told


def test_a_tensor_of_another_core_is_refused(turn: Path) -> None:
    near, far = Kernel(TINY, "near"), Kernel(TINY, "far", core=(0, 0, 0, 1))
    view = far.hbm("x", (8, 4), "int32", np.zeros((8, 4), np.uint32))[:, :]
    with pytest.raises(KernelError, match="is given tensor x of core"):
        near.gpsimd.run(turn, "turn", args=(view, 0))


def test_an_input_is_not_waited_for_as_if_it_were_written(turn: Path) -> None:
    """Two programs that read a tensor need no order between a copy of it and the second."""
    machine = GoldenMachine(TINY)
    k = Kernel(TINY, "twice")
    x = np.arange(TINY.partitions * 16, dtype=np.uint32).reshape(TINY.partitions, 16)
    given, outs = k.hbm("x", x.shape, "int32", x), [k.hbm(f"y{n}", x.shape, "int32") for n in range(2)]
    tile = k.sbuf("tile", partitions=TINY.partitions, columns=16, dtype="int32")[:, :]
    for out in outs:
        k.gpsimd.run(turn, "turn", dst=tile, args=(given[:, :], out[:, :]))
    machine.load(build_image(k.program()))
    found = machine.run()
    assert not found.faults and np.array_equal(found.outputs["y0"], found.outputs["y1"])

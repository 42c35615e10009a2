"""Copies that add, on whole cores: bits, rates beside those of copies, order, ends in faults."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.kernels.dma_copy import dma_copy
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config, named
from rtl.contract.descriptor import DmaAdd
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

TINY = named("tiny")


def run(cfg: Config, program: Program) -> RunResult:
    """On RTL, compared with the golden machine."""
    image = build_image(program)
    with VerilatedDevice(cfg, build_core(cfg).binary) as device:
        device.load(image)
        got = device.run()
    machine = GoldenMachine(cfg)
    machine.load(image)
    want = machine.run()
    assert got.end == "done", got.faults
    for name, bits in want.outputs.items():
        assert np.array_equal(got.outputs[name], bits), name
    return got


def copying(program: Program) -> Program:
    """The same traffic without a sum."""
    program.rings = [[replace(d, add=DmaAdd.COPY) for d in ring] for ring in program.rings]
    return program


@pytest.mark.parametrize("direction", ["read", "inside", "sbuf"])
@pytest.mark.parametrize("add", ["fp32", "bf16", "int32"])
def test_adds_at_the_rate_of_a_copy(direction: str, add: str) -> None:
    sizes: dict[str, Any] = {"direction": direction, "row_bytes": 512, "rows": 256}
    summed = run(TINY, dma_copy(TINY, **sizes, add=add))
    copied = run(TINY, copying(dma_copy(TINY, **sizes, add=add)))
    assert copied.cycles / summed.cycles >= 0.95


def test_rows_of_one_ring_are_added_in_order() -> None:
    """Eight slots into one row, whose sum depends on the order; then more of the same ring, without a wait."""
    rng = np.random.default_rng(1)
    p, n, slots = TINY.partitions, 24, 8
    sizes = 10.0 ** rng.integers(-6, 6, (1, 1, n))
    values = (rng.standard_normal((slots + 2, p, n)) * sizes).astype(np.float32)
    k = Kernel(TINY, "slots")
    source = k.hbm("slots", values.shape, "fp32", encode(values, "fp32"))
    here = k.sbuf("here", partitions=p, columns=(slots + 1) * n, dtype="fp32")
    total = k.sbuf("total", partitions=p, columns=n, dtype="fp32")
    out = k.hbm("out", (p, n), "fp32")
    k.dma(here[:, :].split(0, n), source[: slots + 1].permute((1, 0, 2)))
    k.dma(total[:, :], here[:, slots * n :])
    k.dma(total[:, :].repeat(slots), here[:, : slots * n].split(0, n), add="fp32")
    k.dma(total[:, :], source[slots + 1], add="fp32")
    k.dma(out[:, :], total[:, :])
    program = k.program()
    waits = [i.waits for q in program.queues.values() for i in q]
    got = run(TINY, program)
    want = values[slots]
    for row in (*values[:slots], values[slots + 1]):
        want = want + row
    assert np.array_equal(decode(got.outputs["out"], "fp32"), want)
    assert sum(map(len, waits)) == 2, "the slots wait for what they read, the result for the sums; sums wait for no sum"


def test_specials() -> None:
    """Zeros of both signs, infinities, NaNs with payloads, subnormals: all pairs, in FP32 and BF16."""
    ends = [
        0,
        1,
        0x7FFFFF,
        0x800000,
        0x3F800000,
        0x3F808000,
        0x3F818000,
        0x7F7FFFFF,
        0x7F800000,
        0x7F800001,
        0x7FC12345,
    ]
    words = np.array([s << 31 | e for s in (0, 1) for e in ends], np.uint32)
    a, b = (x.reshape(-1) for x in np.meshgrid(words, words))
    for add, kind in (("fp32", np.uint32), ("bf16", np.uint16)):
        shift = 0 if add == "fp32" else 16
        x, y = ((v >> shift).astype(kind)[None, :] for v in (a, b))
        k = Kernel(TINY, "specials")
        tile = k.sbuf("tile", partitions=1, columns=x.shape[1], dtype=add)
        out = k.hbm("out", x.shape, add)
        k.dma(tile[:, :], k.hbm("x", x.shape, add, x)[:, :])
        k.dma(tile[:, :], k.hbm("y", x.shape, add, y)[:, :], add=add)
        k.dma(out[:, :], tile[:, :])
        got = run(TINY, k.program()).outputs["out"].reshape(-1)
        with np.errstate(all="ignore"):
            exact = (x.astype(np.uint32) << shift).view(np.float32) + (y.astype(np.uint32) << shift).view(np.float32)
        exact[np.isnan(exact)] = np.nan  # the canonical one
        want = encode(exact, add).reshape(-1)
        assert np.array_equal(got, want), add


@pytest.mark.parametrize(
    ("said", "make"),
    [
        ("adds fp32, bf16, int32, not 'fp16'", lambda k, t, h: k.dma(t[:, :], h[:, :], add="fp16")),
        ("takes bf16", lambda k, t, h: k.dma(t[:, :], h[:, :], add="bf16")),
        ("adds beside SBUF, not in HBM", lambda k, t, h: k.dma(k.hbm("o", h.shape, "fp32")[:, :], h[:, :], add="fp32")),
        (
            "the two must not overlap, or be the same elements",
            lambda k, t, h: k.dma(t[:, 4:8].repeat(2), t[:, :].split(0, 4), add="fp32"),
        ),
        (
            "only a source, or a sum, may do",
            lambda k, t, h: k.dma(t[:, :].repeat(2), h[:, :].repeat(2).permute((1, 0, 2))),
        ),
    ],
)
def test_what_a_sum_may_not_be(said: str, make: Any) -> None:
    k = Kernel(TINY, "wrong")
    tile = k.sbuf("tile", partitions=TINY.partitions, columns=8, dtype="fp32")
    data = k.hbm("data", (TINY.partitions, 8), "fp32", np.zeros((TINY.partitions, 8), np.uint32))
    with pytest.raises(KernelError, match=said):
        make(k, tile, data)


@pytest.mark.parametrize(
    ("said", "params"),
    [
        ("row_bytes=6 is no multiple of the 4 bytes of an element of add=fp32", {"add": "fp32", "row_bytes": 6}),
        ("add=bf16 is done beside SBUF; direction=write writes to HBM", {"add": "bf16", "direction": "write"}),
        ("add must be one of fp32, bf16, int32, not 'fp16'", {"add": "fp16"}),
    ],
)
def test_what_the_workload_does_not_add(said: str, params: dict[str, Any]) -> None:
    with pytest.raises(KernelError, match=said):
        dma_copy(TINY, **params)


@pytest.mark.parametrize("rows", [1, TINY.partitions - 1, TINY.partitions, TINY.partitions + 1, None])
@pytest.mark.parametrize("row_bytes", [4, 20, TINY.sbuf.partition_bytes])
def test_the_workload_adds_all_its_rows(rows: int | None, row_bytes: int) -> None:
    program = dma_copy(TINY, rows=rows, row_bytes=row_bytes, add="int32")
    added = sum(d.bytes for ring in program.rings for d in ring if d.add)
    assert added == row_bytes * (rows or TINY.partitions * max(1, TINY.sbuf.partition_bytes // 2 // row_bytes))

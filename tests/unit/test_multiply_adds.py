"""Multiply-adds that are counted where a kernel says none."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import plexus
from firmware.kernels.gemm import gemm
from firmware.multiply_adds import NOTE, counted
from firmware.program import Program
from rtl.contract.config import load

GOLDEN: Any = {"config": "tiny", "device": "golden"}


def product(k: plexus.Kernel, x: Any, w: Any, part: str = "") -> None:
    """x^T w, as often as there are blocks of 8 rows."""
    (depth, m), n = x.shape, w.shape[1]
    sums, out = k.psum("sums", partitions=m, columns=n), k.sbuf("out", partitions=m, columns=n, dtype="fp32")
    for i in range(0, depth, 8):
        rows = min(8, depth - i)
        left, right = (
            k.sbuf(f"{v.tensor.name}{i}", partitions=rows, columns=c, dtype=v.dtype) for v, c in ((x, m), (w, n))
        )
        k.dma(left[:, :], x[i : i + rows, :])
        k.dma(right[:, :], w[i : i + rows, :])
        k.tensor.load(left[:, :])
        k.tensor.matmul(right[:, :], sums[:, :], accumulate=i > 0, part=part)
    k.vector.copy(out[:, :], sums[:, :])
    k.dma(k.hbm("y", (m, n), "fp32")[:, :], out[:, :])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_macs_of_a_kernel_that_says_none(dtype: Any) -> None:
    arrays = {"x": np.ones((20, 5), dtype), "w": np.ones((20, 31), dtype)}
    report = plexus.run(product, arrays, **GOLDEN).report
    assert report["macs"] == 20 * 5 * 31 and report["notes"] == [NOTE]


def test_what_a_kernel_says_stays() -> None:
    def said(k: plexus.Kernel, x: Any, w: Any) -> Program:
        product(k, x, w)
        return k.program(macs=7)

    arrays = {"x": np.ones((8, 5), np.float32), "w": np.ones((8, 6), np.float32)}
    report = plexus.run(said, arrays, **GOLDEN).report
    assert report["macs"] == 7 and report["notes"] == []
    turned = plexus.run(lambda k, x, w: product(k, x, w, "transpose"), arrays, **GOLDEN).report
    assert turned["macs"] == 0 and turned["notes"] == []


@pytest.mark.parametrize(("dtype", "each"), [("bf16", 1), ("fp32", Fraction(1, 4)), ("fp8", 2), ("mxfp8", 4)])
def test_as_a_workload_that_says_them(dtype: str, each: Fraction | int) -> None:
    cfg = load("tiny", ["tensor.mx=true"])
    program = gemm(cfg, np.ones((6, 64)), np.ones((64, 24)), dtype=dtype)
    wanted = program.macs
    program.macs, program.pe_macs = 0, Fraction(1)
    found = counted(program)
    assert (found.macs, found.pe_macs) == (wanted, each) and program.macs == 0

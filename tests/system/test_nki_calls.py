"""Calls of NKI that are lowered, and MX, on the RTL of `tiny`: every bit that of the golden machine."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus

pytestmark = pytest.mark.sim

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef f(x, y):\n"
MX = """
    tiles = []
    for data, columns in ((x, 8), (y, 32)):
        beside = nl.ndarray((8, columns, 4), data.dtype)
        nisa.dma_copy(dst=beside, src=data.ap([[columns, 8], [1, columns], [8 * columns, 4]]))
        tile, s = nl.ndarray((8, columns), nl.float8_e5m2_x4), nl.ndarray((1, columns), nl.uint8)
        nisa.quantize_mx(dst=tile, src=beside.reshape((8, 4 * columns)), dst_scale=s)
        tiles += [tile, s]
    sums = nl.ndarray((8, 32), nl.bfloat16, buffer=nl.psum)
    nisa.nc_matmul_mx(sums, tiles[0], tiles[2], tiles[1], tiles[3])
    out = nl.ndarray((8, 32), nl.bfloat16, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=sums)
    return out
"""
LOWERED = """
    tile, other, whole = nl.load(x), nl.load(y), nl.ndarray((8, 40), x.dtype)
    sums = nl.ndarray((1, 40), x.dtype)
    nisa.nc_stream_shuffle(dst=other[0:8], src=tile[0:1], shuffle_mask=[0] * 8)
    whole[...] = nl.floor(tile)
    i = nl.mgrid[0:8, 0:40]
    nisa.tensor_tensor(dst=whole, data1=tile, data2=other, op=nl.add, mask=i.x > i.p)
    nisa.tensor_partition_reduce(sums, nl.add, whole)
    out = nl.ndarray((18, 40), x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0:8], whole)
    nl.store(out[8:9], sums)
    nl.store(out[9:10], nl.rms_norm(sums, other[0:1], axis=1, n=40))
    nisa.dma_compute(dst=out[10:18], srcs=[x, y], scales=[2.0, 1.0], reduce_op=nl.add)
    return out
"""


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        (MX, (normal(32, 8, dtype=ml_dtypes.bfloat16), normal(32, 32, seed=1, dtype=ml_dtypes.bfloat16))),
        (LOWERED, (3 * normal(8, 40), normal(8, 40, seed=1))),
    ],
    ids=["mx", "lowered"],
)
def test_the_rtl_has_the_bits_of_the_golden_machine(tmp_path: Path, body: str, arrays: tuple[np.ndarray, ...]) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + body)
    result = plexus.nki.run(f"{path}:f", *arrays, config="tiny")
    golden = plexus.nki.run(f"{path}:f", *arrays, config="tiny", device="golden")
    assert result.report["match"] is True and result.cycles
    assert np.array_equal(result.output.view(np.uint8), golden.output.view(np.uint8))

"""Views by access patterns and MX products of NKI kernels, on the golden machine of `tiny`."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef f("
NAMES = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
OFFLINE = """x, xs, y, ys):
    tiles = []
    for data, scale, columns in ((x, xs, 8), (y, ys, 32)):
        seen = data.ap(pattern=[[columns, 8], [1, columns]], offset=0, dtype=nl.{name}_x4)
        assert seen.shape == (8, columns)
        tile, s = nl.ndarray(seen.shape, nl.{name}_x4), nl.ndarray((1, columns), nl.uint8)
        nisa.dma_copy(dst=tile, src=seen)
        nisa.dma_copy(dst=s, src=scale)
        tiles += [tile, s]
    sums = nl.ndarray((8, 32), nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(dst=sums, stationary=tiles[0], moving=tiles[2], stationary_scale=tiles[1], moving_scale=tiles[3])
    out = nl.ndarray((8, 32), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=sums)
    return out
"""
QUANTIZED = """x, y):
    tiles = []
    for data, columns in ((x, 8), (y, 32)):
        flat = nl.ndarray((8, 4, columns), data.dtype)
        nisa.dma_copy(dst=flat, src=data.reshape((4, 8, columns)).ap([[columns, 8], [8 * columns, 4], [1, columns]]))
        beside = nl.ndarray((8, columns, 4), data.dtype)
        nisa.tensor_copy(dst=beside, src=flat.ap([[4 * columns, 8], [1, columns], [columns, 4]]))
        tile, s = nl.ndarray((8, columns), nl.float8_e4m3fn_x4), nl.ndarray((1, columns), nl.uint8)
        nisa.quantize_mx(dst=tile, src=beside.reshape((8, 4 * columns)), dst_scale=s)
        tiles += [tile, s]
    sums = nl.ndarray((8, 32), nl.bfloat16, buffer=nl.psum)
    nisa.nc_matmul_mx(sums, tiles[0], tiles[2], tiles[1], tiles[3])
    out = nl.ndarray((8, 32), nl.bfloat16, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=sums)
    return out
"""


def run(tmp_path: Path, text: str, *arrays: Any, config: str = "tiny") -> np.ndarray:
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + text)
    return plexus.nki.run(f"{path}:f", *arrays, config=config, device="golden").output


def packed(values: np.ndarray) -> np.ndarray:
    """As a host hands it over: FP8 by four in uint32, FP4 by two in uint8."""
    bits = values.view(np.uint8)
    return (bits[:, ::2] | bits[:, 1::2] << 4) if values.dtype == NAMES["float4_e2m1fn"] else bits.view(np.uint32)


@pytest.mark.parametrize("name", NAMES)
def test_a_product_of_packed_operands(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    given, worth = [], []
    for columns in (8, 32):
        values = rng.standard_normal((8, 4 * columns)).astype(NAMES[name])
        scale = rng.integers(124, 130, (1, columns)).astype(np.uint8)
        given += [packed(values), scale]
        factors = np.exp2(scale.astype(np.float64) - 127)[:, :, None]
        worth.append(values.astype(np.float64).reshape(8, columns, 4) * factors)
    found = run(tmp_path, OFFLINE.format(name=name), *given)
    wanted = np.einsum("kmq,knq->mn", *worth)
    assert np.abs(found - wanted).max() < 1e-6 * np.abs(wanted).max()


def test_a_product_of_what_the_machine_quantises(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((32, n)).astype(ml_dtypes.bfloat16) for n in (8, 32))
    found = run(tmp_path, QUANTIZED, x, y).astype(np.float64)
    wanted = x.astype(np.float64).T @ y.astype(np.float64)
    assert 0 < np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def copied(view: str, shape: str) -> str:
    return f"""x):
    tile, to = nl.ndarray((8, 12), x.dtype), nl.ndarray({shape}, x.dtype)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=to, src={view})
    out = nl.ndarray({shape}, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=to)
    return out
"""


@pytest.mark.parametrize("memory", ["x", "tile"])
def test_views_read_what_a_pattern_says(tmp_path: Path, memory: str) -> None:
    """A pattern counts elements of the whole array, the same in HBM and on the chip."""
    x = np.arange(96, dtype=np.float32).reshape(8, 12)
    found = run(tmp_path, copied(f"{memory}.ap([[24, 3], [5, 2], [1, 4]], offset=26)", "(3, 2, 4)"), x)
    grid = np.ogrid[:3, :2, :4]
    assert np.array_equal(found, x.reshape(-1)[26 + 24 * grid[0] + 5 * grid[1] + grid[2]])


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        ("x.ap([[12, 8], [1, 12]], offset=1)", "reaches from 1 to 96 along an axis of 96"),
        ("tile.ap([[12, 9], [1, 12]])", "reaches from 0 to 8 along an axis of 8"),
        ("tile.ap([[6, 8], [1, 6]])", "its step is a multiple of 12, not 6"),
        ("tile.ap([[12, 8], [2, 8]])", "reaches from 0 to 14 along an axis of 12"),
        ("tile.ap([[12, 0]])", r"\[\[step, count\], ...\]"),
        ("tile[:, 0:12:2].ap([[6, 8], [1, 6]])", "side by side"),
        ("x.ap([[12, 8], [1, 12]], vector_offset=tile)", "addresses are known before it runs"),
        ("x.ap([[24, 8], [1, 24]], dtype=nl.uint16)", "which is wider"),
        ("x.ap([[1, 8]], dtype='nothing')", "no dtype"),
    ],
)
def test_wrong_views_get_a_sentence(tmp_path: Path, view: str, sentence: str) -> None:
    x = np.zeros((8, 12), np.float32)
    with pytest.raises(plexus.Error, match=f"kernels.py:[0-9]+: .*{sentence}"):
        run(tmp_path, copied(view, "(8, 12)" if "24" not in view else "(8, 24)"), x)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("nl.ndarray((1, columns), nl.uint8)", "nl.ndarray((1, columns), nl.int8)", "scales of uint8"),
        ("nl.float8_e4m3fn_x4)", "nl.bfloat16)", "takes a packed format"),
        ("nl.float8_e4m3fn_x4)", "nl.float4_e2m1fn_x4)", "no FP4"),
        ("(8, 4 * columns)), dst_scale", "(8, 4 * columns))[:, 0:16], dst_scale", "gives 8 x 4"),
        ("tiles[0], tiles[2]", "tiles[2], tiles[2]", "the operands' free axes"),
    ],
)
def test_wrong_calls_get_a_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    x, y = (np.zeros((32, n), ml_dtypes.bfloat16) for n in (8, 32))
    assert old in QUANTIZED
    with pytest.raises(plexus.Error, match=sentence):
        run(tmp_path, QUANTIZED.replace(old, new), x, y)


def test_a_machine_without_mx_gets_a_sentence(tmp_path: Path) -> None:
    x, y = (np.zeros((32, n), ml_dtypes.bfloat16) for n in (8, 32))
    with pytest.raises(plexus.Error, match="quantize_mx needs an array with MX, and trn2 has none"):
        run(tmp_path, QUANTIZED, x, y, config="trn2")


DOUBLE = """x, y):
    a, b = nl.ndarray((8, 2, 8), x.dtype), nl.ndarray((8, 2, 32), y.dtype)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)
    sums = nl.zeros((8, 32), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=sums, stationary=a, moving=b, perf_mode=MODE)
    out = nl.ndarray((8, 32), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=sums)
    return out
"""


def test_two_rows_at_once(tmp_path: Path) -> None:
    x, y = (np.random.default_rng(n).standard_normal((8, 2, n)).astype(ml_dtypes.float8_e4m3fn) for n in (8, 32))
    found = run(tmp_path, DOUBLE.replace("MODE", "nisa.matmul_perf_mode.double_row"), x, y)
    wanted = np.einsum("kim,kin->mn", x.astype(np.float64), y.astype(np.float64))
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(plexus.Error, match="perf_mode none or double_row here, not double_pixel"):
        run(tmp_path, DOUBLE.replace("MODE", "'double_pixel'"), x, y)

"""`import plexus`: infinities, NaN and narrow formats come out as they must, whatever NumPy is set to do about them."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus
from firmware.packing import quantise_mx, quantise_nvfp4, unpack
from sim.run.host_arrays import host_array

NARROW: Any = {"config": "tiny", "device": "golden", "settings": {"tensor.mx": True, "tensor.nvfp4": True}}
GOLDEN: Any = {"config": "tiny", "device": "golden"}
SPECIALS = (np.inf, -np.inf, np.nan)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.mark.parametrize("dtype", ["mxfp8", "mxfp4", "w4a8", "fp8"])
@pytest.mark.parametrize(("side", "special"), list(itertools.product((0, 1), SPECIALS)))
def test_a_special_number_makes_its_row_or_column_nan(dtype: str, side: int, special: float) -> None:
    operands = [normal(4, 64), normal(64, 5, seed=1)]
    operands[side][(1, 40) if side == 0 else (40, 2)] = special
    found = np.isnan(plexus.gemm(*operands, dtype=dtype, **NARROW)["c"])
    expected = np.zeros((4, 5), bool)
    expected[(1, slice(None)) if side == 0 else (slice(None), 2)] = True
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("special", SPECIALS)
def test_nvfp4_has_one_factor_so_all_is_nan(special: float) -> None:
    x = normal(4, 64)
    x[1, 40] = special
    assert np.isnan(plexus.gemm(x, normal(64, 5), dtype="nvfp4", **NARROW)["c"]).all()
    assert np.isnan(quantise_nvfp4(x.T).values()).all()


@pytest.mark.parametrize("base", ["e4m3fn", "e5m2", "e2m1"])
@pytest.mark.parametrize("special", SPECIALS)
def test_a_block_with_a_special_number_has_the_scale_of_a_nan(base: str, special: float) -> None:
    x = normal(96, 3)
    whole = quantise_mx(x, base)
    x[35, 1] = special
    made = quantise_mx(x, base)
    assert made.scales is not None and whole.scales is not None
    codes, before = (unpack(one.elements, one.dtype) for one in (made, whole))
    assert made.scales[1, 1] == 0xFF and not codes[32:64, 1].any()
    assert np.isnan(made.values()[32:64, 1]).all() and np.isfinite(np.delete(made.values(), 1, axis=1)).all()
    codes[32:64, 1], made.scales[1, 1] = before[32:64, 1], whole.scales[1, 1]
    assert np.array_equal(codes, before) and np.array_equal(made.scales, whole.scales), "other blocks have changed"


def test_numpy_may_raise_at_what_the_machine_computes() -> None:
    x = normal(4, 8)
    x[1, 2], x[2, 3] = np.inf, np.nan
    wide = x.astype(np.float64) * 1e300
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in ("fp32", "bf16", "fp16"):
            plexus.gemm(wide, wide.T, dtype=dtype, **GOLDEN)
        plexus.softmax(wide, **GOLDEN)
        plexus.layernorm(wide, **GOLDEN)
        plexus.attention(wide[None], wide[None], wide[None], **GOLDEN)
        plexus.gemm(np.tile(wide, 4), np.tile(wide, 4).T, dtype="mxfp8", **NARROW)
        assert np.geterr()["invalid"] == "raise"


def test_moe_of_a_nan_has_a_result() -> None:
    x = normal(6, 8)
    x[2, 3] = np.nan
    for router in ("vector", "gpsimd"):
        got = plexus.moe(
            x, normal(8, 3, seed=1), normal(3, 8, 4, seed=2), top_k=1, mode="whole", router=router, **GOLDEN
        )
        assert np.isnan(got["y"][2]).all() and np.isfinite(np.delete(got["y"], 2, axis=0)).all()
        assert 0 <= got.metrics["routes_agree"] <= 1


def test_shares_of_experts_are_those_of_the_chosen_ones() -> None:
    x, gate, weights = normal(5, 8), normal(8, 3, seed=1), normal(3, 8, 4, seed=2)
    got = plexus.moe(x, gate, weights, top_k=2, mode="whole", dtype="fp32", **GOLDEN)["y"]
    bf16 = [a.astype(ml_dtypes.bfloat16).astype(np.float64) for a in (x, gate)]
    scores = bf16[0] @ bf16[1]
    for t, row in enumerate(scores):
        best = np.argsort(-row)[:2]
        shares = np.exp(row[best]) / np.exp(row[best]).sum()
        want = sum(share * (x[t].astype(np.float64) @ weights[e]) for share, e in zip(shares, best, strict=True))
        assert np.allclose(got[t], want, atol=1e-4)
    even = plexus.moe(x, gate, weights, top_k=1, mode="whole", dtype="fp32", route="even", **GOLDEN)["y"]
    assert np.allclose(even, np.einsum("td,tdf->tf", x, weights[np.arange(5) % 3]), atol=1e-4)


def test_transpose_as_a_product_loses_the_sign_of_zero() -> None:
    x = np.full((2, 3), -0.0, ml_dtypes.bfloat16)
    assert np.signbit(plexus.transpose(x, **GOLDEN)["y"].astype(np.float32)).all()
    assert not np.signbit(plexus.transpose(x, engine="identity", **GOLDEN)["y"].astype(np.float32)).any()


def test_fp32_by_passes_of_bf16_has_no_infinity() -> None:
    """What the page says about dtype fp32: a number that the first half rounds up to infinity is lost."""
    a = np.full((1, 4), np.finfo(np.float32).max)
    assert np.isnan(plexus.gemm(a, np.eye(4), dtype="fp32", **GOLDEN)["c"]).any()


@pytest.mark.parametrize(
    "kind",
    ["float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn"],
)
def test_narrow_floats_of_ml_dtypes_are_widened_exactly(kind: str) -> None:
    x = (np.arange(16).reshape(2, 8) / 4).astype(getattr(ml_dtypes, kind))
    found = host_array("x", x)
    assert found.dtype == "fp32" and np.array_equal(found.values, x.astype(np.float32))


def test_fp4_feeds_mxfp4_without_loss() -> None:
    x = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6] * 8).reshape(2, 32).astype(ml_dtypes.float4_e2m1fn)
    got = plexus.gemm(x, x.T, dtype="mxfp4", **NARROW)
    wide = x.astype(np.float64)
    assert np.array_equal(got["c"], wide @ wide.T)


@pytest.mark.parametrize("kind", ["float8_e5m2", "float8_e4m3"])
def test_fp8_that_no_dtype_names_is_a_product_in_fp32(kind: str) -> None:
    x = normal(4, 8).astype(getattr(ml_dtypes, kind))
    assert plexus.gemm(x, x.T, **GOLDEN).report["params"]["dtype"] == "fp32"


def test_a_run_on_the_golden_machine_leaves_no_old_trace(tmp_path: Path) -> None:
    (tmp_path / "trace.npz").write_bytes(b"of another run")
    plexus.softmax(normal(2, 3), folder=tmp_path, **GOLDEN)
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]

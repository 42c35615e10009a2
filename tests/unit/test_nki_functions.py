"""Functions of nki.language that are lowered to several instructions, on the golden machine."""

from pathlib import Path

import numpy as np
import pytest

import plexus

HEAD = "import nki\nimport nki.language as nl\n\n\n@nki.jit\ndef f(x, w):\n    tile, weight = nl.load(x), nl.load(w)\n"
X = np.random.default_rng(0).standard_normal((8, 24), np.float32)
W = np.random.default_rng(1).standard_normal((1, 24), np.float32)
ENDS = np.array(
    [0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 1e-30, -1e-30, 3.0, -3.0, 8388607.5, -8388607.5]
    + [
        2.0**23,
        2.0**24 + 2,
        -(2.0**31),
        2.0**31,
        2.0**31 - 128,
        3e38,
        -3e38,
        np.inf,
        -np.inf,
        np.nan,
        0.99999994,
        -7.25,
    ],
    np.float32,
)


def run(tmp_path: Path, expression: str, x: np.ndarray) -> np.ndarray:
    path = tmp_path / "kernels.py"
    path.write_text(
        f"{HEAD}    y = {expression}\n    out = nl.ndarray(y.shape, y.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, y)\n    return out\n"
    )
    return plexus.nki.run(f"{path}:f", x, W, config="tiny", device="golden").output


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_roundings_are_exact(tmp_path: Path, name: str) -> None:
    x = np.concatenate([ENDS[None], X[:3] * 1000, X[:4] * 1e8]).astype(np.float32)
    found = run(tmp_path, f"nl.{name}(tile)", x)
    assert np.array_equal(found, getattr(np, name)(x), equal_nan=True)


def test_norms_products_and_variances(tmp_path: Path) -> None:
    wide = X.astype(np.float64)
    assert np.allclose(run(tmp_path, "nl.prod(tile, axis=1)", X)[:, 0], wide.prod(1), rtol=1e-5)
    assert np.allclose(run(tmp_path, "nl.var(tile, axis=[1], keepdims=True)", X)[:, 0], wide.var(1), rtol=1e-5)
    wanted = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * W
    found = run(tmp_path, "nl.rms_norm(tile, weight, axis=1, n=24, epsilon=1e-5)", X)
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_other_axes_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(plexus.Error, match="over all its free axes here, not over"):
        run(tmp_path, "nl.prod(tile.reshape((8, 4, 6)), axis=2)", X)

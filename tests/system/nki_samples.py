"""Tutorials of aws-neuron/nki-samples, unmodified: PLEXUS_NKI=DIR pytest tests/system/nki_samples.py, DIR a checkout.
docs/nki.md has the results. Not collected by itself, for the kernels are not part of this repository."""

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus

TUTORIALS = Path(os.environ["PLEXUS_NKI"], "src", "nki_samples", "tutorials")
MATMUL = "matrix_multiplication/matrix_multiplication_nki_kernels.py:nki_matmul"
ATTENTION = "attention_fwd_performance/attention_kernels.py:attn_fwd"
MAMBA = "fused_mamba/mamba_nki_kernels.py:mamba"
BF16 = ml_dtypes.bfloat16


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(partitions: int, columns: int, basic: bool = False) -> tuple[list[Any], np.ndarray]:
    sizes = (partitions, 64, columns) if basic else (2 * partitions, 2 * partitions, 2 * columns)
    a, b = normal(sizes[0], sizes[1], dtype=BF16), normal(sizes[0], sizes[2], dtype=BF16, seed=1)
    return [a, b], a.astype(np.float64).T @ b.astype(np.float64)


def attention(partitions: int, tokens: int) -> tuple[list[Any], np.ndarray]:
    q, k, v = (normal(partitions, tokens, seed=n) for n in range(3))
    scores = q.astype(np.float64).T @ k
    p = np.exp(scores - scores.max(1, keepdims=True))
    return [q, k, v], p / p.sum(1, keepdims=True) @ v.T


def mamba(channels: int, steps: int, state: int = 2) -> tuple[list[Any], np.ndarray]:
    delta, u = np.abs(normal(1, channels, steps)) / 10, normal(1, channels, steps, seed=1)
    a, b, c = -np.abs(normal(channels, state)), normal(1, state, steps, seed=2), normal(1, state, steps, seed=3)
    h, y = np.zeros((channels, state)), np.zeros((1, channels, steps))
    for t in range(steps):
        h = np.exp(delta[0, :, t, None].astype(np.float64) * a) * h + (delta * u)[0, :, t, None] * b[0, :, t]
        y[0, :, t] = (h * c[0, :, t]).sum(1)
    return [delta, u, a, b, c], y


def added() -> tuple[list[Any], np.ndarray]:
    a, b = normal(512, 1024, dtype=np.float16), normal(512, 1024, dtype=np.float16, seed=1)
    return [a, b], a + b


def turned() -> tuple[list[Any], np.ndarray]:
    x = np.arange(60, dtype=np.int8).reshape(5, 12)
    return [x, (3, 4)], x.reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12)


def pooled() -> tuple[list[Any], np.ndarray]:
    x = np.arange(72, dtype=np.float16).reshape(2, 6, 6)
    return [x, 2], x.reshape(2, 3, 2, 3, 2).mean(axis=(2, 4))


FEW_TILES = {"TILES_IN_BLOCK_M": 2, "TILES_IN_BLOCK_N": 2, "TILES_IN_BLOCK_K": 1}
CONTRIBUTED = "../../../contributed/matmul.py:matmul"
ADDITION = "tensor_addition/{}_nki_kernels.py:{}"
CASES: dict[str, Any] = {
    f"{MATMUL}_basic_": lambda p: product(p, 512, basic=True),
    **{f"{MATMUL}_{n}_": lambda p: product(p, 512) for n in ("tiled", "hoist_load", "block_free_dimension")},
    f"{MATMUL}_fully_optimized_": lambda p: product(p, 512),
    CONTRIBUTED: lambda p: product(p, 512),
    ADDITION.format("tensor_addition", "nki_tensor_add"): lambda p: added(),
    ADDITION.format("spmd_tensor_addition", "nki_tensor_add"): lambda p: added(),
    ADDITION.format("spmd_multiple_nc_tensor_addition", "nki_tensor_add_nc2"): lambda p: added(),
    "transpose2d/transpose2d_nki_kernels.py:tensor_transpose2D_kernel_": lambda p: turned(),
    "average_pool2d/average_pool2d_nki_kernels.py:tensor_avgpool_kernel": lambda p: pooled(),
    **{f"{MAMBA}_v{n}": lambda p: mamba(256, 512) for n in (1, 2, 3)},
    **{f"{ATTENTION}_v{n}": lambda p: attention(p, 128) for n in (1, 2)},
    **{f"{ATTENTION}_v{n}": lambda p: attention(p, 512) for n in (3, 4, 5, 6, 7, 8, "8a", 9)},
    **{f"{ATTENTION}_v{n}": lambda p: attention(p, 2048) for n in (10, 11)},
}


@pytest.mark.parametrize("name", CASES)
def test_on_the_golden_machine_of_trn2(name: str) -> None:
    arrays, wanted = CASES[name](128)
    more = FEW_TILES if "fully" in name or name == CONTRIBUTED else {}
    found = plexus.nki.run(f"{TUTORIALS}/{name}", *arrays, arguments=more, config="trn2", device="golden").output
    error = np.abs(found.astype(np.float64) - wanted.reshape(found.shape)).max() / np.abs(wanted).max()
    assert error < 1e-2


@pytest.mark.sim
@pytest.mark.parametrize("name", CASES)
def test_on_the_rtl_of_trn2(name: str) -> None:
    arrays, _ = CASES[name](128)
    more = FEW_TILES if "fully" in name or name == CONTRIBUTED else {}
    assert plexus.nki.run(f"{TUTORIALS}/{name}", *arrays, arguments=more, config="trn2").report["match"] is True

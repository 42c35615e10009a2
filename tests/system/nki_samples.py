"""Tutorials of aws-neuron/nki-samples, unmodified: PLEXUS_NKI=DIR pytest tests/system/nki_samples.py, DIR a checkout.
docs/nki.md has the results. Not collected by itself, for the kernels are not part of this repository."""

import importlib
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


MX = "mxfp-matmul/mx_kernels.py:kernel_"
E4M3, E5M2, FP4 = (getattr(ml_dtypes, name) for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"))


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tutorial's own NumPy references of MX, and arrays that its formats hold exactly."""
    monkeypatch.syspath_prepend(str(TUTORIALS / "mxfp-matmul"))
    np.random.seed(0)  # noqa: NPY002 -- it is what they draw from
    return importlib.import_module("mx_cpu_utils")


def offline(samples: Any, left: Any, right: Any) -> tuple[list[Any], np.ndarray]:
    _, _, a, scale_a = samples.generate_stabilized_mx_data(left, (128, 4 * 128))
    _, _, b, scale_b = samples.generate_stabilized_mx_data(right, (128, 4 * 512))
    wanted = samples.nc_matmul_mx_golden(a, b, scale_a, scale_b, left, right)
    return [a, scale_a, b, scale_b, f"{left.__name__}_x4"], wanted


def on_device(samples: Any, left: Any, right: Any) -> tuple[list[Any], np.ndarray]:
    _, _, a, scale_a = samples.generate_stabilized_mx_data(left, (128, 4 * 128))
    values, _, _, _ = samples.generate_stabilized_mx_data(right, (128, 4 * 512))
    b, scale_b = samples.quantize_mx_golden(values, right)
    wanted = samples.nc_matmul_mx_golden(a, b, scale_a, scale_b, left, right)
    return [a, scale_a, values.astype(BF16), f"{left.__name__}_x4", f"{right.__name__}_x4"], wanted


def strided(samples: Any, fmt: Any, use_tensor_copy: bool) -> tuple[list[Any], np.ndarray]:
    a, b = (samples.generate_stabilized_mx_data(fmt, (512, n))[0] for n in (128, 512))
    return [a.astype(BF16), b.astype(BF16), f"{fmt.__name__}_x4", use_tensor_copy], a.T @ b


MX_CASES: dict[str, Any] = {
    **{f"offline_quantized_mx_matmul {f.__name__}": lambda s, f=f: offline(s, f, f) for f in (E4M3, E5M2, FP4)},
    "on_device_quantize_matmul_mx FP4 and E5M2": lambda s: on_device(s, FP4, E5M2),
    "on_device_quantize_matmul_mx E4M3": lambda s: on_device(s, E4M3, E4M3),
    "copy_strided_quantize_matmul_mx by engine": lambda s: strided(s, E5M2, True),
    "copy_strided_quantize_matmul_mx by DMA": lambda s: strided(s, E5M2, False),
}


def smooth() -> tuple[list[Any], np.ndarray]:
    torch: Any = importlib.import_module("torch")

    x = normal(1, 8, 10, 10)
    wanted = torch.nn.functional.interpolate(torch.from_numpy(x), scale_factor=2, mode="bilinear", align_corners=False)
    return [x], wanted.numpy()


def largest() -> tuple[list[Any], np.ndarray]:
    x = normal(200, 30)
    return [x, 3], np.lib.stride_tricks.sliding_window_view(x, (3, 3)).max((2, 3))


WITH_TORCH = {
    "../../../contributed/interpolate_bilinear_fwd.py:interpolate_bilinear_2x_fwd": smooth,
    "../../../contributed/maxpooling.py:max_pooling_2d_stride_1": largest,
}


def run_of(name: str, config: str, device: str, arrays: list[Any]) -> plexus.Result:
    more = FEW_TILES if "fully" in name or name == CONTRIBUTED else {}
    return plexus.nki.run(f"{TUTORIALS}/{name}", *arrays, arguments=more, config=config, device=device)  # type: ignore[arg-type]


def need_near(found: np.ndarray, wanted: np.ndarray) -> None:
    error = np.abs(found.astype(np.float64) - wanted.reshape(found.shape)).max() / np.abs(wanted).max()
    assert error < 1e-2


@pytest.mark.parametrize("name", CASES)
def test_on_the_golden_machine_of_trn2(name: str) -> None:
    arrays, wanted = CASES[name](128)
    need_near(run_of(name, "trn2", "golden", arrays).output, wanted)


@pytest.mark.parametrize("name", WITH_TORCH)
def test_files_that_import_torch_on_the_golden_machine_of_trn2(name: str) -> None:
    pytest.importorskip("torch", reason="the kernel's file imports torch, which is not installed")
    arrays, wanted = WITH_TORCH[name]()
    need_near(run_of(name, "trn2", "golden", arrays).output, wanted)


@pytest.mark.parametrize("name", MX_CASES)
def test_mx_on_the_golden_machine_of_trn3(name: str, samples: Any) -> None:
    arrays, wanted = MX_CASES[name](samples)
    found = run_of(MX + name.split()[0], "trn3", "golden", arrays).output.astype(np.float32)
    assert np.allclose(found, wanted, rtol=5e-2, atol=5e-2)  # as the tutorial compares them
    need_near(found, wanted)


@pytest.mark.sim
@pytest.mark.parametrize("name", CASES)
def test_on_the_rtl_of_trn2(name: str) -> None:
    arrays, _ = CASES[name](128)
    assert run_of(name, "trn2", "rtl", arrays).report["match"] is True


@pytest.mark.sim
@pytest.mark.parametrize("name", WITH_TORCH)
def test_files_that_import_torch_on_the_rtl_of_trn2(name: str) -> None:
    pytest.importorskip("torch", reason="the kernel's file imports torch, which is not installed")
    arrays, _ = WITH_TORCH[name]()
    assert run_of(name, "trn2", "rtl", arrays).report["match"] is True


@pytest.mark.sim
@pytest.mark.parametrize("name", MX_CASES)
def test_mx_on_the_rtl_of_trn3(name: str, samples: Any) -> None:
    arrays, _ = MX_CASES[name](samples)
    assert run_of(MX + name.split()[0], "trn3", "rtl", arrays).report["match"] is True

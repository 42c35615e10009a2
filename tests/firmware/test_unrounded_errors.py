"""Errors against the product of operands that nobody rounded, computed here from the values that a seed draws."""

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from firmware.image import build_image
from firmware.numbers import decode
from firmware.workloads import find_workload
from rtl.contract.config import load
from verif.golden.machine import GoldenMachine

CONFIG = load("tiny", ["tensor.nvfp4=true"])
M, K, N = 19, 96, 24
COSINES = {
    "bf16": (0.99999, 0.999999), "fp16": (0.9999999, 1), "tf32": (0.9999998, 1), "fp32": (1 - 1e-12, 1),
    "fp8": (0.998, 0.9999), "mxfp8": (0.998, 0.9999), "mxfp4": (0.95, 0.99), "w4a8": (0.97, 0.995),
    "nvfp4": (0.97, 0.995),
}  # fmt: skip
"""What so many bits of a normal value leave; against the rounded operands all of them are above 1 - 1e-10."""


def outcome(workload: str, params: dict[str, Any], seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metrics and outputs of a workload on the golden machine."""
    program = find_workload(workload).build(CONFIG, params, seed)
    machine = GoldenMachine(CONFIG)
    machine.load(build_image(program))
    result = machine.run()
    assert result.faults == []
    return program.metrics(result.outputs), result.outputs


def product(outputs: dict[str, np.ndarray]) -> np.ndarray:
    return decode(outputs["c"] if "c" in outputs else outputs["c_t"].T, "fp32").astype(np.float64)


def holds(found: dict[str, Any], actual: np.ndarray, want: np.ndarray, prefix: str = "") -> None:
    """The three unrounded figures are those of `actual` against `want`."""
    cosine = np.sum(actual * want) / math.sqrt(np.sum(actual**2) * np.sum(want**2))
    assert found[f"{prefix}cosine_unrounded"] == pytest.approx(cosine, abs=1e-12)
    assert found[f"{prefix}max_abs_error_unrounded"] == pytest.approx(abs(actual - want).max())
    assert found[f"{prefix}mean_abs_error_unrounded"] == pytest.approx(abs(actual - want).mean())


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a seed, in float64."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((M, K), np.float32)
    return a.astype(np.float64), rng.standard_normal((K, N), np.float32).astype(np.float64)


@pytest.mark.parametrize("dtype", COSINES)
def test_dense_products(dtype: str) -> None:
    found, outputs = outcome("gemm", {"m": M, "k": K, "n": N, "dtype": dtype}, seed=7)
    a, b = drawn(7)
    holds(found, product(outputs), a @ b)
    low, high = COSINES[dtype]
    assert low < found["cosine_unrounded"] <= high
    assert found["cosine"] > 1 - 1e-10 and found["max_abs_error"] < 1e-4


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize(("pattern", "kept", "group"), [("4:8", 4, 8), ("2:4", 2, 4), ("1:4", 1, 4)])
def test_sparse_products(pattern: str, kept: int, group: int, dtype: str) -> None:
    """Without a prefix of A pruned, with `dense_` of all of A: neither rounds."""
    found, outputs = outcome("gemm", {"m": M, "k": K, "n": N, "dtype": dtype, "sparsity": pattern}, seed=8)
    a, b = drawn(8)
    rounded = a.astype({"bf16": ml_dtypes.bfloat16, "fp16": np.float16}[dtype]).astype(np.float64)
    order = np.argsort(-np.abs(rounded).reshape(M, K // group, group), axis=2, kind="stable")
    stays = np.zeros(order.shape, bool)
    np.put_along_axis(stays, order[:, :, :kept], True, axis=2)
    pruned = np.where(stays.reshape(M, K), a, 0)
    actual = product(outputs)
    assert np.abs(actual - pruned @ b).max() < 0.1
    holds(found, actual, pruned @ b)
    holds(found, actual, a @ b, "dense_")
    assert found["dense_cosine_unrounded"] < 0.97 < 0.99999 < found["cosine_unrounded"]


@pytest.mark.parametrize("dtype", ["bf16", "mxfp8", "mxfp4"])
def test_mixtures_of_experts(dtype: str) -> None:
    """Experts and their shares are those of the scores in BF16; x and W are not rounded."""
    params = {"experts": 3, "tokens": 20, "d": 32, "f": 8, "top_k": 2, "dtype": dtype, "mode": "whole"}
    found, outputs = outcome("moe", params, seed=9)
    rng = np.random.default_rng(9)
    x = rng.standard_normal((20, 32), np.float32)
    gate = rng.standard_normal((32, 3), np.float32) / np.float32(math.sqrt(32))
    weights = rng.standard_normal((3, 32, 8), np.float32) / np.float32(math.sqrt(32))
    x16, gate16 = ((v.view(np.uint32) + 0x7FFF + (v.view(np.uint32) >> 16 & 1)) & 0xFFFF0000 for v in (x, gate))
    scores = x16.view(np.float32).astype(np.float64) @ gate16.view(np.float32)
    actual, want = np.zeros((20, 8)), np.zeros((20, 8))
    at = [0, 0, 0]
    for token in range(20):
        first, second = np.argsort(-scores[token])[:2]
        share = 1 / (1 + np.exp(scores[token, second] - scores[token, first]))
        for expert, part in ((first, share), (second, 1 - share)):
            want[token] += part * (x[token].astype(np.float64) @ weights[expert])
            actual[token] += decode(outputs[f"y{expert}"], "fp32")[:, at[expert]]
            at[expert] += 1
    assert found["cosine_unrounded"] == pytest.approx(
        np.sum(actual * want) / math.sqrt(np.sum(actual**2) * np.sum(want**2)), abs=1e-6
    )
    assert found["max_abs_error_unrounded"] == pytest.approx(abs(actual - want).max(), abs=1e-6)
    assert found["cosine"] > 1 - 1e-10
    low, high = COSINES[dtype]
    assert low < found["cosine_unrounded"] < high


@pytest.mark.parametrize(("dtype", "rate"), [("bf16", 1), ("fp8", 2), ("mxfp8", 4), ("fp32", Fraction(1, 4))])
def test_a_mixture_counts_scores_as_one_number_a_row(dtype: str, rate: Fraction) -> None:
    """Cycles of the array's bound: those of the experts in their format, and those of the scores in BF16."""
    params = {"experts": 3, "tokens": 17, "d": 32, "f": 9, "top_k": 2, "dtype": dtype, "mode": "whole"}
    for scored in (False, True):
        program = find_workload("moe").build(CONFIG, params | {"scored": scored})
        experts, scores = 17 * 2 * 32 * 9, scored * 17 * 32 * 3
        assert program.macs == experts + scores
        assert program.macs / program.pe_macs == experts / Fraction(rate) + scores

"""Workload `gemm`: C[M, N] = A[M, K] B[K, N] with random operands.

Both operands lie K-major in HBM, A transposed by the host. The operand whose columns move is the one
that keeps the array and the vector engine least busy; if it is A, the product leaves as C^T [N, M].
"""

import math
from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError
from firmware.kernels.gemm_formats import GEMM_FORMATS, GemmFormat, packed_operand
from firmware.kernels.products import Layout, layout, products
from firmware.kernels.tiling import moving_cost
from firmware.numbers import decode
from firmware.packing import Packed
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["gemm", "gemm_layout", "product_metrics", "rounding_of_sums", "unrounded_metrics"]


def product_metrics(actual: np.ndarray, reference: np.ndarray) -> dict[str, float | None]:
    """Largest and mean absolute error and cosine of two real arrays of one shape; None if not finite."""
    a, b = actual.astype(np.float64).ravel(), reference.astype(np.float64).ravel()
    with np.errstate(all="ignore"):
        norm = float(np.linalg.norm(a) * np.linalg.norm(b))
        found = {
            "max_abs_error": float(np.max(np.abs(a - b))),
            "mean_abs_error": float(np.mean(np.abs(a - b))),
            "cosine": float(a @ b) / norm if norm else 1.0,
        }
    return {name: value if math.isfinite(value) else None for name, value in found.items()}


def unrounded_metrics(actual: np.ndarray, reference: np.ndarray) -> dict[str, float | None]:
    """The same against a reference of operands as they were before they were rounded, names with `_unrounded`."""
    return {f"{name}_unrounded": value for name, value in product_metrics(actual, reference).items()}


def _at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise KernelError(f"{name} must be at least 1, not {size}")


def rounding_of_sums(rounding: str, seed: int, notes: list[str]) -> dict[str, Any]:
    """Arguments of k.tensor.matmul for a way of ROUNDINGS; adds to the notes if there is anything to say."""
    if rounding == "fp32":
        return {}
    notes.append(f"sums are rounded to BF16 ({rounding}) whenever they are written to PSUM")
    return {"rounding": rounding, "seed": seed if rounding == "stochastic" else 0}


def _tensors(kernel: Kernel, name: str, operand: Packed) -> tuple[HbmView, list[HbmView]]:
    """An operand in HBM, and its scales if it has any."""
    view = kernel.hbm(name, operand.elements.shape, operand.dtype, np.ascontiguousarray(operand.elements))
    if operand.scales is None:
        return view, []
    bits = np.ascontiguousarray(operand.scales)
    return view, [kernel.hbm(f"{name}_scales", bits.shape, operand.scale_dtype, bits)]


def _swapped(cfg: Config, m: int, depth: int, n: int, fmt: GemmFormat) -> bool:
    """Whether A moves."""
    beats = -(-depth // (fmt.elements * cfg.tensor.rows)) * cfg.tensor.rows * fmt.passes
    return moving_cost(cfg, beats, [n], [m]) < moving_cost(cfg, beats, [m], [n])


def gemm_layout(cfg: Config, *, m: int, k: int, n: int, dtype: str, out: str) -> tuple[bool, Layout]:
    """Whether A moves, and how the product lies in SBUF, without any values. Errors: KernelError."""
    fmt = GEMM_FORMATS[dtype]
    kernel = Kernel(cfg, "layout")
    views: dict[str, HbmView] = {}
    scales: dict[str, HbmView] = {}
    for name, columns in (("a", m), ("b", n)):
        views[name] = kernel.hbm(name, (-(-k // fmt.elements), columns), getattr(fmt, name))
        if fmt.scales:
            scales[name] = kernel.hbm(f"{name}_scales", (-(-k // fmt.block), columns), fmt.scales)
    swapped = _swapped(cfg, m, k, n, fmt)
    s, v = "ba" if swapped else "ab"
    result = kernel.hbm("c", (n, m) if swapped else (m, n), out)
    return swapped, layout(kernel, views[s], views[v], result, (scales[s], scales[v]) if scales else None)


def gemm(
    cfg: Config,
    a: np.ndarray,
    b: np.ndarray,
    *,
    dtype: str = "bf16",
    out: str = "fp32",
    resident: bool = False,
    rounding: str = "fp32",
    rounding_seed: int = 0,
    loop: bool = False,
) -> Program:
    """A program for the product of float32 arrays a [M, K] and b [K, N], rounded to `dtype`, a name of GEMM_FORMATS.

    `rounding` of the sums in PSUM, a name of ROUNDINGS; `rounding_seed` counts with "stochastic".
    `loop`: queues are loops in the image; the first chunk that moves comes whole, so that more turns are alike.

    Output: tensor `c` [M, N] or `c_t` [N, M], as the notes say.
    Errors: KernelError.
    """
    (m, depth), n = a.shape, b.shape[1]
    _at_least_one(m=m, k=depth, n=n)
    kernel = Kernel(cfg, "gemm")
    fmt = GEMM_FORMATS[dtype]
    a_packed, b_packed = packed_operand(cfg, dtype, "a", a.T), packed_operand(cfg, dtype, "b", b)
    a_view, a_scales = _tensors(kernel, "a_t", a_packed)
    b_view, b_scales = _tensors(kernel, "b", b_packed)
    swapped = _swapped(cfg, m, depth, n, fmt)
    notes = [f"the host transposes A to [K, M] = [{depth}, {m}]; B is [K, N] = [{depth}, {n}] as it is"]
    if fmt.elements > 1:
        notes.append(f"the host packs {fmt.elements} successive k of A ({fmt.a}) and of B ({fmt.b}) in one element")
    more: dict[str, Any] = {"resident": resident, "loop": loop, "factor": a_packed.factor * b_packed.factor}
    more["rounding"] = rounding_of_sums(rounding, rounding_seed, notes)
    if fmt.scales:
        more["scales"] = (b_scales, a_scales) if swapped else (a_scales, b_scales)
        notes.append(f"the host quantises blocks of {fmt.block} k; scales are {fmt.scales}")
    if swapped:
        c = kernel.hbm("c_t", (n, m), out)
        operands = products(kernel, [b_view], [a_view], {(0, 0): c}, **more)
        notes.append(f"A moves and B is stationary: C leaves as C^T [N, M] = [{n}, {m}], the host transposes it")
    else:
        c = kernel.hbm("c", (m, n), out)
        operands = products(kernel, [a_view], [b_view], {(0, 0): c}, **more)
        notes.append(f"B moves and A is stationary: C leaves as [M, N] = [{m}, {n}]")
    if resident:
        notes.append(f"all operands are in SBUF ({operands} bytes of each partition) before the array starts")

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The result against float64 products: of the rounded operands, and of those that came."""
        actual = decode(outputs["c_t"].T if swapped else outputs["c"], out)
        exact = a_packed.values().T @ b_packed.values()
        given = a.astype(np.float64) @ b.astype(np.float64)
        return product_metrics(actual, exact) | unrounded_metrics(actual, given)

    return kernel.program(macs=m * n * depth, pe_macs=fmt.rate, notes=notes, metrics=metrics)

"""Workload `gemm` with structured sparsity: the host prunes A, packs what is kept, and B moves beside it."""

from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError
from firmware.kernels.gemm import product_metrics, rounding_of_sums, unrounded_metrics
from firmware.kernels.products import Sparse, products
from firmware.numbers import decode, encode
from firmware.program import Program
from firmware.sparsity import find_pattern, kept_share, lay_moving, moving_format, pack, prune, unpack
from rtl.contract.config import Config
from rtl.contract.sparsity import SPARSE_FORMATS

__all__ = ["sparse_gemm"]


def sparse_gemm(
    cfg: Config,
    a: np.ndarray,
    b: np.ndarray,
    *,
    sparsity: str,
    dtype: str = "bf16",
    out: str = "fp32",
    resident: bool = False,
    rounding: str = "fp32",
    rounding_seed: int = 0,
    loop: bool = False,
) -> Program:
    """A program for the product of float32 arrays a [M, K] and b [K, N], rounded to `dtype`, a of them pruned along K.

    Output: tensor `c` [M, N]. `macs` counts products of kept numbers.
    Errors: KernelError.
    """
    (m, depth), n = a.shape, b.shape[1]
    pattern = find_pattern(sparsity)
    if not cfg.tensor.sparsity:
        raise KernelError(f"sparsity={sparsity} needs the setting tensor.sparsity=true, for {cfg.name} has none")
    if dtype not in SPARSE_FORMATS:
        raise KernelError(f"sparsity={sparsity} takes dtype {' or '.join(SPARSE_FORMATS)}, not {dtype}")
    if depth % pattern.group:
        raise KernelError(f"k={depth} is no multiple of {pattern.group}, the numbers of a group of sparsity={sparsity}")
    dense, moving = (decode(encode(x, dtype), dtype) for x in (a.T, b))
    numbers, tags = pack(prune(dense, pattern), pattern)
    rounded = unpack(numbers, tags, pattern)
    kept = rounded.T == dense.T  # also what was 0 before
    kernel = Kernel(cfg, "gemm")
    a_view = kernel.hbm("a_kept", numbers.shape, dtype, encode(numbers, dtype))
    tags_view = kernel.hbm("a_tags", tags.shape, "uint16", tags)
    laid = lay_moving(encode(moving, dtype), pattern)
    b_view = kernel.hbm("b", laid.shape, moving_format(dtype, pattern), laid)
    c = kernel.hbm("c", (m, n), out)
    sparse = Sparse(sparsity, [tags_view])
    share = kept_share(pattern)
    notes = [
        f"the host transposes A to [K, M] = [{depth}, {m}]",
        f"of {pattern.group} successive k it keeps the {pattern.kept} largest: [{len(numbers)}, {m}] and their tags",
        f"the host lays {pattern.ratio} successive k of B side by side",
        f"B moves and A is stationary: C leaves as [M, N] = [{m}, {n}]",
        f"macs count products of kept numbers, {share.numerator} of {share.denominator}",
    ]
    ways = rounding_of_sums(rounding, rounding_seed, notes)
    operands = products(
        kernel, [a_view], [b_view], {(0, 0): c}, resident=resident, rounding=ways, sparse=sparse, loop=loop
    )
    if resident:
        notes.append(f"all operands are in SBUF ({operands} bytes of each partition) before the array starts")

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The result against float64 products: of pruned and of dense A, rounded and as it came."""
        actual = decode(outputs["c"], out)
        wide, given = moving.astype(np.float64), b.astype(np.float64)
        found: dict[str, Any] = product_metrics(actual, rounded.T.astype(np.float64) @ wide)
        found |= unrounded_metrics(actual, np.where(kept, a, 0).astype(np.float64) @ given)
        against_dense = product_metrics(actual, dense.T.astype(np.float64) @ wide)
        against_dense |= unrounded_metrics(actual, a.astype(np.float64) @ given)
        squares = [float(np.sum(x.astype(np.float64) ** 2)) for x in (rounded, dense)]
        found |= {f"dense_{name}": value for name, value in against_dense.items()}
        return found | {
            "kept_share": float(share),
            "kept_energy": squares[0] / squares[1] if squares[1] else 1.0,
        }

    return kernel.program(macs=m * n * depth * pattern.kept // pattern.group, notes=notes, metrics=metrics)

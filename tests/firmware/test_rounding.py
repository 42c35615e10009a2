"""Sums rounded to BF16 in PSUM: the language's sentences, and products of the golden machine."""

import ml_dtypes
import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.workloads import find_workload
from rtl.contract.config import named
from verif.golden.machine import GoldenMachine

TINY = named("tiny")


def product(**params: object) -> np.ndarray:
    program = find_workload("gemm").build(TINY, {"m": 8, "n": 16, **params}, 3)
    golden = GoldenMachine(TINY)
    golden.load(build_image(program))
    result = golden.run()
    assert result.faults == []
    return next(iter(result.outputs.values())).view(np.float32)


def test_one_k_tile_is_the_rounded_sum() -> None:
    exact = product(k=8)
    assert (product(k=8, rounding="bf16") == exact.astype(ml_dtypes.bfloat16).astype(np.float32)).all()
    random = product(k=8, rounding="stochastic")
    low = (exact.view(np.uint32) & 0xFFFF0000).view(np.float32)
    high = ((exact.view(np.uint32) & 0xFFFF0000) + 0x10000).view(np.float32)
    assert ((random == low) | (random == high)).all() and (random == low).any() and (random == high).any()


def test_a_seed_repeats_itself_and_another_does_not() -> None:
    first, again = (product(k=40, rounding="stochastic", seed=5) for _ in range(2))
    assert (first == again).all() and not (first.view(np.uint32) & 0xFFFF).any()


def test_fp32_operands_are_rounded_once_a_k_tile() -> None:
    exact = product(k=8, dtype="fp32")
    assert (product(k=8, dtype="fp32", rounding="bf16") == exact.astype(ml_dtypes.bfloat16).astype(np.float32)).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rounding": "up"}, "rounding is up; it must be one of fp32, bf16, stochastic"),
        ({"rounding": "stochastic", "seed": 1 << 32}, "seed of rounding is 4294967296"),
        ({"rounding": "bf16", "seed": 4}, "rounding bf16 takes no seed, but 4 was given"),
    ],
    ids=str,
)
def test_wrong_rounding_gets_a_sentence(options: dict[str, object], says: str) -> None:
    k = Kernel(TINY, "wrong")
    w = k.sbuf("w", partitions=8, columns=8, dtype="bf16")
    sums = k.psum("sums", partitions=8, columns=8)
    k.vector.memset(w[:, :], 1.0)
    k.tensor.load(w[:, :])
    with pytest.raises(KernelError, match=says):
        k.tensor.matmul(w[:, :], sums[:, :], **options)  # type: ignore[arg-type]

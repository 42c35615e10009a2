"""Kinds of FP32 results, and the comparison that names the first difference."""

import numpy as np
from numpy.typing import NDArray

from verif.checks.coverage import Coverage

__all__ = ["OUTCOMES", "expect_equal", "note_outcomes", "outcomes_of"]

OUTCOMES = ("zero", "negative zero", "subnormal", "normal", "infinite", "nan")


def outcomes_of(codes: NDArray[np.uint32]) -> dict[str, int]:
    """How many of the codes are of each of OUTCOMES."""
    size = codes & np.uint32(0x7FFFFFFF)
    kinds = {
        "zero": codes == 0,
        "negative zero": codes == 1 << 31,
        "subnormal": (size > 0) & (size < 0x00800000),
        "normal": (size >= 0x00800000) & (size < 0x7F800000),
        "infinite": size == 0x7F800000,
        "nan": size > 0x7F800000,
    }
    return {name: int(mask.sum()) for name, mask in kinds.items()}


def note_outcomes(coverage: Coverage, codes: NDArray[np.uint32]) -> None:
    """Hit the bins of OUTCOMES that occur, as far as `coverage` has them."""
    for name, count in outcomes_of(codes).items():
        if name in coverage.hits and count:
            coverage.hit(name, count)


def expect_equal(seen: NDArray[np.uint32], wanted: NDArray[np.uint32], inputs: dict[str, NDArray[np.uint32]]) -> None:
    """Fail with the first difference and its inputs."""
    wrong = np.flatnonzero(seen != wanted)
    if len(wrong):
        i = int(wrong[0])
        given = ", ".join(f"{name}={int(values[i]):#x}" for name, values in inputs.items())
        raise AssertionError(
            f"{len(wrong)} of {len(seen)} differ; first at {i}: {given}: is {int(seen[i]):#010x}, "
            f"should be {int(wanted[i]):#010x}"
        )

"""What the vector engine computes, on bit patterns."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verif.golden.conversion import canonical_nan, container, convert

__all__ = ["canonical_nan", "container", "convert", "tensor_copy"]


def tensor_copy(source: ArrayLike, src: str, dst: str) -> NDArray[np.unsignedinteger]:
    """The instruction TENSOR_COPY on [partitions, elements] codes: what its destination then holds."""
    return convert(source, src, dst)

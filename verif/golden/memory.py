"""SBUF and PSUM as bytes: partitions side by side, reached by access patterns.

Contents start as all ones, like the RAM cells under simulation: a NaN in every float format.
"""

import numpy as np
from numpy.typing import NDArray

from rtl.contract import formats
from rtl.contract.access_pattern import AccessPattern

__all__ = ["Memory", "element_dtype", "offsets"]


def _element_bytes(pattern: AccessPattern) -> int:
    return formats.by_code(pattern.dtype).bytes


def element_dtype(pattern: AccessPattern) -> np.dtype:
    """The unsigned NumPy type as wide as an element of the pattern."""
    return np.dtype(f"<u{_element_bytes(pattern)}")


def offsets(pattern: AccessPattern) -> NDArray[np.int64]:
    """Byte offset in the partition of every element, (elements,), in the order of processing.

    Index 0 is innermost: offset + sum(index_i * step_i) * element bytes.
    """
    index = np.zeros(1, dtype=np.int64)
    for step, count in pattern.dims:  # each further dimension is outside the ones before
        index = (np.arange(count, dtype=np.int64)[:, None] * step + index[None, :]).reshape(-1)
    return pattern.offset + index * _element_bytes(pattern)


class Memory:
    """`partitions` rows of `partition_bytes` bytes; `bytes[p, b]` is byte b of partition p."""

    def __init__(self, partitions: int, partition_bytes: int):
        self.bytes = np.full((partitions, partition_bytes), 0xFF, dtype=np.uint8)

    def read(self, pattern: AccessPattern) -> NDArray[np.unsignedinteger]:
        """The elements as raw bits, (partition_count, elements). IndexError outside the memory."""
        at = self._bytes_of(pattern)
        rows = self.bytes[self._rows(pattern)]
        return np.ascontiguousarray(rows[:, at]).view(element_dtype(pattern))[..., 0]

    def write(
        self,
        pattern: AccessPattern,
        values: NDArray[np.unsignedinteger],
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Store raw bits, (partition_count, elements), in the order of the elements: the last one wins.

        `mask` of the same shape: elements outside it are not written. Errors: IndexError outside the memory,
        ValueError if `values` has another shape or width.
        """
        at = self._bytes_of(pattern)
        shape = (pattern.partition_count, pattern.elements)
        dtype = element_dtype(pattern)
        if values.shape != shape or values.dtype != dtype:
            raise ValueError(f"the pattern holds {dtype}{list(shape)}, not {values.dtype}{list(values.shape)}")
        rows = self.bytes[self._rows(pattern)]
        parts = np.ascontiguousarray(values, dtype=dtype)[..., None].view(np.uint8)
        chosen = np.ones(shape, np.bool_) if mask is None else mask
        if len(np.unique(at)) == at.size:
            if mask is not None:
                parts = np.where(mask[..., None], parts, rows[:, at])
            rows[:, at.reshape(-1)] = parts.reshape(shape[0], -1)
        else:
            for element in range(shape[1]):
                here = chosen[:, element]
                rows[np.ix_(here, at[element])] = parts[here, element]

    def _rows(self, pattern: AccessPattern) -> slice:
        first, count = pattern.partition_start, pattern.partition_count
        if not 0 <= first <= first + count <= self.bytes.shape[0]:
            raise IndexError(f"partitions {first} to {first + count - 1} leave the {self.bytes.shape[0]} there are")
        return slice(first, first + count)

    def _bytes_of(self, pattern: AccessPattern) -> NDArray[np.int64]:
        """Byte offsets, (elements, element bytes)."""
        start = offsets(pattern)
        size = _element_bytes(pattern)
        if start.size and (start.min() < 0 or start.max() + size > self.bytes.shape[1]):
            raise IndexError(
                f"bytes {start.min()} to {start.max() + size - 1} leave the partition of {self.bytes.shape[1]}"
            )
        return start[:, None] + np.arange(size)

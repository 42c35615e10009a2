"""Access patterns: which elements of SBUF or PSUM an operand of an instruction is. docs/isa.md has the rules."""

from dataclasses import dataclass
from math import prod

from rtl.contract.words import Field, Word

__all__ = ["DIMENSIONS", "PATTERN", "AccessPattern", "start_partition_rule"]

DIMENSIONS = 4

PATTERN = Word(
    "access_pattern",
    192,
    (
        Field("offset", 24, "byte in the partition of the first element"),
        Field("partition_start", 8),
        Field("partition_count", 8, "1 to P"),
        Field("space", 4, "memmap.Space: SBUF or PSUM"),
        Field("dtype", 4, "formats.Format.code"),
        Field("step0", 16, "elements between neighbours, innermost", signed=True),
        Field("count0", 16),
        Field("step1", 16, signed=True),
        Field("count1", 16),
        Field("step2", 16, signed=True),
        Field("count2", 16),
        Field("step3", 16, "outermost", signed=True),
        Field("count3", 16),
        Field("reserved", 16),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPattern:
    """Which elements of SBUF or PSUM an instruction touches.

    All active partitions share the free pattern: up to four (step, count) pairs in elements,
    innermost first, from byte `offset`. Rules: docs/isa.md.
    """

    space: int
    dtype: int
    partition_start: int
    partition_count: int
    offset: int
    dims: tuple[tuple[int, int], ...]

    def fields(self) -> dict[str, int]:
        """The fields of PATTERN. ValueError if there are more than four dimensions."""
        if not 1 <= len(self.dims) <= DIMENSIONS:
            raise ValueError(f"an access pattern has 1 to {DIMENSIONS} dimensions, not {len(self.dims)}")
        values = {
            "space": self.space,
            "dtype": self.dtype,
            "partition_start": self.partition_start,
            "partition_count": self.partition_count,
            "offset": self.offset,
        }
        padded = self.dims + ((0, 1),) * (DIMENSIONS - len(self.dims))
        for i, (step, count) in enumerate(padded):
            values[f"step{i}"] = step
            values[f"count{i}"] = count
        return values

    @property
    def elements(self) -> int:
        """Elements per partition."""
        return prod(count for _, count in self.dims)


def start_partition_rule(start: int, count: int, partitions: int) -> bool:
    """Whether `count` partitions may start at `start` of `partitions`.

    More than half: at 0. More than a quarter: at 0 or the half. Else at any quarter.
    Source: Trainium architecture guide, partition access rules (there for 128).
    """
    if not 1 <= count <= partitions:
        return False
    if count > partitions // 2:
        return start == 0
    if count > partitions // 4:
        return start in (0, partitions // 2)
    return start in (0, partitions // 4, partitions // 2, 3 * (partitions // 4))

"""Structured sparsity: of each `group` successive k of a stationary column `kept` are stored, each with a 4-bit tag.

A row of the array holds one kept number and its tag; `kept` successive rows, a bus, share the `group` moving numbers of
their logical k: row i of the bus brings numbers ratio * i to ratio * i + ratio - 1, and tag t means number t of them.
Source of the patterns: Neuron ISA documentation (sparse matmul), draft of its section on sparsity.
"""

from dataclasses import dataclass

__all__ = ["BUS_ROWS", "PATTERNS", "SLOTS", "SPARSE_FORMATS", "TAG_BITS", "Sparsity"]

TAG_BITS = 4
SLOTS = 4
"""Moving numbers that a row brings at most."""

BUS_ROWS = 4
"""Rows of the longest bus. Every sparse operand begins at a multiple, whatever its pattern: so a row into which nothing
was loaded, which listens to the first of its four rows, hears a number of the operand."""

SPARSE_FORMATS = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Sparsity:
    """A pattern; `code` is the instruction's field and the array's mode."""

    code: int
    kept: int
    group: int

    @property
    def name(self) -> str:
        """As users write it: 4:16."""
        return f"{self.kept}:{self.group}"

    @property
    def ratio(self) -> int:
        """Moving numbers a row; a dense matmul of as many logical k takes as many times the beats."""
        return self.group // self.kept

    def slot(self, row: int, tag: int) -> int:
        """Where number `tag` of the bus of `row` is among the 16 of the four rows that it stands in."""
        first = row % BUS_ROWS // self.kept * self.kept
        return SLOTS * (first + tag // self.ratio) + tag % self.ratio


PATTERNS = {
    p.name: p
    for p in (
        Sparsity(0, 4, 16),
        Sparsity(1, 4, 12),
        Sparsity(2, 4, 8),
        Sparsity(3, 2, 8),
        Sparsity(4, 2, 4),
        Sparsity(5, 1, 4),
        Sparsity(6, 1, 2),
    )
}

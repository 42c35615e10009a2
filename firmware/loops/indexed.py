"""Copies whose rows indices choose, as a part of a kernel: gather from a table, scatter to one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firmware.arguments import checked
from firmware.chosen import By
from firmware.program import Completion
from firmware.views import CopyView, TileView
from rtl.contract.descriptor import Indirect
from rtl.contract.isa import Queue

__all__ = ["Indexed"]


@checked
class Indexed:
    """The part of a kernel that says them."""

    if TYPE_CHECKING:

        def dma(
            self,
            dst: CopyView,
            src: CopyView,
            *,
            ring: int | None = None,
            queue: Queue | None = None,
            class_: int = 0,
            add: str | None = None,
            after: Sequence[Completion] = (),
            direct: bool = False,
            by: By | None = None,
        ) -> Completion: ...

    def gather(
        self,
        dst: CopyView,
        table: CopyView,
        indices: TileView,
        *,
        skip: bool = False,
        ring: int | None = None,
        queue: Queue | None = None,
        class_: int = 0,
        add: str | None = None,
        after: Sequence[Completion] = (),
        direct: bool = False,
    ) -> Completion:
        """Copy rows of `table` (rows, then what is contiguous) to `dst`, as `indices` in SBUF choose them; or add them.

        `dst` has one or two axes of rows, then those of a row. `indices`, int32 or uint32, has one element for each:
        the first axis down the partitions; or all in one partition, of HBM the last axis fastest, of SBUF the first:
        row i lies on partition i mod P.
        An index that is none of a row of the table ends the run with BAD_INDEX, when all other rows are there; with
        `skip` its row is left out. All else: see Kernel.dma. Both ends lie in this core.
        """
        by = By(Indirect.SOURCE, indices, skip)
        return self.dma(
            dst, table, ring=ring, queue=queue, class_=class_, add=add, after=after, direct=direct, by=by
        )  # fmt: skip

    def scatter(
        self,
        table: CopyView,
        src: CopyView,
        indices: TileView,
        *,
        skip: bool = False,
        ring: int | None = None,
        queue: Queue | None = None,
        class_: int = 0,
        add: str | None = None,
        after: Sequence[Completion] = (),
        direct: bool = False,
    ) -> Completion:
        """Copy the rows of `src` to those of `table` that `indices` choose, or add them, beside SBUF: see gather.

        Rows of one index are added in their order; if they are copied, any of them may be the last.
        """
        by = By(Indirect.DESTINATION, indices, skip)
        return self.dma(
            table, src, ring=ring, queue=queue, class_=class_, add=add, after=after, direct=direct, by=by
        )  # fmt: skip

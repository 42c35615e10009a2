"""A maximal matching, diagonal by diagonal."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Wavefront", "diagonals"]


def diagonals(columns: Sequence[Value]) -> list[Value]:
    """Requests by output (one bit per place each) as `Wavefront` wants them: by diagonal, one bit per place."""
    n = len(columns)
    return [Cat(columns[(place + diagonal) % n][place] for place in range(n)) for diagonal in range(n)]


class Wavefront(wiring.Component):
    """Matches free places and free outputs that ask for each other.

    asks: by diagonal d one bit per place p, set if p asks for output (p + d) mod count. The pairs of a diagonal have
    no place and no output in common, so each diagonal grants all that is still free, from diagonal 0 on.
    found: places that got an output; index: its number, bit by bit, as vectors over the places; columns_left:
    outputs still free. Timing: combinational, 3 gates a diagonal, no loop.
    """

    def __init__(self, count: int):
        self.count = count
        bits = (count - 1).bit_length()
        super().__init__(
            {
                "asks": In(count).array(count),
                "rows": In(count),
                "columns": In(count),
                "found": Out(count),
                "index": Out(data.ArrayLayout(count, bits)),
                "columns_left": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        rows, columns = Signal(n, name="rows_0"), Signal(n, name="columns_0")
        m.d.comb += [rows.eq(self.rows), columns.eq(self.columns)]
        granted: list[Signal] = []
        for d in range(n):
            got = Signal(n, name=f"got_{d}")
            rows_next, columns_next = Signal(n, name=f"rows_{d + 1}"), Signal(n, name=f"columns_{d + 1}")
            m.d.comb += [
                got.eq(self.asks[d] & rows & columns.rotate_right(d)),
                rows_next.eq(rows ^ got),
                columns_next.eq(columns ^ got.rotate_left(d)),
            ]
            granted.append(got)
            rows, columns = rows_next, columns_next
        m.d.comb += [self.found.eq(self.rows ^ rows), self.columns_left.eq(columns)]
        for b, bits in enumerate(self.index):
            which = [sum(1 << p for p in range(n) if (p + d) % n >> b & 1) for d in range(n)]
            total: Value = granted[0] & which[0]
            for got, places in zip(granted[1:], which[1:]):
                total = total | (got & places)
            m.d.comb += bits.eq(total[:n])
        return m

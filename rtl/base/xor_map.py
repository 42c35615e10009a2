"""Linear maps over GF(2) as a cell of our own: the networks of codes."""

from collections.abc import Sequence

from amaranth.hdl import Const, Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import needs_source

__all__ = ["XorMap"]

_MATRIX_BITS = 1 << 15  # tools read numbers of up to 65536 bits


class XorMap(wiring.Component):
    """Bit n of `o` is the sum mod 2 of the bits of `i` whose mask `rows[n]` has a 1.

    Combinational. A cell because Amaranth would dissolve masks into single bits, which costs a simulator
    fifty times as much; its own simulator cannot see inside. `gated`: there is an input `en`, and `o` is 0 without it,
    which costs a simulator nothing. Errors: ValueError for a mask wider than `width`.
    """

    def __init__(self, width: int, rows: Sequence[int], *, gated: bool = False):
        if any(row >> width for row in rows):
            raise ValueError(f"a mask of the map is wider than its {width} inputs")
        self.rows = tuple(rows)
        self.gated = gated
        super().__init__({"i": In(width), "o": Out(len(self.rows)), **({"en": In(1)} if gated else {})})

    def elaborate(self, platform: object) -> Module:
        needs_source("plexus_xor_map.sv")
        m = Module()
        width = len(self.i)
        share = max(1, _MATRIX_BITS // width)
        for first in range(0, len(self.rows), share):
            rows = self.rows[first : first + share]
            matrix = sum(row << (width * n) for n, row in enumerate(rows))
            m.submodules[f"map{first}"] = Instance(
                "plexus_xor_map",
                p_WIDTH=width,
                p_OUT=len(rows),
                p_MATRIX=Const(matrix, width * len(rows)),
                p_GATED=int(self.gated),
                i_en=self.en if self.gated else Const(1, 1),
                i_in=self.i,
                o_out=self.o[first : first + len(rows)],
            )
        return m

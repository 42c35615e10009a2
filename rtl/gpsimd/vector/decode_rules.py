"""What most vector instructions say of themselves in the same way."""

from amaranth.hdl import Module, Mux, Value

from rtl.gpsimd.vector.layouts import Kind, Result, Second, Source

__all__ = ["MVV", "MVX", "VI", "VV", "VX", "Rules"]

VV, MVV, VI, VX, MVX = 0, 2, 3, 4, 6
"""funct3 of OP-V, of integers; 1 and 5 are of floating point, 7 sets vtype."""


class Rules:
    """Statements of module `m` about the instruction `bits`, of VECTOR's fields `o`."""

    def __init__(self, m: Module, bits: Value, o: Value):
        self.m, self.bits, self.o = m, bits, o

    def legal(self, vv: bool, vx: bool, vi: bool) -> None:
        """The instruction exists with a vector, a scalar or an immediate beside vs2."""
        funct3 = self.bits[12:15]
        vector = (funct3 == VV) | (funct3 == MVV)
        scalar = (funct3 == VX) | (funct3 == MVX)
        legal = (vector if vv else 0) | (scalar if vx else 0) | ((funct3 == VI) if vi else 0)
        self.m.d.comb += self.o.illegal.eq(~legal)

    def lanes(self, result: Result, unsigned: bool = False, **lane: int | Value) -> None:
        o = self.o
        funct3 = self.bits[12:15]
        immediate = Second.UNSIGNED if unsigned else Second.IMMEDIATE
        scalar = (funct3 == VX) | (funct3 == MVX)
        self.m.d.comb += [
            o.kind.eq(Kind.LANES),
            o.lane.result.eq(result),
            o.second.eq(Mux(funct3 == VI, immediate, Mux(scalar, Second.SCALAR, Second.VECTOR))),
            *(o.lane[name].eq(value) for name, value in lane.items()),
        ]

    def compare(self, **lane: int) -> None:
        self.lanes(Result.SUM, subtract=1, **lane)
        self.m.d.comb += self.o.mask_result.eq(1)

    def carry(self, subtract: int, to_mask: bool) -> None:
        """vadc and its like: v0 is added, if vm is 0."""
        o = self.o
        self.lanes(Result.SUM, subtract=subtract, carries=~self.bits[25], on_less=1)
        self.m.d.comb += [o.carry_in.eq(1), o.mask_result.eq(to_mask)]
        if not to_mask:
            with self.m.If(self.bits[25]):
                self.m.d.comb += o.illegal.eq(1)

    def permute(self, source: Source | Value) -> None:
        o = self.o
        funct3 = self.bits[12:15]
        scalar = (funct3 == VX) | (funct3 == MVX)
        self.m.d.comb += [
            o.kind.eq(Kind.PERMUTE),
            o.source.eq(source),
            o.second.eq(Mux(funct3 == VI, Second.UNSIGNED, Mux(scalar, Second.SCALAR, Second.VECTOR))),
        ]

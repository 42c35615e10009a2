"""One lane of the vector engine: connects conversions, operators, sums and the way out; computes nothing."""

from amaranth.hdl import DomainRenamer, Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.pack import Pack
from rtl.vector.convert import Convert
from rtl.vector.operators import OPERATION, Operators
from rtl.vector.sums import SLOTS, SUMMING, Sums
from rtl.vector.timetable import CLOCKS, LEAVING

__all__ = ["ENTERING", "LANE_DOMAINS", "SHARED", "Lane"]

ENTERING = data.StructLayout({"at": 3, "src": 4, "raw": 1})
"""Where a slot's element begins in its word, its format, whether its bits pass."""

LANE_DOMAINS = tuple(f"vector_{name}" for name in CLOCKS if name not in ("special", "quantize"))
"""Clock domains of its parts."""

SHARED = ("both", "entering", "leaving", "operation", "summing", "result", "bytes_log2", "width")
"""Ports that are the same for all lanes."""


class Lane(wiring.Component):
    """`word` has the elements of a beat, `second` with `both` that of a second source. What happens to them, in which
    cycle: Timetable. Index 0 of `leaving` and `operation` is for the first slot, 1 for the others.

    `special` is what a special unit gives. `out` has 2 ** `width` results of 2 ** `bytes_log2` bytes, repeated over the
    word. `value` and `a` are the first slot's element and column, `chosen` its predicate.
    """

    def __init__(self, exp_rate: int):
        self.exp_rate = exp_rate
        super().__init__(
            {
                "word": In(64),
                "second": In(64),
                "both": In(1),
                "entering": In(data.ArrayLayout(ENTERING, SLOTS)),
                "leaving": In(data.ArrayLayout(LEAVING, 2)),
                "operation": In(data.ArrayLayout(OPERATION, 2)),
                "summing": In(SUMMING),
                "result": In(2),
                "mine": In(1),
                "special": In(32),
                "bytes_log2": In(2),
                "width": In(2),
                "value": Out(32),
                "a": Out(32),
                "chosen": Out(1),
                "out": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sums = sums = DomainRenamer("vector_sums")(Sums())
        m.submodules.pack = pack = Pack(SLOTS)
        slots = [self._slot(m, j) for j in range(SLOTS)]
        convert0, operators0 = slots[0]
        m.d.comb += [
            sums.summing.eq(self.summing),
            sums.result.eq(self.result),
            sums.mine.eq(self.mine),
            sums.b.eq(operators0.b),
            sums.folded.eq(operators0.folded),
            operators0.fold_x.eq(sums.fold_x),
            operators0.fold_y.eq(sums.fold_y),
            operators0.other.eq(slots[1][0].value),
            pack.size_log2.eq(self.bytes_log2),
            pack.width.eq(self.width),
            self.value.eq(convert0.value),
            self.a.eq(operators0.a),
            self.chosen.eq(operators0.chosen),
            self.out.eq(pack.word),
        ]
        for j, (convert, operators) in enumerate(slots):
            wide = int(j > 0)
            leaving = self.leaving[wide]
            m.d.comb += [
                convert.word.eq(Mux(self.both, self.second, self.word) if j == 1 else self.word),
                convert.at.eq(self.entering[j].at),
                convert.src.eq(self.entering[j].src),
                convert.raw.eq(self.entering[j].raw),
                convert.result.eq(operators.out if j else Mux(leaving.special, self.special, sums.out)),
                convert.computed.eq(leaving.computed),
                convert.dst.eq(leaving.dst),
                convert.raw_out.eq(leaving.raw),
                operators.value.eq(convert.value),
                operators.column.eq(convert0.value),
                operators.operation.eq(self.operation[wide]),
                sums.values[j].eq(convert.value),
                sums.results[j].eq(operators.out),
                pack.element[j].eq(convert.out),
            ]
        return m

    def _slot(self, m: Module, j: int) -> tuple[Convert, Operators]:
        """Conversion and operators of element j of a beat."""
        suffix = "_wide" if j else ""
        convert, operators = Convert(), Operators(exp=j < self.exp_rate)
        m.submodules[f"convert{j}"] = DomainRenamer(f"vector_convert{suffix}")(convert)
        m.submodules[f"operators{j}"] = DomainRenamer(f"vector_maths{suffix}")(operators)
        return convert, operators

"""What goes before the matching of a switch: strict units and urgent pairs."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.scheduling.orders import distances
from rtl.switch.scheduling.permute import Permute
from rtl.switch.scheduling.restore import Restore
from rtl.switch.scheduling.wavefront import Wavefront

__all__ = ["Precedence"]


class Precedence(wiring.Component):
    """Begins the units that go first, and keeps their inputs and outputs free until they can.

    wants: by diagonal, one bit per place, as `Wavefront` has it; strict: outputs that serve the strict class; urgent,
    pair, before_strict: of `Patience`; rows_free, columns_free: without a unit under way.
    Strict units are matched whether their input and output are free or not; urgent pairs come next, or first if
    before_strict. begins: by output, one-hot the input of a pair whose both ends are free. rows, columns: what is
    left: nobody else may use an end of a pair that waits, so that it waits for no more than a unit under way.
    Timing: combinational.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n = cfg.inputs
        super().__init__(
            {
                "exchange": In(data.ArrayLayout(n, len(distances(n)))),
                "turn": In(range(n)),
                "wants": In(n).array(n),
                "strict": In(n),
                "urgent": In(n),
                "pair": In(n).array(n),
                "before_strict": In(1),
                "rows_free": In(n),
                "columns_free": In(n),
                "begins": Out(n).array(n),
                "rows": Out(n),
                "columns": Out(n),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.cfg.inputs
        everyone = Const((1 << n) - 1, n)
        urgent_rows = Signal(n)
        total: Value = Const(0, n)
        for o in range(n):
            total = total | Mux(self.urgent[o], self.pair[o], 0)
        m.d.comb += urgent_rows.eq(total)

        strict_rows, strict_columns = Signal(n), Signal(n)
        strict_match: list[Value] = [Const(0, n)] * n
        if self.cfg.link.strict_class >= 0:
            m.submodules.to_places = to_places = Permute(n, 1)
            m.submodules.wavefront = wavefront = Wavefront(n)
            m.submodules.restore = restore = Restore(n)
            columns = Signal(n)
            for permuting in (to_places, restore):
                m.d.comb += [permuting.exchange.eq(self.exchange), permuting.turn.eq(self.turn)]
            m.d.comb += [
                columns.eq(self.strict & Mux(self.before_strict, ~self.urgent, everyone)),
                to_places.i[0].eq(Mux(self.before_strict, ~urgent_rows, everyone)),
                *(wavefront.asks[d].eq(self.wants[d]) for d in range(n)),
                wavefront.rows.eq(to_places.o[0]),
                wavefront.columns.eq(columns),
                restore.found.eq(wavefront.found),
                restore.index.eq(wavefront.index),
                strict_rows.eq(restore.rows),
                strict_columns.eq(columns & ~wavefront.columns_left),
            ]
            strict_match = [restore.match[o] for o in range(n)]
        for o in range(n):
            late = Mux(self.urgent[o] & ~strict_columns[o], self.pair[o] & ~strict_rows, 0)
            m.d.comb += self.begins[o].eq(Mux(self.columns_free[o], (strict_match[o] | late) & self.rows_free, 0))
        rows_go, columns_go = Signal(n), Signal(n)  # begins something
        going: Value = Const(0, n)
        for o in range(n):
            going = going | self.begins[o]
            m.d.comb += columns_go[o].eq(self.begins[o].any())
        careless = fault("nothing is kept free for who waits")
        m.d.comb += [
            rows_go.eq(going),
            self.rows.eq(self.rows_free & ~Mux(careless, rows_go, strict_rows | urgent_rows)),
            self.columns.eq(self.columns_free & ~Mux(careless, columns_go, strict_columns | self.urgent)),
        ]
        return m

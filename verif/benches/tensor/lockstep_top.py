"""Both forms of the systolic array on the same inputs, compared in hardware on every cycle."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.config import Config
from rtl.tensor.array import Array
from rtl.tensor.ports import moving_beat, row_groups, stationary_beat, sum_row

__all__ = ["LockstepTop"]

QUADRANTS = 4


class LockstepTop(wiring.Component):
    """Ports of the array; the rows that leave are the structural form's. `compared` counts those of either form,
    `mismatches` cycles in which the forms differ in valid or, when valid, in ticket or data, at any row group.

    Both counters ignore reset, so that a bench may reset
    the arrays in the middle of a run; `clear` sets them to 0.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "stationary": In(stationary_beat(cfg)).array(QUADRANTS),
                "moving": In(moving_beat(cfg)).array(QUADRANTS),
                "sums": Out(sum_row(cfg)).array(row_groups(cfg)),
                "transposed": Out(sum_row(cfg)).array(row_groups(cfg)),
                "clear": In(1),
                "compared": Out(32),
                "mismatches": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.structural = structural = Array(self.cfg, "structural")
        m.submodules.native = native = Array(self.cfg, "native")
        for form in (structural, native):
            for q in range(QUADRANTS):
                m.d.comb += [
                    form.moving[q].eq(self.moving[q]),
                    form.stationary[q].eq(self.stationary[q]),
                ]
        compares: list[Value] = []
        differs: list[Value] = []
        rows = [
            *zip(self.sums, structural.sums, native.sums, strict=True),
            *zip(self.transposed, structural.transposed, native.transposed, strict=True),
        ]
        for own, one, other in rows:
            same = (one.ticket == other.ticket) & (one.data == other.data)
            m.d.comb += own.eq(one)
            compares.append(one.valid | other.valid)
            differs.append((one.valid != other.valid) | (one.valid & ~same))

        compared = Signal(32, reset_less=True)
        mismatches = Signal(32, reset_less=True)
        differ = Signal()
        m.d.comb += [
            differ.eq(Cat(*differs).any()),
            self.compared.eq(compared),
            self.mismatches.eq(mismatches),
        ]
        with m.If(self.clear):
            m.d.sync += [compared.eq(0), mismatches.eq(0)]
        with m.Else():
            m.d.sync += [
                compared.eq(compared + sum(compares)),
                mismatches.eq(mismatches + differ),
            ]
        return m

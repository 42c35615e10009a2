"""A lane of the scalar engine with a table of its own, for arrays: what `plexus eval activation` runs."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.config import Config
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.multiply_comb import Fp32MultiplyComb
from rtl.numeric.fp32.view import Fp32
from rtl.numeric.functions.activation import ActivationLane
from rtl.numeric.functions.activation_table import LOAD, ActivationTable

__all__ = ["ActivationUnit"]


class ActivationUnit(wiring.Component):
    """out = func(x * scale + bias), FP32 codes; the product is rounded, then the sum. A bias of zero is not
    added, so that zeros keep their sign. `load_address`, `load_word`: rtl.contract.activation_tables.load_words.

    Timing: one number a cycle, LATENCY cycles later.
    """

    LATENCY = ActivationLane.LATENCY + 2

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "load_valid": In(1),
                "load_address": In(21),
                "load_word": In(32),
                "x": In(32),
                "scale": In(32),
                "bias": In(32),
                "slope": In(32),
                "func": In(6),
                "out": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = table = ActivationTable(self.cfg.scalar.table_rows)
        m.submodules.lane = lane = ActivationLane()
        m.submodules.product = product = Fp32MultiplyComb()
        m.submodules.sum = total = Fp32AddComb()
        load = Signal(LOAD)
        m.d.comb += [
            load.address.eq(self.load_address),
            load.word.eq(self.load_word),
            table.load_valid.eq(self.load_valid),
            table.load.eq(load),
            table.entry_address.eq(lane.entry_address),
            lane.entry.eq(table.entry),
            table.row_address.eq(lane.row_address),
            lane.row.eq(table.row),
            product.a.eq(self.x),
            product.b.eq(self.scale),
        ]
        multiplied = Signal(32)
        later: list[Signal] = []
        for signal in (self.func, self.slope):
            first, second = Signal.like(signal), Signal.like(signal)
            m.d.sync += [first.eq(signal), second.eq(first)]
            later.append(second)
        bias = Signal(32)
        m.d.sync += [multiplied.eq(product.out), bias.eq(self.bias)]
        m.d.comb += [total.a.eq(multiplied), total.b.eq(bias)]
        m.d.sync += lane.x.eq(Mux(Fp32(bias).is_zero, multiplied, total.out))
        m.d.comb += [lane.func.eq(later[0]), lane.slope.eq(later[1]), self.out.eq(lane.out)]
        return m

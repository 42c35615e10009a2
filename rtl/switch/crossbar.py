"""The crossbar: each output shows the beats of the input it listens to."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.beat import transfer_beat

__all__ = ["Crossbar"]


class Crossbar(wiring.Component):
    """`tune` with `source`: an output listens to that input from the next cycle on, until `mute` or another `tune`.

    Timing: from an input's beat to the output's is combinational.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n = cfg.outputs
        super().__init__(
            {
                "tune": In(n),
                "mute": In(n),
                "source": In(data.ArrayLayout(range(cfg.inputs), n)),
                "i_valid": In(cfg.inputs),
                "i": In(data.ArrayLayout(transfer_beat(cfg.link), cfg.inputs)),
                "o_valid": Out(n),
                "o": Out(data.ArrayLayout(transfer_beat(cfg.link), n)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inputs = Array(self.i[k] for k in range(self.cfg.inputs))
        for n in range(self.cfg.outputs):
            listens = Signal(name=f"listens_{n}")
            source = Signal(range(self.cfg.inputs), name=f"source_{n}")
            with m.If(self.tune[n]):
                m.d.sync += [
                    listens.eq(1),
                    source.eq(Mux(fault("an output listens to another input than it is told"), 0, self.source[n])),
                ]
            with m.Elif(self.mute[n] & ~fault("an output that is muted listens on")):
                m.d.sync += listens.eq(0)
            m.d.comb += self.o_valid[n].eq(listens & self.i_valid.bit_select(source, 1))
            with m.If(self.o_valid[n]):
                m.d.comb += self.o[n].eq(inputs[source])
        return m

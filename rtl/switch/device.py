"""A switch with plain pins, for drivers: flits by port, no lanes."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.switch_config import SwitchConfig
from rtl.switch.switch import Switch

__all__ = ["SwitchDevice"]

_BY_PORT = ("restart", "disabled", "flip")


class SwitchDevice(wiring.Component):
    """Switch whose ports are aligned at once: a beat each way in every cycle of the wire.

    By port, the first one lowest: `rx_valid`, `rx_first`, `rx_last`, `rx_refuse` (with the last beat: the decoder
    refuses the flit), `rx_data`, `tx_*`, `restart`, `disabled`, `flip`, `state` (4 bits). `write`, `address`, `value`,
    `read_value`: registers, see Switch. At a width below x8 the wire takes a beat every `beat_cycles` cycles.
    """

    def __init__(self, cfg: SwitchConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        p = cfg.ports
        wide = 8 * cfg.link.beat_bytes * p
        super().__init__(
            {
                "session_init": In(16),
                **{name: In(p) for name in _BY_PORT},
                **{f"rx_{name}": In(p) for name in ("valid", "first", "last", "refuse")},
                "rx_data": In(wide),
                **{f"tx_{name}": Out(p) for name in ("valid", "first", "last")},
                "tx_data": Out(wide),
                "state": Out(4 * p),
                "write": In(1),
                "address": In(16),
                "value": In(64),
                "read_value": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        ports = range(cfg.ports)
        bits = 8 * cfg.link.beat_bytes
        m.submodules.switch = switch = Switch(cfg, self.form)
        beat = Signal()  # the wire takes one
        cycle = Signal(range(max(2, cfg.link.beat_cycles)))  # one of no bits is no Verilog that lint takes
        m.d.sync += cycle.eq(Mux(beat, 0, cycle + 1))
        m.d.comb += [
            beat.eq(cycle == cfg.link.beat_cycles - 1),
            switch.session_init.eq(self.session_init),
            *(getattr(switch, name).eq(getattr(self, name)) for name in _BY_PORT),
            switch.aligned.eq(-1),
            switch.i_valid.eq(self.rx_valid),
            switch.i_refuse.eq(self.rx_refuse),
            self.tx_valid.eq(Cat(switch.o[k].valid & beat for k in ports)),
            self.tx_first.eq(Cat(switch.o[k].payload.first for k in ports)),
            self.tx_last.eq(Cat(switch.o[k].payload.last for k in ports)),
            self.tx_data.eq(Cat(switch.o[k].payload.data for k in ports)),
            self.state.eq(Cat(switch.state[k] for k in ports)),
            switch.write.eq(self.write),
            switch.address.eq(self.address),
            switch.data.eq(self.value),
            self.read_value.eq(switch.read_data),
        ]
        for k in ports:
            m.d.comb += [
                switch.i[k].first.eq(self.rx_first[k]),
                switch.i[k].last.eq(self.rx_last[k]),
                switch.i[k].data.eq(self.rx_data[k * bits : (k + 1) * bits]),
                switch.o[k].ready.eq(beat),
            ]
        return m

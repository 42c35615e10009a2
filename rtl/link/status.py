"""The status block of a port: what memmap.LinkRegister names."""

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.contract.memmap import LinkRegister
from rtl.link.beat import physical_lanes

__all__ = ["PortStatus"]

_WEAK_AT = 32  # LANES


class PortStatus(wiring.Component):
    """`now` is the 64-bit register at byte `address`; 0 where there is none. `value` is `now` of the cycle before.

    Timing: `now` is combinational.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        lanes = physical_lanes(cfg)
        super().__init__(
            {
                "address": In(8),
                "now": Out(64),
                "value": Out(64),
                "state": In(4),
                "session": In(16),
                "partner": In(16),
                "in_flight": In(10),
                "tx_width": In(5),
                "rx_width": In(5),
                "weak_lanes": In(lanes),
                "dead_lanes": In(lanes),
                "counts": In(data.ArrayLayout(unsigned(32), len(LinkCause))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sessions = Cat(self.session, self.partner)
        swapped = Signal(32)
        m.d.comb += swapped.eq(sessions)
        with m.If(fault("sessions stand in the other order in the status")):
            m.d.comb += swapped.eq(Cat(self.partner, self.session))
        lanes = len(self.dead_lanes)
        registers: dict[int, Value] = {
            LinkRegister.STATE: self.state,
            LinkRegister.SESSION: swapped,
            LinkRegister.WIDTH: Cat(self.tx_width, Signal(3, name="zero_width"), self.rx_width),
            LinkRegister.LANES: Cat(self.dead_lanes, Signal(_WEAK_AT - lanes, name="zero_lanes"), self.weak_lanes),
            LinkRegister.IN_FLIGHT: self.in_flight,
        }
        with m.Switch(self.address):
            for address, value in registers.items():
                with m.Case(address):
                    m.d.comb += self.now.eq(value)
            for cause in LinkCause:
                with m.Case(LinkRegister.CAUSE + 8 * cause):
                    m.d.comb += self.now.eq(self.counts[cause])
                    with m.If(fault("counters are told of the cause before")):
                        m.d.comb += self.now.eq(self.counts[max(0, cause - 1)])
            with m.Default():
                m.d.comb += self.now.eq(0)
        m.d.sync += self.value.eq(self.now)
        return m

"""What the first beat of a flit says of the unit that is open in its queue, and of the one it belongs to."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.switch_config import SwitchConfig
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT
from rtl.switch.input.unit_record import open_layout, record_layout, slot_layout

__all__ = ["UnitVerdict"]


class UnitVerdict(wiring.Component):
    """`header`, `stored`, `index`, `route`, `refused`: of the flit. `unit`: what its queue keeps; `here`: there are
    flits in it, `live`: of this session.

    `head`: it begins a unit. `sound`: it belongs to one that may still become whole, which goes to `output`, or
    `is_refused`: as its head was told. `whole`: the flits kept and, if it is no head, this one; `now`: those of its own
    unit. Timing: combinational.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        pool = cfg.link.pool_flits
        super().__init__(
            {
                "header": In(FLIT_HEADER_LAYOUT),
                "stored": In(1),
                "index": In(bits_for(pool - 1)),
                "route": In(range(cfg.outputs)),
                "refused": In(1),
                "unit": In(open_layout(cfg.outputs, pool)),
                "here": In(1),
                "live": In(1),
                "head": Out(1),
                "sound": Out(1),
                "output": Out(range(cfg.outputs)),
                "is_refused": Out(1),
                "whole": Out(record_layout(pool)),
                "now": Out(record_layout(pool)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        header, unit = self.header, self.unit
        same = (unit.endpoint == header.endpoint) | fault(
            "an endpoint that changes in a unit is not noticed at a switch's input"
        )
        continues, long, own_route = Signal(), Signal(), Signal()
        m.d.comb += [
            self.head.eq(header.head & ~(self.live & fault("a head in an open unit continues it at a switch's input"))),
            continues.eq(~self.head & self.live & same),
            long.eq(
                continues
                & (unit.flits == UNIT_FLITS_MAX - 1)
                & ~header.tail
                & ~fault("a fifth flit is taken into the unit at a switch's input")
            ),
            self.sound.eq((self.head | continues) & self.stored & ~long),
            own_route.eq(self.head | fault("the tail's route decides, not the head's")),
            self.is_refused.eq(Mux(own_route, self.refused, unit.refused) & ~fault("a refused unit is delivered")),
            self.output.eq(Mux(own_route, self.route, unit.output)),
        ]

        flits = Signal(range(UNIT_FLITS_MAX + 1))  # kept
        alone = Signal.like(self.now)
        slot = Signal(slot_layout(self.cfg.link.pool_flits))
        joins = self.stored & ~self.head
        m.d.comb += [
            slot.index.eq(self.index),
            slot.dedicated.eq(header.dedicated),
            flits.eq(Mux(self.here, unit.flits, 0)),
            self.whole.flits.eq(flits + joins),
            alone.flits.eq(1),
            alone.slots[0].eq(slot),
            self.now.eq(Mux(self.head, alone, self.whole)),
        ]
        for n in range(UNIT_FLITS_MAX):
            before = unit.slots[n] if n < UNIT_FLITS_MAX - 1 else slot
            m.d.comb += self.whole.slots[n].eq(Mux((flits == n) & joins, slot, before))
        return m

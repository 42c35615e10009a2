"""Flits that arrive become units, or are found not to be one."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.contract.link import ENDPOINT_BITS, UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT

__all__ = ["UnitMaker", "record_layout", "slot_layout"]


def slot_layout(cfg: LinkConfig) -> data.StructLayout:
    """Where a flit lies in the pool, and from which pool of credits it came."""
    return data.StructLayout({"index": bits_for(cfg.pool_flits - 1), "dedicated": 1})


def record_layout(cfg: LinkConfig) -> data.StructLayout:
    """A unit: `flits` slots in order; `bad`: they are only to be freed."""
    return data.StructLayout(
        {
            "slots": data.ArrayLayout(slot_layout(cfg), UNIT_FLITS_MAX),
            "flits": range(UNIT_FLITS_MAX + 1),
            "bad": 1,
        }
    )


class UnitMaker(wiring.Component):
    """`valid` with `first`: a flit with `header` begins and lies at `slot`, if `stored`; with `last`: it is there.

    `done`: `record` of `queue` is complete. What is no unit comes out as records that are `bad`, so that every
    stored flit is in one record: a unit cut short by a head, one of 4 flits without a tail, one whose flits name
    two endpoints, flits without a head before them. `bad_unit` counts each such unit once.
    `clear` (a new session): units that are not complete come out as bad, a queue a cycle while no flit arrives.
    Timing: a flit is at least two cycles long; `done` in its first cycle may be about the unit before it.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "last": In(1),
                "header": In(FLIT_HEADER_LAYOUT),
                "stored": In(1),
                "slot": In(slot_layout(cfg)),
                "done": Out(1),
                "queue": Out(range(cfg.queues)),
                "record": Out(record_layout(cfg)),
                "bad_unit": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n = cfg.queues
        open_flits = Array(Signal(range(UNIT_FLITS_MAX), name=f"open_flits_{k}") for k in range(n))
        slots = Array(Signal(data.ArrayLayout(slot_layout(cfg), UNIT_FLITS_MAX), name=f"slots_{k}") for k in range(n))
        endpoint = Array(Signal(ENDPOINT_BITS, name=f"endpoint_{k}") for k in range(n))
        dropping = Array(Signal(name=f"dropping_{k}") for k in range(n))
        header = self.header
        q = Signal(range(n))
        q_kept = Signal(range(n))
        header_kept = Signal(FLIT_HEADER_LAYOUT)
        slot_kept = Signal(slot_layout(cfg))
        stored_kept = Signal()
        spoilt = Signal()  # the flit that arrives is not one of a sound unit
        spoilt_now = Signal()

        begins = self.valid & self.first
        ends = self.valid & self.last
        was_open = open_flits[q] != 0
        m.d.comb += q.eq(Cat(header.kind, header.class_))
        other = (endpoint[q] != header.endpoint) & ~fault(
            "an endpoint that changes in a unit is not noticed at a link's end"
        )
        with m.If(begins):
            m.d.sync += [q_kept.eq(q), header_kept.eq(header), slot_kept.eq(self.slot), stored_kept.eq(self.stored)]
            with m.If(header.head & ~(was_open & fault("a head in an open unit continues it at a link's end"))):
                m.d.comb += [self.bad_unit.eq(was_open | ~self.stored), spoilt_now.eq(~self.stored)]
            with m.Elif(~was_open):
                m.d.comb += [self.bad_unit.eq(~dropping[q]), spoilt_now.eq(1)]
            with m.Elif(other | ~self.stored):
                m.d.comb += [self.bad_unit.eq(1), spoilt_now.eq(1)]
            m.d.sync += spoilt.eq(spoilt_now)
            # The flits before it that will have no tail: out with them now
            with m.If(
                was_open & (header.head & ~fault("a head in an open unit continues it at a link's end") | spoilt_now)
            ):
                m.d.comb += [self.done.eq(1), self.queue.eq(q), self.record.bad.eq(1)]
                m.d.comb += [self.record.slots.eq(slots[q]), self.record.flits.eq(open_flits[q])]
                m.d.sync += open_flits[q].eq(0)

        at = open_flits[q_kept]
        long = (
            (at == UNIT_FLITS_MAX - 1)
            & ~header_kept.tail
            & ~fault("a fifth flit is taken into the unit at a link's end")
        )
        whole = Signal(data.ArrayLayout(slot_layout(cfg), UNIT_FLITS_MAX))
        m.d.comb += whole.eq(slots[q_kept])
        with m.Switch(at):
            for k in range(UNIT_FLITS_MAX):
                with m.Case(k):
                    m.d.comb += whole[k].eq(slot_kept)
        sweeps = Signal()
        swept = Signal(range(n))
        with m.If(ends):
            m.d.comb += [
                self.queue.eq(q_kept),
                self.record.slots.eq(whole),
                self.record.flits.eq(at + 1),
                self.record.bad.eq(spoilt | long),
                self.done.eq(stored_kept & (spoilt | header_kept.tail | long)),
                self.bad_unit.eq(long & ~spoilt),
            ]
            m.d.sync += dropping[q_kept].eq((spoilt | long) & ~header_kept.tail)
            with m.If(~spoilt):
                m.d.sync += [
                    open_flits[q_kept].eq(Mux(self.done, 0, at + 1)),
                    slots[q_kept].eq(whole),
                    endpoint[q_kept].eq(header_kept.endpoint),
                ]
        with m.Elif(sweeps & ~self.valid):
            kept = fault("a clear of a link's end keeps units that are not complete")
            stays = open_flits[swept] == 0
            m.d.comb += [
                self.queue.eq(swept),
                self.record.slots.eq(slots[swept]),
                self.record.flits.eq(open_flits[swept]),
                self.record.bad.eq(1),
                self.done.eq(~stays & ~kept),
                self.bad_unit.eq(~stays & ~kept),
            ]
            m.d.sync += [swept.eq(Mux(swept == n - 1, 0, swept + 1)), sweeps.eq(swept != n - 1)]
            with m.If(~kept):
                m.d.sync += [open_flits[swept].eq(0), dropping[swept].eq(0)]
        with m.If(self.clear):
            m.d.sync += [sweeps.eq(1), swept.eq(0)]
        return m

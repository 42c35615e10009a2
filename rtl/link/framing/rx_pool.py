"""The buffer of a receiver: one pool of flits, and lists of complete units in it, one a queue."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.base.fifo import Fifo, RamFifo
from rtl.base.ram import Ram
from rtl.contract.link import FLIT_HEADER_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT, unit_rows
from rtl.link.framing.unit_maker import UnitMaker, record_layout

__all__ = ["RxPool"]

_KINDS = 2
_READY_BEATS = 3  # beats that wait at an output: one a cycle in spite of the RAM's latency


class RxPool(wiring.Component):
    """Beats of accepted flits -> whole units at `request` and `response`, the classes of a kind in turn.

    `valid`: a `beat` of an accepted flit, the header in the first; any spacing. `freed`: a place of
    `freed_account` is free again, one a cycle at most; those of flits in bad units too, which nobody sees.
    `bad_unit`, `overrun` (no place: the flit is lost, credits should have prevented it): strobes.
    `clear`: flits of units that are not complete are freed; complete units stay, for they were acknowledged.
    Timing: one beat a cycle in and one out; a unit's first beat is out 4 cycles after its last came in.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "valid": In(1),
                "beat": In(beat_layout(cfg)),
                "request": Out(stream.Signature(unit_rows(cfg))),
                "response": Out(stream.Signature(unit_rows(cfg))),
                "freed": Out(1),
                "freed_account": Out(range(cfg.accounts)),
                "bad_unit": Out(1),
                "overrun": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        record = record_layout(cfg)
        index_bits = bits_for(cfg.pool_flits - 1)
        m.submodules.ram = ram = Ram(8 * cfg.beat_bytes, cfg.beats * cfg.pool_flits)

        # Arrival: a place for the flit, its beats into the pool
        m.submodules.places = places = RamFifo(index_bits, cfg.pool_flits)
        fresh = Signal(range(cfg.pool_flits + 1))  # places never used yet
        index = Signal(index_bits)
        index_kept = Signal(index_bits)
        stored = Signal()
        stored_kept = Signal()
        beat_at = Signal(range(cfg.beats))
        begins = self.valid & self.beat.first
        m.submodules.maker = maker = UnitMaker(cfg)
        header = data.View(FLIT_HEADER_LAYOUT, self.beat.data[: 8 * FLIT_HEADER_BYTES])
        m.d.comb += [
            stored.eq(places.o.valid | (fresh != cfg.pool_flits)),
            index.eq(Mux(self.beat.first, Mux(places.o.valid, places.o.payload, fresh[:index_bits]), index_kept)),
            places.o.ready.eq(begins),
            self.overrun.eq(begins & ~stored),
            ram.write_en.eq(self.valid & Mux(self.beat.first, stored, stored_kept)),
            ram.write_mask.eq(1),
            ram.write_address.eq(Cat(Mux(self.beat.first, 0, beat_at)[: len(beat_at)], index)),
            ram.write_data.eq(self.beat.data),
            maker.valid.eq(self.valid),
            maker.first.eq(self.beat.first),
            maker.last.eq(self.beat.last),
            maker.header.eq(header),
            maker.stored.eq(stored),
            maker.slot.index.eq(index),
            maker.slot.dedicated.eq(header.dedicated),
            maker.clear.eq(self.clear),
            self.bad_unit.eq(maker.bad_unit),
        ]
        with m.If(self.valid):
            m.d.sync += beat_at.eq(Mux(self.beat.first, 1, beat_at + 1))
        with m.If(begins):
            m.d.sync += [index_kept.eq(index), stored_kept.eq(stored)]
            with m.If(~places.o.valid & stored):
                m.d.sync += fresh.eq(fresh + 1)

        # Lists: the oldest unit of each queue in registers, each later one beside the first flit of the one before
        m.submodules.lists = lists = Memory(shape=record, depth=cfg.pool_flits, init=[])
        link = lists.write_port()
        heads = Array(Signal(record, name=f"head_{q}") for q in range(cfg.queues))
        youngest = Array(Signal(index_bits, name=f"youngest_{q}") for q in range(cfg.queues))
        units = Array(Signal(range(cfg.pool_flits + 1), name=f"units_{q}") for q in range(cfg.queues))
        takes = Signal(cfg.queues)
        into = maker.queue
        alone = Signal()
        m.d.comb += [
            alone.eq((units[into] == 0) | ((units[into] == 1) & takes.bit_select(into, 1))),
            link.en.eq(maker.done & ~alone),
            link.addr.eq(youngest[into]),
            link.data.eq(maker.record),
        ]

        steps = Signal(_KINDS)  # who wants to read or to free
        granted = Signal(_KINDS)
        turn = Signal()
        freed_now = Signal(_KINDS)
        m.d.comb += granted.eq(Mux(steps.all(), Mux(turn, 2, 1), steps))
        with m.If(steps.all()):
            m.d.sync += turn.eq(~turn)
        for kind, out in enumerate((self.request, self.response)):
            next_in_list = lists.read_port(domain="comb")
            m.submodules[f"turn_{kind}"] = classes = RoundRobin(cfg.classes)
            m.submodules[f"beats_{kind}"] = beats = Fifo(unit_rows(cfg), _READY_BEATS)
            wiring.connect(m, beats.o, wiring.flipped(out))
            active = Signal(name=f"active_{kind}")
            unit = Signal(record, name=f"unit_{kind}")
            queue = Signal(range(cfg.queues), name=f"queue_{kind}")
            chosen = Signal(range(cfg.queues), name=f"chosen_{kind}")
            flit = Signal(2, name=f"flit_{kind}")
            at = Signal(range(cfg.beats), name=f"at_{kind}")
            head = Signal(record, name=f"oldest_{kind}")  # of the queue chosen
            slot = Signal(unit.slots[0].shape(), name=f"slot_{kind}")
            read = Signal(name=f"read_{kind}")
            pushes = Signal(name=f"pushes_{kind}")
            pushed_flits = Signal.like(unit.flits, name=f"pushed_flits_{kind}")
            flit_ends = Signal(name=f"flit_ends_{kind}")
            ends = Signal(name=f"ends_{kind}")
            pops = Signal(name=f"pops_{kind}")
            m.d.comb += [
                classes.requests.eq(Cat(units[2 * c + kind] != 0 for c in range(cfg.classes))),
                steps[kind].eq(active & (unit.bad | (beats.level + pushes < _READY_BEATS))),
                slot.eq(unit.slots[flit]),
                read.eq(granted[kind] & ~unit.bad),
                flit_ends.eq(granted[kind] & (unit.bad | (at == cfg.beats - 1))),
                freed_now[kind].eq(flit_ends & ~(unit.bad & fault("the flits of a bad unit are not freed"))),
                ends.eq(flit_ends & (flit == (unit.flits - 1)[:2])),
                pops.eq(classes.grant.any() & (~active | ends)),
                classes.accept.eq(pops),
                head.eq(heads[chosen]),
                next_in_list.addr.eq(head.slots[0].index),
                beats.i.valid.eq(pushes),
                beats.i.payload.data.eq(ram.read_data),
                beats.i.payload.flits.eq(pushed_flits),
            ]
            for c in range(cfg.classes):
                with m.If(classes.grant[c]):
                    m.d.comb += chosen.eq(2 * c + kind)
                m.d.comb += takes[2 * c + kind].eq(pops & classes.grant[c])
            m.d.sync += [pushes.eq(read), pushed_flits.eq(unit.flits)]
            with m.If(granted[kind]):
                m.d.sync += at.eq(Mux(flit_ends, 0, at + 1))
                with m.If(flit_ends):
                    m.d.sync += flit.eq(flit + 1)
            with m.If(ends):
                m.d.sync += active.eq(0)
            with m.If(pops):
                m.d.sync += [active.eq(1), unit.eq(head), queue.eq(chosen), flit.eq(0), at.eq(0)]
                m.d.sync += heads[chosen].eq(next_in_list.data)
            with m.If(granted[kind]):
                shared = ~slot.dedicated | fault("the receive pool frees every flit to the shared account")
                m.d.comb += [
                    ram.read_en.eq(read),
                    ram.read_address.eq(Cat(at, slot.index)),
                    places.i.payload.eq(slot.index),
                    self.freed_account.eq(Mux(shared, cfg.queues + kind, queue)),
                ]
        m.d.comb += [
            self.freed.eq(freed_now.any()),
            places.i.valid.eq(self.freed & ~fault("a freed place of the receive pool is not used again")),
        ]

        loses = (units[into] == 1) & fault("the list of a queue loses its second unit")
        with m.If(maker.done):
            with m.If(alone):
                m.d.sync += heads[into].eq(maker.record)
            with m.If(~loses):
                m.d.sync += youngest[into].eq(maker.record.slots[0].index)
        for q in range(cfg.queues):
            enters = maker.done & (into == q) & ~loses
            m.d.sync += units[q].eq(units[q] + enters - takes[q])
        return m

"""Flits that arrive become units, or are found not to be one, with the first beat of each."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.switch_config import SwitchConfig
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT
from rtl.switch.input.unit_record import open_layout, record_layout
from rtl.switch.input.unit_verdict import UnitVerdict

__all__ = ["OpenUnits"]


class OpenUnits(wiring.Component):
    """`valid` with `first`: a flit with `header` begins and lies at `index`, if `stored`; with `last`: it is there.

    `route` (an output), `refused`: of a flit that begins; those of the head hold for its unit.
    `push`: `record` is a unit for (`push_output`, `push_queue`), in the first beat of its tail. A `refused` one is
    judged in the last beat of its tail: if it `reads` it goes to the last output, the responder (`answered`), else it
    is dropped (`dropped_unit`).
    `drop`: the slots of `drop_record`, of one queue, are only to be freed: a refused unit, or what is no unit: one cut
    short by a head, one of 4 flits without a tail, one whose flits name two endpoints, flits without a head before
    them. `bad_unit` counts each of these once. Every stored flit is in one record that is pushed or dropped.
    `clear` (a new session) closes all units that are open; they are dropped, and counted as bad, a queue in each cycle
    in which no flit begins or ends. `scans`: the flit under way is of a refused unit of requests, `scan_queue` and
    `scan_head` tell which.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        link = cfg.link
        record = record_layout(link.pool_flits)
        entry = open_layout(cfg.outputs, link.pool_flits)
        # seen by proofs too
        self.units = Memory(shape=entry, depth=link.queues, init=[])
        self.kept = Signal(link.queues)  # an entry holds flits
        self.stale = Signal(link.queues)  # of a session that is over
        self.judging = Signal()  # the flit under way is the tail of a refused unit, which is
        self.record_kept = Signal(record)
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "last": In(1),
                "header": In(FLIT_HEADER_LAYOUT),
                "stored": In(1),
                "index": In(bits_for(link.pool_flits - 1)),
                "route": In(range(cfg.outputs)),
                "refused": In(1),
                "reads": In(1),
                "scans": Out(1),
                "scan_queue": Out(range(link.queues)),
                "scan_head": Out(1),
                "push": Out(1),
                "push_output": Out(range(cfg.outputs)),
                "push_queue": Out(range(link.queues)),
                "record": Out(record),
                "drop": Out(1),
                "drop_queue": Out(range(link.queues)),
                "drop_record": Out(record),
                "dropped_unit": Out(1),
                "answered": Out(1),
                "bad_unit": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        queues = cfg.link.queues
        units, kept, stale = self.units, self.kept, self.stale
        judging, record_kept = self.judging, self.record_kept
        m.submodules.units = units
        load, store = units.read_port(domain="comb"), units.write_port()
        unit = load.data
        dropping = Signal(queues)  # flits up to the next head belong to a unit that was dropped
        header = self.header
        q, q_kept, swept = (Signal(range(queues), name=n) for n in ("q", "q_kept", "swept"))
        begins, ends, sweeps = Signal(), Signal(), Signal()
        refused_judged = Signal()
        m.d.comb += [
            q.eq(Cat(header.kind, header.class_)),
            begins.eq(self.valid & self.first),
            ends.eq(self.valid & self.last),
            load.addr.eq(Mux(begins, q, swept)),
            refused_judged.eq(ends & judging),
            sweeps.eq(~begins & ~refused_judged & (stale != 0)),
        ]

        # What the first beat says
        m.submodules.verdict = verdict = UnitVerdict(cfg)
        here, head, sound = verdict.here, verdict.head, verdict.sound
        m.d.comb += [
            verdict.header.eq(header),
            verdict.stored.eq(self.stored),
            verdict.index.eq(self.index),
            verdict.route.eq(self.route),
            verdict.refused.eq(self.refused),
            verdict.unit.eq(unit),
            verdict.here.eq(kept.bit_select(q, 1)),
            verdict.live.eq(here & ~stale.bit_select(q, 1)),
        ]

        scans_kept, head_kept = Signal(), Signal()
        now = verdict.now
        complete = Signal()
        m.d.comb += [
            complete.eq(begins & sound & header.tail),
            self.record.eq(now),
            self.push_output.eq(verdict.output),
            self.push_queue.eq(q),
            self.push.eq(complete & ~verdict.is_refused),
            self.drop_record.eq(verdict.whole),
            self.drop_queue.eq(q),
        ]
        with m.If(begins):
            m.d.comb += [
                self.drop.eq(
                    Mux(
                        head,
                        here & ~fault("flits of a unit cut short by a head are forgotten"),
                        ~sound & (here | self.stored),
                    )
                ),
                self.bad_unit.eq(Mux(head, here | ~self.stored, ~sound & (here | ~dropping.bit_select(q, 1)))),
                store.en.eq(sound & ~header.tail),
            ]
        spoils = Signal()
        m.d.comb += [
            spoils.eq(begins & ~sound & ~header.tail),
            store.addr.eq(q),
            store.data.flits.eq(now.flits),
            store.data.endpoint.eq(header.endpoint),
            store.data.output.eq(verdict.output),
            store.data.refused.eq(verdict.is_refused),
            *(store.data.slots[n].eq(now.slots[n]) for n in range(UNIT_FLITS_MAX - 1)),
            self.scans.eq(self.valid & Mux(begins, sound & verdict.is_refused & ~header.kind, scans_kept)),
            self.scan_queue.eq(Mux(begins, q, q_kept)),
            self.scan_head.eq(Mux(begins, head, head_kept)),
        ]
        with m.If(begins):
            m.d.sync += [
                q_kept.eq(q),
                head_kept.eq(head),
                record_kept.eq(now),
                judging.eq(complete & verdict.is_refused),
                scans_kept.eq(self.scans),
            ]

        # A refused unit is there
        with m.If(refused_judged):
            kept_reads = self.reads & ~fault("a refused unit with a read is dropped")
            m.d.comb += [
                self.record.eq(record_kept),
                self.push_output.eq(cfg.outputs - 1),
                self.push_queue.eq(q_kept),
                self.push.eq(kept_reads),
                self.drop_record.eq(record_kept),
                self.drop_queue.eq(q_kept),
                self.drop.eq(~kept_reads),
                self.dropped_unit.eq(~kept_reads),
                self.answered.eq(kept_reads),
            ]

        # What a session that is over has left
        found = Signal()
        m.d.comb += found.eq(sweeps & stale.bit_select(swept, 1))
        with m.If(sweeps):
            m.d.sync += swept.eq(Mux(swept == queues - 1, 0, swept + 1))
        with m.If(found):
            m.d.comb += [
                self.drop_queue.eq(swept),
                self.drop_record.flits.eq(unit.flits),
                *(self.drop_record.slots[n].eq(unit.slots[n]) for n in range(UNIT_FLITS_MAX - 1)),
                self.drop.eq(1),
                self.bad_unit.eq(1),
            ]
        chosen, over, kept_next = Signal(queues), Signal(queues), Signal(queues)
        m.d.comb += [
            chosen.eq(begins << q),
            over.eq(chosen | found << swept),
            kept_next.eq(kept & ~over | Mux(store.en, chosen, 0)),
        ]
        m.d.sync += [kept.eq(kept_next), stale.eq(stale & ~over), dropping.eq(dropping & ~chosen | spoils << q)]
        with m.If(self.clear & ~fault("a clear of a switch's input keeps units that are not complete")):
            m.d.sync += [stale.eq(kept_next), dropping.eq(0)]
        return m

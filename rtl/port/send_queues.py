"""Queues of a sender, one for each (class, kind): packets are packed into units as they come."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.packet import PACKET_BEAT
from rtl.base.plant import passed_on, planted
from rtl.base.ram import Ram
from rtl.contract.link import NO_HEADER, UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.port.framing import (
    PACKET_FLITS_MAX,
    ROW_BITS,
    ROWS,
    UNIT_WORDS,
    WORD_BITS,
    unit_layout,
)
from rtl.port.packet_intake import PacketIntake
from rtl.port.placing import Placing, place_layout

__all__ = ["SendQueues"]


def _slots(cfg: LinkConfig) -> int:
    """Flits that a queue holds."""
    return cfg.send_beats // ROWS


class SendQueues(wiring.Component):
    """`packet` is appended to the youngest unit of its queue if endpoint and room allow, else it opens a new one.

    A queue is a ring of flits in one RAM for all, in the layout of the flits to come. `unit_valid`, `unit_flits`: the
    oldest unit of each queue; the youngest is none while a packet is being appended to it. `take` removes the oldest
    of `queue`; `unit` shows it from the next cycle to the next take. Then `read` gives `data`, the `read_beat`-th
    beat of its current flit, a cycle later, and `release` frees that flit and moves on to the next.
    `room`: a longest packet fits. A packet waits only at its first beat. `bad_packet`: one was dropped whole.
    Timing: a beat of packets a cycle, rarely two; a unit can be taken the cycle after its packet's last beat.
    """

    FAULTS = {
        1: "packets of different endpoints share a unit",
        2: "a packet joins a unit that it does not fit into",
        3: "a unit can be taken while a packet is being appended to it",
        4: "the offset of a second packet in a flit replaces the first",
        5: "bytes behind the end of a packet are kept",
        6: "a packet that ends too early is good",
        7: "takes a packet without room",
    }

    def __init__(self, cfg: LinkConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "packet": In(stream.Signature(PACKET_BEAT)),
                "room": Out(cfg.queues),
                "bad_packet": Out(1),
                "unit_valid": Out(cfg.queues),
                "unit_flits": Out(data.ArrayLayout(range(UNIT_FLITS_MAX + 1), cfg.queues)),
                "take": In(1),
                "queue": In(range(cfg.queues)),
                "unit": Out(unit_layout(cfg)),
                "read": In(1),
                "read_beat": In(range(cfg.beats)),
                "release": In(1),
                "data": Out(8 * cfg.beat_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        slots = _slots(cfg)
        slot_bits = ceil_log2(slots)
        place = place_layout(slots)
        waiting = data.StructLayout({"unit": unit_layout(cfg), "row": place["row"].shape, "lane": place["lane"].shape})

        def each(shape: object, name: str) -> Array:
            return Array(Signal(shape, name=f"{name}_{n}") for n in range(cfg.queues))

        def after(at: Value) -> Value:
            return Mux(at == slots - 1, 0, at + 1)

        count = each(range(slots + 1), "units")  # that wait
        oldest = each(range(slots), "oldest")  # ring of units
        newest = each(range(slots), "newest")  # where the next unit goes
        head_flits = each(range(UNIT_FLITS_MAX + 1), "head_flits")
        used = each(range(slots + 1), "used")  # flits that wait or are being read
        read_slot = each(range(slots), "read_slot")  # ring of flits
        end_slot = each(range(slots), "end_slot")  # after the youngest unit

        m.submodules.intake = intake = PacketIntake(cfg, passed_on(self.plant, 5, 6))
        m.submodules.placing = placing = Placing(slots)
        m.submodules.units = units = Memory(shape=waiting, depth=cfg.queues << slot_bits, init=[])
        store = units.write_port()
        youngest = units.read_port(domain="comb")
        first = units.read_port(domain="comb")
        second = units.read_port(domain="comb")
        wiring.connect(m, wiring.flipped(self.packet), intake.packet)
        m.d.comb += self.bad_packet.eq(intake.bad)
        chunk = intake.chunk.payload
        q = chunk.queue

        # Where the packet goes: decided with its first chunk, kept in registers for the others
        takes_here = Signal()
        fits = Signal()
        joins_now = Signal()
        joins = Signal()
        joined = Signal()
        begun = Signal()  # a packet is under way
        admitted = Signal()
        moves = Signal()
        base = Signal(unit_layout(cfg))  # the unit that the packet is appended to
        grown = Signal(unit_layout(cfg))  # and it with the packet
        at = Signal(place)
        at_kept = Signal(place)
        base_kept = Signal(unit_layout(cfg))
        before = Signal(range(slots), name="newest_before")
        m.d.comb += [
            before.eq(Mux(newest[q] == 0, slots - 1, newest[q] - 1)),
            youngest.addr.eq(Cat(before, q)),
            takes_here.eq(self.take & (self.queue == q)),
            fits.eq((youngest.data.unit.words + chunk.words <= UNIT_WORDS) | planted(self.plant, 2)),
            joins_now.eq(
                (count[q] != 0)
                & ((youngest.data.unit.endpoint == chunk.endpoint) | planted(self.plant, 1))
                & fits
                & ~(takes_here & (count[q] == 1))
            ),
            joins.eq(Mux(begun, joined, joins_now)),
            admitted.eq(begun | (used[q] <= slots - PACKET_FLITS_MAX) | planted(self.plant, 7)),
            placing.valid.eq(intake.chunk.valid & admitted),
            placing.count.eq(chunk.count),
            placing.i.eq(chunk.data),
            placing.at.eq(at),
            intake.chunk.ready.eq(admitted & placing.done),
            moves.eq(placing.valid & placing.done),
        ]
        in_flit = (youngest.data.row != 0) | (youngest.data.lane != 1)  # its last flit has words already
        with m.If(begun):
            m.d.comb += [at.eq(at_kept), base.eq(base_kept)]
        with m.Elif(joins_now):
            m.d.comb += [
                base.eq(youngest.data.unit),
                at.row.eq(youngest.data.row),
                at.lane.eq(youngest.data.lane),
                at.slot.eq(Mux(in_flit, Mux(end_slot[q] == 0, slots - 1, end_slot[q] - 1), end_slot[q])),
                at.flit.eq(youngest.data.unit.flits - in_flit),
            ]
        with m.Else():
            m.d.comb += [
                base.queue.eq(q),
                base.endpoint.eq(chunk.endpoint),
                at.lane.eq(1),
                at.slot.eq(end_slot[q]),
            ]
            m.d.comb += [base.offsets[f].eq(NO_HEADER) for f in range(UNIT_FLITS_MAX)]

        m.d.comb += [
            grown.eq(base),
            grown.words.eq(Mux(begun, base.words, base.words + chunk.words)),
            grown.flits.eq(placing.next.flit + placing.in_flit),
        ]
        with m.If(~begun):
            here = Cat(at.lane, at.row)[:6] - 1
            with m.Switch(at.flit):
                for f in range(UNIT_FLITS_MAX):
                    with m.Case(f), m.If((base.offsets[f] == NO_HEADER) | planted(self.plant, 4)):
                        m.d.comb += grown.offsets[f].eq(here)

        # A packet's end: the unit is there, or is larger
        commit = Signal()
        m.d.comb += commit.eq(moves & chunk.last & chunk.good)
        with m.If(placing.valid):
            m.d.sync += [at_kept.eq(placing.next), begun.eq(1), joined.eq(joins), base_kept.eq(grown)]
            m.d.sync += base_kept.flits.eq(base.flits)  # as they were before, to tell by how many it grows
        with m.If(moves & chunk.last):
            m.d.sync += begun.eq(0)
        place_of = Signal(range(slots), name="place_of_unit")
        m.d.comb += [
            place_of.eq(Mux(joins, before, newest[q])),
            store.en.eq(commit),
            store.addr.eq(Cat(place_of, q)),
            store.data.unit.eq(grown),
            store.data.row.eq(placing.next.row),
            store.data.lane.eq(placing.next.lane),
        ]

        # The oldest unit of each queue
        asked = self.queue
        following = Signal(range(slots))
        m.d.comb += [
            following.eq(after(oldest[asked])),
            first.addr.eq(Cat(oldest[asked], asked)),
            second.addr.eq(Cat(following, asked)),
        ]
        with m.If(self.take):
            m.d.sync += [
                self.unit.eq(first.data.unit),
                oldest[asked].eq(following),
                head_flits[asked].eq(second.data.unit.flits),
            ]
        with m.If(commit):
            m.d.sync += end_slot[q].eq(Mux(placing.in_flit, after(placing.next.slot), placing.next.slot))
            with m.If(~joins):
                m.d.sync += newest[q].eq(after(newest[q]))
            with m.If((count[q] == joins) | (takes_here & (count[q] == 1 + joins))):
                m.d.sync += head_flits[q].eq(grown.flits)
        adds = commit & ~joins
        for n in range(cfg.queues):
            adds_here = adds & (q == n)
            takes_it = self.take & (asked == n)
            releases = self.release & (self.unit.queue == n)
            more = Mux(commit & (q == n), (grown.flits - Mux(joins, base.flits, 0))[:3], 0)
            busy = begun & joined & (q == n) & ~planted(self.plant, 3)
            m.d.sync += [count[n].eq(count[n] + adds_here - takes_it), used[n].eq(used[n] + more - releases)]
            m.d.comb += [
                self.room[n].eq(used[n] <= slots - PACKET_FLITS_MAX),
                self.unit_valid[n].eq((count[n] != 0) & ~(busy & (count[n] == 1))),
                self.unit_flits[n].eq(head_flits[n]),
            ]

        # Storage: rows 0 and 2 in one bank, 1 and 3 in the other
        banks = [Ram(ROW_BITS, cfg.queues << (slot_bits + 1), WORD_BITS) for _ in range(2)]
        out = self.unit.queue
        for n, bank in enumerate(banks):
            m.submodules[f"bank_{n}"] = bank
            part = placing.banks[n]
            m.d.comb += [
                bank.write_en.eq(part.mask.any()),
                bank.write_mask.eq(part.mask),
                bank.write_data.eq(part.data),
                bank.write_address.eq(Cat(part.high, part.slot, q)),
                bank.read_en.eq(self.read & ((self.read_beat[0] == n) if cfg.beats == ROWS else 1)),
                bank.read_address.eq(Cat(self.read_beat[-1], read_slot[out], out)),
            ]
        if cfg.beats == ROWS:
            odd = Signal()
            with m.If(self.read):
                m.d.sync += odd.eq(self.read_beat[0])
            m.d.comb += self.data.eq(Mux(odd, banks[1].read_data, banks[0].read_data))
        else:
            m.d.comb += self.data.eq(Cat(b.read_data for b in banks))
        with m.If(self.release):
            m.d.sync += read_slot[out].eq(after(read_slot[out]))
        return m

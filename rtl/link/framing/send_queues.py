"""Queues of a sender, one for each (class, kind): packets are packed into units as they come."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import NO_HEADER, UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.framing.framing import UNIT_WORDS, unit_layout
from rtl.link.framing.packet_intake import PacketIntake
from rtl.link.framing.packing import has_time, keeps_pace, packet_beats
from rtl.link.framing.placing import Placing, place_layout, slots_of
from rtl.link.framing.send_store import SendStore
from rtl.link.framing.unit_rings import UnitRings

__all__ = ["SendQueues"]


class SendQueues(wiring.Component):
    """`packet` is appended to the youngest unit of its queue if that has to wait anyway, else it opens a new one.

    A queue is a ring of flits in the layout in which they leave. `unit_valid`, `unit_flits`: the oldest unit of each
    queue; the youngest is none while a packet is being appended to it. `take` removes the oldest of `queue`; `unit`
    shows it from the next cycle to the next take. Then `read` gives `data`, the `read_beat`-th beat of its current
    flit, a cycle later, and `release` frees that flit and moves on to the next.
    `room`, `room_pair`: a longest packet fits, or two. A packet waits only at its first beat. `bad_packet`: one was
    dropped whole.
    Timing: a beat of packets a cycle, rarely two; a unit can be taken the cycle after its packet's last beat.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "packet": In(stream.Signature(packet_layout(cfg))),
                "room": Out(cfg.queues),
                "room_pair": Out(cfg.queues),
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
        slots = slots_of(cfg)
        place = place_layout(cfg)
        m.submodules.intake = intake = PacketIntake(cfg)
        m.submodules.placing = placing = Placing(cfg)
        m.submodules.rings = rings = UnitRings(cfg)
        m.submodules.store = store = SendStore(cfg)
        wiring.connect(m, wiring.flipped(self.packet), intake.packet)
        chunk = intake.chunk.payload
        q = chunk.queue

        # Where the packet goes: decided with its first chunk, kept in registers for the others
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
        flits_before = Signal.like(base.flits)
        end_slot = Array(Signal(range(slots), name=f"end_slot_{n}") for n in range(cfg.queues))  # behind the youngest
        end = Signal(range(slots))
        youngest = rings.youngest
        words = Signal(range(2 * UNIT_WORDS))  # of the youngest unit with the packet
        beats = Signal(range(2 * UNIT_WORDS))
        own_beats = packet_beats(cfg, chunk.words)
        taken = self.take & (self.queue == q) & (rings.units == 1)
        m.d.comb += [
            end.eq(end_slot[q]),
            words.eq(youngest.unit.words + chunk.words),
            beats.eq(youngest.unit.beats + own_beats),
            joins_now.eq(
                (rings.units != 0)
                & ~taken
                & ((youngest.unit.endpoint == chunk.endpoint) | fault("packets of different endpoints share a unit"))
                & ((words <= UNIT_WORDS) | fault("a packet joins a unit that it does not fit into"))
                & (
                    has_time(store.used - youngest.unit.flits, chunk.words)
                    | fault("a packet joins the unit that the line wants next")
                )
                & (
                    keeps_pace(cfg, words, beats)
                    | fault("a unit gets more packets than a receiver gives out in its time")
                )
            ),
            joins.eq(Mux(begun, joined, joins_now)),
            admitted.eq(begun | store.room.bit_select(q, 1) | fault("takes a packet without room")),
            placing.valid.eq(intake.chunk.valid & admitted),
            placing.count.eq(chunk.count),
            placing.i.eq(chunk.data),
            placing.at.eq(at),
            intake.chunk.ready.eq(admitted & placing.done),
            moves.eq(placing.valid & placing.done),
        ]
        in_flit = (youngest.row != 0) | (youngest.lane != 1)  # its last flit has words already
        with m.If(begun):
            m.d.comb += [at.eq(at_kept), base.eq(base_kept)]
        with m.Elif(joins_now):
            m.d.comb += [
                base.eq(youngest.unit),
                at.row.eq(youngest.row),
                at.lane.eq(youngest.lane),
                at.slot.eq(Mux(in_flit, Mux(end == 0, slots - 1, end - 1), end)),
                at.flit.eq(youngest.unit.flits - in_flit),
            ]
        with m.Else():
            m.d.comb += [
                base.queue.eq(q),
                base.endpoint.eq(chunk.endpoint),
                at.lane.eq(1),
                at.slot.eq(end),
            ]
            m.d.comb += [base.offsets[f].eq(NO_HEADER) for f in range(UNIT_FLITS_MAX)]

        m.d.comb += [grown.eq(base), grown.flits.eq(placing.next.flit + placing.in_flit)]
        with m.If(~begun):
            m.d.comb += [
                grown.words.eq(Mux(joins_now, words, chunk.words)),
                grown.beats.eq(Mux(joins_now, beats, own_beats)),
            ]
            here = Cat(at.lane, at.row)[:6] - 1
            with m.Switch(at.flit):
                for f in range(UNIT_FLITS_MAX):
                    with (
                        m.Case(f),
                        m.If(
                            (base.offsets[f] == NO_HEADER)
                            | fault("the offset of a second packet in a flit replaces the first")
                        ),
                    ):
                        m.d.comb += grown.offsets[f].eq(here)

        # A packet's end: the unit is there, or is larger
        commit = Signal()
        m.d.comb += [
            commit.eq(moves & chunk.last & chunk.good),
            flits_before.eq(Mux(joins, base.flits, 0)),
            rings.queue.eq(q),
            rings.grows.eq(begun & joined),
            rings.enter.eq(commit),
            rings.joins.eq(joins),
            rings.record.unit.eq(grown),
            rings.record.row.eq(placing.next.row),
            rings.record.lane.eq(placing.next.lane),
            store.queue.eq(q),
            store.more.eq(Mux(commit, grown.flits - flits_before, 0)),
        ]
        with m.If(placing.valid):
            m.d.sync += [at_kept.eq(placing.next), begun.eq(1), joined.eq(joins), base_kept.eq(grown)]
            m.d.sync += base_kept.flits.eq(base.flits)  # as they were before, to tell by how many it grows
        with m.If(moves & chunk.last):
            m.d.sync += begun.eq(0)
        with m.If(commit):
            slot = placing.next.slot
            m.d.sync += end_slot[q].eq(Mux(placing.in_flit, Mux(slot == slots - 1, 0, slot + 1), slot))

        m.d.comb += [
            self.bad_packet.eq(intake.bad),
            self.room.eq(store.room),
            self.room_pair.eq(store.room_pair),
            self.unit_valid.eq(rings.valid),
            self.unit_flits.eq(rings.flits),
            rings.take.eq(self.take),
            rings.taken.eq(self.queue),
            self.unit.eq(rings.unit),
            *(store.banks[n].eq(placing.banks[n]) for n in range(2)),
            store.from_queue.eq(self.unit.queue),
            store.read.eq(self.read),
            store.row.eq(self.read_beat),
            store.release.eq(self.release),
            self.data.eq(store.data),
        ]
        return m

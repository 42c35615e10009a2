"""Units wait until their tail is there, and go on if all their bytes are what they were when they came in."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import FLIT_PAYLOAD_BYTES, UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.switch.beat import parity_of, transfer_beat

__all__ = ["SoundUnits"]


class SoundUnits(wiring.Component):
    """`valid`, `i`: beats of units, one unit behind the other; at most a beat in a cycle, and the beats of a unit with
    two flit times or more between its tail and the next head, so that two units fit into what waits here.

    `o_valid`, `o`: the same of units whose payload bytes all have the parity that they came with (DLP and codes are
    not looked at). `bad_parity`, with a flit's last beat: one of its bytes has not. With the tail of such a unit all of
    it is dropped: `dropped_flits`.
    Timing: a unit's first beat is at `o` in the cycle after its last one came; a beat a cycle.
    """

    def __init__(self, cfg: LinkConfig):
        self.link = cfg
        super().__init__(
            {
                "valid": In(1),
                "i": In(transfer_beat(cfg)),
                "o_valid": Out(1),
                "o": Out(beat_layout(cfg)),
                "bad_parity": Out(1),
                "dropped_flits": Out(range(UNIT_FLITS_MAX + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beats, size = self.link.beats, self.link.beat_bytes
        depth = 2 * UNIT_FLITS_MAX * beats
        m.submodules.waiting = waiting = Memory(shape=8 * size, depth=depth, init=[])
        store, load = waiting.write_port(), waiting.read_port(domain="comb")
        put, whole, get = (Signal(range(depth), name=n) for n in ("put", "whole", "get"))  # whole: units up to here are
        after = Signal.like(put)
        payload = Mux(self.i.last, (1 << FLIT_PAYLOAD_BYTES % size) - 1, (1 << size) - 1)
        wrong, before, spoilt = (
            Signal(),
            Signal(),
            Signal(),
        )  # before: in this flit; spoilt: in this unit
        flits = Signal(range(UNIT_FLITS_MAX))  # of the unit, before this one
        ends, drops = Signal(), Signal()
        m.d.comb += [
            wrong.eq(
                (
                    (parity_of(self.i.data) ^ self.i.parity)
                    & (payload | fault("DLP and codes have parity too").replicate(size))
                ).any()
                & ~fault("parity of what is answered is ignored")
            ),
            self.bad_parity.eq(self.valid & self.i.last & (wrong | before)),
            ends.eq(self.valid & self.i.last & self.i.tail),
            drops.eq(ends & (wrong | before | spoilt)),
            self.dropped_flits.eq(Mux(drops, flits + 1, 0)),
            after.eq(put + 1),
            store.en.eq(self.valid),
            store.addr.eq(put),
            store.data.eq(self.i.data),
            load.addr.eq(get),
            self.o_valid.eq(get != whole),
            self.o.first.eq(get[: (beats - 1).bit_length()] == 0),
            self.o.last.eq(get[: (beats - 1).bit_length()] == beats - 1),
            self.o.data.eq(load.data),
        ]
        with m.If(self.valid):
            m.d.sync += put.eq(Mux(drops & ~fault("a unit that is dropped goes on with the next one"), whole, after))
            m.d.sync += before.eq(
                (wrong | before)
                & ~self.i.last
                & ~fault("a wrong byte in a beat of what is answered that is not the last is forgotten")
            )
            with m.If(self.i.last):
                m.d.sync += [
                    spoilt.eq((wrong | before | spoilt) & ~self.i.tail),
                    flits.eq(Mux(self.i.tail, 0, flits + 1)),
                ]
        with m.If(ends & ~drops):
            m.d.sync += whole.eq(after)
        with m.If(self.o_valid):
            m.d.sync += get.eq(get + 1)
        return m

"""Between a mover's port and its group of SBUF: writes that add to what is there."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.memory_port import SbufMoverSignature, sbuf_word_bits
from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.timing import SBUF_ADD_CYCLES
from rtl.memory.sbuf_sums import SbufSums

__all__ = ["SbufAdder"]

_PLACES = SBUF_ADD_CYCLES + 1  # of sums under way: as many as hide the time of one


class SbufAdder(wiring.Component):
    """Writes of `mover` come to `write_*`: copies in the same cycle, sums SBUF_ADD_CYCLES after their old bytes were
    asked for at `look_*`, in the order in which they were accepted, and before copies. The old bytes come to SbufSums
    in the next cycle, with `sum_valid`, and the sum from there to `sum`.

    A write to 16 bytes of which a sum is under way waits, adding or not: so each sum is atomic among all that comes by
    `mover`. A sum that SBUF refuses holds its place; those behind it go on until all places are taken.
    What is written is `write_sum`, of sums that are ready, else what the mover brings: the group of banks looks itself
    at the data of a copy.
    `adding`: this unit and SbufSums need an edge at the end of this cycle.
    Timing: a write a cycle.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        lane = ceil_log2(cfg.partitions // cfg.dma.engines)
        pair = sbuf_word_bits(cfg) - 1
        # seen by proofs too
        self.busy = [Signal(name=f"busy{n}") for n in range(_PLACES)]
        self.lanes = [Signal(lane, name=f"lane{n}") for n in range(_PLACES)]
        self.pairs = [Signal(pair, name=f"pair{n}") for n in range(_PLACES)]
        self.lasts = [Signal(name=f"last{n}", reset_less=True) for n in range(_PLACES)]
        self.youngest = Signal(range(_PLACES))
        self.oldest = Signal(range(_PLACES))
        self.ages = Signal(SBUF_ADD_CYCLES)  # sums in the lanes
        self.held = Fifo(128, _PLACES)  # sums that SBUF refused
        super().__init__(
            {
                "mover": In(SbufMoverSignature(cfg)),
                "look_valid": Out(1),
                "look_ready": In(1),
                "look_lane": Out(lane),
                "look_pair": Out(pair),
                "sum_valid": Out(1),
                "sum_add": Out(2),
                "sum_new": Out(128),
                "sum": In(128),
                "write_valid": Out(1),
                "write_ready": In(1),
                "write_lane": Out(lane),
                "write_pair": Out(pair),
                "write_bytes": Out(16),
                "sums": Out(1),  # the write is one of a sum
                "write_sum": Out(128),
                "adding": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mover = self.mover
        m.submodules.held = held = self.held
        assert SBUF_ADD_CYCLES == 1 + SbufSums.LATENCY and _PLACES & (_PLACES - 1) == 0  # the ring's ends wrap

        # Sums under way: a ring of places.
        busy, lanes, pairs = self.busy, self.lanes, self.pairs
        masks = [Signal(16, name=f"bytes{n}", reset_less=True) for n in range(_PLACES)]
        lasts, youngest, oldest, ages = self.lasts, self.youngest, self.oldest, self.ages
        full = Signal()
        hit = Signal()
        some = Signal()  # else a simulator need not look
        hits = Cat(
            taken & (lane == mover.write_lane) & (pair == mover.write_pair)
            for taken, lane, pair in zip(busy, lanes, pairs, strict=True)
        )
        m.d.comb += some.eq(Cat(busy).any())
        with m.If(some):
            m.d.comb += [
                hit.eq(hits.any() & ~fault("a sum beside SBUF does not wait for one of the same bytes")),
                full.eq(self._of(busy, youngest)),
            ]

        adds = Signal()
        enters = Signal()
        leaves = Signal()
        there = Signal()  # a sum is to be written
        m.d.comb += [
            adds.eq((mover.write_add != DmaAdd.COPY) & ~fault("a mover's add overwrites what is in SBUF")),
            self.look_valid.eq(mover.write_valid & adds & ~hit & ~full),
            self.look_lane.eq(mover.write_lane),
            self.look_pair.eq(mover.write_pair),
            enters.eq(self.look_valid & self.look_ready),
            leaves.eq(there & self.write_ready),
            mover.write_ready.eq(Mux(adds, ~hit & ~full & self.look_ready, ~there & ~hit & self.write_ready)),
        ]
        with m.If(enters):
            m.d.sync += youngest.eq(youngest + 1)
        with m.If(leaves):
            m.d.sync += oldest.eq(oldest + 1)
        for n in range(_PLACES):
            takes = Signal(name=f"takes{n}")
            m.d.comb += takes.eq(enters & (youngest == n))
            with m.If(takes):
                m.d.sync += [
                    busy[n].eq(1),
                    lanes[n].eq(mover.write_lane),
                    pairs[n].eq(mover.write_pair),
                    masks[n].eq(mover.write_bytes),
                    lasts[n].eq(mover.write_last),
                ]
            with m.Elif(leaves & (oldest == n)):
                m.d.sync += busy[n].eq(0)

        stops = fault("the clock of sums beside SBUF stops before they are written")
        # The old bytes are here in the cycle after they were asked for.
        m.d.sync += ages.eq(Cat(enters, ages))
        with m.If(enters):
            m.d.sync += [self.sum_new.eq(mover.write_data), self.sum_add.eq(mover.write_add)]
        comes = ages[-1]
        m.d.comb += [
            self.sum_valid.eq(ages[0]),
            self.adding.eq(Mux(stops, ages[:-1].any(), some) | (mover.write_valid & adds)),
            there.eq(comes | (held.level != 0)),
            held.i.valid.eq(comes & ~(leaves & (held.level == 0))),
            held.i.payload.eq(self.sum),
            held.o.ready.eq(leaves),
        ]

        m.d.comb += [
            self.write_valid.eq(there | (mover.write_valid & ~adds & ~hit)),
            self.write_lane.eq(mover.write_lane),
            self.write_pair.eq(mover.write_pair),
            self.write_bytes.eq(mover.write_bytes),
            self.sums.eq(there),
        ]
        with m.If(there):
            m.d.comb += self.write_sum.eq(Mux(held.level != 0, held.o.payload, self.sum))
            with m.Switch(oldest):
                for n in range(_PLACES):
                    with m.Case(n):
                        m.d.comb += [
                            self.write_lane.eq(lanes[n]),
                            self.write_pair.eq(pairs[n]),
                            self.write_bytes.eq(masks[n]),
                        ]
        m.d.comb += mover.write_done.eq(leaves & self._of(lasts, oldest))
        with m.If(fault("the end of a sum is told before it is in SBUF")):
            m.d.comb += mover.write_done.eq(enters & mover.write_last)
        return m

    @staticmethod
    def _of(bits: list[Signal], index: Signal) -> Value:
        return (Cat(*bits) >> index)[0]

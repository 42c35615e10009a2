"""Write side of a mover towards HBM: packs beats, sends whole bursts, waits for their answers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.fifo import Fifo, RamFifo
from rtl.base.limits import limit_ports
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.timing import DMA_ROWS_IN_FLIGHT
from rtl.dma.layouts import ar_burst, done_layout, slot_bits, unit_layout

__all__ = ["Writer"]

_BURSTS = 16  # buffered bursts
_HELD = 4  # of full length


class Writer(wiring.Component):
    """Units of a row, in ascending order, become beats with strobes; a burst ends with the row or at a
    multiple of `limit_burst_bytes`, and is offered at `burst` when all its beats are in the buffer, which holds four
    of them.

    `w_*`: the beats of the bursts in their order; `w_take` moves to the next one.
    `b_*`: answers, in the order of the bursts. The last one of a row makes `done`.
    Timing: a unit a cycle; a beat a cycle at `w_*`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.depth = _HELD * cfg.dma.burst_bytes // cfg.hbm.port_bytes
        # seen by proofs too
        end = data.StructLayout({"last": 1, "slot": slot_bits(cfg), "read_error": 1})
        self.bursts = Fifo(data.StructLayout({"burst": ar_burst(cfg), "end": end}), _BURSTS)
        self.sent = RamFifo(end, DMA_ROWS_IN_FLIGHT)
        self.dones = Fifo(done_layout(cfg), 2)
        self.used = Signal(range(self.depth + 1))  # beats in the buffer, and the one on its way there
        self.full = Signal()  # of these, the one on its way
        self.stored = Signal(range(self.depth + 1))  # of these, beats in the RAM without the one in its output register
        self.first = Signal(ar_burst(cfg)["beat"].shape)
        self.opening = Signal(init=1)  # the next unit opens a burst
        super().__init__(
            {
                **limit_ports(cfg, "burst_bytes"),
                "unit": In(stream.Signature(unit_layout(cfg))),
                "burst": Out(stream.Signature(ar_burst(cfg))),
                "w_valid": Out(1),
                "w_data": Out(8 * cfg.hbm.port_bytes),
                "w_strobe": Out(cfg.hbm.port_bytes),
                "w_take": In(1),
                "b_valid": In(1),
                "b_error": In(1),
                "b_ready": Out(1),
                "done": Out(stream.Signature(done_layout(cfg))),
                "buffered": Out(1),
                "unanswered": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        port = cfg.hbm.port_bytes
        depth = self.depth
        per_beat = ceil_log2(port // 16)
        window = ceil_log2(cfg.dma.burst_bytes // 16)
        unit = self.unit.payload
        m.submodules.bursts = bursts = self.bursts
        m.submodules.sent = sent = self.sent
        m.submodules.buffer = buffer = Ram(9 * port, depth)

        # One beat is packed in registers and goes to the buffer in the cycle after its last unit.
        beat = Signal(8 * port)
        strobe = Signal(port)
        fresh = Signal(init=1)  # the next unit opens a beat
        opening, first = self.opening, self.first
        start = Signal.like(first)
        here = unit.to >> per_beat
        built = fault("bursts to HBM are as long as is built")
        limit = Mux(built, cfg.dma.burst_bytes, self.limit_burst_bytes)
        most = Signal(range(depth + 1))
        window_end = Signal()
        full = self.full
        used = self.used
        enter = Signal()
        closes = Signal()
        ends = Signal()
        place = unit.to[:per_beat] if per_beat else Const(0, 1)
        full_beat = place.all() if per_beat else Const(1, 1)
        m.d.comb += [
            most.eq((limit * _HELD) >> ceil_log2(port)),
            window_end.eq((unit.to[:window] | ~((limit >> 4) - 1)[:window]).all()),
            self.unit.ready.eq((used != most) & bursts.i.ready),
            enter.eq(self.unit.valid & self.unit.ready),
            closes.eq(enter & (unit.last | full_beat)),
            ends.eq(enter & (unit.last | window_end)),
            start.eq(first),
        ]
        with m.If(opening):
            m.d.comb += start.eq(here)
        with m.If(enter):
            with m.If(fresh & ~fault("strobes of the beat before stay")):
                m.d.sync += strobe.eq(0)
            m.d.sync += [
                beat.word_select(place, 128).eq(unit.data),
                strobe.word_select(place, 16).eq(unit.bytes),
                fresh.eq(closes),
                opening.eq(ends),
                first.eq(start),
            ]
        m.d.comb += [
            bursts.i.valid.eq(ends),
            bursts.i.payload.burst.beat.eq(start),
            bursts.i.payload.burst.length.eq(here - start),
            bursts.i.payload.end.last.eq(unit.last),
            bursts.i.payload.end.slot.eq(unit.slot),
            bursts.i.payload.end.read_error.eq(unit.read_error),
        ]
        m.d.sync += [full.eq(closes), used.eq(used + closes - self.w_take)]

        write = Signal(range(depth))
        read = Signal(range(depth))
        stored = self.stored
        fetch = Signal()
        m.d.comb += [
            buffer.write_en.eq(full),
            buffer.write_address.eq(write),
            buffer.write_mask.eq(1),
            buffer.write_data.eq(Cat(beat, strobe)),
            fetch.eq((stored != 0) & (~self.w_valid | self.w_take)),
            buffer.read_en.eq(fetch),
            buffer.read_address.eq(read),
            self.w_data.eq(buffer.read_data[: 8 * port]),
            self.w_strobe.eq(buffer.read_data[8 * port :]),
        ]
        m.d.sync += [write.eq(write + full), read.eq(read + fetch), stored.eq(stored + full - fetch)]
        with m.If(fetch):
            m.d.sync += self.w_valid.eq(1)
        with m.Elif(self.w_take):
            m.d.sync += self.w_valid.eq(0)

        # Bursts leave, and are remembered until their answers come.
        offer = bursts.o
        leaves = Signal()
        m.d.comb += [
            self.burst.valid.eq(offer.valid & sent.i.ready),
            self.burst.payload.eq(offer.payload.burst),
            offer.ready.eq(self.burst.ready & sent.i.ready),
            leaves.eq(offer.valid & offer.ready),
            sent.i.valid.eq(leaves),
            sent.i.payload.eq(offer.payload.end),
        ]
        m.submodules.dones = dones = self.dones
        wiring.connect(m, dones.o, wiring.flipped(self.done))
        failed = Signal()
        answered = Signal()
        oldest = sent.o.payload
        m.d.comb += [
            self.b_ready.eq(sent.o.valid & dones.i.ready),
            answered.eq(self.b_valid & self.b_ready),
            sent.o.ready.eq(answered),
            dones.i.valid.eq(answered & oldest.last),
            dones.i.payload.slot.eq(oldest.slot),
            dones.i.payload.read_error.eq(oldest.read_error),
            dones.i.payload.write_error.eq(failed | self.b_error),
            self.buffered.eq((used != 0) | bursts.o.valid),
            self.unanswered.eq(sent.level != 0),
        ]
        with m.If(answered):
            m.d.sync += failed.eq((failed | self.b_error) & ~oldest.last)
        with m.If(fault("a row is done when its last burst is sent")):
            m.d.comb += [
                dones.i.valid.eq(leaves & offer.payload.end.last),
                dones.i.payload.slot.eq(offer.payload.end.slot),
            ]
        return m

"""Read side of a mover towards HBM: bursts ahead of the data's use, and the buffer they return to."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.credit import Credit
from rtl.base.dma_port import ROW_BYTES_BITS
from rtl.base.fault import fault
from rtl.base.limits import limit_ports
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.dma.layouts import ar_burst, row_layout

__all__ = ["Reader"]


class Reader(wiring.Component):
    """Passes rows on in their order; for a row in HBM it first asks for the row's bursts.

    A burst ends where the row ends or at a multiple of `limit_burst_bytes`, so that none crosses 4 KiB; it is asked
    for when the buffer, of which `limit_buffer_bytes` are used, has room for all its beats. Rows in SBUF pass at
    once, so that reads of later rows are not held up by them.
    `beat_*`: beats as they return, one a cycle, never refused. The buffer gives them in order: `take`
    fetches the next one (`level` counts those that are there) and `data` has it in the next cycle, until the
    next `take`; `error` says with it whether HBM answered with an error.
    Timing: a row takes a cycle and one for each burst.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.depth = cfg.dma.buffer_bytes // cfg.hbm.port_bytes
        row = stream.Signature(row_layout(cfg))
        # seen by proofs too
        self.address = Signal(row_layout(cfg)["source"].shape)
        self.left = Signal(ROW_BYTES_BITS)
        self.free = Signal(range(self.depth + 1))  # beats within the limit that are neither there nor asked for
        super().__init__(
            {
                **limit_ports(cfg, "buffer_bytes", "burst_bytes"),
                "row": In(row),
                "planned": Out(row),
                "burst": Out(stream.Signature(ar_burst(cfg))),
                "beat_valid": In(1),
                "beat_data": In(8 * cfg.hbm.port_bytes),
                "beat_error": In(1),
                "take": In(1),
                "level": Out(range(self.depth + 1)),
                "data": Out(8 * cfg.hbm.port_bytes),
                "error": Out(1),
                "outstanding": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        depth = self.depth
        within = ceil_log2(cfg.hbm.port_bytes)
        window = ceil_log2(cfg.dma.burst_bytes)

        # Rows: one is held while its bursts are asked for, and passed on when it is taken.
        address, left, free = self.address, self.left, self.free
        m.submodules.credit = credit = Credit(depth, cfg.dma.burst_bytes // cfg.hbm.port_bytes)
        spare = Signal(range(depth + 1))  # beats of the buffer that the limit leaves alone
        most = Signal.like(self.limit_burst_bytes)  # bytes of a burst
        within_window = Signal(window)
        room = Signal(ROW_BYTES_BITS)  # bytes to the end of the window of limit_burst_bytes
        size = Signal(ROW_BYTES_BITS)
        beats = Signal(9)
        taken = Signal()
        asks = Signal()
        last = Signal()
        m.d.comb += [
            spare.eq(
                Mux(fault("a mover has as much in flight as is built"), 0, depth - (self.limit_buffer_bytes >> within))
            ),
            most.eq(Mux(fault("bursts from HBM are as long as is built"), cfg.dma.burst_bytes, self.limit_burst_bytes)),
            within_window.eq(address[:window] & (most - 1)[:window]),
            room.eq(most - Mux(fault("bursts start anywhere and are full length: they cross 4 KiB"), 0, within_window)),
            last.eq(left <= room),
            size.eq(Mux(last, left, room)),
            beats.eq((address[:within] + size + (cfg.hbm.port_bytes - 1)) >> within),
            self.burst.valid.eq((left != 0) & (free >= beats)),
            self.burst.payload.beat.eq(address >> within),
            self.burst.payload.length.eq(beats - 1),
            asks.eq(self.burst.valid & self.burst.ready),
            self.planned.valid.eq(self.row.valid & (left == 0)),
            self.planned.payload.eq(self.row.payload),
            self.row.ready.eq(self.planned.ready & (left == 0)),
            taken.eq(self.row.valid & self.row.ready),
        ]
        with m.If(taken & ~self.row.payload.from_sbuf):
            m.d.sync += [address.eq(self.row.payload.source), left.eq(self.row.payload.bytes)]
        with m.Elif(asks):
            m.d.sync += [address.eq(address + size), left.eq(left - size)]
        m.d.comb += [credit.take.eq(Mux(asks, beats, 0)), credit.give.eq(self.take), free.eq(credit.count - spare)]

        m.submodules.buffer = buffer = Ram(8 * cfg.hbm.port_bytes, depth)
        write = Signal(range(depth))
        read = Signal(range(depth))
        errors = Signal(depth)
        m.d.comb += [
            buffer.write_en.eq(self.beat_valid),
            buffer.write_address.eq(write),
            buffer.write_mask.eq(1),
            buffer.write_data.eq(self.beat_data),
            buffer.read_en.eq(self.take),
            buffer.read_address.eq(read),
            self.data.eq(buffer.read_data),
            self.outstanding.eq((left != 0) | (credit.count + self.level != depth)),
        ]
        with m.If(self.beat_valid):
            m.d.sync += [write.eq(write + 1), errors.bit_select(write, 1).eq(self.beat_error)]
        with m.If(self.take):
            m.d.sync += [read.eq(read + 1), self.error.eq(errors.bit_select(read, 1))]
        m.d.sync += self.level.eq(self.level + self.beat_valid - self.take)
        return m

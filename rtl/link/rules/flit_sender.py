"""The retry buffer, and what goes on the wire: one flit after the other, for ever."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.ram import Ram
from rtl.contract.link import CONTROL, DLP, DLP_AT, DLP_BYTES, FLIT_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout

__all__ = ["FlitSender", "dlp_bytes"]

_CODE_BYTES = FLIT_BYTES - DLP_AT - DLP_BYTES  # CRC and FEC, filled in by the encoder


def dlp_bytes(dlp: Value) -> Value:
    """The 48 bits of a DLP in the order of their bytes: its highest byte is the first."""
    return Cat(dlp[8 * n : 8 * n + 8] for n in reversed(range(DLP_BYTES)))


class FlitSender(wiring.Component):
    """Stores payload flits, and sends one of them, a control flit or a NOP in every flit time.

    `i`: payload flits from the framer, taken while `room`; `enqueue` strobes when one is stored whole, in slot
    `put_index` of the buffer. `slot` strobes when a flit begins: what it is comes from `payload` (slot `index` of the
    buffer), `control` (a flit that begins with `head`) and `dlp` in that cycle. `clear`: a new session; what is being
    stored is given up.
    Timing: the first beat is at `o` in the cycle after `slot`; flits follow without a gap while `o` is ready.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.slots = 1 << (cfg.window_flits - 1).bit_length()
        super().__init__(
            {
                "i": In(stream.Signature(beat_layout(cfg))),
                "o": Out(stream.Signature(beat_layout(cfg))),
                "room": In(1),
                "enqueue": Out(1),
                "put_index": In(range(self.slots)),
                "clear": In(1),
                "slot": Out(1),
                "payload": In(1),
                "index": In(range(self.slots)),
                "control": In(1),
                "head": In(CONTROL.width),
                "dlp": In(DLP.width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beats, width = self.cfg.beats, 8 * self.cfg.beat_bytes
        m.submodules.buffer = buffer = Ram(width, beats * self.slots)

        written = Signal(range(beats))
        m.d.comb += [
            self.i.ready.eq(self.room),
            buffer.write_en.eq(self.i.valid & self.i.ready),
            buffer.write_address.eq(self.put_index * beats + written),
            buffer.write_mask.eq(1),
            buffer.write_data.eq(self.i.payload.data),
            self.enqueue.eq(buffer.write_en & self.i.payload.last & ~self.clear),
        ]
        with m.If(self.clear):
            m.d.sync += written.eq(0)
        with m.Elif(buffer.write_en):
            m.d.sync += written.eq(Mux(self.i.payload.last, 0, written + 1))

        asked = Signal(range(beats))  # the beat whose row is read now
        shown = Signal(range(beats))  # the beat at the output
        full = Signal()
        payload = Signal()
        index = Signal.like(self.index)
        head = Signal.like(self.head)
        dlp = Signal.like(self.dlp)
        moves = Signal()
        m.d.comb += [
            moves.eq(~full | self.o.ready),
            self.slot.eq(moves & (asked == 0)),
            buffer.read_en.eq(moves),
            buffer.read_address.eq(Mux(asked == 0, self.index, index) * beats + asked),
        ]
        with m.If(moves):
            m.d.sync += [full.eq(1), shown.eq(asked), asked.eq(Mux(asked == beats - 1, 0, asked + 1))]
        with m.If(self.slot):
            m.d.sync += [
                payload.eq(self.payload),
                index.eq(self.index),
                head.eq(Mux(self.control, self.head, 0)),
                dlp.eq(self.dlp),
            ]

        body = Signal(width)
        with m.If(payload):
            m.d.comb += body.eq(buffer.read_data)
        with m.Elif(shown == 0):
            m.d.comb += body.eq(head)
        m.d.comb += [
            self.o.valid.eq(full),
            self.o.payload.first.eq(shown == 0),
            self.o.payload.last.eq(shown == beats - 1),
            self.o.payload.data.eq(body),
        ]
        with m.If(shown == beats - 1):
            m.d.comb += self.o.payload.data.eq(Cat(body[: width - 8 * (DLP_BYTES + _CODE_BYTES)], dlp_bytes(dlp)))
        return m

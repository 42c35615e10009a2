"""The retry buffer of an output, and what goes on its wire: flits leave while they arrive."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.contract.link import CONTROL, DLP, DLP_AT, DLP_BYTES, FLIT_BYTES, FLIT_HEADER_BYTES, NO_HEADER, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT
from rtl.link.rules.flit_sender import dlp_bytes
from rtl.switch.beat import parity_of, switch_beat

__all__ = ["OutputBuffer"]

_HEADER = 8 * FLIT_HEADER_BYTES
_TAIL = 8 * (FLIT_BYTES - DLP_AT)  # DLP and codes
_CODES = 8 * (FLIT_BYTES - DLP_AT - DLP_BYTES)


class OutputBuffer(wiring.Component):
    """Stores payload flits, and sends one of them, a control flit or a NOP in every flit time.

    `i_valid`, `i`: beats of payload flits, each flit's in consecutive cycles, taken always; `header` is what the first
    four bytes become on this hop. `enqueue` strobes with the first beat, so a flit may go out while it comes in.
    `slot`, `payload`, `index`, `control`, `head`, `dlp`: as in FlitSender.
    A byte whose parity is wrong makes its flit `void`: it goes out with codes that are wrong (`spoil`, with its last
    beat), and when it is sent again it is a unit of its own with nothing in it, so that whoever receives it drops
    what came before it of the unit and what comes after. `bad_parity` strobes once a flit.
    Timing: a flit is at `o` two cycles after its first beat came, if `slot` comes in the cycle between.
    """

    def __init__(self, cfg: LinkConfig):
        self.link = link = cfg
        self.slots = 1 << (link.window_flits - 1).bit_length()
        super().__init__(
            {
                "i_valid": In(1),
                "i": In(switch_beat(link)),
                "header": In(FLIT_HEADER_LAYOUT),
                "put_index": In(range(self.slots)),
                "enqueue": Out(1),
                "clear": In(1),
                "o": Out(stream.Signature(beat_layout(link))),
                "spoil": Out(1),
                "bad_parity": Out(1),
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
        beats, bits = self.link.beats, 8 * self.link.beat_bytes
        m.submodules.buffer = buffer = Ram(bits + self.link.beat_bytes, beats * self.slots)
        m.submodules.headers = headers = Memory(shape=_HEADER, depth=self.slots, init=[])
        keep, recall = headers.write_port(), headers.read_port(domain="comb")
        void = Signal(self.slots)

        # In. The header of this hop has bytes of its own; their parity says what that of the old ones said.
        put = Signal.like(self.put_index)
        put_kept = Signal.like(self.put_index)
        written = Signal(range(beats))
        old, new = self.i.data[:_HEADER], Signal(_HEADER)
        stored, stored_parity = Signal(bits), Signal(self.link.beat_bytes)
        m.d.comb += [
            put.eq(Mux(self.i.first, self.put_index, put_kept)),
            new.eq(self.header),
            stored.eq(self.i.data),
            stored_parity.eq(self.i.parity),
            self.enqueue.eq(self.i_valid & self.i.first & ~self.clear),
            keep.en.eq(self.enqueue),
            keep.addr.eq(put),
            keep.data.eq(new),
            buffer.write_en.eq(self.i_valid),
            buffer.write_address.eq(put * beats + Mux(self.i.first, 0, written)),
            buffer.write_mask.eq(1),
            buffer.write_data.eq(Cat(stored, stored_parity)),
        ]
        with m.If(self.i.first):
            changed = Signal(FLIT_HEADER_BYTES)
            m.d.comb += [
                changed.eq(parity_of(old ^ new)),
                stored[:_HEADER].eq(new),
                stored_parity[:FLIT_HEADER_BYTES].eq(
                    self.i.parity[:FLIT_HEADER_BYTES]
                    ^ Mux(fault("the parity of the header is still that of the old one"), 0, changed)
                ),
            ]
        with m.If(self.i_valid):
            m.d.sync += [put_kept.eq(put), written.eq(Mux(self.i.first, 1, written + 1))]

        # Out, as FlitSender does.
        asked = Signal(range(beats))  # the beat whose row is read now
        shown = Signal(range(beats))  # the beat at the output
        full, payload, moves = Signal(), Signal(), Signal()
        index = Signal.like(self.index)
        head, dlp = Signal.like(self.head), Signal.like(self.dlp)
        nothing = Signal()  # the payload flit shown is void
        header = Signal(FLIT_HEADER_LAYOUT)  # of a void flit
        m.d.comb += [
            moves.eq(~full | self.o.ready),
            self.slot.eq(moves & (asked == 0)),
            buffer.read_en.eq(moves),
            buffer.read_address.eq(Mux(asked == 0, self.index, index) * beats + asked),
            recall.addr.eq(self.index),
        ]
        with m.If(moves):
            m.d.sync += [full.eq(1), shown.eq(asked), asked.eq(Mux(asked == beats - 1, 0, asked + 1))]
        with m.If(self.slot):
            m.d.sync += [
                payload.eq(self.payload),
                index.eq(self.index),
                nothing.eq(
                    (void.bit_select(self.index, 1) | (self.bad_parity & (self.index == index)))
                    & ~fault("a void flit is sent again as it is")
                ),
                header.eq(recall.data),
                header.offset.eq(NO_HEADER),
                header.zero.eq(0),  # the byte that was wrong may be there, and a malformed flit would never be accepted
                head.eq(Mux(self.control, self.head, 0)),
                dlp.eq(self.dlp),
            ]

        # A wrong byte in what is shown. DLP and codes of the row are not sent.
        row, parity = buffer.read_data[:bits], buffer.read_data[bits:]
        wrong = Signal()
        spoilt = Signal()  # an earlier beat of the flit shown was wrong
        last = Signal()
        unlike = parity_of(row) ^ parity
        m.d.comb += [
            last.eq(shown == beats - 1),
            wrong.eq(
                full
                & payload
                & ~nothing
                & ((unlike & Mux(last, (1 << (bits - _TAIL) // 8) - 1, (1 << bits // 8) - 1)) != 0)
                & ~fault("parity of a retry buffer is ignored")
            ),
            self.spoil.eq(last & (wrong | spoilt)),
            self.bad_parity.eq(self.o.ready & self.spoil),
        ]
        with m.If(self.slot & ~fault("a void flit is not a unit of its own")):
            m.d.sync += [header.head.eq(1), header.tail.eq(1)]
        with m.If(moves):
            m.d.sync += spoilt.eq(
                (wrong | spoilt)
                & ~last
                & ~fault("a wrong byte in a beat of a retry buffer that is not the last is forgotten")
            )
        with m.If(self.bad_parity):
            m.d.sync += void.eq(void | (1 << index))
        with m.If(self.enqueue & ~fault("what comes after a void flit in its slot is void too")):
            m.d.sync += void.bit_select(put, 1).eq(0)

        body = Signal(bits)
        with m.If(payload & nothing):
            with m.If(shown == 0):
                m.d.comb += body.eq(Cat(header, Const(PacketOpcode.END, 4)))
        with m.Elif(payload):
            m.d.comb += body.eq(row)
        with m.Elif(shown == 0):
            m.d.comb += body.eq(head)
        m.d.comb += [
            self.o.valid.eq(full),
            self.o.payload.first.eq(shown == 0),
            self.o.payload.last.eq(last),
            self.o.payload.data.eq(body),
        ]
        with m.If(last):
            m.d.comb += self.o.payload.data.eq(Cat(body[: bits - _TAIL], dlp_bytes(dlp)))
        return m

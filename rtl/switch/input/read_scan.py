"""Is there a request in a unit that its sender waits for an answer to?"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import PACKET_BYTES_MAX, PACKET_HEADER_BYTES, SIGNAL_BYTES, WORD_BYTES, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import (
    HEADER_WORDS,
    PACKET_HEADER_LAYOUT,
    WORD_BITS,
    body_bytes,
    is_response,
    is_sound,
    packet_words,
    rows_of,
)

__all__ = ["ReadScan"]

_ANSWERED = (PacketOpcode.READ, PacketOpcode.FETCH_ADD)
_WORDS_MAX = HEADER_WORDS + (PACKET_BYTES_MAX + SIGNAL_BYTES) // WORD_BYTES


class ReadScan(wiring.Component):
    """`valid`: beats of flits of requests; `queue` and `head` in all of them: of which unit, and is it its first flit.

    `reads`, with the last beat of a unit: a whole READ or FETCH_ADD is in it, behind sound packets only; as in
    docs/framing.md, what stands behind END, zeros or a header that is not sound is not looked at. Offsets are not
    checked.
    Units of different queues may interleave flit by flit: where a scan stands lies in a memory, a row a queue.
    Timing: `reads` is combinational from the beat, through as many steps as packets fit into one (4; 8 at 128 bytes).
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "last": In(1),
                "head": In(1),
                "queue": In(range(cfg.queues)),
                "data": In(8 * cfg.beat_bytes),
                "reads": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = 8 * self.cfg.beat_bytes // WORD_BITS
        short = rows_of(self.cfg).last_end  # end of a flit's last beat
        state = data.StructLayout(
            {
                "skip": range(_WORDS_MAX + 1),  # words up to the next header
                "zeros": 1,  # all words of the packet under way were 0 so far
                "read": 1,  # the packet under way is one
                "reads": 1,  # one before it was
                "ended": 1,
            }
        )
        m.submodules.scans = scans = Memory(shape=state, depth=self.cfg.queues, init=[])
        load, store = scans.read_port(domain="comb"), scans.write_port()
        before = Signal(state)
        after = Signal(state)
        m.d.comb += [
            load.addr.eq(self.queue),
            before.eq(Mux(self.first & self.head, 0, load.data)),
            store.addr.eq(self.queue),
            store.en.eq(self.valid),
            store.data.eq(after),
        ]

        start = Signal()
        end = Signal(range(lanes + 1))
        used = Signal(lanes)  # words that are not 0
        place = Signal(range(lanes + _WORDS_MAX + 1))
        m.d.comb += [
            start.eq(self.first & ~fault("the lanes between two flits are words")),
            end.eq(Mux(self.last, short, lanes)),
            used.eq(Cat(self.data.word_select(n, WORD_BITS).any() & (n < end) for n in range(lanes))),
            place.eq(before.skip + start),
        ]
        rest = (used >> start)[: HEADER_WORDS - 1]  # of a header that began in the beat before
        ends_here = before.zeros & ((rest & ((Const(1, HEADER_WORDS) << before.skip[:2]) - 1)) == 0)
        ended = before.ended | ends_here
        read, reads, zeros = before.read, before.reads, Const(0, 1)
        for n in range(lanes // HEADER_WORDS):
            begins = Signal(name=f"begins_{n}")
            word = Signal(WORD_BITS, name=f"word_{n}")
            empty = Signal(name=f"empty_{n}")  # as far as the beat shows
            sound = Signal(name=f"sound_{n}")
            words = Signal(range(_WORDS_MAX + 1), name=f"words_{n}")
            m.d.comb += [
                begins.eq((place < end) & ~ended),
                word.eq(self.data.word_select(place[: (lanes - 1).bit_length()], WORD_BITS)),
                empty.eq(((used >> place)[:HEADER_WORDS] == 0) & ~fault("zeros do not end a unit")),
            ]
            header = data.View(PACKET_HEADER_LAYOUT, Cat(word, Const(0, 8 * PACKET_HEADER_BYTES - WORD_BITS)))
            sized = data.View(
                PACKET_HEADER_LAYOUT,
                Mux(
                    fault("a signal behind a payload is not skipped"),
                    header.as_value() & 0xFFFF_FFEF,
                    header.as_value(),
                ),
            )
            whole = place + HEADER_WORDS <= end
            answered = Cat(header.opcode == o for o in _ANSWERED) & Cat(
                Const(1, 1), ~fault("a FETCH_ADD is not counted as a read")
            )
            m.d.comb += [
                sound.eq(is_sound(header) & ~is_response(header)),
                words.eq(packet_words(body_bytes(sized))),
            ]
            # a signal a step: an expression would be written out once for each use of it
            new = {name: Signal(name=f"{name}_{n}") for name in ("ended", "read", "reads", "zeros")}
            moved = Signal.like(place, name=f"place_{n}")
            seen = ~fault("a header in another than the first flit of its unit is not seen") | self.head
            m.d.comb += [
                new["ended"].eq(ended | begins & (~sound | empty & whole)),
                new["reads"].eq(reads | begins & read),
                new["read"].eq(Mux(begins, answered.any() & sound & seen, read)),
                new["zeros"].eq(zeros | begins & empty & ~whole),
                moved.eq(Mux(begins, place + words, place)),
            ]
            ended, read, reads, zeros, place = new["ended"], new["read"], new["reads"], new["zeros"], moved
        m.d.comb += [
            after.skip.eq(Mux(place > end, place - end, 0)),
            after.zeros.eq(zeros),
            after.read.eq(read),
            after.reads.eq(reads),
            after.ended.eq(ended),
            self.reads.eq(
                self.valid & (reads | read & ((place <= end) | fault("a read cut short by the end of its unit counts")))
            ),
        ]
        return m

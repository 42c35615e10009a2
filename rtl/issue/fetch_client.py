"""One queue's or ring's part of the fetch unit: what to ask for next, what has come, what is taken."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.axi import ADDRESS_BITS
from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS
from rtl.base.fault import fault
from rtl.contract.isa import INSTRUCTION_BYTES, Cause

__all__ = ["FetchClient"]


class FetchClient(wiring.Component):
    """Reads `count` words of 128 bytes from `base` ahead of its consumer, at most `limit` unread, for which there is
    room up to `depth`. `limit` is looked at with `load` and `seek`.

    `load` starts it anew; `refuse` says that the region does not lie in HBM. `request` asks for the next
    word, answers arrive in order, beat by beat, and are stored in the unit's RAM at (`slot`, `beat`);
    `read` asks for a stored word, which comes back in the next cycle as `read_data`.
    `seek`, which stays until it is taken: words go on with this number of the region; it is taken when no answer is
    due any more. Meanwhile none is asked for or shown.
    `cause` rises when a word cannot be had and all words before it have been taken; `sequence` and
    `address` are those of the word (of the region if the region is refused).
    The word in front is a register of the clock domain `front`, which must run in cycles with `reading`.
    """

    def __init__(self, depth: int, beats: int, front: str = "sync"):
        self.depth = depth
        self.beats = beats
        self.front = front
        slot_bits = ceil_log2(depth)
        # seen by proofs too
        self.left = Signal(COUNT_BITS)  # words to ask for
        self.room = Signal(range(depth + 1), init=depth)  # slots neither asked for nor filled
        self.stored = Signal(range(depth + 1))
        self.broken = Signal(CAUSE_BITS)
        self.reading = Signal()  # read_data is ours in this cycle
        self.full = Signal()
        super().__init__(
            {
                "limit": In(range(depth + 1), init=depth),
                "load": In(1),
                "base": In(ADDRESS_BITS),
                "count": In(COUNT_BITS),
                "refuse": In(1),
                "request": Out(1),
                "request_address": Out(ADDRESS_BITS),
                "granted": In(1),
                "arrive": In(1),
                "last": In(1),
                "error": In(1),
                "slot": Out(slot_bits),
                "beat": Out(max(1, ceil_log2(beats))),
                "read": Out(1),
                "read_slot": Out(slot_bits),
                "read_granted": In(1),
                "read_data": In(1024),
                "word": Out(stream.Signature(1024)),
                "seek": In(stream.Signature(COUNT_BITS)),
                "cause": Out(CAUSE_BITS),
                "sequence": Out(SEQUENCE_BITS),
                "address": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left, room, stored, broken = self.left, self.room, self.stored, self.broken
        reading, full = self.reading, self.full
        expected = Signal(ADDRESS_BITS)  # address of the word that arrives next
        arrived = Signal(SEQUENCE_BITS)  # and its number
        data = Signal(1024)
        due = Signal(range(self.depth + 1))  # words that were asked for and have not arrived
        base, end = Signal(ADDRESS_BITS), Signal(COUNT_BITS)  # of the region: its first byte, one past its words

        taken = self.word.valid & self.word.ready
        complete = Signal()  # a word has arrived
        good = Signal()
        freed = Signal()
        m.d.comb += [
            self.request.eq(
                (left != 0)
                & ((room != 0) | fault("asks for more words than there is room"))
                & (broken == 0)
                & ~self.seek.valid
            ),
            self.read.eq((stored != 0) & ~reading & (~full | self.word.ready) & ~self.seek.valid),
            self.seek.ready.eq(((due == 0) | fault("a client seeks while answers are due")) & ~reading),
            self.word.valid.eq(full & ~self.seek.valid),
            self.word.payload.eq(data),
            complete.eq(self.arrive & self.last),
            good.eq(complete & ((~self.error & (broken == 0)) | fault("an answer with an error counts as a word"))),
            freed.eq(self.read_granted),
        ]
        with m.If((stored == 0) & ~reading & ~full & (broken != 0)):
            m.d.comb += [self.cause.eq(broken), self.sequence.eq(arrived), self.address.eq(expected)]

        with m.If(self.granted):
            m.d.sync += [left.eq(left - 1), self.request_address.eq(self.request_address + INSTRUCTION_BYTES)]
        with m.If(self.granted & ~freed):
            m.d.sync += room.eq(room - 1)
        with m.Elif(freed & ~self.granted):
            m.d.sync += room.eq(room + 1)

        with m.If(self.arrive):
            m.d.sync += self.beat.eq(Mux(self.last, 0, self.beat + 1))
            with m.If(self.error & (broken == 0) & ~fault("an answer with an error counts as a word")):
                m.d.sync += broken.eq(Cause.BUS_ERROR)
        with m.If(good):
            m.d.sync += [
                self.slot.eq(self.slot + 1),
                expected.eq(expected + INSTRUCTION_BYTES),
                arrived.eq(arrived + 1),
            ]
        with m.If(good & ~freed):
            m.d.sync += stored.eq(stored + 1)
        with m.Elif(freed & ~good):
            m.d.sync += stored.eq(stored - 1)

        with m.If(freed):
            m.d.sync += self.read_slot.eq(self.read_slot + 1)
        m.d.sync += reading.eq(freed)
        with m.If(reading):
            m.d[self.front] += data.eq(self.read_data)
            m.d.sync += full.eq(1)
        with m.Elif(taken):
            m.d.sync += full.eq(0)

        with m.If(self.granted & ~complete):
            m.d.sync += due.eq(due + 1)
        with m.Elif(complete & ~self.granted):
            m.d.sync += due.eq(due - 1)
        with m.If(self.load):
            m.d.sync += [
                base.eq(self.base),
                end.eq(self.count),
                left.eq(Mux(self.refuse, 0, self.count)),
                self.request_address.eq(self.base),
                expected.eq(self.base),
                arrived.eq(0),
                broken.eq(Mux(self.refuse, Cause.OUT_OF_RANGE, 0)),
            ]
        with m.Elif(self.seek.valid & self.seek.ready):
            address = base + self.seek.payload * INSTRUCTION_BYTES
            m.d.sync += [
                left.eq(end - self.seek.payload),
                self.request_address.eq(address),
                expected.eq(address),
                arrived.eq(self.seek.payload),
                broken.eq(0),
            ]
        with m.If(self.load | (self.seek.valid & self.seek.ready)):
            m.d.sync += [
                room.eq(Mux(fault("a queue reads ahead as far as is built"), self.depth, self.limit)),
                stored.eq(0),
                self.slot.eq(0),
                self.read_slot.eq(0),
                self.beat.eq(0),
                reading.eq(0),
                full.eq(0),
            ]
        return m

"""From an access pattern in SBUF to a column of the array a cycle: walk, read ahead, pick the element."""

from amaranth.hdl import Module, Signal, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufReadSignature, sbuf_word_bits
from rtl.base.pattern import LastElement, PatternWalker, partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config

__all__ = ["COMMANDS", "ORDER_BITS", "Feed", "feed_command"]

ORDER_BITS = 3
"""Counts of loads and swaps wrap here; a feed holds at most five commands, so that they stay distinct."""

_WORDS = 4  # read ahead: three are needed to read a new word every cycle
_ELEMENTS = 16  # the elements that these words can hold
COMMANDS = 4  # being walked or sent; one more waits


def feed_command() -> data.StructLayout:
    """What a feed is told: the operand, and what its beats must know."""
    return data.StructLayout(
        {
            "pattern": PATTERN_LAYOUT,
            "sequence": 8,
            "swap": 1,  # streams: take the weights loaded before
            "awaits": ORDER_BITS,  # streams: loads sent, loads: swaps entered, before the first beat
        }
    )


class Feed(wiring.Component):
    """Turns a command into elements of all rows, one a cycle, in the order of the pattern or `reverse`.

    `valid`: the element at `data` (row r at bits 64r, its 16 bits lowest, rubbish above) may be sent;
    `take` sends it. `holds`: there is a command that has not sent its last element; `started`: `first`,
    `awaits` and what else describes its beats are known. `refused`: SBUF refused a read in this cycle.
    Timing: an element is there 5 cycles after its command, and later if `reverse` (LastElement); then
    one a cycle, whatever the pattern, across commands too. A word that holds the next element as well is
    not read again. Up to four words are read ahead, so a refusal costs a bubble only when none is left.
    """

    FAULTS = {
        11: "the word buffer does not go on after the last element of a word",
        12: "the row mask of the next command is used",
    }

    def __init__(self, cfg: Config, *, reverse: bool = False, plant: ValueLike = 0):
        self.cfg = cfg
        self.reverse = reverse
        self.plant = plant
        rows = cfg.tensor.rows
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "sbuf": Out(SbufReadSignature(cfg)),
                "valid": Out(1),
                "take": In(1),
                "first": Out(1),
                "last": Out(1),
                "data": Out(64 * rows),
                "active": Out(rows),
                "dtype": Out(4),
                "sequence": Out(8),
                "swap": Out(1),
                "awaits": Out(ORDER_BITS),
                "holds": Out(1),
                "started": Out(1),
                "refused": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        word_bits = sbuf_word_bits(cfg)
        rows = cfg.tensor.rows
        about = data.StructLayout({"active": rows, "dtype": 4, "sequence": 8, "swap": 1, "awaits": ORDER_BITS})
        element = data.StructLayout({"place": 2, "leaves": 1, "last": 1})
        request = data.StructLayout({"word": word_bits, "quadrants": QUADRANTS})

        m.submodules.walker = walker = PatternWalker(cfg, reverse=self.reverse, plant=self.plant)
        m.submodules.commands = commands = Fifo(about, COMMANDS)
        m.submodules.elements = elements = Fifo(element, _ELEMENTS)
        m.submodules.requests = requests = Fifo(request, _WORDS)
        m.submodules.words = words = Memory(shape=64 * rows, depth=_WORDS, init=[])

        # one command waits here while the walker is busy with the one before
        waiting = Signal(feed_command())
        is_waiting = Signal()
        into_walker = Signal()
        prepared = Signal(init=1)
        m.d.comb += [
            into_walker.eq(is_waiting & prepared & walker.command.ready & commands.i.ready),
            walker.command.valid.eq(is_waiting & prepared & commands.i.ready),
            walker.command.payload.eq(waiting.pattern),
            self.command.ready.eq(~is_waiting),
        ]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [waiting.eq(self.command.payload), is_waiting.eq(1)]
        with m.Elif(into_walker):
            m.d.sync += is_waiting.eq(0)

        if self.reverse:
            m.submodules.last_element = last_element = LastElement(cfg)
            m.d.comb += [
                last_element.pattern.eq(waiting.pattern),
                last_element.run.eq(is_waiting),
                prepared.eq(last_element.found),
                walker.command.payload.offset.eq(last_element.address),
            ]

        start = waiting.pattern.partition_start
        count = waiting.pattern.partition_count
        entry = Signal(about)
        quadrants = Signal(QUADRANTS)
        size = cfg.partitions // QUADRANTS
        touched = partition_mask(start, count, cfg.partitions)
        m.d.comb += [
            entry.active.eq(partition_mask(start, count, rows)),
            entry.dtype.eq(waiting.pattern.dtype),
            entry.sequence.eq(waiting.sequence),
            entry.swap.eq(waiting.swap),
            entry.awaits.eq(waiting.awaits),
            commands.i.payload.eq(entry),
            commands.i.valid.eq(into_walker),
        ]
        with m.If(into_walker):
            m.d.sync += [quadrants[q].eq(touched[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)]

        # walker: elements and the words they need
        fresh = Signal(init=1)  # this element needs a word that was not asked for
        word = walker.address[3:][:word_bits]
        leaves = Signal()  # the next element is in another word
        m.d.comb += [
            leaves.eq(walker.last | (walker.next_address[3:][:word_bits] != word)),
            walker.step.eq(elements.i.ready & (requests.i.ready | ~fresh)),
            elements.i.valid.eq(walker.valid & walker.step),
            elements.i.payload.place.eq(walker.address[1:3]),
            elements.i.payload.leaves.eq(leaves),
            elements.i.payload.last.eq(walker.last),
            requests.i.valid.eq(walker.valid & walker.step & fresh),
            requests.i.payload.word.eq(word),
            requests.i.payload.quadrants.eq(quadrants),
        ]
        with m.If(walker.valid & walker.step):
            m.d.sync += fresh.eq(leaves)

        # reads: as many as there are places for words
        places = Signal(range(_WORDS + 1), init=_WORDS)
        arrived = Signal(range(_WORDS + 1))
        w_at = Signal(range(_WORDS))
        r_at = Signal(range(_WORDS))
        leave = Signal()
        granted = self.sbuf.valid & self.sbuf.ready
        m.d.comb += [
            self.sbuf.valid.eq(requests.o.valid & (places != 0)),
            self.sbuf.quadrants.eq(requests.o.payload.quadrants),
            requests.o.ready.eq(granted),
            self.refused.eq(self.sbuf.valid & ~self.sbuf.ready),
        ]
        m.d.comb += [self.sbuf.word[q].eq(requests.o.payload.word) for q in range(QUADRANTS)]
        w_port = words.write_port()
        r_port = words.read_port(domain="comb")
        m.d.comb += [
            w_port.en.eq(self.sbuf.data_valid),
            w_port.addr.eq(w_at),
            w_port.data.eq(self.sbuf.data[: 64 * rows]),
            r_port.addr.eq(r_at),
        ]
        m.d.sync += [
            places.eq(places - granted + leave),
            arrived.eq(arrived + self.sbuf.data_valid - leave),
        ]
        with m.If(self.sbuf.data_valid):
            m.d.sync += w_at.eq(w_at + 1)
        with m.If(leave & ~(planted(self.plant, 11) & (elements.o.payload.place == 3))):
            m.d.sync += r_at.eq(r_at + 1)

        # beats
        head = commands.o.payload
        began = Signal()
        sent = self.take & self.valid
        m.d.comb += [
            self.valid.eq(elements.o.valid & (arrived != 0)),
            self.last.eq(elements.o.payload.last),
            self.first.eq(~began),
            leave.eq(sent & elements.o.payload.leaves),
            elements.o.ready.eq(sent),
            commands.o.ready.eq(sent & self.last),
            self.active.eq(head.active),
            self.dtype.eq(head.dtype),
            self.sequence.eq(head.sequence),
            self.swap.eq(head.swap),
            self.awaits.eq(head.awaits),
            self.started.eq(commands.o.valid),
            self.holds.eq(is_waiting | commands.o.valid),
        ]
        with m.If(planted(self.plant, 12) & is_waiting):
            m.d.comb += self.active.eq(entry.active)
        with m.If(sent):
            m.d.sync += began.eq(~self.last)
        with m.Switch(elements.o.payload.place):
            for k in range(4):
                with m.Case(k):
                    m.d.comb += self.data.eq(r_port.data[16 * k :])
        return m

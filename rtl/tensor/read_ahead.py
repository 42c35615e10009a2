"""From an access pattern in SBUF to an element a cycle: walk it and read its words ahead."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.credit import Credit
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, sbuf_word_bits
from rtl.base.pattern import LastElement, PatternWalker
from rtl.contract.config import Config

__all__ = ["PICK_BITS", "ReadAhead", "forwarded", "reading_ports"]

PICK_BITS = 3
"""What of a word that arrives is kept: the owner's business, carried from the pattern to the read."""

_WORDS = 4  # read ahead: three are needed to read a new word every cycle
_ELEMENTS = 16  # walked ahead


def reading_ports(cfg: Config, lanes: int) -> dict[str, wiring.Member]:
    """Ports of ReadAhead with which a pattern is taken and its words come; a word has `lanes` partitions."""
    return {
        "pattern": In(PATTERN_LAYOUT),
        "prepare": In(1),
        "prepared": Out(1),
        "ready": Out(1),
        "start": In(1),
        "ask": Out(1),
        "word": Out(sbuf_word_bits(cfg)),
        "asks": Out(QUADRANTS),
        "granted": In(1),
        "arrived": In(1),
        "data": In(64 * lanes),
        "valid": Out(1),
        "take": In(1),
    }


def forwarded(owner: Any, words: "ReadAhead", *but: str) -> list[Any]:
    """The statements that join reading ports of `owner` with those of its ReadAhead, all but some inputs."""
    ports = reading_ports(words.cfg, 0).items()
    inward = [name for name, port in ports if port.flow == In and name not in but]
    outward = [name for name, port in ports if port.flow == Out]
    return [getattr(words, n).eq(getattr(owner, n)) for n in inward] + [
        getattr(owner, n).eq(getattr(words, n)) for n in outward
    ]


class ReadAhead(wiring.Component):
    """Elements of one pattern after the other, of `lanes` partitions at once.

    `pattern`, `size` (logarithm of an element's bytes), `quadrants` and `pick` stand still from `prepare` on;
    `start`, with `prepared` and `ready`, takes them. `ask` wants the word `word` of `asks` from SBUF, `granted`
    says that it comes: with `arrived` in the next cycle, lane i at bits 64i. `valid`: the next element is at byte
    `place` of `words`, `last` the pattern's last one; `take` goes on.
    Timing: an element is there 4 cycles after `start`; then one a cycle, whatever the pattern, across patterns too.
    A word that holds the next element as well is not read again. Up to four words are read ahead.
    """

    def __init__(self, cfg: Config, lanes: int, *, reverse: bool = False):
        self.cfg = cfg
        self.reverse = reverse
        super().__init__(
            {
                **reading_ports(cfg, lanes),
                "size": In(2),
                "quadrants": In(QUADRANTS),
                "pick": In(PICK_BITS),
                "picks": Out(PICK_BITS),
                "last": Out(1),
                "place": Out(3),
                "words": Out(64 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        word_bits = sbuf_word_bits(cfg)
        element = data.StructLayout({"place": 3, "leaves": 1, "last": 1})
        request = data.StructLayout({"word": word_bits, "quadrants": QUADRANTS, "pick": PICK_BITS})
        m.submodules.walker = walker = PatternWalker(cfg, reverse=self.reverse, sized=True)
        m.submodules.elements = elements = Fifo(element, _ELEMENTS)
        m.submodules.requests = requests = Fifo(request, _WORDS)
        m.submodules.words = words = Memory(shape=len(self.data), depth=_WORDS, init=[])

        m.d.comb += [
            walker.command.valid.eq(self.start),
            walker.command.payload.eq(self.pattern),
            walker.size.eq(self.size),
            self.ready.eq(walker.command.ready),
            self.prepared.eq(1),
        ]
        if self.reverse:
            m.submodules.last_element = last_element = LastElement(cfg, sized=True)
            m.d.comb += [
                last_element.pattern.eq(self.pattern),
                last_element.size.eq(self.size),
                last_element.run.eq(self.prepare),
                self.prepared.eq(last_element.found),
                walker.command.payload.offset.eq(last_element.address),
            ]
        quadrants = Signal(QUADRANTS)
        pick = Signal(PICK_BITS)
        with m.If(self.start):
            m.d.sync += [quadrants.eq(self.quadrants), pick.eq(self.pick)]

        # walker: elements and the words they need
        fresh = Signal(init=1)  # this element needs a word that was not asked for
        word = walker.address[3:][:word_bits]
        leaves = Signal()  # the next element is in another word
        m.d.comb += [
            leaves.eq(walker.last | (walker.next_address[3:][:word_bits] != word)),
            walker.step.eq(elements.i.ready & (requests.i.ready | ~fresh)),
            elements.i.valid.eq(walker.valid & walker.step),
            elements.i.payload.place.eq(walker.address[:3]),
            elements.i.payload.leaves.eq(leaves),
            elements.i.payload.last.eq(walker.last),
            requests.i.valid.eq(walker.valid & walker.step & fresh),
            requests.i.payload.word.eq(word),
            requests.i.payload.quadrants.eq(quadrants),
            requests.i.payload.pick.eq(pick),
        ]
        with m.If(walker.valid & walker.step):
            m.d.sync += fresh.eq(leaves)

        # reads: as many as there are places for words
        m.submodules.places = places = Credit(_WORDS)
        arrived = Signal(range(_WORDS + 1))
        w_at = Signal(range(_WORDS))
        r_at = Signal(range(_WORDS))
        leave = Signal()
        sent = Signal()
        w_port = words.write_port()
        r_port = words.read_port(domain="comb")
        m.d.comb += [
            places.take.eq(self.granted),
            places.give.eq(leave),
            self.ask.eq(requests.o.valid & (places.count != 0)),
            self.word.eq(requests.o.payload.word),
            self.asks.eq(requests.o.payload.quadrants),
            self.picks.eq(requests.o.payload.pick),
            requests.o.ready.eq(self.granted),
            w_port.en.eq(self.arrived),
            w_port.addr.eq(w_at),
            w_port.data.eq(self.data),
            r_port.addr.eq(r_at),
            self.words.eq(r_port.data),
        ]
        m.d.sync += arrived.eq(arrived + self.arrived - leave)
        with m.If(self.arrived):
            m.d.sync += w_at.eq(w_at + 1)
        with m.If(
            leave
            & ~(
                fault("the word buffer does not go on after the last element of a word")
                & (elements.o.payload.place[1:] == 3)
            )
        ):
            m.d.sync += r_at.eq(r_at + 1)
        m.d.comb += [
            self.valid.eq(elements.o.valid & (arrived != 0)),
            self.last.eq(elements.o.payload.last),
            self.place.eq(elements.o.payload.place),
            sent.eq(self.take & self.valid),
            leave.eq(sent & elements.o.payload.leaves),
            elements.o.ready.eq(sent),
        ]
        return m

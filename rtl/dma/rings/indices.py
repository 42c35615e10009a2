"""Indices of a descriptor, read from SBUF ahead of the rows that they choose."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from rtl.base.credit import Credit
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.dma.layouts import INDEX_PLACE_BITS, address_bits, choice_layout, fetch_layout, indices_layout

__all__ = ["Indices"]

_DEPTH = 4  # units of 16 bytes that are under way or wait
_HALF = 14  # bits of an index that are multiplied at a time
_WORD = 16  # bits of the number of a word in its partition


class _Walk:
    """Where the next index lies, and how many are left; along a partition, or down them and then along."""

    def __init__(self, m: Module, name: str):
        self.m = m
        self.place = Signal(INDEX_PLACE_BITS, name=f"{name}_place")
        self.left = Signal(indices_layout()["total"].shape, name=f"{name}_left")
        self.inner = Signal(17, name=f"{name}_inner")  # of dimension 0, with this one

    @property
    def word(self) -> Value:
        """In the partition."""
        return self.place[:_WORD]

    def load(self, job: View, count: Value) -> None:
        """The first one."""
        self.m.d.sync += [self.place.eq(job.place), self.left.eq(job.total), self.inner.eq(count)]

    def step(self, job: View, count: Value, words: Value | int) -> None:
        """Go on by so many; down the partitions by one."""
        turns = self.inner == 1
        stays = fault("indices down the partitions are those of the first")
        down = Mux(turns, (job.place[_WORD:] << _WORD) + self.word + 1, self.place + (~stays << _WORD))
        m = self.m
        with m.If(job.down):
            m.d.sync += [
                self.place.eq(down),
                self.left.eq(self.left - 1),
                self.inner.eq(Mux(turns, count, self.inner - 1)),
            ]
        with m.Else():
            m.d.sync += [
                self.place.eq(self.place + words),
                self.left.eq(Mux(self.left > words, self.left - words, 0)),
            ]


class Indices(wiring.Component):
    """`start` takes a descriptor's `job`, `count` (of dimension 0) and `step` (bytes from one row of the table to the
    next): only when all choices of the one before have been taken.

    `ask`: units of SBUF, answered in order at `answer_valid`. `choice`: of each row, in order, how far from the first
    row of the table it lies, or that its index is none of the table (`beyond`), and the index's place.
    Timing: the first choice 3 cycles after its answer; then one a cycle, along a partition from a unit every four.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "job": In(indices_layout()),
                "count": In(17),
                "step": In(address_bits(cfg)),
                "ask": Out(stream.Signature(fetch_layout(cfg))),
                "answer_valid": In(1),
                "answer": In(128),
                "choice": Out(stream.Signature(choice_layout(cfg))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job, count, step = Signal.like(self.job), Signal.like(self.count), Signal.like(self.step)
        m.submodules.units = units = Fifo(128, _DEPTH)
        m.submodules.free = free = Credit(_DEPTH)
        asked, taken = _Walk(m, "asked"), _Walk(m, "taken")

        # Units are asked for as long as they find a place.
        asks = Signal()
        unit = self.ask.payload
        partition = asked.place[_WORD:]
        m.d.comb += [
            self.ask.valid.eq((asked.left != 0) & (free.count != 0)),
            unit.pair.eq(asked.word >> 2),
            unit.lane.eq(partition),
            unit.group.eq(partition >> len(unit.lane)),
            asks.eq(self.ask.valid & self.ask.ready),
            free.take.eq(asks),
            units.i.valid.eq(self.answer_valid),
            units.i.payload.eq(self.answer),
        ]
        # An index a cycle leaves its unit, is multiplied in two halves, and added up.
        moves = Signal()
        takes = Signal()
        place = taken.word[:2]
        m.d.comb += [
            moves.eq(~self.choice.valid | self.choice.ready),
            takes.eq(moves & units.o.valid & (taken.left != 0)),
            units.o.ready.eq(takes & (job.down | (place == 3) | (taken.left == 1))),
            free.give.eq(units.o.ready),
        ]
        with m.If(self.start):
            m.d.sync += [job.eq(self.job), count.eq(self.count), step.eq(self.step)]
            for walk in (asked, taken):
                walk.load(self.job, self.count)
        with m.Else():
            with m.If(asks):
                asked.step(job, count, 4 - asked.word[:2])
            with m.If(takes):
                taken.step(job, count, 1)

        index, at = Signal(32), Signal.like(self.choice.payload.at)
        low, high = Signal(_HALF + len(step)), Signal.like(step)
        at_product, beyond = Signal.like(at), Signal()
        read, multiplied = Signal(), Signal()
        last = Mux(fault("the index behind the last row of a table is one of it"), job.rows, job.rows - 1)
        skips = fault("an index is skipped: the one behind it counts twice")
        choice = self.choice.payload
        with m.If(moves):
            m.d.sync += [
                read.eq(takes),
                index.eq(units.o.payload.word_select(Mux(skips & (place == 2), 3, place), 32)),
                at.eq(taken.place),
                multiplied.eq(read),
                low.eq(index[:_HALF] * step),
                high.eq(index[_HALF : 2 * _HALF] * step),
                beyond.eq(index > last),
                at_product.eq(at),
                self.choice.valid.eq(multiplied),
                choice.offset.eq(low + (high << _HALF)),
                choice.beyond.eq(beyond),
                choice.at.eq(at_product),
            ]
        return m

"""Rows that wait for a mover, a queue for each traffic class."""

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.dma.layouts import CLASSES, row_layout
from rtl.dma.movers.class_turn import ClassTurn

__all__ = ["ClassQueues"]


class ClassQueues(wiring.Component):
    """`depth` rows of each of dma.classes in one RAM, and one more in the RAM's output register; ClassTurn picks which
    class's oldest is next. `class_`: of the row at `i`, which is ready as `room` of its class is. `holds`: a row is
    here.

    Timing: a row is at `o` two cycles after `i` took it if nobody is before it. A row a cycle each way, but for cycles
    in which ClassTurn raises the deficits of several classes that wait. `room` and `o.valid` come from registers;
    `o.ready` reaches the RAM's read enable.
    """

    def __init__(self, cfg: Config, depth: int):
        self.cfg = cfg
        self.depth = depth
        row = stream.Signature(row_layout(cfg))
        super().__init__(
            {"i": In(row), "class_": In(range(CLASSES)), "room": Out(CLASSES), "o": Out(row), "holds": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self.depth
        within = ceil_log2(depth)
        classes = self.cfg.dma.classes
        m.submodules.ram = ram = Ram(Shape.cast(row_layout(self.cfg)).width, classes * depth)
        m.submodules.turn = turn = ClassTurn(self.cfg)
        stored = [Signal(range(depth + 1), name=f"stored{c}") for c in range(classes)]
        writes = [Signal(within, name=f"write{c}") for c in range(classes)]
        reads = [Signal(within, name=f"read{c}") for c in range(classes)]
        shown = Signal()  # the RAM's output register holds a row
        owner = Signal(classes)  # its class
        charges = Signal()
        enter, fetch = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(self.room.bit_select(self.class_, 1)),
            self.o.valid.eq(shown),
            Value.cast(self.o.payload).eq(ram.read_data),
            self.holds.eq(shown | turn.there.any()),
            turn.there.eq(Cat(count != 0 for count in stored)),
            enter.eq(self.i.valid & self.i.ready),
            fetch.eq(turn.chosen.any() & (~shown | self.o.ready)),
            turn.take.eq(fetch),
            turn.charged.eq(charges),
            turn.of.eq(owner),
            turn.units.eq((self.o.payload.bytes + 15) >> 4),
            ram.write_en.eq(enter),
            ram.write_mask.eq(1),
            ram.write_data.eq(self.i.payload),
            ram.read_en.eq(fetch),
        ]
        m.d.sync += charges.eq(fetch)
        with m.If(fetch):
            m.d.sync += [shown.eq(1), owner.eq(turn.chosen)]
        with m.Elif(self.o.ready):
            m.d.sync += shown.eq(0)
        for c in range(classes):
            comes = Signal(name=f"comes{c}")
            goes = Signal(name=f"goes{c}")
            m.d.comb += [
                self.room[c].eq(stored[c] != depth),
                comes.eq(enter & (self.class_ == c)),
                goes.eq(fetch & turn.chosen[c]),
            ]
            with m.If(comes):
                m.d.comb += ram.write_address.eq(Cat(writes[c], Const(c, ceil_log2(classes))))
                m.d.sync += writes[c].eq(writes[c] + 1)
            with m.If(goes):
                m.d.comb += ram.read_address.eq(Cat(reads[c], Const(c, ceil_log2(classes))))
                m.d.sync += reads[c].eq(reads[c] + 1)
            with m.If(comes & ~goes):
                m.d.sync += stored[c].eq(stored[c] + 1)
            with m.Elif(goes & ~comes):
                m.d.sync += stored[c].eq(stored[c] - 1)
        if classes > 2:
            with m.If(fault("a mover takes the rows of class 3 from the queue of class 2") & turn.chosen[3]):
                m.d.comb += ram.read_address.eq(Cat(reads[2], Const(2, 2)))
        return m

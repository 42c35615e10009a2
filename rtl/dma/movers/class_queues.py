"""Rows that wait for a mover, a queue for each traffic class."""

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.fifo import RamFifo
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.dma.layouts import CLASSES, fast_class, lanes, row_layout
from rtl.dma.movers.class_turn import ClassTurn
from rtl.dma.movers.strict_cap import StrictCap

__all__ = ["ClassQueues"]


class ClassQueues(wiring.Component):
    """`depth` rows of each of dma.classes in one RAM, and one more in its output register; ClassTurn picks whose oldest
    is next. The class that goes before the others, if there is one, has a RAM and an output of its own, `fast`;
    StrictCap says whether its rows leave, with `priority` they do. `class_`: of the row at `i`, which is ready as
    `room` of its class is. `holds`: a row is here.

    Timing: a row is at its output two cycles after `i` took it if nobody is before it. A row a cycle each way, but for
    cycles in which ClassTurn raises the deficits of several classes that wait. `room`, `o.valid` come from registers;
    `o.ready` reaches the RAM's read enable, `fast.ready` that of its own.
    """

    def __init__(self, cfg: Config, depth: int):
        self.cfg = cfg
        self.depth = depth
        row = stream.Signature(row_layout(cfg))
        super().__init__(
            {
                "i": In(row),
                "class_": In(range(CLASSES)),
                "room": Out(CLASSES),
                "o": Out(row),
                **({"fast": Out(row)} if lanes(cfg) > 1 else {}),
                "holds": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self.depth
        within = ceil_log2(depth)
        share = [c for c in range(self.cfg.dma.classes) if c != fast_class(self.cfg)]
        classes = len(share)
        m.submodules.ram = ram = Ram(Shape.cast(row_layout(self.cfg)).width, classes * depth)
        m.submodules.turn = turn = ClassTurn(self.cfg)
        stored = [Signal(range(depth + 1), name=f"stored{c}") for c in range(classes)]
        writes = [Signal(within, name=f"write{c}") for c in range(classes)]
        reads = [Signal(within, name=f"read{c}") for c in range(classes)]
        shown = Signal()  # the RAM's output register holds a row
        owner = Signal(classes)  # its class
        charges = Signal()
        enter, fetch = Signal(), Signal()
        holds = [shown, turn.there.any()]
        m.d.comb += [
            self.i.ready.eq(self.room.bit_select(self.class_, 1)),
            self.o.valid.eq(shown),
            Value.cast(self.o.payload).eq(ram.read_data),
            turn.there.eq(Cat(count != 0 for count in stored)),
            enter.eq(self.i.valid & self.i.ready & (self.class_ != fast_class(self.cfg))),
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
        for n, c in enumerate(share):
            comes = Signal(name=f"comes{c}")
            goes = Signal(name=f"goes{c}")
            m.d.comb += [
                self.room[c].eq(stored[n] != depth),
                comes.eq(enter & (self.class_ == c)),
                goes.eq(fetch & turn.chosen[n]),
            ]
            with m.If(comes):
                m.d.comb += ram.write_address.eq(Cat(writes[n], Const(n, ceil_log2(classes))))
                m.d.sync += writes[n].eq(writes[n] + 1)
            with m.If(goes):
                m.d.comb += ram.read_address.eq(Cat(reads[n], Const(n, ceil_log2(classes))))
                m.d.sync += reads[n].eq(reads[n] + 1)
            with m.If(comes & ~goes):
                m.d.sync += stored[n].eq(stored[n] + 1)
            with m.Elif(goes & ~comes):
                m.d.sync += stored[n].eq(stored[n] - 1)
        if classes > 2:
            with m.If(
                fault("a mover takes the rows of its last class from the queue of the one before") & turn.chosen[-1]
            ):
                m.d.comb += ram.read_address.eq(Cat(reads[-2], Const(classes - 2, 2)))
        if lanes(self.cfg) > 1:
            holds.append(self._fast(m, shown | turn.there.any()))
        m.d.comb += self.holds.eq(Cat(holds).any())
        return m

    def _fast(self, m: Module, waits: Value) -> Value:
        """Queue of the class that goes first; `waits`: another class has a row. Whether a row is in it."""
        m.submodules.before = before = RamFifo(row_layout(self.cfg), self.depth)
        opens = Signal()
        mine = self.class_ == fast_class(self.cfg)
        m.d.comb += [
            before.i.valid.eq(self.i.valid & mine),
            before.i.payload.eq(self.i.payload),
            self.room[fast_class(self.cfg)].eq(before.i.ready),
            self.fast.valid.eq(before.o.valid & opens),
            self.fast.payload.eq(before.o.payload),
            before.o.ready.eq(self.fast.ready & opens),
        ]
        if self.cfg.dma.priority:
            m.d.comb += opens.eq(1)
        else:
            m.submodules.cap = cap = StrictCap(self.cfg)
            m.d.comb += [
                cap.waits.eq(waits),
                cap.goes.eq(self.fast.valid & self.fast.ready),
                cap.units.eq((self.fast.payload.bytes + 15) >> 4),
                cap.passes.eq(self.o.valid & self.o.ready),
                cap.other_units.eq((self.o.payload.bytes + 15) >> 4),
                opens.eq(cap.open),
            ]
        return before.level != 0

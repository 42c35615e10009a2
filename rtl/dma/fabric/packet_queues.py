"""Packets that wait to be sent, a queue for each traffic class."""

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.dma.fabric.packets import SLOTS_EACH, TO_SEND

__all__ = ["PacketQueues"]

_DEPTH = 4 * SLOTS_EACH  # all that hold a place, all reads, as many more that a lost link has ended, and a signal


class PacketQueues(wiring.Component):
    """Packets of `classes` (1, 2 or 4) classes, those of one in their order; of classes that may, the next one in turn.
    `room`: a class's next packet may begin, and one that is still on its way there does not change that.

    A packet that is chosen stays at `o`, so `room` of its class, once there, must stay until it has left.
    Timing: a packet is at `o` two cycles after `i` took it, if nobody is before it; one a cycle each way. `i.ready` is
    that of the class at `i`; `o.valid` is a register, `o.ready` and `room` reach the RAM's read enable.
    """

    def __init__(self, classes: int):
        self.classes = classes
        self.depth = _DEPTH
        packet = stream.Signature(TO_SEND)
        super().__init__({"i": In(packet), "room": In(classes), "o": Out(packet), "holds": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth, bits = self.depth, ceil_log2(self.classes)
        m.submodules.ram = ram = Ram(Shape.cast(TO_SEND).width, self.classes * depth)
        m.submodules.turn = turn = RoundRobin(self.classes)
        shown = Signal()  # the RAM's output register holds a packet
        enter, fetch = Signal(), Signal()
        class_ = self.i.payload.class_[:bits] if bits else Const(0, 1)
        careless = fault("a packet leaves whether its class has room or not")
        m.d.comb += [
            self.o.valid.eq(shown),
            Value.cast(self.o.payload).eq(ram.read_data),
            enter.eq(self.i.valid & self.i.ready),
            fetch.eq(turn.grant.any() & (~shown | self.o.ready)),
            turn.accept.eq(fetch),
            ram.write_en.eq(enter),
            ram.write_mask.eq(1),
            ram.write_data.eq(self.i.payload),
            ram.read_en.eq(fetch),
        ]
        with m.If(fetch):
            m.d.sync += shown.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += shown.eq(0)
        held: list[Value] = []
        for c in range(self.classes):
            stored = Signal(range(depth + 1), name=f"stored{c}")
            write, read = Signal(range(depth), name=f"write{c}"), Signal(range(depth), name=f"read{c}")
            comes, goes = Signal(name=f"comes{c}"), Signal(name=f"goes{c}")
            held.append(stored != 0)
            m.d.comb += [
                turn.requests[c].eq((stored != 0) & (self.room[c] | careless)),
                comes.eq(enter & (class_ == c)),
                goes.eq(fetch & turn.grant[c]),
            ]
            m.d.sync += stored.eq(stored + comes - goes)
            with m.If(class_ == c):
                m.d.comb += [self.i.ready.eq(stored != depth), ram.write_address.eq(Cat(write, Const(c, bits)))]
            with m.If(comes):
                m.d.sync += write.eq(write + 1)
            with m.If(turn.grant[c]):
                m.d.comb += ram.read_address.eq(Cat(read, Const(c, bits)))
            with m.If(goes):
                m.d.sync += read.eq(read + 1)
        m.d.comb += self.holds.eq(shown | Cat(held).any())
        return m

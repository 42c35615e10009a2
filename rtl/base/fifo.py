"""Stream FIFOs: `Fifo` in registers for a few entries, `RamFifo` on a RAM for wide or deep ones."""

from amaranth.hdl import Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.ram import Ram

__all__ = ["Fifo", "RamFifo"]


def _signature(shape: ShapeLike, capacity: int) -> dict[str, wiring.Member]:
    return {
        "i": In(stream.Signature(shape)),
        "o": Out(stream.Signature(shape)),
        "level": Out(range(capacity + 1)),
    }


def _next(pointer: Signal, depth: int) -> Value:
    """The pointer after `pointer` in a ring of `depth` entries."""
    return Mux(pointer == depth - 1, 0, pointer + 1)


class Fifo(wiring.Component):
    """`depth` entries in registers. `level` counts them.

    Timing: an entry is at `o` the cycle after `i` took it. One entry a cycle each way.
    `i.ready` and `o.valid` come from registers: both handshake paths are cut.
    """

    def __init__(self, shape: ShapeLike, depth: int):
        if depth < 1:
            raise ValueError(f"a FIFO has at least 1 entry, not {depth}")
        self.shape = shape
        self.depth = depth
        # seen by proofs too
        self.entries = [Signal(shape, name=f"entry_{n}") for n in range(depth)]
        self.write = Signal(range(depth))
        self.read = Signal(range(depth))
        super().__init__(_signature(shape, depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entries, write, read = self.entries, self.write, self.read
        enter = Signal()
        leave = Signal()

        m.d.comb += [
            self.i.ready.eq((self.level != self.depth) | fault("a FIFO takes an entry when full")),
            self.o.valid.eq(self.level != 0),
            enter.eq(self.i.valid & self.i.ready),
            leave.eq(self.o.valid & self.o.ready),
        ]
        place = Signal.like(read)
        m.d.comb += place.eq(read)
        with m.If(fault("a FIFO reads the entry after the next one")):
            m.d.comb += place.eq(_next(read, self.depth))
        with m.Switch(place):
            for n, entry in enumerate(entries):
                with m.Case(n):
                    m.d.comb += self.o.payload.eq(entry)

        with m.If(enter):
            m.d.sync += write.eq(_next(write, self.depth))
            with m.Switch(write):
                for n, entry in enumerate(entries):
                    with m.Case(n):
                        m.d.sync += entry.eq(self.i.payload)
        with m.If(leave):
            m.d.sync += read.eq(_next(read, self.depth))
        with m.If(enter & ~leave):
            m.d.sync += self.level.eq(self.level + 1)
        with m.Elif(leave & (~enter | fault("the level of a FIFO forgets an entry that enters while another leaves"))):
            m.d.sync += self.level.eq(self.level - 1)
        return m


class RamFifo(wiring.Component):
    """`depth` entries in a RAM and one more in the RAM's output register. `level` counts all.

    Timing: an entry is at `o` two cycles after `i` took it. One entry a cycle each way.
    `i.ready` and `o.valid` come from registers; `o.ready` reaches the RAM's read enable.
    """

    def __init__(self, shape: ShapeLike, depth: int):
        if depth < 2:
            raise ValueError(f"a FIFO in RAM has at least 2 entries, not {depth}")
        self.shape = shape
        self.depth = depth
        self.write = Signal(range(depth))
        self.read = Signal(range(depth))
        super().__init__(_signature(shape, depth + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = ram = Ram(Shape.cast(self.shape).width, self.depth)
        stored = Signal(range(self.depth + 1))  # entries in the RAM
        shown = Signal()  # the RAM's output register holds an entry
        write, read = self.write, self.read
        enter = Signal()
        fetch = Signal()

        m.d.comb += [
            self.i.ready.eq((stored != self.depth) | fault("a FIFO in a RAM takes an entry when full")),
            self.o.valid.eq(shown),
            Value.cast(self.o.payload).eq(ram.read_data),
            self.level.eq(stored + shown),
            enter.eq(self.i.valid & self.i.ready),
            fetch.eq(
                (stored != 0)
                & (~shown | self.o.ready | fault("a FIFO in a RAM fetches the next entry over one that has not left"))
            ),
            ram.write_en.eq(enter),
            ram.write_address.eq(write),
            ram.write_mask.eq(1),
            ram.write_data.eq(self.i.payload),
            ram.read_en.eq(fetch),
            ram.read_address.eq(read),
        ]
        with m.If(enter):
            m.d.sync += write.eq(_next(write, self.depth))
        with m.If(fetch):
            m.d.sync += [read.eq(_next(read, self.depth)), shown.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += shown.eq(0)
        with m.If(enter & ~fetch):
            m.d.sync += stored.eq(stored + 1)
        with m.Elif(fetch & ~enter):
            m.d.sync += stored.eq(stored - 1)
        return m

"""Fetch of a scalar core: lines of code to instructions of 16 and 32 bits."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.layouts import FETCHED

__all__ = ["Fetch"]

LINES = 8


class Fetch(wiring.Component):
    """Instructions from `target` of the last `jump` on, one after the other, at `o`. Memory is read in lines of
    `line_bits`, of which eight are kept; the line behind the one in use is asked for ahead.

    line: asks for a line by number (address divided by its bytes). reply: what it holds, in the order asked;
    `reply_fault` if no memory is there. jump: go on at `target`, whatever was under way; with `flush` nothing kept is
    used again.
    Timing: an instruction whose lines are kept is at `o` in the cycle after `jump`, and the next in the cycle after it
    was taken; `o` waits for at most two lines otherwise. One line is under way at once.
    """

    def __init__(self, line_bits: int):
        self.line_bits = line_bits
        self.shift = exact_log2(line_bits // 8)
        number_bits = 32 - self.shift
        # seen by proofs too
        self.kept = [Signal(name=f"kept_{n}") for n in range(LINES)]
        self.bad = Signal(LINES)
        self.tags = [Signal(number_bits, name=f"tag_{n}") for n in range(LINES)]
        self.open = Signal()  # `line` shows a request that was not taken yet, and keeps it
        self.asked = Signal()  # one is under way
        self.stale = Signal()  # ... that nobody wants
        self.wanted = Signal(number_bits)
        super().__init__(
            {
                "line": Out(stream.Signature(32 - self.shift)),
                "reply": In(line_bits),
                "reply_valid": In(1),
                "reply_fault": In(1),
                "jump": In(1),
                "target": In(32),
                "flush": In(1),
                "o": Out(stream.Signature(FETCHED)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number_bits = 32 - self.shift
        pc = Signal(32)
        kept, bad, tags = self.kept, self.bad, self.tags
        m.submodules.lines = lines = Memory(shape=self.line_bits, depth=LINES, init=[])
        write = lines.write_port()
        oldest = Signal(range(LINES))
        asked, stale, wanted, open_ = self.asked, self.stale, self.wanted, self.open

        first, second = Signal(number_bits), Signal(number_bits)
        m.d.comb += [first.eq(pc[self.shift :]), second.eq((pc + 2)[self.shift : 32])]

        def find(number: Signal, name: str) -> tuple[Signal, Signal]:
            """Whether a line is kept, and where."""
            hit, place = Signal(name=f"{name}_hit"), Signal(range(LINES), name=name)
            hits = Signal(LINES, name=f"{name}_hits")
            m.d.comb += [hits.eq(Cat(k & (t == number) for k, t in zip(kept, tags, strict=True))), hit.eq(hits.any())]
            for n in range(LINES):
                with m.If(hits[n]):
                    m.d.comb += place.eq(n)
            return hit, place

        def half_of(place: Value, address: Value, name: str) -> Signal:
            """16 bits of a line that is kept."""
            read = lines.read_port(domain="comb")
            half = Signal(16, name=name)
            m.d.comb += [read.addr.eq(place), half.eq(read.data.word_select(address[1 : self.shift], 16))]
            return half

        hit, place = find(first, "first_line")
        hit_second, place_second = find(second, "second_line")
        fails, fails_second = hit & bad.bit_select(place, 1), hit_second & bad.bit_select(place_second, 1)
        low, high = (
            half_of(place, pc, "low"),
            half_of(
                Mux(fault("both halves of an instruction are read from one line"), place, place_second), pc + 2, "high"
            ),
        )
        out = self.o.payload
        short = Signal()
        m.d.comb += [
            short.eq((low[:2] != 3) & ~fails),
            out.pc.eq(pc),
            out.bits.eq(Cat(low, Mux(short, 0, high))),
            out.short.eq(short),
            out.fault.eq(fails),
            out.fault_second.eq(~fails & ~short & fails_second),
            self.o.valid.eq(hit & (short | fails | hit_second)),
        ]
        with m.If(self.jump):
            m.d.sync += pc.eq(self.target)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += pc.eq(pc + Mux(short, 2, 4))

        # the line that is missing, else the one behind; a FIFO of lines, since code goes forward
        behind, miss = Signal(number_bits), Signal(number_bits)
        halved = fault("the line of an instruction's second half is never asked for")
        m.d.comb += behind.eq(second + 1)
        hit_behind, _ = find(behind, "line_behind")
        needed = Signal()
        m.d.comb += [
            miss.eq(Mux(~hit, first, Mux(~hit_second & ~halved, second, behind))),
            needed.eq(~hit | ~hit_second | (~hit_behind & ~fails_second)),
        ]
        m.d.comb += [
            self.line.valid.eq(open_),
            self.line.payload.eq(wanted),
        ]
        with m.If(~open_ & ~asked & needed & ~self.jump):
            m.d.sync += [open_.eq(1), wanted.eq(miss), stale.eq(0)]
        with m.If(open_ & self.line.ready):
            m.d.sync += [open_.eq(0), asked.eq(1)]
        with m.If(self.reply_valid):
            m.d.sync += asked.eq(0)
            with m.If(~stale & ~self.flush):
                with m.Switch(oldest):
                    for n in range(LINES):
                        with m.Case(n):
                            m.d.sync += [kept[n].eq(1), bad[n].eq(self.reply_fault), tags[n].eq(wanted)]
                m.d.sync += oldest.eq(oldest + 1)
        m.d.comb += [
            write.addr.eq(oldest),
            write.data.eq(self.reply),
            write.en.eq(self.reply_valid & ~stale & ~self.flush),
        ]
        with m.If(self.flush & ~fault("fence.i leaves the lines of code that are kept")):
            m.d.sync += [*(k.eq(0) for k in kept), stale.eq(1)]
        return m

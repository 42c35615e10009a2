"""Fetch: instructions are what memory holds, at the address that is next, and come within a bounded time.

One half word of memory, chosen by the prover, is followed, with whether its line is there at all; it may change as
`fence.i` flushes. Lines are answered after any wait, with anything in their other half words. The second proof bounds
the waits, and says how long one for an instruction is then: what gpsimd_alive assumes.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.gpsimd.fetch import LINES, Fetch
from verif.formal.free import StandIn, drive
from verif.formal.gpsimd_parts import LINE_BITS, MemoryPort, fetched_sound
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import StreamRules

__all__ = ["PROOFS", "WAITS", "FetchProof", "FetchTimeProof"]

WAITS = 7
"""Cycles without an instruction that may follow each other, where lines are taken and answered at once."""


class _Lines(Elaboratable):
    """Stands in for the Memory of lines: its rows can be looked at."""

    def __init__(self, shape: int, depth: int, init: list[int]):
        self.shape, self.depth = shape, depth
        self.rows = [Signal(shape, name=f"row_{n}") for n in range(depth)]
        self.reads: list[MemoryPort] = []
        self.write = MemoryPort(shape, depth)

    def read_port(self, *, domain: str) -> MemoryPort:
        self.reads.append(MemoryPort(self.shape, self.depth))
        return self.reads[-1]

    def write_port(self) -> MemoryPort:
        return self.write

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n, row in enumerate(self.rows):
            with m.If(self.write.en & (self.write.addr == n)):
                m.d.sync += row.eq(self.write.data)
            for port in self.reads:
                with m.If(port.addr == n):
                    m.d.comb += port.data.eq(row)
        return m


def _surround(m: Module, platform: object) -> tuple[Fetch, _Lines]:
    """Fetch with a start, then jumps, flushes (which come with a jump) and lines at any time."""
    fetch = Fetch(LINE_BITS)
    made: list[_Lines] = []

    def lines(*, shape: int, depth: int, init: list[int]) -> _Lines:
        made.append(_Lines(shape, depth, init))
        return made[-1]

    m.submodules.fetch = StandIn(fetch, Memory=lines).elaborate(platform)
    without_reset(m)
    for port in (fetch.line.ready, fetch.reply, fetch.reply_valid, fetch.reply_fault, fetch.target, fetch.o.ready):
        drive(m, port)
    begun = Signal()
    m.d.sync += begun.eq(1)
    m.d.comb += [
        fetch.jump.eq(AnySeq(1) | ~begun),
        fetch.flush.eq(AnySeq(1) & fetch.jump & begun),
        Assume(~fetch.reply_valid | fetch.asked),
        Assert(~(fetch.open & fetch.asked)),
        Assert(fetch.line.valid == fetch.open),
        Assert(begun | ~Cat(*fetch.kept, fetch.open, fetch.asked, fetch.o.valid).any()),
    ]
    return fetch, made[0]


class FetchProof(wiring.Component):
    """The half word `at` of memory holds `what`."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetch, lines = _surround(m, platform)
        at, what, missing = Signal(31), Signal(16), Signal()
        m.d.comb += [at.eq(AnyConst(31)), missing.eq(AnyConst(1))]
        old = Signal()  # the line under way was asked for before memory changed
        begun = Signal()
        m.d.sync += begun.eq(1)
        with m.If(fetch.flush | ~begun):
            m.d.sync += what.eq(AnySeq(16))
        with m.If(fetch.flush & (fetch.open | fetch.asked)):
            m.d.sync += old.eq(1)
        with m.Elif(~(fetch.open | fetch.asked)):
            m.d.sync += old.eq(0)
        answered = fetch.reply.word_select(at[0], 16)
        mine = fetch.wanted == at[1:]
        m.d.comb += Assume(~(fetch.reply_valid & mine) | (fetch.reply_fault == missing) & (old | (answered == what)))

        # addresses one after the other
        out, next_pc = fetch.o.payload, Signal(32)
        with m.If(fetch.jump):
            m.d.sync += next_pc.eq(fetch.target)
        with m.Elif(fetch.o.valid & fetch.o.ready):
            m.d.sync += next_pc.eq(next_pc + Mux(out.short, 2, 4))
        valid, pc = fetch.o.valid, out.pc
        second = (pc + 2)[:32]
        m.d.comb += [
            Assert(pc == next_pc),
            Assert(~valid | fetched_sound(out)),
        ]
        with m.If(valid & (pc[1:] == at)):
            m.d.comb += [Assert(out.fault == missing), Assert(out.fault | (out.bits[:16] == what))]
        with m.If(valid & ~out.fault & ~out.short & (second[1:] == at)):
            m.d.comb += [
                Assert(out.fault_second == missing),
                Assert(out.fault_second | (out.bits[16:] == what)),
            ]

        # for the induction: what is kept
        for n in range(LINES):
            with m.If(fetch.kept[n] & (fetch.tags[n] == at[1:])):
                m.d.comb += [
                    Assert(fetch.bad[n] == missing),
                    Assert(lines.rows[n].word_select(at[0], 16) == what),
                ]
        under_way = fetch.open | fetch.asked
        rules = StreamRules(fetch.line.valid, fetch.line.ready, fetch.line.payload)
        m.submodules.rules = rules
        m.d.comb += [
            Assert(~(old & under_way) | fetch.stale),
            Cover(valid & out.fault_second),
            Cover(valid & ~out.short & (second[1:] == at) & (out.bits[16:] == 5) & pc[1]),
            Cover(old & fetch.reply_valid),
        ]
        return m


class FetchTimeProof(wiring.Component):
    """Lines are taken and answered at once; until the next jump WAITS cycles go by without an instruction at most."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetch, _ = _surround(m, platform)
        waits = Signal(range(2 * WAITS))
        with m.If(fetch.jump | fetch.o.valid):
            m.d.sync += waits.eq(0)
        with m.Else():
            m.d.sync += waits.eq(waits + 1)
        m.d.comb += [
            Assume(fetch.line.ready & (fetch.reply_valid == fetch.asked)),
            Assert(waits <= WAITS),
            Cover(waits == WAITS),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_fetch",
        make=FetchProof,
        depth=2,
        cover_depth=14,
        fault_depth=14,
        short=True,
        faults=(
            "fence.i leaves the lines of code that are kept",
            "both halves of an instruction are read from one line",
        ),
    ),
    Proof(
        name="gpsimd_fetch_time",
        make=FetchTimeProof,
        depth=WAITS + 2,
        cover_depth=16,
        fault_depth=16,
        faults=("the line of an instruction's second half is never asked for",),
    ),
)

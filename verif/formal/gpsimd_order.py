"""Scalar core: instructions retire in the order of the program, each once, and each from where the one before it went.

What leaves stage X is at the retire port later, unchanged; numbers count up by one; each load and store that is told
went to memory once, and each load's word is its answer. An instruction's address is
`pc_wdata` of the one before, but for the first of an interrupt's handler: there it is where the interrupt went, and
`mepc` is where the one before went (proof gpsimd_traps says which addresses these are).
"""

from amaranth.hdl import Assert, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.gpsimd.layouts import RETIRED, Branch
from verif.formal.gpsimd_parts import Core, same
from verif.formal.proof import Proof
from verif.formal.stream_rules import StreamRules

__all__ = ["PROOFS", "OrderProof"]

_EARLY = tuple(name for name, _ in RETIRED if name not in ("rd_wdata", "mem_rdata"))
"""What stage X knows."""


class OrderProof(wiring.Component):
    """Any code, any interrupts, any memory."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core = Core(m, platform)
        unit, record, told, retires = core.unit, core.record, core.unit.retired, core.unit.retired_valid

        # numbers, and nothing changes on the way
        number, left, before = Signal(64), Signal(RETIRED), Signal(RETIRED)
        m.d.sync += before.eq(left)
        with m.If(retires):
            m.d.sync += number.eq(number + 1)
        with m.If(record.moves):
            m.d.sync += left.eq(record.o)
        behind = (number + retires)[:64]  # the number behind what is retired
        m.d.comb += [
            Assert(~retires | (told.order == number)),
            Assert(~retires | same(told, before, _EARLY)),
            Assert(~unit.m_valid | (unit.m_told.order == behind) & same(unit.m_told, left, _EARLY)),
            Assert(record.o.order == (behind + unit.m_valid)[:64]),
        ]

        # loads and stores: each once, as told, and kept until it is taken
        access, o = unit.access, record.o
        asked = access.payload
        m.submodules.rules = StreamRules(access.valid, access.ready, asked)
        goes = access.valid & access.ready
        answer, answered = Signal(32), Signal()
        m.d.sync += [answer.eq(unit.access_reply), answered.eq(unit.access_reply_valid)]
        m.d.comb += [
            Assert(goes == (record.moves & (o.mem_rmask | o.mem_wmask).any())),
            Assert(~goes | (asked.address[2:] == o.mem_addr[2:]) & (asked.mask == (o.mem_rmask | o.mem_wmask))),
            Assert(~goes | (asked.write == o.mem_wmask.any()) & (~asked.write | (asked.data == o.mem_wdata))),
            Assert(~(retires & told.mem_rmask.any()) | answered & (told.mem_rdata == answer)),
            Assert(~unit.m_valid | (unit.m_load == unit.m_told.mem_rmask.any())),
        ]

        # addresses at the port
        went, last, handler = Signal(32), Signal(32), Signal(32)  # of the last retired; now; of the last interrupt
        m.d.comb += last.eq(Mux(retires, told.pc_wdata, went))
        with m.If(unit.start):
            m.d.sync += went.eq(unit.entry)
        with m.Elif(retires):
            m.d.sync += went.eq(told.pc_wdata)
        handlers = Signal(32), Signal(32)  # of what is in stage M, of what retires
        with m.If(record.interrupted):
            m.d.sync += handler.eq(core.csr.vector)
        with m.If(record.moves):
            m.d.sync += handlers[0].eq(handler)
        m.d.sync += handlers[1].eq(handlers[0])
        begun = core.begun
        m.d.comb += [
            Assert(~retires | (told.pc_rdata == Mux(told.intr, handlers[1], went))),
            Assert(~unit.m_valid | (unit.m_told.pc_rdata == Mux(unit.m_told.intr, handlers[0], last))),
        ]

        # for the induction: where the next to leave stage X is, and the stages before it
        goal, ahead = Signal(32), Signal(32)
        with m.If(unit.start):
            m.d.sync += goal.eq(unit.entry)
        with m.Elif(record.interrupted):
            m.d.sync += goal.eq(core.csr.vector)
        with m.Elif(record.moves):
            m.d.sync += goal.eq(record.o.pc_wdata)
        x, d = unit.x, unit.d

        def behind_it(pc: Value, short: Value) -> Value:
            return (pc + Mux(short, 2, 4))[:32]

        jumps = Mux(unit.x_ahead, (x.fetched.pc + x.what.immediate)[:32], behind_it(x.fetched.pc, x.fetched.short))
        m.d.comb += [
            ahead.eq(Mux(unit.x_valid, jumps, goal)),
            Assert(~unit.x_valid | (x.fetched.pc == goal)),
            Assert(~unit.d_valid | (d.pc == ahead)),
            Assert(~begun | (core.fetch.o.payload.pc == Mux(unit.d_valid, behind_it(d.pc, d.short), ahead))),
            Assert(begun | ~(unit.d_valid | unit.x_valid | unit.m_valid | retires | record.first)),
            Assert(core.fetch.begun == begun),
            Assert(
                ~(unit.x_valid & unit.x_ahead)
                | ((x.what.branch == Branch.JUMP) | (x.what.branch == Branch.CONDITIONAL))
            ),
            Assert(~begun | (goal == Mux(record.first, handler, Mux(unit.m_valid, unit.m_told.pc_wdata, last)))),
            Cover(retires & told.intr & (told.order == 2)),
            Cover(retires & (told.order == 2) & (told.pc_rdata == went) & (went == 12)),
            Cover(retires & told.trap & (told.cause == 4)),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_order",
        make=OrderProof,
        depth=2,
        cover_depth=14,
        fault_depth=12,
        faults=(
            "a loop is never left",
            "an instruction that traps has no number",
            "a store goes to memory although it traps",
        ),
    ),
)

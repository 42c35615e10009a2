"""What is told of an instruction that leaves the execute stage."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.layouts import EXECUTED, ISSUED, RETIRED, Unit

__all__ = ["Record"]


class Record(wiring.Component):
    """`o` of the instruction in the execute stage, without what later stages know (`rd_wdata`, `mem_rdata`).

    i, done: what entered the stage and what it makes of it; next_pc: where it really goes. moves: it leaves the stage,
    so the next has the next number. interrupted: the next that leaves is the first of the handler of `interrupt_cause`.
    Timing: combinational.
    """

    i: In(ISSUED)
    done: In(EXECUTED)
    next_pc: In(32)
    moves: In(1)
    interrupted: In(1)
    interrupt_cause: In(5)
    o: Out(RETIRED)

    def __init__(self):
        self.first = Signal()  # the next is the first of a handler; seen by proofs too
        self.cause = Signal(5)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x, what, done, o = self.i.fetched, self.i.what, self.done, self.o
        order, first, cause = Signal(64), self.first, self.cause
        with m.If(self.moves):
            m.d.sync += [
                order.eq(order + (~done.traps | ~fault("an instruction that traps has no number"))),
                first.eq(0),
            ]
        with m.If(self.interrupted):
            m.d.sync += [first.eq(1), cause.eq(self.interrupt_cause)]
        reads = ~done.traps & (what.unit == Unit.LOAD)
        writes = ~done.traps & (what.unit == Unit.STORE)
        m.d.comb += [
            o.order.eq(order),
            o.insn.eq(Mux(x.fault | x.fault_second, 0, x.bits)),
            o.trap.eq(done.traps),
            o.intr.eq(first),
            o.cause.eq(Mux(done.traps, done.cause, Mux(first, cause, 0))),
            o.pc_rdata.eq(x.pc),
            o.pc_wdata.eq(self.next_pc),
            o.rs1_addr.eq(what.rs1),
            o.rs1_rdata.eq(self.i.a),
            o.rs2_addr.eq(what.rs2),
            o.rs2_rdata.eq(self.i.b),
            o.rd_addr.eq(Mux(done.traps, 0, what.rd)),
            o.mem_addr.eq(Mux(reads | writes, Cat(Const(0, 2), done.address[2:]), 0)),
            o.mem_rmask.eq(Mux(reads, done.mask, 0)),
            o.mem_wmask.eq(Mux(writes, done.mask, 0)),
            o.mem_wdata.eq(Mux(writes, done.data, 0)),
        ]
        return m

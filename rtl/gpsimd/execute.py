"""What an instruction in the execute stage computes, and whether it traps instead."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.align import StoreAlign
from rtl.gpsimd.alu import ScalarAlu
from rtl.gpsimd.layouts import EXECUTED, ISSUED, Branch, Unit

__all__ = ["Execute"]


class Execute(wiring.Component):
    """The instruction `i`. `allowed`: there is memory for the load or store at its address. csr_read, csr_illegal,
    quotient, vector_*: of the units beside. early: it traps whatever the vector unit says, whose vector_traps
    may depend on `ready` of memory.

    Timing: combinational; `allowed` may depend on the address.
    """

    i: In(ISSUED)
    allowed: In(1)
    csr_read: In(32)
    csr_illegal: In(1)
    quotient: In(32)
    vector_traps: In(1)
    vector_cause: In(5)
    vector_tval: In(32)
    vector_result: In(32)
    early: Out(1)
    o: Out(EXECUTED)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.alu = alu = ScalarAlu()
        m.submodules.store = store = StoreAlign()
        x, what, a, b, o = self.i.fetched, self.i.what, self.i.a, self.i.b, self.o
        long = ~x.short | fault("a short instruction's link is that of a long one")
        after = (x.pc + Mux(long, 4, 2))[:32]
        even = Mux(fault("jalr goes to an odd address"), 0xFFFFFFFF, 0xFFFFFFFE)
        target = Mux(what.branch == Branch.INDIRECT, o.address & even, (x.pc + what.immediate)[:32])
        m.d.comb += [
            alu.operator.eq(what.operator),
            alu.first.eq(Mux(what.first_is_pc & ~fault("auipc leaves out the pc"), x.pc, a)),
            alu.second.eq(Mux(what.second_is_immediate, what.immediate, b)),
            alu.left.eq(a),
            alu.right.eq(b),
            alu.funct3.eq(what.funct3),
            o.address.eq(a + what.immediate),
            store.funct3.eq(what.funct3),
            store.place.eq(o.address[:2]),
            store.value.eq(b),
            o.mask.eq(store.mask),
            o.data.eq(store.data),
        ]
        with m.Switch(what.branch):
            with m.Case(Branch.JUMP, Branch.INDIRECT):
                m.d.comb += o.taken.eq(1)
            with m.Case(Branch.CONDITIONAL):
                m.d.comb += o.taken.eq(alu.taken)
        m.d.comb += o.next_pc.eq(Mux(o.taken, target, after))
        with m.Switch(what.unit):
            with m.Case(Unit.LINK):
                m.d.comb += o.result.eq(after)
            with m.Case(Unit.DIVIDE):
                m.d.comb += o.result.eq(self.quotient)
            with m.Case(Unit.CSR):
                m.d.comb += o.result.eq(self.csr_read)
            with m.Case(Unit.VECTOR):
                m.d.comb += o.result.eq(self.vector_result)
            with m.Default():
                m.d.comb += o.result.eq(alu.result)

        is_store = what.unit == Unit.STORE
        accesses = is_store | (what.unit == Unit.LOAD)
        of_vectors = (what.unit == Unit.VECTOR) & self.vector_traps
        with m.If(x.fault | x.fault_second):
            m.d.comb += [self.early.eq(1), o.cause.eq(1), o.tval.eq(Mux(x.fault, x.pc, x.pc + 2))]
        with m.Elif(what.illegal | ((what.unit == Unit.CSR) & self.csr_illegal)):
            m.d.comb += [self.early.eq(1), o.cause.eq(2), o.tval.eq(x.bits)]
        with m.Elif(what.unit == Unit.EBREAK):
            cause = Mux(fault("an ebreak is told as an ecall"), 11, 3)
            m.d.comb += [self.early.eq(1), o.cause.eq(cause), o.tval.eq(x.pc)]
        with m.Elif(what.unit == Unit.ECALL):
            m.d.comb += [self.early.eq(1), o.cause.eq(11)]
        with m.Elif(accesses & ~store.aligned):
            m.d.comb += [self.early.eq(1), o.cause.eq(Mux(is_store, 6, 4)), o.tval.eq(o.address)]
        with m.Elif(accesses & ~self.allowed):
            m.d.comb += [self.early.eq(1), o.cause.eq(Mux(is_store, 7, 5)), o.tval.eq(o.address)]
        with m.Elif(of_vectors):
            m.d.comb += [o.cause.eq(self.vector_cause), o.tval.eq(self.vector_tval)]
        m.d.comb += o.traps.eq(self.early | of_vectors)
        return m

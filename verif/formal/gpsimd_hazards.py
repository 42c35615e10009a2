"""Hazards of the vector unit: steps of instructions that overlap use each register in the order of the program."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Module, Signal
from amaranth.lib import wiring

from rtl.gpsimd.vector.hazards import Hazards, Pipe
from verif.formal.free import drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "HazardsProof"]


class HazardsProof(wiring.Component):
    """One register, any, is followed through any instructions in any pipes. When an instruction begins, those before it
    that have still to write or to read the register are noted; a step that uses it comes when none of them is left.

    A pipe begins an instruction with the last step of the one before, or later, and one begins at a time.
    """

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.hazards = hazards = Hazards()
        without_reset(m)
        for port in (hazards.begins, hazards.reads, hazards.writes, hazards.late):
            drive(m, port)
        for name in ("wants_read", "wants_write", "has_read", "has_written"):
            for port in getattr(hazards, name):
                drive(m, port)
        register = AnyConst(5)
        late = hazards.late.bit_select(register, 1)
        pipes = list(Pipe)
        to_read = [Signal(name=f"reads_{p}") for p in pipes]  # the instruction of the pipe has still to
        to_write = [Signal(name=f"writes_{p}") for p in pipes]
        behind_read = {(p, q): Signal(name=f"read_{p}_{q}") for p in pipes for q in pipes if p != q}  # p's behind q's
        behind_write = {(p, q): Signal(name=f"write_{p}_{q}") for p in pipes for q in pipes if p != q}
        m.d.comb += Assume((hazards.begins & (hazards.begins - 1)[: len(pipes)]) == 0)
        for p in pipes:
            begins = hazards.begins[p]
            read, written = (port[p].bit_select(register, 1) for port in (hazards.has_read, hazards.has_written))
            left_read, left_write = to_read[p] & ~read, to_write[p] & ~written
            m.d.sync += [to_read[p].eq(left_read), to_write[p].eq(left_write)]
            with m.If(begins):
                m.d.sync += [
                    to_read[p].eq(hazards.reads.bit_select(register, 1)),
                    to_write[p].eq(hazards.writes.bit_select(register, 1)),
                ]
            m.d.comb += Assume(~begins | ~(left_read | left_write))
            for q in pipes:
                if q == p:
                    continue
                q_read = to_read[q] & ~hazards.has_read[q].bit_select(register, 1)
                q_write = to_write[q] & ~hazards.has_written[q].bit_select(register, 1)
                was_read, was_write = behind_read[p, q], behind_write[p, q]
                m.d.sync += [was_read.eq(was_read & q_read), was_write.eq(was_write & q_write)]
                with m.If(begins):
                    m.d.sync += [was_read.eq(q_read), was_write.eq(q_write)]
                with m.If(hazards.begins[q]):  # it is behind
                    m.d.sync += [was_read.eq(0), was_write.eq(0)]
                older = hazards.older[q, p] if q < p else ~hazards.older[p, q]
                # for the induction
                m.d.comb += [Assert(was_read == (to_read[q] & older)), Assert(was_write == (to_write[q] & older))]
            others = [(behind_read[p, q], behind_write[p, q]) for q in pipes if q != p]
            wants_read = hazards.wants_read[p].bit_select(register, 1) & hazards.may[p]
            wants_write = hazards.wants_write[p].bit_select(register, 1) & hazards.may[p]
            m.d.comb += [
                *(Assert(~(wants_read & write)) for _, write in others),
                *(Assert(~(wants_write & (read | write))) for read, write in others),
                Assert(~(wants_read & late)),
                Assert(~(wants_write & late) | (p == Pipe.COMPUTE)),
                Assert(to_read[p] == hazards.to_read[p].bit_select(register, 1)),
                Assert(to_write[p] == hazards.to_write[p].bit_select(register, 1)),
                Cover(wants_read & others[0][0]),  # reads do not wait for reads
                # an instruction that has nothing to do with others goes
                Assert(hazards.may[p] | hazards.late.any() | (hazards.wants_read[p] | hazards.wants_write[p]).any()),
            ]
        free = hazards.written.bit_select(register, 1)
        m.d.comb += Assert(free == ~(late | to_write[0] | to_write[1] | to_write[2] | to_write[3]))
        # the oldest of those that have something to do waits for nobody
        for p in pipes:
            none = ~late
            for q in pipes:
                if q != p:
                    none &= ~(behind_read[p, q] | behind_write[p, q])
            only = (hazards.wants_read[p] | hazards.wants_write[p]) == (1 << register)
            m.d.comb += Assert(hazards.may[p] | ~only | ~none)
        return m


PROOFS = (
    Proof(
        name="gpsimd_hazards",
        make=HazardsProof,
        depth=2,
        cover_depth=8,
        fault_depth=8,
        short=True,
        faults=("a step of vectors does not wait for what it reads",),
    ),
)

"""Scalar core: what retires did what the ISA says its instruction does, whatever came before and comes after.

Of any record at the retire port: registers by number, rd and its value, where it goes, bytes of memory, or the trap.
What registers hold is gpsimd_registers' to say, what CSRs do gpsimd_traps', where code comes from gpsimd_fetch's.
Products and quotients stand in; there is memory where the upper four bits of an address say so, any of them.
"""

from amaranth.hdl import Assert, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import View

from verif.formal.gpsimd_isa import GROUPS, Instruction
from verif.formal.gpsimd_parts import Core
from verif.formal.proof import Proof

__all__ = ["PROOFS", "InstructionsProof"]

_FAULT, _ILLEGAL = 1, 2  # causes


class InstructionsProof(wiring.Component):
    """Instructions of one group of gpsimd_isa, or what is none."""

    def __init__(self, group: str):
        self.group = group
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core = Core(m, platform)
        unit, registers = core.unit, core.registers
        value = Mux(registers.m_rd == 0, 0, registers.m_value)
        loaded = Mux(unit.m_load, unit.access_reply, 0)
        # in stage M it is as it will retire
        what, does, traps = self._check(m, "before", core, unit.m_valid, unit.m_told, value, loaded)
        m.d.comb += [
            Assert(registers.m_rd == Mux(unit.m_valid, unit.m_told.rd_addr, 0)),
            Assert(~unit.m_valid | (unit.m_load == (unit.m_told.mem_rmask != 0))),
            Assert(~(unit.m_valid & unit.m_load) | (unit.m_place == what.address[:2])),
            Assert(~(unit.m_valid & unit.m_load) | (unit.m_funct3 == what.word[12:15])),
        ]
        told = unit.retired
        self._check(m, "retires", core, unit.retired_valid, told, told.rd_wdata, told.mem_rdata)
        m.d.comb += Cover(traps if self.group in ("system", "illegal") else does)
        return m

    def _check(
        self, m: Module, name: str, core: Core, valid: Value, told: View, value: Value, loaded: Value
    ) -> tuple[Instruction, Value, Value]:
        """Holds a record to what its instruction does. Returns that, and whether it is of the group and does so, or
        traps."""
        m.submodules[name] = what = Instruction()
        m.d.comb += [
            what.insn.eq(told.insn),
            what.pc.eq(told.pc_rdata),
            what.rs1.eq(told.rs1_rdata),
            what.rs2.eq(told.rs2_rdata),
            what.loaded.eq(loaded),
        ]
        mine = what.legal & what.group[list(GROUPS).index(self.group)] if self.group in GROUPS else ~what.legal
        no_code = told.trap & (told.cause == _FAULT)
        cause, moves = Signal(5, name=f"{name}_cause"), Signal(name=f"{name}_moves")
        crosses = Mux(what.size == 4, what.address[:2] != 0, what.address[0] & (what.size == 2))
        allowed = core.reachable.bit_select(what.address[28:], 1)
        m.d.comb += [moves.eq(what.size != 0), cause.eq(what.cause)]
        with m.If(~what.legal):
            m.d.comb += cause.eq(_ILLEGAL)
        with m.Elif(moves & (crosses | ~allowed)):
            m.d.comb += cause.eq(Mux(crosses, 4, 5) | Mux(what.store, 2, 0))
        traps = (cause != 0) | (what.csr & told.trap)
        does = ~traps
        reads, writes = does & moves & ~what.store, does & moves & what.store
        data = [told.mem_wdata.word_select(n, 8) for n in range(4)]
        right = Signal(11, name=f"{name}_right")
        m.d.comb += right.eq(
            Cat(
                told.trap == traps,
                ~told.trap | (told.cause == Mux(what.csr, _ILLEGAL, cause)),
                ~what.legal | (told.rs1_addr == what.first) & (told.rs2_addr == what.second),
                told.rd_addr == Mux(does, what.rd, 0),
                value == Mux(does & (what.rd != 0), Mux(what.csr, value, what.value), 0),
                traps | what.mret | (told.pc_wdata == what.next),
                told.mem_addr == Mux(does & moves, what.address & 0xFFFFFFFC, 0),
                told.mem_rmask == Mux(reads, what.mask, 0),
                told.mem_wmask == Mux(writes, what.mask, 0),
                Cat(~(writes & what.mask[n]) | (data[n] == what.data.word_select(n, 8)) for n in range(4)).all(),
                reads | (loaded == 0),
            )
        )
        nothing = (told.rd_addr == 0) & (value == 0) & (told.mem_rmask == 0) & (told.mem_wmask == 0)
        m.d.comb += [
            Assert(~(valid & ~no_code & mine) | right.all()),
            Assert(~(valid & no_code) | nothing & (told.insn == 0)),
        ]
        return what, valid & ~no_code & mine & ~told.trap, valid & ~no_code & mine & told.trap


def _proof(group: str, *faults: str, short: bool = False) -> Proof:
    return Proof(
        name=f"gpsimd_isa_{group}",
        make=lambda: InstructionsProof(group),
        depth=2,
        cover_depth=9,
        fault_depth=9,
        faults=faults,
        short=short,
    )


PROOFS = (
    _proof("upper", "auipc leaves out the pc"),
    _proof("jumps", "a short instruction's link is that of a long one", "jalr goes to an odd address"),
    _proof("branches", "a branch compares signed numbers only"),
    _proof("loads", "lh extends with zeros", "a load that traps writes its register"),
    _proof("stores", "sh writes the lower half of a word"),
    _proof("immediate", "sra fills with zeros"),
    _proof("registers", "sltu compares signed numbers"),
    _proof("products", "a product is always a square", short=True),
    _proof("system", "an ebreak is told as an ecall", short=True),
    _proof("illegal", "slli by 32 or more is taken for legal", short=True),
)

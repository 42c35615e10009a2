"""Scalar core: an instruction reads of a register what the last one before it wrote, in the order they retire.

One register, chosen by the prover, is followed. So no value comes from a later instruction, and none is lost on its way
through the stages. Register 0 is 0; all are before they are written.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from verif.formal.gpsimd_parts import Core
from verif.formal.proof import Proof

__all__ = ["PROOFS", "RegistersProof"]


class RegistersProof(wiring.Component):
    """What the register holds is kept as records say it, at the retire port."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        followed = Signal(5)
        m.d.comb += followed.eq(AnyConst(5))
        core = Core(m, platform, followed)
        unit, registers, told = core.unit, core.registers, core.unit.retired
        holds, after, now = Signal(32), Signal(32), Signal(32)  # before and behind what retires, behind stage M
        retires = unit.retired_valid
        m.d.comb += [
            after.eq(Mux(retires & (told.rd_addr == followed) & (followed != 0), told.rd_wdata, holds)),
            now.eq(Mux((registers.m_rd == followed) & (followed != 0), registers.m_value, after)),
        ]
        m.d.sync += holds.eq(after)
        x = unit.x
        for number, value in ((told.rs1_addr, told.rs1_rdata), (told.rs2_addr, told.rs2_rdata)):
            m.d.comb += [
                Assert(~(retires & (number == followed)) | (value == holds)),
                Assert(~(retires & (number == 0)) | (value == 0)),
                Cover(retires & (number == followed) & (value == 5) & (followed == 3)),
            ]
        m.d.comb += Assert((followed != 0) | (holds == 0))

        # for the induction: the same of stages M and X, and what is behind them
        waits = unit.m_load | unit.m_multiply  # its value was not there when the next was read
        inside = unit.m_told
        for number, value in ((inside.rs1_addr, inside.rs1_rdata), (inside.rs2_addr, inside.rs2_rdata)):
            m.d.comb += Assert(~(unit.m_valid & (number == followed)) | (value == after))
            m.d.comb += Assert(~(unit.m_valid & (number == 0)) | (value == 0))
        for number, value in ((x.what.rs1, x.a), (x.what.rs2, x.b)):
            here = unit.x_valid & (number == followed)
            m.d.comb += [
                Assert(~here | (value == now)),
                Assert(~(here & (registers.m_rd == followed) & (followed != 0)) | ~waits),
                Assert(~(unit.x_valid & (number == 0)) | (value == 0)),
            ]
        kept = Mux(registers.known.bit_select(followed, 1), core.array[0].kept, 0)
        m.d.comb += [
            Assert(registers.m_rd == Mux(unit.m_valid, unit.m_told.rd_addr, 0)),
            Assert(registers.w_rd == Mux(retires, told.rd_addr, 0)),
            Assert((registers.w_rd == 0) | (registers.w_value == told.rd_wdata)),
            Assert((followed == 0) | (kept == holds)),
            Assert(~registers.known[0]),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_registers",
        make=RegistersProof,
        depth=2,
        cover_depth=12,
        fault_depth=12,
        faults=("a loaded value is used a cycle early", "a register does not see what stage W writes"),
    ),
)

"""What an instruction is."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.expand import Expand
from rtl.gpsimd.layouts import DECODED, Branch, Operator, Unit

__all__ = ["Decode"]


class Decode(wiring.Component):
    """`bits` as `o`: RV32IMC_Zicsr_Zifencei and mret, wfi of machine mode; all else is illegal. `short`: 16 bits. With
    `vectors` their instructions are left to the vector unit.

    Timing: combinational.
    """

    bits: In(32)
    short: In(1)
    o: Out(DECODED)

    def __init__(self, vectors: bool):
        self.vectors = vectors
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.expand = expand = Expand()
        w, o = Signal(32), self.o
        m.d.comb += [expand.half.eq(self.bits[:16]), w.eq(Mux(self.short, expand.word, self.bits))]
        funct3, funct7 = w[12:15], w[25:32]
        uses_rs1, uses_rs2, writes = Signal(), Signal(), Signal()

        def signed(value: Value) -> Value:
            return Cat(value, w[31].replicate(32 - len(value)))

        of_i, of_s = signed(w[20:31]), signed(Cat(w[7:12], w[25:31]))
        of_b = signed(Cat(Const(0, 1), w[8:12], w[25:31], w[7]))
        of_j = signed(Cat(Const(0, 1), w[21:31], w[20], w[12:20]))
        of_u = Cat(Const(0, 12), w[12:32])

        m.d.comb += [
            o.funct3.eq(funct3),
            o.csr.eq(w[20:32]),
            o.csr_use.eq(w[12:14]),
            o.csr_immediate.eq(w[14]),
            o.rs1.eq(uses_rs1.replicate(5) & w[15:20]),
            o.rs2.eq(uses_rs2.replicate(5) & w[20:25]),
            o.rd.eq(writes.replicate(5) & w[7:12]),
        ]
        with m.Switch(w[:7]):
            with m.Case(0x37):  # lui
                m.d.comb += [writes.eq(1), o.immediate.eq(of_u), o.second_is_immediate.eq(1)]
                m.d.comb += o.operator.eq(Operator.SECOND)
            with m.Case(0x17):  # auipc
                m.d.comb += [writes.eq(1), o.immediate.eq(of_u), o.second_is_immediate.eq(1), o.first_is_pc.eq(1)]
            with m.Case(0x6F):
                m.d.comb += [writes.eq(1), o.immediate.eq(of_j), o.branch.eq(Branch.JUMP), o.unit.eq(Unit.LINK)]
            with m.Case(0x67):
                m.d.comb += [writes.eq(1), uses_rs1.eq(1), o.immediate.eq(of_i), o.unit.eq(Unit.LINK)]
                m.d.comb += [o.branch.eq(Branch.INDIRECT), o.illegal.eq(funct3 != 0)]
            with m.Case(0x63):
                m.d.comb += [uses_rs1.eq(1), uses_rs2.eq(1), o.immediate.eq(of_b), o.unit.eq(Unit.NOTHING)]
                m.d.comb += [o.branch.eq(Branch.CONDITIONAL), o.illegal.eq(funct3[1:3] == 1)]
            with m.Case(0x03):
                m.d.comb += [writes.eq(1), uses_rs1.eq(1), o.immediate.eq(of_i), o.unit.eq(Unit.LOAD)]
                m.d.comb += o.illegal.eq((funct3 == 3) | (funct3[1:3] == 3))
            with m.Case(0x23):
                m.d.comb += [uses_rs1.eq(1), uses_rs2.eq(1), o.immediate.eq(of_s), o.unit.eq(Unit.STORE)]
                m.d.comb += o.illegal.eq(funct3[2] | (funct3 == 3))
            with m.Case(0x13):
                m.d.comb += [writes.eq(1), uses_rs1.eq(1), o.immediate.eq(of_i), o.second_is_immediate.eq(1)]
                m.d.comb += o.operator.eq(funct3)
                with m.If(funct3 == 1):
                    m.d.comb += o.illegal.eq((funct7 != 0) & ~fault("slli by 32 or more is taken for legal"))
                with m.If(funct3 == 5):
                    m.d.comb += [o.operator.eq(Cat(funct3, funct7[5])), o.illegal.eq((funct7 & 0x5F) != 0)]
            with m.Case(0x33):
                m.d.comb += [writes.eq(1), uses_rs1.eq(1), uses_rs2.eq(1), o.operator.eq(Cat(funct3, funct7[5]))]
                with m.Switch(funct7):
                    with m.Case(0):
                        pass
                    with m.Case(1):
                        m.d.comb += o.unit.eq(Mux(funct3[2], Unit.DIVIDE, Unit.MULTIPLY))
                    with m.Case(0x20):
                        m.d.comb += o.illegal.eq((funct3 != 0) & (funct3 != 5))
                    with m.Default():
                        m.d.comb += o.illegal.eq(1)
            with m.Case(0x0F):
                m.d.comb += [o.unit.eq(Unit.NOTHING), o.flush.eq(funct3 == 1), o.illegal.eq(funct3[1:3] != 0)]
            with m.Case(*((0x07, 0x27, 0x57) if self.vectors else ())):
                self._vector(m, w, uses_rs1, uses_rs2, writes)
            with m.Case(0x73):
                with m.If(funct3[:2] != 0):
                    m.d.comb += [writes.eq(1), uses_rs1.eq(~funct3[2]), o.unit.eq(Unit.CSR), o.immediate.eq(w[15:20])]
                    m.d.comb += o.csr_writes.eq((funct3[:2] == 1) | (w[15:20] != 0))
                with m.Elif(funct3 == 0):
                    with m.Switch(w):
                        for word, unit in (
                            (0x00000073, Unit.ECALL),
                            (0x00100073, Unit.EBREAK),
                            (0x30200073, Unit.MRET),
                            (0x10500073, Unit.WFI),
                        ):
                            with m.Case(word):
                                m.d.comb += o.unit.eq(unit)
                        with m.Default():
                            m.d.comb += o.illegal.eq(1)
                with m.Else():
                    m.d.comb += o.illegal.eq(1)
            with m.Default():
                m.d.comb += o.illegal.eq(1)
        with m.If(self.short & expand.illegal):
            m.d.comb += o.illegal.eq(1)
        return m

    def _vector(self, m: Module, w: Value, uses_rs1: Value, uses_rs2: Value, writes: Value) -> None:
        """Registers x of vector instructions; which of these there are is the vector unit's to say."""
        o = self.o
        funct3, in_memory = w[12:15], ~w[6]
        configures = funct3 == 7
        moves_out = (funct3 == 2) & (w[26:32] == 0x10) & ((w[15:20] == 0) | (w[16:20] == 8))
        m.d.comb += [
            o.unit.eq(Unit.VECTOR),
            o.illegal.eq(in_memory & ((funct3 >= 1) & (funct3 <= 4))),
            uses_rs1.eq(in_memory | (funct3 == 4) | (funct3 == 6) | (configures & ~w[30:32].all())),
            uses_rs2.eq(Mux(in_memory, w[26:28] == 2, configures & w[31] & ~w[30])),
            writes.eq(~in_memory & (configures | moves_out)),
        ]

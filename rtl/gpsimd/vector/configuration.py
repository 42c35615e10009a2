"""What vector instructions work with beside registers: vtype, vl, and the CSRs of vectors."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault

__all__ = ["VSTART", "VXSAT", "VXRM", "VCSR", "VL", "VLENB", "VTYPE", "Configuration", "setting"]

VSTART, VXSAT, VXRM, VCSR, VL, VTYPE, VLENB = 0x008, 0x009, 0x00A, 0x00F, 0xC20, 0xC21, 0xC22
"""CSRs (RISC-V "V" extension, section 3)."""


def setting(lanes: int) -> data.StructLayout:
    """What an instruction of a unit of `lanes` lanes of 32 bits depends on."""
    bits = exact_log2(32 * lanes)
    return data.StructLayout(
        {
            "vill": 1,
            "size": 2,  # of an element: 1 << size bytes
            "lmul": signed(3),  # logarithm of LMUL, -2 to 3
            "agnostic": 2,  # vta, vma: kept, and without effect
            "vl": bits + 1,
            "vstart": bits,
            "vxrm": 2,
        }
    )


class Configuration(wiring.Component):
    """vtype, vl, vstart, vxrm and vxsat.

    set: vsetvli, vsetivli or vsetvl `bits` with x[rs1], x[rs2] is executed; `new_vl` is what it gives for rd.
    shrink: vl becomes `index`; stop: an access of element `index` has trapped; end: an instruction of vectors is
    through. saturates: vxsat becomes 1. csr_write: CSR `csr` becomes `csr_value`; csr_read: its value; csr_exists.
    Timing: combinational, and seen in `now` in the next cycle.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = exact_log2(32 * lanes)
        super().__init__(
            {
                "bits": In(32),
                "rs1": In(32),
                "rs2": In(32),
                "set": In(1),
                "new_vl": Out(bits + 1),
                "end": In(1),
                "shrink": In(1),
                "stop": In(1),
                "index": In(bits),
                "saturates": In(1),
                "csr": In(12),
                "csr_write": In(1),
                "csr_value": In(32),
                "csr_read": Out(32),
                "csr_exists": Out(1),
                "now": Out(setting(lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        now, w = self.now, self.bits
        vxsat = Signal()
        vlenb = 4 * self.lanes
        bytes_bits = exact_log2(vlenb)

        # a new vtype
        kind, size, lmul, ill = Signal(32), Signal(3), Signal(signed(3)), Signal()
        with m.If(~w[31]):
            m.d.comb += kind.eq(w[20:31])
        with m.Elif(w[30]):
            m.d.comb += kind.eq(w[20:30])
        with m.Else():
            m.d.comb += kind.eq(self.rs2)
        m.d.comb += [
            size.eq(kind[3:6]),
            lmul.eq(kind[:3]),
            ill.eq((kind[8:] != 0) | (size > 2) | (kind[:3] == 4) | (size.as_signed() > lmul + 2)),
        ]
        # how many elements
        bits = len(now.vl)
        most, wanted = Signal(bits), Signal(32)
        shift = Signal(4)
        m.d.comb += [
            shift.eq(bytes_bits + lmul - size),
            most.eq(1 << shift),
            wanted.eq(Mux(w[30:32].all(), w[15:20], self.rs1)),
        ]
        with m.If(~w[30:32].all() & (w[15:20] == 0)):
            m.d.comb += wanted.eq(Mux(w[7:12] == 0, now.vl, 0xFFFFFFFF))
        least = Mux(wanted > most, most, wanted[:bits])
        m.d.comb += self.new_vl.eq(Mux(ill, 0, least ^ (fault("vl is one element short") & (wanted == most))))

        vill = Signal(init=1)
        held = Signal(setting(self.lanes))
        m.d.comb += [now.eq(held), now.vill.eq(vill)]
        with m.If(self.set):
            m.d.sync += [
                vill.eq(ill),
                held.size.eq(Mux(ill, 0, size)),
                held.lmul.eq(Mux(ill, 0, lmul)),
                held.agnostic.eq(Mux(ill, 0, kind[6:8])),
                held.vl.eq(self.new_vl),
            ]
        with m.If(self.shrink):
            m.d.sync += held.vl.eq(self.index)
        with m.If(self.stop):
            m.d.sync += held.vstart.eq(Mux(fault("a trap inside a load of vectors loses vstart"), 0, self.index))
        with m.Elif(self.end):
            m.d.sync += held.vstart.eq(0)
        with m.If(self.saturates & ~fault("no saturation is ever told")):
            m.d.sync += vxsat.eq(1)
        self._csrs(m, held, vill, vxsat)
        return m

    def _csrs(self, m: Module, held, vill: Signal, vxsat: Signal) -> None:
        vtype = Cat(held.lmul, held.size, Const(0, 1), held.agnostic, Const(0, 23), vill)
        known = {
            VSTART: held.vstart,
            VXSAT: vxsat,
            VXRM: held.vxrm,
            VCSR: Cat(vxsat, held.vxrm),
            VL: held.vl,
            VTYPE: vtype,
            VLENB: Const(4 * self.lanes, 32),
        }
        with m.Switch(self.csr):
            for address, value in known.items():
                with m.Case(address):
                    m.d.comb += [self.csr_exists.eq(1), self.csr_read.eq(value)]
        value = self.csr_value
        with m.If(self.csr_write), m.Switch(self.csr):
            with m.Case(VSTART):
                m.d.sync += held.vstart.eq(value)
            with m.Case(VXSAT):
                m.d.sync += vxsat.eq(value[0])
            with m.Case(VXRM):
                m.d.sync += held.vxrm.eq(value)
            with m.Case(VCSR):
                m.d.sync += [vxsat.eq(value[0]), held.vxrm.eq(value[1:3])]

"""Control and status registers of a scalar core, and where traps and interrupts go."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.layouts import CsrUse

__all__ = ["Csr"]

_MSI, _MTI, _MEI = 3, 7, 11
_READ_ONLY = 0b11
_MISA = 1 << 30 | 1 << 2 | 1 << 8 | 1 << 12  # RV32, C, I, M
_ZEROS = (0x310, 0x320, 0xF11, 0xF12, 0xF13, 0xF15, *range(0x323, 0x340), *range(0xB03, 0xB20), *range(0xB83, 0xBA0))
"""Those that always read 0: mstatush, mcountinhibit, the core's names, events and counters of no events."""


class Csr(wiring.Component):
    """Machine mode's registers (RISC-V privileged ISA, chapter 3), as far as a core without other modes has them.

    address, use, value, writes: the CSR instruction in the execute stage; `read` is what it reads, `illegal` that it
    may not. commit: that instruction, or any other, leaves the stage and will retire; `write_commit` if it is one of
    these. trap: it traps instead, with `cause` (bit 5: an interrupt), `pc`, `tval`. mret: return. interrupt: one is
    pending and enabled, `interrupt_cause` says which. vector: where `trap` goes; `nowhere`: mtvec is 0. epc: where
    mret goes. With `vectors` there is mstatus.VS: vector_enabled if it is not 0, vector_touched makes it 3. CSRs of
    vectors are elsewhere: `vector_exists` and `vector_read` of `address`; vector_write: it becomes `new`.
    Timing: reads combinational; writes seen in the next cycle.
    """

    address: In(12)
    use: In(CsrUse)
    value: In(32)
    writes: In(1)
    read: Out(32)
    illegal: Out(1)
    commit: In(1)
    write_commit: In(1)
    trap: In(1)
    cause: In(6)
    pc: In(32)
    tval: In(32)
    mret: In(1)
    pending: In(3)  # software, timer, external
    hart: In(32)
    mtime: In(64)
    interrupt: Out(1)
    wake: Out(1)
    interrupt_cause: Out(6)
    vector: Out(32)
    nowhere: Out(1)
    epc: Out(32)
    vector_exists: In(1)
    vector_read: In(32)
    vector_touched: In(1)
    vector_enabled: Out(1)
    vector_write: Out(1)
    new: Out(32)

    def __init__(self, vectors: bool):
        self.vectors = vectors
        # seen by proofs too
        self.enabled = Signal()  # mstatus.MIE
        self.before = Signal()  # mstatus.MPIE
        self.mie = Signal(3)
        self.mip = Signal(3)
        self.mtvec = Signal(32)
        self.mscratch = Signal(32)
        self.mepc = Signal(32)
        self.mcause = Signal(32)
        self.mtval = Signal(32)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        enabled, before, mie, mip, mtvec = self.enabled, self.before, self.mie, self.mip, self.mtvec
        mscratch, mepc, mcause, mtval = self.mscratch, self.mepc, self.mcause, self.mtval
        cycles, retired = Signal(64), Signal(64)
        new = self.new
        vs = Signal(2)  # mstatus.VS

        def bits(three: Value) -> Value:
            return Cat(Const(0, 3), three[0], Const(0, 3), three[1], Const(0, 3), three[2], Const(0, 20))

        dirty = vs == 3
        status = Cat(Const(0, 3), enabled, Const(0, 3), before, Const(0, 1), vs, Const(3, 2), Const(0, 18), dirty)
        m.d.sync += mip.eq(self.pending)
        known: dict[int, Value] = {
            0x300: status,
            0x301: Const(_MISA, 32),
            0x304: bits(mie),
            0x305: mtvec,
            0x340: mscratch,
            0x341: mepc,
            0x342: mcause,
            0x343: mtval,
            0x344: bits(mip),
            0xB00: cycles[:32],
            0xB02: retired[:32],
            0xB80: cycles[32:],
            0xB82: retired[32:],
            0xC00: cycles[:32],
            0xC01: self.mtime[:32],
            0xC02: retired[:32],
            0xC80: cycles[32:],
            0xC81: self.mtime[32:],
            0xC82: retired[32:],
            0xF14: self.hart,
        } | {address: Const(0, 32) for address in _ZEROS}
        exists = Signal()
        with m.Switch(self.address):
            for address, value in known.items():
                with m.Case(address):
                    m.d.comb += [self.read.eq(value), exists.eq(1)]
        of_vectors = self.vector_exists if self.vectors else Const(0, 1)
        with m.If(of_vectors & (vs != 0)):
            m.d.comb += [self.read.eq(self.vector_read), exists.eq(1)]
        m.d.comb += [
            self.vector_enabled.eq(vs != 0),
            self.vector_write.eq(self.write_commit & self.writes & of_vectors),
        ]
        if self.vectors:
            with m.If(self.vector_touched | self.vector_write):
                m.d.sync += vs.eq(3)
        m.d.comb += self.illegal.eq(~exists | (self.writes & (self.address[10:12] == _READ_ONLY)))
        with m.Switch(self.use):
            with m.Case(CsrUse.SET):
                m.d.comb += new.eq(self.read | self.value)
            with m.Case(CsrUse.CLEAR):
                m.d.comb += new.eq(self.read & ~self.value)
            with m.Default():
                m.d.comb += new.eq(self.value)

        m.d.sync += [cycles.eq(cycles + 1), retired.eq(retired + self.commit)]
        with m.If(self.write_commit & self.writes):
            with m.Switch(self.address):
                with m.Case(0x300):
                    m.d.sync += [enabled.eq(new[3]), before.eq(new[7])]
                    if self.vectors:
                        m.d.sync += vs.eq(new[9:11])
                with m.Case(0x304):
                    m.d.sync += mie.eq(Cat(new[_MSI], new[_MTI], new[_MEI]))
                with m.Case(0x305):
                    m.d.sync += mtvec.eq(Cat(new[0], Const(0, 1), new[2:]))
                with m.Case(0x340):
                    m.d.sync += mscratch.eq(new)
                with m.Case(0x341):
                    m.d.sync += mepc.eq(Cat(Const(0, 1), new[1:]))
                with m.Case(0x342):
                    m.d.sync += mcause.eq(new)
                with m.Case(0x343):
                    m.d.sync += mtval.eq(new)
                for address, counter in ((0xB00, cycles), (0xB02, retired)):
                    with m.Case(address):
                        m.d.sync += counter.eq(Cat(new, counter[32:]))
                    with m.Case(address + 0x80):
                        m.d.sync += counter.eq(Cat(counter[:32], new))
        with m.If(self.trap):
            m.d.sync += [
                mepc.eq(self.pc + Mux(fault("mepc is the address behind a trap"), 2, 0)),
                mcause.eq(Cat(self.cause[:5], Const(0, 26), self.cause[5])),
                mtval.eq(self.tval),
                before.eq(enabled),
                enabled.eq(enabled & fault("interrupts stay enabled in a handler")),
            ]
        with m.If(self.mret):
            m.d.sync += [enabled.eq(before), before.eq(~fault("mret leaves mpie cleared"))]

        ready, vectored = Signal(3), mtvec[0] & ~fault("all interrupts go to the base of mtvec")
        m.d.comb += [
            ready.eq(mip & (mie | fault("mie is not looked at").replicate(3))),
            self.wake.eq(ready.any()),
            self.interrupt.eq(self.wake & enabled),
            self.interrupt_cause.eq(0x20 | Mux(ready[2], _MEI, Mux(ready[0], _MSI, _MTI))),
            self.epc.eq(mepc),
            self.nowhere.eq(mtvec[2:] == 0),
            self.vector.eq(Cat(Const(0, 2), mtvec[2:]) + Mux(vectored & self.cause[5], self.cause[:5] << 2, 0)),
        ]
        return m

"""Scalar core: traps, interrupts, mret and CSRs change machine mode's state as the privileged ISA says.

State as the specification has it is kept beside the core, changed by what leaves stage X (proof gpsimd_order: that is
what retires, in that order) and by interrupts. Counters and time read as anything.
"""

from amaranth.hdl import Assert, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from verif.formal.gpsimd_isa import Instruction
from verif.formal.gpsimd_parts import Core
from verif.formal.proof import Proof

__all__ = ["PROOFS", "TrapsProof"]

_COUNTERS = (0xB00, 0xB02, 0xB80, 0xB82, 0xC00, 0xC01, 0xC02, 0xC80, 0xC81, 0xC82, 0xF14)
_ZEROS = (0x310, 0x320, 0xF11, 0xF12, 0xF13, 0xF15, *range(0x323, 0x340), *range(0xB03, 0xB20), *range(0xB83, 0xBA0))
_SOFTWARE, _TIMER, _EXTERNAL = 3, 7, 11


def _three(bits: Value) -> Value:
    """Software, timer and external as bits of mie and mip."""
    places = dict(zip((_SOFTWARE, _TIMER, _EXTERNAL), bits, strict=True))
    return Cat(places.get(n, Const(0, 1)) for n in range(32))


class TrapsProof(wiring.Component):
    """Any code and interrupts."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core = Core(m, platform)
        unit, csr, record = core.unit, core.csr, core.record
        told, x = record.o, unit.x.fetched
        m.submodules.what = what = Instruction()
        m.d.comb += [
            what.insn.eq(told.insn),
            what.pc.eq(told.pc_rdata),
            what.rs1.eq(told.rs1_rdata),
            what.rs2.eq(told.rs2_rdata),
        ]
        on, was, pending, enabled = Signal(), Signal(), Signal(3), Signal(3)  # MIE, MPIE, mip, mie
        names = ("mtvec", "mscratch", "mepc", "mcause", "mtval")
        mtvec, mscratch, mepc, mcause, mtval = (Signal(32, name=f"spec_{n}") for n in names)
        m.d.sync += pending.eq(unit.pending)

        # which interrupt, and where it goes
        due = pending & enabled
        number = Mux(due[2], _EXTERNAL, Mux(due[0], _SOFTWARE, _TIMER))
        base = mtvec & 0xFFFFFFFC
        taken, leaves, inside = Signal(), Signal(), Signal()  # inside: no other interrupt is due, for gpsimd_alive
        handler = Mux(mtvec[0], (base + 4 * number)[:32], base)
        m.d.comb += [
            leaves.eq(record.moves),
            taken.eq(record.interrupted),
            Assert(~(taken & leaves)),
            Assert(~taken | unit.x_valid & on & due.any()),
            Assert(~(unit.x_valid & unit.x_first & on & due.any()) | taken),
            Assert(~(taken & inside)),
            Assert(~taken | (core.fetch.jump & (core.fetch.target == handler))),
            Assert(unit.trapped.valid == (taken | leaves & told.trap)),
            Assert(~unit.trapped.valid | (unit.trapped.nowhere == (base == 0)) & (unit.trapped.pc == x.pc)),
            Assert(~unit.trapped.valid | (unit.trapped.cause == Mux(taken, number, told.cause))),
        ]
        with m.If(csr.mret | csr.write_commit):
            m.d.sync += inside.eq(0)
        with m.If(csr.trap):
            m.d.sync += inside.eq(1)
        first, cause = Signal(), Signal(4)  # of a handler
        with m.If(taken):
            m.d.sync += [first.eq(1), cause.eq(number)]
        with m.Elif(leaves):
            m.d.sync += first.eq(0)
        m.d.comb += Assert(~leaves | (told.intr == first) & (told.trap | (told.cause == Mux(first, cause, 0))))

        # traps
        explained = Signal(32)  # mtval
        with m.Switch(told.cause):
            with m.Case(1):
                m.d.comb += explained.eq(Mux(x.fault, told.pc_rdata, told.pc_rdata + 2))
            with m.Case(2):
                m.d.comb += explained.eq(told.insn)
            with m.Case(3):
                m.d.comb += explained.eq(told.pc_rdata)
            with m.Case(4, 5, 6, 7):
                m.d.comb += explained.eq(what.address)
        traps, returns = leaves & told.trap, leaves & ~told.trap & what.legal & what.mret
        sleeps = leaves & ~told.trap & what.legal & (what.word == 0x10500073)  # wfi
        renews = (what.word[:7] == 0x0F) & (what.word[12:15] == 1)  # fence.i
        m.d.comb += [
            Assert(~traps | (told.pc_wdata == base)),
            Assert(~returns | (told.pc_wdata == mepc)),
            Assert(~leaves | ((told.trap & (told.cause == 1)) == (x.fault | x.fault_second))),
            Assert(~unit.waits | ~due.any()),
            Assert(~sleeps | due.any()),
            Assert(core.fetch.flush == (leaves & ~told.trap & what.legal & renews)),
            Assert(~core.fetch.flush | core.fetch.jump),  # as gpsimd_fetch has it
        ]
        with m.If(taken | traps):
            m.d.sync += [
                was.eq(on),
                on.eq(0),
                mepc.eq(told.pc_rdata),
                mcause.eq(Mux(taken, number | 1 << 31, told.cause)),
                mtval.eq(Mux(taken, 0, explained)),
            ]
        with m.If(returns):
            m.d.sync += [on.eq(was), was.eq(1)]

        # CSR instructions
        w, read, exists = what.word, Signal(32), Signal()
        known = {
            0x300: Cat(Const(0, 3), on, Const(0, 3), was, Const(0, 3), Const(3, 2), Const(0, 19)),
            0x301: Const(1 << 30 | sum(1 << ord(letter) - ord("A") for letter in "ICM"), 32),
            0x304: _three(enabled),
            0x305: mtvec,
            0x340: mscratch,
            0x341: mepc,
            0x342: mcause,
            0x343: mtval,
            0x344: _three(pending),
            **dict.fromkeys(_ZEROS, Const(0, 32)),
            **dict.fromkeys(_COUNTERS, core.execute.o.result),
        }
        with m.Switch(w[20:32]):
            for address, value in known.items():
                with m.Case(address):
                    m.d.comb += [exists.eq(1), read.eq(value)]
        given = Mux(w[14], w[15:20], told.rs1_rdata)
        writes = (w[12:14] == 1) | (w[15:20] != 0)
        new = Mux(w[12:14] == 1, given, Mux(w[12:14] == 2, read | given, read & ~given))
        may = exists & ~(writes & (w[30:32] == 3))
        does = leaves & what.legal & what.csr & ~(told.trap & (told.cause == 1))
        m.d.comb += [
            Assert(~does | (told.trap == ~may)),
            Assert(~(does & may) | (core.execute.o.result == read)),
        ]
        with m.If(does & may & writes):
            with m.Switch(w[20:32]):
                with m.Case(0x300):
                    m.d.sync += [on.eq(new[3]), was.eq(new[7])]
                with m.Case(0x304):
                    m.d.sync += enabled.eq(Cat(new[_SOFTWARE], new[_TIMER], new[_EXTERNAL]))
                with m.Case(0x305):
                    m.d.sync += mtvec.eq(new & 0xFFFFFFFD)
                with m.Case(0x340):
                    m.d.sync += mscratch.eq(new)
                with m.Case(0x341):
                    m.d.sync += mepc.eq(new & 0xFFFFFFFE)
                with m.Case(0x342):
                    m.d.sync += mcause.eq(new)
                with m.Case(0x343):
                    m.d.sync += mtval.eq(new)

        # for the induction: the core's state is this
        state = ((on, csr.enabled), (was, csr.before), (enabled, csr.mie), (pending, csr.mip))
        registers = ((mtvec, csr.mtvec), (mscratch, csr.mscratch), (mepc, csr.mepc), (mcause, csr.mcause))
        m.d.comb += [Assert(ours == theirs) for ours, theirs in (*state, *registers, (mtval, csr.mtval))]
        m.d.comb += [
            Assert(~inside | ~on),
            Assert(record.first == first),
            Assert(~first | (record.cause == cause)),
            Cover(taken & mtvec[0] & (number == _TIMER)),
            Cover(returns & was),
            Cover(traps & (told.cause == 7)),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_traps",
        make=TrapsProof,
        depth=2,
        cover_depth=16,
        fault_depth=14,
        faults=(
            "mepc is the address behind a trap",
            "mie is not looked at",
            "interrupts stay enabled in a handler",
            "mret leaves mpie cleared",
            "all interrupts go to the base of mtvec",
        ),
    ),
)

"""Parts that stand in for those of a scalar core: code and registers are anything, products are quick."""

from collections.abc import Callable
from typing import Any

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.amaranth_internals import counts_as_used
from rtl.gpsimd.csr import Csr
from rtl.gpsimd.decode import Decode
from rtl.gpsimd.divide import Divide
from rtl.gpsimd.execute import Execute
from rtl.gpsimd.fetch import Fetch
from rtl.gpsimd.layouts import DECODED, Unit
from rtl.gpsimd.record import Record
from rtl.gpsimd.registers import Registers
from rtl.gpsimd.scalar_core import ScalarCore
from verif.formal.free import StandIn, drive
from verif.formal.proof import without_reset

__all__ = ["LINE_BITS", "AnyFetch", "Core", "MemoryPort", "fetched_sound", "mixed", "same"]

LINE_BITS = 32


def mixed(kind: Value, first: Value, second: Value) -> Value:
    """Stands in for products, quotients and remainders: another for each `kind` (funct3), and for operands swapped."""
    return ((first - second)[:32] ^ Cat(kind, Const(0, 26), ~kind))[:32]


def same(first: View, second: View, names: tuple[str, ...] = ()) -> Value:
    """Whether two records agree in fields `names`, in all if there are none."""
    if not names:
        return first.as_value() == second.as_value()
    return Cat(Value.cast(first[name]) == Value.cast(second[name]) for name in names).all()


def fetched_sound(fetched: View) -> Value:
    """What fetch promises of an instruction beside its bits."""
    short = (fetched.bits[:2] != 3) & ~fetched.fault
    return (
        (fetched.short == short)
        & (~fetched.short | (fetched.bits[16:] == 0))
        & (~fetched.fault_second | ~(fetched.fault | fetched.short))
    )


class AnyFetch(Fetch):
    """Stands in for Fetch: any instruction, or none, at the address that is next. Proof gpsimd_fetch says the same of
    Fetch."""

    def __init__(self, line_bits: int):
        self.begun = Signal()  # there was a jump
        super().__init__(line_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pc, o, short, begun = Signal(32), self.o.payload, Signal(), self.begun
        low, high = AnySeq(16), AnySeq(16)
        m.d.comb += [
            self.o.valid.eq(AnySeq(1) & begun),
            o.fault.eq(AnySeq(1)),
            short.eq((low[:2] != 3) & ~o.fault),
            o.pc.eq(pc),
            o.short.eq(short),
            o.bits.eq(Cat(low, Mux(short, 0, high))),
            o.fault_second.eq(AnySeq(1) & ~o.fault & ~short),
        ]
        with m.If(self.jump):
            m.d.sync += [pc.eq(self.target), begun.eq(1)]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += pc.eq(pc + Mux(short, 2, 4))
        return m


class MemoryPort:
    """Of a stand-in of Memory."""

    def __init__(self, width: int, depth: int):
        self.addr, self.data, self.en = Signal(ceil_log2(depth)), Signal(width), Signal()


class _Kept(Elaboratable):
    """Stands in for the Memory of registers: keeps the row `followed` only, any other one reads as anything."""

    def __init__(self, followed: Value, shape: int, depth: int, init: list[int]):
        self.followed, self.depth = followed, depth
        self.kept = Signal(shape)
        self.reads: list[MemoryPort] = []
        self.write = MemoryPort(32, depth)

    def read_port(self, *, domain: str) -> MemoryPort:
        self.reads.append(MemoryPort(32, self.depth))
        return self.reads[-1]

    def write_port(self) -> MemoryPort:
        return self.write

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.write.en & (self.write.addr == self.followed)):
            m.d.sync += self.kept.eq(self.write.data)
        for port in self.reads:
            m.d.comb += port.data.eq(Mux(port.addr == self.followed, self.kept, AnySeq(32)))
        return m


class _Multiply(wiring.Component):
    """Stands in for Multiply, with its timing."""

    en: In(1)
    funct3: In(3)
    first: In(32)
    second: In(32)
    result: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.en):
            m.d.sync += self.result.eq(mixed(self.funct3, self.first, self.second))
        return m


class _Divide(Divide):
    """Stands in for Divide; `done` in any cycle of a division."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [
            self.done.eq(self.start & AnySeq(1)),
            self.result.eq(mixed(Cat(~self.signed, self.remainder, Const(1, 1)), self.first, self.second)),
        ]
        return m


def _anything(unit: wiring.Component, but: tuple[str, ...] = ()) -> Module:
    """All outputs of a unit free, but for some."""
    m = Module()
    for path, member, port in unit.signature.flatten(unit):
        if member.flow == Out and path[0] not in but:
            drive(m, port)
    return m


class _AnyExecute(Execute):
    """Stands in for Execute; nothing is of vectors, so what traps does so early."""

    def elaborate(self, platform: object) -> Module:
        m = _anything(self, but=("early",))
        m.d.comb += self.early.eq(self.o.traps)
        return m


class _AnyDecode(Decode):
    """Stands in for Decode: no instruction need be what its bits say, but none is of vectors."""

    def elaborate(self, platform: object) -> Module:
        m, free = Module(), Signal(DECODED)
        drive(m, free)
        m.d.comb += self.o.eq(free)
        with m.If(free.unit == Unit.VECTOR):
            m.d.comb += self.o.unit.eq(Unit.ALU)
        return m


class _AnyCsr(Csr):
    """Stands in for Csr: an interrupt at any time, but none behind another before mret or a CSR instruction."""

    def elaborate(self, platform: object) -> Module:
        m = _anything(self, but=("interrupt",))
        inside = Signal()  # of a handler
        with m.If(self.mret | self.write_commit):
            m.d.sync += inside.eq(0)
        with m.If(self.trap):
            m.d.sync += inside.eq(1)
        m.d.comb += self.interrupt.eq(AnySeq(1) & ~inside)
        return m


class Core:
    """A scalar core in `m`: all its inputs are free, its code and registers anything (of `followed` it is what was
    written). Its parts are at hand. There is memory where a bit of `reachable` says so, by the address's upper bits.
    control: parts that compute give anything, so that only what waits for what is left.
    """

    def __init__(self, m: Module, platform: object, followed: Value | int = 0, *, control: bool = False):
        self.unit = unit = ScalarCore(LINE_BITS, vectors=False)
        counts_as_used(unit.fetch)
        unit.fetch = self.fetch = AnyFetch(LINE_BITS)
        self.made: dict[str, Any] = {}
        self.array: list[_Kept] = []
        without_reset(m)

        def kept(*, shape: int, depth: int, init: list[int]) -> _Kept:
            self.array.append(_Kept(Value.cast(followed), shape, depth, init))
            return self.array[-1]

        m.submodules.core = StandIn(
            unit,
            Csr=self._take("csr", _AnyCsr if control else Csr),
            Execute=self._take("execute", _AnyExecute if control else Execute),
            Decode=self._take("decode", _AnyDecode if control else Decode),
            Registers=self._take("registers", Registers),
            Record=self._take("record", Record),
            Divide=self._take("divide", _Divide),
            Multiply=self._take("multiply", _Multiply),
            **{"rtl.gpsimd.registers.Memory": kept},
        ).elaborate(platform)
        self.csr: Csr = self.made["csr"]
        self.execute: Execute = self.made["execute"]
        self.registers: Registers = self.made["registers"]
        self.record: Record = self.made["record"]
        self.begun = Signal()  # not the first cycle
        self.reachable = AnyConst(16)
        address = unit.access.payload.address
        m.d.sync += self.begun.eq(1)
        m.d.comb += [
            unit.start.eq(~self.begun),
            unit.access_allowed.eq(self.reachable.bit_select(address[28:], 1)),
        ]
        for port in (unit.entry, unit.access_reply, unit.pending, unit.hart, unit.mtime):
            drive(m, port)
        for port in (unit.access_reply_valid, unit.access.ready):
            drive(m, port)
        m.d.comb += [
            Assert(self.begun | ~Cat(unit.d_valid, unit.x_valid, unit.m_valid, unit.retired_valid).any()),
            Assert(self.fetch.begun == self.begun),
            Assert(~unit.x_valid | (unit.x.what.unit != Unit.VECTOR)),
        ]
        if control:
            return
        copy = Decode(vectors=False)  # what is in X was decoded
        m.submodules.copy = copy
        m.d.comb += [
            copy.bits.eq(unit.x.fetched.bits),
            copy.short.eq(unit.x.fetched.short),
            Assert(~unit.d_valid | fetched_sound(unit.d)),
            Assert(~unit.x_valid | fetched_sound(unit.x.fetched)),
            Assert(~unit.x_valid | (unit.x.what.as_value() == copy.o.as_value())),
        ]

    def _take(self, name: str, part: Callable[..., Elaboratable]) -> Callable[..., Elaboratable]:
        def make(*arguments: Any) -> Elaboratable:
            self.made[name] = part(*arguments)
            return self.made[name]

        return make

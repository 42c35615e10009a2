"""PSUM: sums, transposes and engines change a row one after the other, and a read sees what has committed.

One element, chosen by the prover, of partition 0 is followed through the whole unit: two row groups, two engines, two
banks. Addition is any that is exact and has -0 as its neutral element (integers stand in for FP32: numeric proves
nothing here). What PSUM asks of those around it is assumed, and is what other units see to: an element is not written
again while a sum for it is in the adders (Guard, proof psum_guard; between engines and sums the program's semaphores),
and a transpose does not come to a bank in which a sum commits (BankWatch, proof psum_watch). Rows of two groups may
meet in one bank: then exactly the lower one is taken, and the other is told that it is lost.
"""

import dataclasses

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from rtl.contract.config import HbmConfig, PsumConfig, SbufConfig, TensorConfig, named
from rtl.contract.timing import PSUM_ADD_CYCLES
from rtl.memory.psum import Psum
from rtl.memory.psum_adder import MINUS_ZERO
from rtl.numeric.fp32.add_row import row_ports
from verif.formal.free import FollowedRam, StandIn, drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SMALL", "PsumProof"]

_ROWS = 16
SMALL = dataclasses.replace(
    named("tiny"),
    partitions=_ROWS,
    tensor=TensorConfig(rows=_ROWS, cols=8, moving_max=8),
    psum=PsumConfig(banks=2, bank_bytes=64),
    sbuf=SbufConfig(partition_bytes=1024, banks=2),
    hbm=HbmConfig(ports=1, port_bytes=32, bytes_per_cycle=32, latency_ns=25, capacity_mib=1),
)


def _sum(a: Value, b: Value) -> Value:
    return Mux(a == MINUS_ZERO, b, (a + b)[:32])


class AnyLanes(wiring.Component):
    """Stands in for Fp32AddLanes: lane 0 adds integers, the others give anything."""

    LATENCY = 2

    def __init__(self, lanes: int, form: str):
        super().__init__({"valid": In(1), **row_ports(lanes)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first, second = Signal(32), Signal(32)
        m.d.sync += [first.eq(_sum(self.a[:32], self.b[:32])), second.eq(first)]
        m.d.comb += self.out.eq(Cat(second, AnySeq(len(self.out) - 32)))
        return m


class PsumProof(wiring.Component):
    """What the element should hold, changed as the contract of the ports says; the RAMs keep its row only."""

    def __init__(self):
        self.psum = Psum(SMALL)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        psum = self.psum
        without_reset(m)
        bits = ceil_log2(SMALL.psum.partition_bytes // 4)
        in_bank = ceil_log2(SMALL.psum.bank_bytes // 4)
        element = Signal(bits)
        m.d.comb += element.eq(AnyConst(bits))
        rams: list[FollowedRam] = []

        def ram(width: int, depth: int, granule: int) -> FollowedRam:
            rams.append(FollowedRam(width, depth, granule, followed=element[1:in_bank]))
            return rams[-1]

        parts = {"Ram": ram, "rtl.memory.psum_adder.Fp32AddLanes": AnyLanes}
        m.submodules.psum = StandIn(psum, **parts).elaborate(platform)
        bank = element[in_bank:]
        holds = Array(ram.kept[:32] for ram in rams)[Cat(element[0], bank)]

        expected, after = Signal(32), Signal(32)
        m.d.sync += expected.eq(after)
        m.d.comb += [after.eq(expected), Assert(holds == expected)]
        adding = self.sums(m, element, bank, expected, after)
        self.others(m, element, bank, after, adding)
        self.reads(m, element, expected)
        return m

    def sums(self, m: Module, element: Signal, bank: Value, expected: Signal, after: Signal) -> tuple[Value, Value]:
        """Rows of the groups. Returns whether a sum for the element is in the adders, and one for its bank commits."""
        psum = self.psum
        in_bank = len(element) - len(bank)
        begun: list[Value] = []
        inside, commits = [], []
        writers = psum.accumulate
        for g, writer in enumerate(writers):
            for port in (writer.valid, writer.element, writer.accumulate, writer.partitions, writer.data):
                drive(m, port)
            drive(m, Cat(writer.rounding, writer.random))
            meets = Cat(t & (w.element[in_bank:] == writer.element[in_bank:]) for t, w in zip(begun, writers))
            taken = Signal(name=f"takes_{g}")
            m.d.comb += [taken.eq(writer.valid & ~meets.any()), Assert(writer.lost == (writer.valid & meets.any()))]
            begun.append(taken)
            hits = taken & (writer.element == element)
            state = Cat(
                taken & (writer.element[in_bank:] == bank), hits, writer.partitions[0], writer.accumulate, taken
            )
            state = Cat(state, writer.data[:32])
            ages = [state]
            for age in range(PSUM_ADD_CYCLES):
                older = Signal(len(state), name=f"sum_{g}_{age}")
                m.d.sync += older.eq(ages[-1])
                ages.append(older)
            m.d.comb += Assert(psum.adding[g] == Cat(age[4] for age in ages).any())
            inside.append(Cat(age[1] for age in ages[1:]).any())
            commits.append(ages[-1][0])
            with m.If(ages[-1][1] & ages[-1][2]):
                m.d.comb += after.eq(Mux(ages[-1][3], _sum(expected, ages[-1][5:]), ages[-1][5:]))
            m.d.comb += Cover(ages[-1][1] & ages[-1][2] & ages[-1][3] & (expected == 5))
        busy = Cat(inside).any()
        for writer in writers:
            m.d.comb += Assume(~(busy & writer.valid & (writer.element == element)))
        now = Cat(taken & (w.element == element) for taken, w in zip(begun, writers))
        m.d.comb += Cover(writers[-1].lost)
        return busy | now.any(), Cat(commits).any()

    def others(self, m: Module, element: Signal, bank: Value, after: Signal, adding: tuple[Value, Value]) -> None:
        """Transposes and engines. They leave the element alone while a sum for it is under way."""
        psum = self.psum
        in_bank = len(element) - len(bank)
        busy, commits = adding
        turned = psum.transposed
        for port in turned:
            for signal in (port.valid, port.element, port.partitions, port.data):
                drive(m, signal)
            m.d.comb += Assume(~(port.valid & (port.element[in_bank:] == bank) & commits))
            m.d.comb += Assume(~(port.valid & (port.element == element) & busy))
            with m.If(port.valid & (port.element == element) & port.partitions[0]):
                m.d.comb += after.eq(port.data[:32])
        here = [port.valid & (port.element[in_bank:] == bank) for port in turned]
        m.d.comb += Assume(~(here[0] & here[1]))
        for n, name in enumerate(psum.refused_names):
            port = getattr(psum, name)
            drive(m, port.valid)
            drive(m, port.word)
            m.d.comb += Assert(psum.refused[n] == (port.valid & ~port.ready))
            m.d.comb += Cover(port.valid & ~port.ready & (port.word == element[1:]))
            if name.startswith("read"):
                continue
            for signal in (port.data, port.bytes, port.partitions):
                drive(m, signal)
            writes = port.valid & port.ready & (port.word == element[1:]) & port.partitions[0]
            mine = writes & Mux(element[0], port.bytes[4], port.bytes[0])
            m.d.comb += Assume(~(mine & busy))
            with m.If(mine):
                m.d.comb += after.eq(Mux(element[0], port.data[32:64], port.data[:32]))

    def reads(self, m: Module, element: Signal, expected: Signal) -> None:
        """An engine's read shows in the next cycle what had committed before it was accepted."""
        psum = self.psum
        for name in psum.ports:
            port = getattr(psum, f"read_{name}")
            asked, then = Signal(name=f"asked_{name}"), Signal(32, name=f"then_{name}")
            any_asked = Signal(name=f"any_asked_{name}")
            m.d.sync += [
                any_asked.eq(port.valid & port.ready),
                asked.eq(port.valid & port.ready & (port.word == element[1:])),
                then.eq(expected),
            ]
            m.d.comb += Assert(port.data_valid == any_asked)
            with m.If(asked):
                m.d.comb += Assert(Mux(element[0], port.data[32:64], port.data[:32]) == then)


_FAULTS = (
    "an add overwrites its sum",
    "partitions outside the mask of a sum are written",
    "a reader takes the bank that an add reads",
    "the read data come from the bank of the cycle before",
    "a refused read of PSUM is not reported",
    "an engine's write does not wait for the sum that commits in its bank",
    "an engine writes both elements of a word of PSUM",
    "an engine writes all partitions of PSUM",
    "a refused write of PSUM is not reported",
    "a lost row of PSUM is not reported",
    "of two rows in one bank both are taken",
    "every group adds to the row that group 0 has read",
    "the adders' clock stops before a sum has left them",
    "an engine's write does not wait for the sum of the last group",
    "an engine's write does not wait for a transpose",
    "a transpose is written to all partitions",
)
"""All but a NaN's payload and rounding: what the adders and the bits of a word are is not looked at."""

PROOFS = (
    Proof(
        name="psum",
        make=PsumProof,
        depth=6,
        cover_depth=8,
        fault_depth=8,
        faults=_FAULTS,
    ),
)

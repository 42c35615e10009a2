"""Scalar core: while it does not sleep an instruction retires every so many cycles, if code and memory come in time;
while it sleeps, so that its clock may stand still, no load is under way.

Assumed: fetch waits as proof gpsimd_fetch_time says; a load or store is taken after ACCESS cycles at most, a load is
answered REPLY cycles later than it could be at most, a division (which stands in) takes DIVISION.
"""

from amaranth.hdl import Assert, Assume, Cover, Module, Signal, Value
from amaranth.lib import wiring

from verif.formal.gpsimd_fetch import WAITS
from verif.formal.gpsimd_parts import Core
from verif.formal.proof import Proof

__all__ = ["PROOFS", "AliveProof"]

ACCESS, REPLY, DIVISION = 1, 1, 17
CYCLES = 2 * (WAITS + 4) + max(ACCESS + REPLY, DIVISION)
"""To the first that retires, and between two: an interrupt comes before an instruction that was waited for, so that
code is waited for again; then an access or a division, and the stages."""


class AliveProof(wiring.Component):
    """Any code, any interrupts."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core = Core(m, platform, control=True)
        unit, fetch = core.unit, core.fetch

        def within(cycles: int, waits: Value, name: str) -> None:
            count = Signal(range(cycles + 2), name=name)
            m.d.sync += count.eq(0)
            with m.If(waits):
                m.d.sync += count.eq(count + 1)
            m.d.comb += Assume(~waits | (count < cycles))

        within(WAITS, core.begun & ~fetch.o.valid & ~fetch.jump, "fetch_waits")
        within(ACCESS, unit.access.valid & ~unit.access.ready, "access_waits")
        within(REPLY, unit.m_valid & unit.m_load & ~unit.access_reply_valid, "reply_waits")
        divide = core.made["divide"]
        within(DIVISION, divide.start & ~divide.done, "division_waits")
        asked = Signal()  # a load that was taken is not answered
        with m.If(unit.access.valid & unit.access.ready & ~unit.access.payload.write):
            m.d.sync += asked.eq(1)
        with m.Elif(unit.access_reply_valid):
            m.d.sync += asked.eq(0)
        waits = Signal(range(2 * CYCLES))
        with m.If(unit.retired_valid | ~core.begun | unit.waits):
            m.d.sync += waits.eq(0)
        with m.Else():
            m.d.sync += waits.eq(waits + 1)
        m.d.comb += [
            Assert(~(unit.waits & asked)),
            Assert(asked == (unit.m_valid & unit.m_load)),
            Assert(waits < CYCLES),
            Cover(unit.retired_valid & (waits == CYCLES - 1)),
            Cover(unit.waits & core.begun),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_alive",
        make=AliveProof,
        depth=CYCLES + 2,
        cover_depth=CYCLES + 4,
        fault_depth=CYCLES + 4,
        faults=("a load or store is never taken", "a core sleeps although a load is under way"),
    ),
)

"""Lanes of an engine as loops of Verilog and as functions of C++, on the same inputs, compared in every cycle."""

from amaranth.hdl import Cat, Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import rtl.scalar.lane as scalar
import rtl.vector.lane as vector
from rtl.base.amaranth_internals import counts_as_used
from rtl.base.placed import Repeated

__all__ = ["LANES", "LanesLockstep"]

LANES = 32
"""Two blocks at least of as many as C++ does at once."""

_EXP_RATE = 4
_KINDS = {
    "scalar": (scalar.Lane, scalar.SHARED, scalar.LANE_DOMAINS),
    "vector": (lambda: vector.Lane(_EXP_RATE), vector.SHARED, vector.LANE_DOMAINS),
}


class LanesLockstep(wiring.Component):
    """Lanes of a `kind`, vector or scalar. Faults are those of the loops alone; C++ has the form of the product.

    `shared` and `each` are all inputs of the lanes, side by side; `enables`: which clocks run. `mismatches`: cycles in
    which an output of any lane differed; `changes`: those in which one changed. Both ignore reset.
    """

    def __init__(self, kind: str):
        self.make, self.common, self.domains = _KINDS[kind]
        lane = self.make()
        counts_as_used(lane)  # it only lends its signature
        members = lane.signature.members
        widths = {name: Shape.cast(member.shape).width for name, member in members.items()}
        self.inputs = {name: widths[name] for name, member in members.items() if member.flow == In}
        self.outputs = {name: widths[name] for name, member in members.items() if member.flow == Out}
        super().__init__(
            {
                "shared": In(sum(width for name, width in self.inputs.items() if name in self.common)),
                "each": In(LANES * sum(width for name, width in self.inputs.items() if name not in self.common)),
                "enables": In(max(1, len(self.domains))),
                "mismatches": Out(32),
                "changes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shown: list[Value] = []
        for form in ("loop", "cpp"):
            lanes = Repeated(
                f"plexus_lanes_{form}", self.make, LANES, shared=self.common, domains=self.domains, form=form
            )
            m.submodules[form] = lanes
            at = {"shared": 0, "each": 0}
            for name, width in self.inputs.items():
                port, bits = ("shared", width) if name in self.common else ("each", width * LANES)
                m.d.comb += Value.cast(getattr(lanes, name)).eq(getattr(self, port)[at[port] : at[port] + bits])
                at[port] += bits
            m.d.comb += [getattr(lanes, f"enable_{name}").eq(self.enables[n]) for n, name in enumerate(self.domains)]
            shown.append(Cat(Value.cast(getattr(lanes, name)) for name in self.outputs))
        before = Signal(len(shown[0]), reset_less=True)
        mismatches = Signal(32, reset_less=True)
        changes = Signal(32, reset_less=True)
        m.d.sync += [
            before.eq(shown[0]),
            mismatches.eq(mismatches + (shown[0] != shown[1])),
            changes.eq(changes + (shown[0] != before)),
        ]
        m.d.comb += [self.mismatches.eq(mismatches), self.changes.eq(changes)]
        return m

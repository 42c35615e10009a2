"""A row of FP32 adders that work together, in two forms."""

from amaranth.hdl import ClockSignal, Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.base.fault import fault_number
from rtl.base.placed import Placed, needs_source
from rtl.numeric.fp32.add_pipelined import Fp32AddPipelined
from rtl.numeric.fp32.add_row import Fp32AddRow, row_ports

__all__ = ["Fp32AddLanes"]

_FLAT_LANES = 32

NATIVE_FAULTS = {
    "native adders: a NaN keeps its sign and payload": 1,
    "native adders: subnormal numbers are flushed to zero": 2,
    "native adders: lane 0 gives the last lane's sum": 3,
    "native adders: sums are truncated": 4,
    "native adders: lanes share their random bits": 5,
    "native adders: ties of BF16 go away from zero": 6,
    "native adders: random bits are those of the row before": 7,
}
"""Planted faults and their numbers in native_add.cpp."""


class Fp32AddLanes(wiring.Component):
    """out = RN32(a + b) in each lane, lane i at bits 32i, then rounded as `rounding` and `random` say: the rules of
    Fp32AddPipelined and of Bf16Round.

    form: structural (Fp32AddRow) or native (a C++ model called by DPI, for simulation only: the
    host adds a row faster than Verilator evaluates one adder).
    Timing: operands of cycle t give `out` in cycle t + LATENCY if `valid` was 1 in cycle t; otherwise
    `out` has no meaning. Errors: ValueError for another form or more than 128 lanes.
    """

    LATENCY = Fp32AddPipelined.LATENCY

    def __init__(self, lanes: int, form: str = "structural"):
        if form not in ("structural", "native"):
            raise ValueError(f"adders are structural or native, not {form!r}")
        if not 1 <= lanes <= 128:
            raise ValueError(f"a row has 1 to 128 adders, not {lanes}")
        self.lanes = lanes
        self.form = form
        super().__init__({"valid": In(1), **row_ports(lanes)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.form == "native":
            needs_source("plexus_add_lanes.sv", "native_add.cpp")
            m.submodules.model = Instance(
                "plexus_add_lanes",
                p_LANES=self.lanes,
                i_clk=ClockSignal(),
                i_plant=fault_number(NATIVE_FAULTS),
                i_valid=self.valid,
                i_a=self.a,
                i_b=self.b,
                i_rounding=self.rounding,
                i_random=self.random,
                o_out=self.out,
            )
            return m
        # of four groups of 128 lanes Verilator would make 120 MB of C++: the row is compiled by itself, once
        row = Placed(
            f"plexus_add_row_{self.lanes}", lambda: Fp32AddRow(self.lanes), hier_block=self.lanes > _FLAT_LANES
        )
        m.submodules.row = row
        m.d.comb += [
            row.a.eq(self.a),
            row.b.eq(self.b),
            row.rounding.eq(self.rounding),
            row.random.eq(self.random),
            self.out.eq(row.out),
        ]
        return m

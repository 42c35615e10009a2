"""The systolic array as a C++ model called by DPI: same ports, cycles and bits as the structural form."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring

from rtl.base.fault import fault_number
from rtl.base.placed import needs_source
from rtl.contract.config import Config
from rtl.contract.timing import PE_ROW_CYCLES
from rtl.tensor.ports import ArraySignature

__all__ = ["NativeArray"]

NATIVE_FAULTS = {
    "native array: rows are added in descending order": 1,
    "native array: a NaN keeps its sign and payload": 2,
    "native array: sums leave one cycle early": 3,
    "native array: a swap takes effect one beat late": 4,
    "native array: a swap reaches beats that entered just before it": 5,
    "native array: rows outside `active` are multiplied too": 6,
    "native array: a stationary beat reaches rows outside `active` too": 7,
    "native array: subnormal numbers are flushed to zero": 8,
    "native array: product and sum are rounded one after the other": 9,
    "native array: a swap reaches only the active rows": 10,
    "native array: a head is ignored": 11,
    "native array: every row group of a beat is taken for a head": 12,
    "native array: sums of every row group have the latency of the last one": 13,
    "native array: the ticket is that of quadrant 0": 14,
    "native array: a scale is ignored": 15,
    "native array: a dot product is rounded on the way": 16,
    "native array: E5M2 times E5M2 is summed in double precision": 17,
    "native array: a pair is taken for four": 18,
    "native array: the halves of an FP32 are exchanged": 19,
    "native array: an infinity is split like a number": 20,
    "native array: a scale of 0xff is a number": 21,
    "native array: a shift brings nothing from the row group above": 22,
    "native array: a swap after a shift alone is forgotten": 23,
    "native array: a NaN that is transposed becomes canonical": 24,
    "native array: a slot is ignored": 25,
    "native array: a swap does not bring the slots": 26,
    "native array: every pattern is taken for 4:16": 27,
    "native array: sparse weights meet the numbers of the next four rows": 28,
}
"""Planted faults and their numbers in native_array.cpp."""


class NativeArray(wiring.Component):
    """Places the cell plexus_native_array; for simulation only, and not in Amaranth's own simulator.

    Claims nothing that bench_lockstep does not show. Where no sum is valid, data and ticket are the
    last valid ones (ArraySignature gives them no meaning).
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(ArraySignature(cfg))

    def elaborate(self, platform: object) -> Module:
        needs_source("plexus_native_array.sv", "native_array.cpp")
        m = Module()
        moving = self.moving
        stationary = self.stationary
        m.submodules.model = Instance(
            "plexus_native_array",
            p_ROWS=self.cfg.tensor.rows,
            p_COLS=self.cfg.tensor.cols,
            p_GROUPS=self.cfg.tensor.groups,
            p_ROW_CYCLES=PE_ROW_CYCLES,
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_plant=fault_number(NATIVE_FAULTS),
            i_stationary_valid=Cat(beat.valid for beat in stationary),
            i_stationary_mode=Cat(beat.mode for beat in stationary),
            i_stationary_shift=Cat(beat.shift for beat in stationary),
            i_stationary_head=Cat(beat.head for beat in stationary),
            i_stationary_tail=Cat(beat.tail for beat in stationary),
            i_stationary_ticket=Cat(beat.ticket for beat in stationary),
            i_stationary_active=Cat(beat.active for beat in stationary),
            i_stationary_data=Cat(beat.data for beat in stationary),
            i_stationary_scale=Cat(beat.scale for beat in stationary),
            i_stationary_tags=Cat(beat.tags for beat in stationary),
            i_moving_valid=Cat(beat.valid for beat in moving),
            i_moving_mode=Cat(beat.mode for beat in moving),
            i_moving_swap=Cat(beat.swap for beat in moving),
            i_moving_head=Cat(beat.head for beat in moving),
            i_moving_tail=Cat(beat.tail for beat in moving),
            i_moving_ticket=Cat(beat.ticket for beat in moving),
            i_moving_active=Cat(beat.active for beat in moving),
            i_moving_data=Cat(beat.data for beat in moving),
            i_moving_scale=Cat(beat.scale for beat in moving),
            **self._leaving(m, "sums", self.sums),
            **self._leaving(m, "transposed", self.transposed),
        )
        return m

    def _leaving(self, m: Module, name: str, rows: Any) -> dict[str, Value]:
        """The cell's ports of rows that leave: it has four row groups, whatever the array has."""
        valid = Signal(4, name=f"{name}_valid")
        ticket = Signal(4 * 8, name=f"{name}_ticket")
        for group, row in enumerate(rows):
            m.d.comb += [row.valid.eq(valid[group]), row.ticket.eq(ticket.word_select(group, 8))]
        data = {f"o_{name}_data_{group}": row.data for group, row in enumerate(rows)}
        return {f"o_{name}_valid": valid, f"o_{name}_ticket": ticket, **data}

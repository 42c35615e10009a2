"""The systolic array as a C++ model called by DPI: same ports, cycles and bits as the structural form."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, ValueLike
from amaranth.lib import wiring

from rtl.base.placed import needs_source
from rtl.contract.config import Config
from rtl.contract.timing import array_latency
from rtl.tensor.ports import ArraySignature

__all__ = ["NativeArray"]


class NativeArray(wiring.Component):
    """Places the cell plexus_native_array; for simulation only, and not in Amaranth's own simulator.

    Claims nothing that bench_lockstep does not show. Where no sum is valid, data and ticket are the
    last valid ones (ArraySignature gives them no meaning).
    """

    FAULTS = {
        1: "rows are added in descending order",
        2: "a NaN keeps its sign and payload",
        3: "sums leave one cycle early",
        4: "a swap takes effect one beat late",
        5: "a swap reaches beats that entered just before it",
        6: "rows outside `active` are multiplied too",
        7: "a stationary beat reaches rows outside `active` too",
        8: "subnormal numbers are flushed to zero",
        9: "product and sum are rounded one after the other",
        10: "a swap reaches only the active rows",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(ArraySignature(cfg))

    def elaborate(self, platform: object) -> Module:
        needs_source("plexus_native_array.sv", "native_array.cpp")
        m = Module()
        moving = self.moving
        stationary = self.stationary
        first = self.sums[0]
        m.submodules.model = Instance(
            "plexus_native_array",
            p_ROWS=self.cfg.tensor.rows,
            p_COLS=self.cfg.tensor.cols,
            p_LATENCY=array_latency(self.cfg.tensor),
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_plant=self.plant,
            i_stationary_valid=Cat(beat.valid for beat in stationary),
            i_stationary_mode=Cat(beat.mode for beat in stationary),
            i_stationary_active=Cat(beat.active for beat in stationary),
            i_stationary_data=Cat(beat.data for beat in stationary),
            i_moving_valid=Cat(beat.valid for beat in moving),
            i_moving_mode=Cat(beat.mode for beat in moving),
            i_moving_swap=Cat(beat.swap for beat in moving),
            i_moving_ticket=moving[0].ticket,
            i_moving_active=Cat(beat.active for beat in moving),
            i_moving_data=Cat(beat.data for beat in moving),
            o_sums_valid=first.valid,
            o_sums_ticket=first.ticket,
            o_sums_data=first.data,
        )
        return m

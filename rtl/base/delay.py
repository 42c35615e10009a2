"""A value of some cycles ago."""

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Signal, Value

from rtl.base.placed import needs_source

__all__ = ["delayed"]


def delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """`value` of `cycles` cycles ago, 0 right after reset; `name` names the delay line in `m`.

    Places the cell plexus_delay. Amaranth handles registers bit by bit (a million bits of skew take
    it a minute), Verilator moves every stage of a shift register in each cycle; the cell costs
    neither. Amaranth's own simulator reads it as 0.
    """
    if cycles == 0:
        return value
    needs_source("plexus_delay.v")
    late = Signal(len(value), name=name)
    m.submodules[f"delay_{name}"] = Instance(
        "plexus_delay",
        p_WIDTH=len(value),
        p_CYCLES=cycles,
        i_clk=ClockSignal(),
        i_rst=ResetSignal(),
        i_d=value,
        o_q=late,
    )
    return late

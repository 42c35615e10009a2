"""Limits of a core: how much of what was built a configuration uses (Role.KNOB, Role.CLOCK; docs/explore.md).

They are inputs that stand still from reset on, and not registers of the control space: so a limited core and one that
was built for its configuration start in the same cycle, and can be compared cycle by cycle.
"""

from math import gcd

from rtl.contract.config import Config

__all__ = ["LIMIT_BITS", "limits"]

LIMIT_BITS = {
    "exp_rate_log2": 2,
    "queue_depth": 7,
    "buffer_bytes": 17,
    "burst_bytes": 13,
    "vector_ticks": 14,
    "vector_cycles": 14,
    "scalar_ticks": 14,
    "scalar_cycles": 14,
    "gpsimd_ticks": 14,
    "gpsimd_cycles": 14,
}
"""Width of each. An engine has `_ticks` edges in `_cycles` cycles of the root clock, the fraction reduced."""


def limits(cfg: Config) -> dict[str, int]:
    """Of a core that does what one built for `cfg` would."""
    ratios: dict[str, int] = {}
    clocks = {"vector": cfg.vector.clock_mhz, "scalar": cfg.scalar.clock_mhz, "gpsimd": cfg.gpsimd.clock_mhz}
    for name, mhz in clocks.items():
        common = gcd(mhz, cfg.tensor.clock_mhz)
        ratios |= {f"{name}_ticks": mhz // common, f"{name}_cycles": cfg.tensor.clock_mhz // common}
    return {
        "exp_rate_log2": cfg.vector.exp_rate.bit_length() - 1,
        "queue_depth": cfg.issue.queue_depth,
        "buffer_bytes": cfg.dma.buffer_bytes,
        "burst_bytes": cfg.dma.burst_bytes,
        **ratios,
    }

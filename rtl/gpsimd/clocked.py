"""The GPSIMD engine with its clock: the ratio of the configuration, gated by activity."""

from rtl.base.engine_clock import ClockedEngine
from rtl.contract.config import Config
from rtl.gpsimd.engine import GpsimdEngine

__all__ = ["ClockedGpsimd"]


class ClockedGpsimd(ClockedEngine):
    """GpsimdEngine on a clock of its own: an edge at the ticks of the ratio while there is work."""

    def __init__(self, cfg: Config):
        super().__init__(GpsimdEngine(cfg))

"""The vector engine with its clock: the ratio of the configuration, gated by activity."""

from amaranth.hdl import ValueLike

from rtl.base.engine_clock import ClockedEngine
from rtl.contract.config import Config
from rtl.vector.engine import VectorEngine

__all__ = ["ClockedVector"]


class ClockedVector(ClockedEngine):
    """VectorEngine on a clock of its own: an edge at the ticks of the ratio while there is work."""

    FAULTS = VectorEngine.FAULTS

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        super().__init__(VectorEngine(cfg, plant=plant))

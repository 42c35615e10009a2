"""The scalar engine with its clock: the ratio of the configuration, gated by activity."""

from rtl.base.engine_clock import ClockedEngine
from rtl.contract.config import Config
from rtl.scalar.engine import ScalarEngine

__all__ = ["ClockedScalar"]


class ClockedScalar(ClockedEngine):
    """ScalarEngine on a clock of its own: an edge at the ticks of the ratio while there is work."""

    def __init__(self, cfg: Config):
        super().__init__(ScalarEngine(cfg))

"""Configurations of a core."""

from rtl.contract.config import NAMED, Config
from sim.systems.configurations import Configurations

__all__ = ["CONFIGURATIONS"]


def _about(cfg: Config) -> str:
    sbuf = cfg.partitions * cfg.sbuf.partition_bytes >> 10
    return (
        f"{cfg.partitions} partitions, {cfg.tensor.rows} x {cfg.tensor.cols} array at "
        f"{cfg.tensor.clock_mhz} MHz, SBUF {sbuf:,} KiB, HBM {cfg.hbm.bytes_per_cycle} bytes a cycle"
    )


CONFIGURATIONS = Configurations(kind="core", type=Config, named=NAMED, title="A core", about=_about, has_default=False)

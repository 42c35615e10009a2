"""Rows of the RAM macros that a run reaches, by the names of counts.events_of: bits of a row, bytes of a macro."""

from rtl.contract.config import Config
from sim.energy.macro_row import RowOf

__all__ = ["rows_of"]


def rows_of(cfg: Config) -> dict[str, list[RowOf]]:
    """What is read or written together when a row is counted: one macro, of a table its directory too."""
    lanes = cfg.partitions // cfg.dma.engines
    sbuf = RowOf(64 * lanes, lanes * cfg.sbuf.partition_bytes // cfg.sbuf.banks)
    psum = RowOf(32 * cfg.partitions, cfg.partitions * cfg.psum.bank_bytes // 2)
    table = [RowOf(32, 4 << 13), RowOf(128, 16 * cfg.scalar.table_rows)]
    buffer = RowOf(8 * cfg.hbm.port_bytes, cfg.dma.buffer_bytes)
    return {"sbuf": [sbuf], "psum": [psum], "table": table, "dma buffer": [buffer]}

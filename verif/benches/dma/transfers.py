"""Random descriptors of a core with one end in another core."""

import numpy as np

from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address, core_id
from verif.benches.dma.requests import CORE
from verif.checks.coverage import Coverage

__all__ = ["FAR", "alternating", "cut", "transfer"]

FAR = core_id(server=3, chip=2, core=6)
"""Another core."""


def cut(cfg: Config, start: int, size: int) -> list[int]:
    """Addresses of the packets of a row to another core: whole packets of 448 bytes of each piece of slice_bytes, and
    none crosses 4 KiB of HBM."""
    found: list[int] = []
    piece = cfg.dma.slice_bytes // 448 * 448
    for first in range(start, start + size, piece):
        at, end = first, min(first + piece, start + size)
        while at < end:
            found.append(at)
            at += min(448, 4096 - at % 4096) if start >> 40 & 15 == Space.HBM else 448
    return found


def alternating(cfg: Config, rng: np.random.Generator, number: int) -> dict[str, int]:
    """Rows of a long and a short piece from all groups of partitions in turn, so that those of several banks are under
    way, to where one reaches over 4 KiB of HBM."""
    lanes = cfg.partitions // cfg.dma.engines
    partition = int(rng.integers(lanes))
    return {
        "source": address(Space.SBUF, partition * PARTITION_STRIDE_BYTES + 512 * number, core_id=CORE),
        "source_step0": lanes * PARTITION_STRIDE_BYTES,
        "destination": address(Space.HBM, 0x10000 + 0x4000 * number + 0x1000 - 700, core_id=FAR),
        "destination_step0": 512,
        "row_bytes": 500,
        **{"count0": cfg.dma.engines, "count1": 1, "count2": 1, "class_": int(rng.integers(cfg.dma.classes))},
        "signal_address": address(Space.SEMAPHORES, 4 * number, core_id=FAR),
        **{"signal_update": 1, "signal_value": 1000 + number},
    }


def transfer(cfg: Config, rng: np.random.Generator, number: int, coverage: Coverage) -> dict[str, int]:
    """A descriptor with one end in the far core, or none and its signal there; each number has its own windows."""
    away = bool(rng.integers(2))  # the far end is the destination
    inside = rng.random() < 0.3

    def place(core: int, limit: int, window: int = number) -> int:
        if rng.integers(2):
            return address(Space.HBM, 0x10000 + 0x4000 * window + int(rng.integers(64)), core_id=core)
        offset = 512 * window + int(rng.integers(512 - limit + 1))
        return address(Space.SBUF, int(rng.integers(cfg.partitions)) * PARTITION_STRIDE_BYTES + offset, core_id=core)

    long = rng.random() < 0.4
    size = int(rng.integers(1, 400))
    if rng.random() < 0.25:
        size |= 57  # a signal behind it begins in its last beat and ends in the next
    source, destination = place(CORE, size), place(FAR, size)
    if not away and not inside:
        source, destination = place(FAR, size), place(CORE, size)
    if inside:
        away = True
        destination = place(CORE, size, number + 8)
    hbm_only = all(a >> 40 & 15 == Space.HBM for a in (source, destination))
    d = {"source": source, "destination": destination, "row_bytes": size, "count0": 1, "count1": 1, "count2": 1}
    if hbm_only:
        d["row_bytes"] = int(rng.integers(1, 3000)) if long else size
        d["count0"] = int(rng.integers(1, 4))
        d["source_step0"] = int(rng.integers(0, 3000))
        d["destination_step0"] = d["row_bytes"] + int(rng.integers(0, 64))
    d["class_"] = int(rng.integers(cfg.dma.classes))
    if cfg.sbuf.adders and away and d["destination"] >> 40 & 15 == Space.SBUF and rng.random() < 0.6:
        d["add"] = int(rng.integers(1, len(DmaAdd)))
        d |= {name: d[name] & ~3 for name in ("source", "destination")} | {"row_bytes": 4 * (1 + size // 4)}
        coverage.hit(f"adds {DmaAdd(d['add']).name}")
    there = inside or (away and bool(rng.integers(2)))
    core = FAR if there else CORE
    d["signal_address"] = address(Space.SEMAPHORES, 4 * int(rng.integers(cfg.issue.semaphores)), core_id=core)
    d["signal_update"] = int(rng.integers(1, 3))
    d["signal_value"] = 1000 + number
    coverage.hit("inside" if inside else "write" if away else "read")
    coverage.when(d["row_bytes"] > 448, "several packets")
    coverage.when(not there, "signal here")
    coverage.when(there and not inside and (d["row_bytes"] - 1) % 448 % 64 >= 56, "signal there across two beats")
    local = source if away else destination
    coverage.hit("from HBM" if local >> 40 & 15 == Space.HBM else "from SBUF")
    return d

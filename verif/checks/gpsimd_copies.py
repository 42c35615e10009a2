"""Copies that random programs of GPSIMD cores push: between a core's own partitions and its own part of HBM.

Descriptors of DISJOINT may run at the same time, each as often as one likes; IN alone.
"""

import random
from typing import NamedTuple

from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.gpsimd import Region, cores
from rtl.contract.isa import INSTRUCTION_BYTES, Update
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, CoreId, Space, address

__all__ = ["BAD", "COPIES", "DISJOINT", "HBM", "HBM_BYTES", "IN", "WRONG_PUSHES", "descriptors", "semaphore_of"]

COPIES = 0x2800
"""In local memory: where descriptors lie, one behind the other."""

DISJOINT, IN, BAD = (0, 1, 2), 3, 4
"""Places among `descriptors`; the last is wrong."""

HBM, HBM_BYTES = 1 << 18, 1024
"""Where the first core's part of HBM begins, and how long each is."""

_AREA = 256  # bytes that one copy stays in, of HBM and of partitions
_OPEN, _BEHIND = 2048, 2048 + 256  # of partitions: what programs load and store; what only copies write

WRONG_PUSHES = (0, Region.LOCAL + 64, Region.LOCAL_TOO + COPIES + 4, Region.SHARED, Region.SBUF_ROWS, (1 << 32) - 128)
"""No descriptor is there."""


def semaphore_of(core: int, cfg: Config) -> int:
    """That copies of a core signal."""
    return core * (cfg.issue.semaphores // cores(cfg.partitions)) + 3


class _Side(NamedTuple):
    """`space`, and the first byte of an area of a partition or of the core's part of HBM."""

    space: Space
    area: int
    size: int = _AREA


def _copy(rng: random.Random, cfg: Config, core: int, source: _Side, target: _Side) -> dict[str, int]:
    lanes = cfg.partitions // cores(cfg.partitions)
    rows, again = rng.randint(1, lanes), rng.randint(1, 2)
    row_bytes = rng.randint(1, min(48, _AREA // (rows * again)))
    d = {"row_bytes": row_bytes, "count0": rows, "count1": again, "count2": 1}
    for name, side in (("source", source), ("destination", target)):
        step0, step1 = row_bytes, rows * row_bytes
        at = HBM + core * HBM_BYTES + side.area + rng.randint(0, _AREA - rows * again * row_bytes)
        if side.space == Space.SBUF:
            first = core * lanes + rng.randint(0, lanes - rows)
            at = first * PARTITION_STRIDE_BYTES + side.area + rng.randint(0, side.size - again * row_bytes)
            step0, step1 = PARTITION_STRIDE_BYTES, row_bytes
        d |= {name: address(side.space, at), f"{name}_step0": step0, f"{name}_step1": step1}
    d |= {"signal_address": address(Space.SEMAPHORES, 4 * semaphore_of(core, cfg)), "signal_value": rng.randint(-5, 5)}
    return d | {"signal_update": rng.choice((Update.NONE, Update.ADD))}


def descriptors(rng: random.Random, cfg: Config, core: int) -> bytes:
    """Those of a core."""
    of_core, behind = _Side(Space.SBUF, 0, _OPEN), (_Side(Space.SBUF, _BEHIND + k * _AREA) for k in (0, 1))
    written, read = (_Side(Space.HBM, k * _AREA) for k in (0, 1))
    ways = ((of_core, written), (of_core, next(behind)), (read, next(behind)), (read, of_core), (read, written))
    made = [_copy(rng, cfg, core, source, target) for source, target in ways]
    capacity, here = cfg.hbm.capacity_mib << 20, made[BAD]
    made[BAD] = here | rng.choice((
        {"row_bytes": 0}, {"count2": 0}, {"index": 1},
        {"source": address(Space.PSUM, 0)}, {"destination": address(Space.HBM, capacity)},
        {"destination": address(Space.HBM, capacity - here["row_bytes"])} | {"count0": 2},
        {"source": 1 << CoreId.LSB | here["source"]},
        {"signal_update": int(Update.ADD), "signal_address": address(Space.SEMAPHORES, 4 * cfg.issue.semaphores)},
    ))  # fmt: skip
    return b"".join(DESCRIPTOR.pack(d).to_bytes(INSTRUCTION_BYTES, "little") for d in made)

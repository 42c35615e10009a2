"""Addresses of a GPSIMD core where nothing is, or nothing of that size, or nothing that takes stores."""

import random
from collections.abc import Callable

from rtl.contract.config import Config
from rtl.contract.gpsimd import SHARED_BYTES, Counter, Mailbox, Region, lanes

__all__ = ["nowhere"]

_REGION_BITS, _ROW_BITS = 28, 18
_PAGE = Mailbox.SEMAPHORE_BASE
_STORED = (
    "DONE", "PUT", "BARRIER", "MTIMECMP", "MTIMECMPH", "WAIT_SEMAPHORE", "WAIT_VALUE", "WAIT_COMPARE", "DMA_PUSH",
    "TRAP", "TRAP_PC", "TRAP_VALUE",
)  # fmt: skip
_WORD = 2


def _bit(rng: random.Random, size: int, end: int) -> int:
    """A power of two from `size` on and below 1 << `end`."""
    return 1 << rng.randrange((size - 1).bit_length(), end)


def nowhere(rng: random.Random, cfg: Config) -> tuple[int, int, bool]:
    """An address, log2 of bytes, and whether it is a store."""
    stores, at = rng.random() < 0.5, rng.choice((0, 4 * rng.randrange(64)))
    count, bytes_ = lanes(cfg.partitions), cfg.sbuf.partition_bytes
    wholes: dict[str, Callable[[], int]] = {
        "local": lambda: rng.choice((Region.LOCAL, Region.LOCAL_TOO)) + _bit(rng, cfg.gpsimd.local_bytes, _REGION_BITS),
        "partitions": lambda: Region.SBUF_ROWS + (_bit(rng, count, _REGION_BITS - _ROW_BITS) << _ROW_BITS),
        "columns": lambda: Region.SBUF_ROWS + max(bytes_, 1 << rng.randrange((bytes_ - 1).bit_length() - 1, _ROW_BITS)),
        "lanes": lambda: Region.SBUF_LANES + _bit(rng, bytes_ * count, _REGION_BITS),
        "shared": lambda: Region.SHARED + _bit(rng, SHARED_BYTES, _REGION_BITS),
        "regions": lambda: rng.choice((0, 6, 7, *range(9, 16))) << _REGION_BITS,
        "pages": lambda: Region.MAILBOX + rng.choice((0, 1, 2)) * _PAGE + _bit(rng, 4 * _PAGE, _REGION_BITS),
        "page": lambda: Region.MAILBOX + 3 * _PAGE,
        "semaphores": lambda: Region.MAILBOX + rng.choice((1, 2)) * _PAGE + _bit(rng, 4 * cfg.issue.semaphores, 14),
    }
    kind = rng.choice((*wholes, *wholes, "register", "read only", "part"))
    if kind in wholes:
        return wholes[kind]() + at, _WORD, stores
    known = {*range(0, Mailbox.CORE, 4), *(one for one in Mailbox if Mailbox.CORE <= one < Mailbox.COUNTERS)}
    counters = range(Mailbox.COUNTERS, Mailbox.COUNTERS + 8 * len(Counter), 4)
    known |= set(counters)
    if kind == "register":  # also those that differ from one by a bit
        near = sorted({one ^ 1 << n for one in known for n in range(2, 14)} - known)
        edges = [one for one in near if one - 4 in known or one + 4 in known]
        return Region.MAILBOX + rng.choice(rng.choice((near, edges))), _WORD, stores
    if kind == "read only":
        return Region.MAILBOX + rng.choice(sorted(known - {int(Mailbox[one]) for one in _STORED})), _WORD, True
    register = rng.choice((0, Mailbox.WAIT_VALUE, Mailbox.TRAP_PC, _PAGE, 2 * _PAGE))
    size = rng.randrange(2)
    return Region.MAILBOX + register + (rng.randrange(4) >> size << size), size, stores

"""What the parts of the DMA tell each other."""

from enum import IntEnum

from amaranth.lib import data
from amaranth.utils import ceil_log2, exact_log2

from rtl.base.axi import ADDRESS_BITS
from rtl.base.dma_port import ROW_BYTES_BITS, ring_count
from rtl.contract.config import Config
from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.memmap import ADDRESS, PARTITION_STRIDE_BYTES

__all__ = [
    "ADDED_ROWS",
    "CLASSES",
    "INDEX_PLACE_BITS",
    "PARTITION_SHIFT",
    "Place",
    "SPACE_LSB",
    "UNITS_BITS",
    "address_bits",
    "ar_burst",
    "bytes_bits",
    "choice_layout",
    "done_layout",
    "fast_class",
    "fetch_layout",
    "indices_layout",
    "job_layout",
    "lane_bits",
    "lanes",
    "outcome_layout",
    "pair_bits",
    "piece_layout",
    "row_layout",
    "slot_bits",
    "step_layout",
    "unit_layout",
    "units_max",
]

ADDED_ROWS = 4
"""Rows of a mover whose last sum is on its way into SBUF: as many as SbufAdder has places."""

CLASSES = DMA_CLASSES
"""That a descriptor can name; dma.classes of them are there."""

INDEX_PLACE_BITS = 23
"""Of an index: partition, and 16 bits of its word in it."""

UNITS_BITS = 9
"""Units of 16 bytes of the longest piece of a row."""


class Place(IntEnum):
    """Where a mover finds its source: HBM, its own partitions, or those of another mover."""

    HBM = 0
    OWN = 1
    OTHER = 2


SPACE_LSB = ADDRESS.offset("space")
"""Of an address."""

PARTITION_SHIFT = ceil_log2(PARTITION_STRIDE_BYTES)


def slot_bits(cfg: Config) -> int:
    """Bits of a slot number: ring * dma.ring_depth + place."""
    return ceil_log2(ring_count(cfg) * cfg.dma.ring_depth)


def address_bits(cfg: Config) -> int:
    """Bits of an offset that was found inside HBM or SBUF."""
    return max(ceil_log2(cfg.hbm.capacity_mib << 20), PARTITION_SHIFT + ceil_log2(cfg.partitions))


def lane_bits(cfg: Config) -> int:
    """Bits of a partition's number in its mover's group."""
    return ceil_log2(cfg.partitions // cfg.dma.engines)


def pair_bits(cfg: Config) -> int:
    """Bits of the number of a 16-byte unit in a partition."""
    return ceil_log2(cfg.sbuf.partition_bytes // 8) - 1


def fast_class(cfg: Config) -> int:
    """The class that goes before the others and has a lane of its own in each mover; -1 if there is none."""
    if cfg.dma.classes == 1:
        return -1
    return 0 if cfg.dma.priority else cfg.dma.strict_class


def lanes(cfg: Config) -> int:
    """Lanes of a mover: that of the classes that share, and that of the class that goes first, if there is one."""
    return 1 + (fast_class(cfg) >= 0)


def indices_layout() -> data.StructLayout:
    """What a descriptor says of its indices, as fields of contract.descriptor say it, and how many there are."""
    return data.StructLayout({"indirect": 2, "skips": 1, "down": 1, "place": INDEX_PLACE_BITS, "total": 24, "rows": 28})


def choice_layout(cfg: Config) -> data.StructLayout:
    """Which row of a table is the next: its distance from the first, or that the index at `at` is none of the table."""
    return data.StructLayout({"offset": address_bits(cfg), "beyond": 1, "at": INDEX_PLACE_BITS})


def job_layout(cfg: Config, *, link: bool = False) -> data.StructLayout:
    """A descriptor that was found good: what the row generator needs of it. Steps wrap at the width of
    an address: every row lies inside its memory, so their sums are exact. With a link also which end is in
    another core (`away`: 1 destination, 2 source), the upper part of its address, and the signal that goes there.
    With dma.indirect also its indices."""
    bits = address_bits(cfg)
    steps = data.ArrayLayout(bits, 3)
    remote = {"away": 2, "far": 24, "signals": 1, "signal": 64} if link else {}
    return data.StructLayout(
        {
            "slot": slot_bits(cfg),
            "class_": ceil_log2(CLASSES),
            "from_sbuf": 1,
            "to_sbuf": 1,
            "source": bits,
            "destination": bits,
            "bytes": ROW_BYTES_BITS,
            "add": 2,  # DmaAdd of contract.descriptor
            "count": data.ArrayLayout(32, 3),
            "source_step": steps,
            "destination_step": steps,
            **({"indices": indices_layout()} if cfg.dma.indirect else {}),
            **remote,
        }
    )


def piece_layout(cfg: Config, *, link: bool = False) -> data.StructLayout:
    """A row of a job, or a part of one. `last` of its job. With dma.indirect: `left_out`, none that moves, its index is
    none of the table; `bad`: which is a fault; `at`: of that index."""
    job = job_layout(cfg, link=link).members
    whole = ("count", "source_step", "destination_step", "indices", "bytes")
    chosen = {"left_out": 1, "bad": 1, "at": INDEX_PLACE_BITS} if cfg.dma.indirect else {}
    return data.StructLayout(
        {name: job[name] for name in job if name not in whole} | {"bytes": bytes_bits(cfg), "last": 1} | chosen
    )


def units_max(cfg: Config) -> int:
    """Units of 16 bytes of the longest piece: it may begin inside a beat, and ends with one."""
    return (cfg.dma.slice_bytes + cfg.hbm.port_bytes) // 16


def bytes_bits(cfg: Config) -> int:
    """Bits of the length of a piece."""
    return exact_log2(cfg.dma.slice_bytes) + 1


def row_layout(cfg: Config) -> data.StructLayout:
    """One row to move, or a piece of one: offsets in HBM or SBUF (partition * 2^18 + byte)."""
    bits = address_bits(cfg)
    return data.StructLayout(
        {
            "slot": slot_bits(cfg),
            "from_sbuf": 1,
            "to_sbuf": 1,
            "source": bits,
            "destination": bits,
            "bytes": bytes_bits(cfg),
            "add": 2,  # DmaAdd of contract.descriptor, to SBUF
        }
    )


def ar_burst(cfg: Config) -> data.StructLayout:
    """One burst of full-width beats: number of the first beat in HBM, beats less 1."""
    beat = ceil_log2(cfg.hbm.port_bytes)
    return data.StructLayout({"beat": min(address_bits(cfg), ADDRESS_BITS) - beat, "length": 8})


def done_layout(cfg: Config) -> data.StructLayout:
    """A row whose last write has committed."""
    return data.StructLayout({"slot": slot_bits(cfg), "read_error": 1, "write_error": 1})


def outcome_layout() -> data.StructLayout:
    """What the check of a descriptor leaves for its end: the cause that refused it (0: none) and the
    address at fault, else where its data come from and go to; its signal."""
    return data.StructLayout(
        {
            "cause": 8,
            "address": 64,
            "destination": 64,
            "signal_index": 8,
            "signal_update": 2,
            "signal_value": 32,
        }
    )


def step_layout(cfg: Config) -> data.StructLayout:
    """One cycle of a mover: `take` brings a 16-byte unit of the source, `emit` sends one to the destination.

    The unit that is taken turns left by `turn` bytes; what is sent has its bytes from `turn` up and those
    below from the unit before. Bytes from `head` to `tail` of it belong to the row.
    """
    return data.StructLayout(
        {
            "take": 1,
            "place": 2,  # Place
            "unit": max(1, ceil_log2(cfg.hbm.port_bytes // 16)),  # 16-byte unit in the beat, from HBM
            "emit": 1,
            "turn": 4,
            "head": 4,
            "tail": 4,
            "to_sbuf": 1,
            "add": 2,
            "to": address_bits(cfg) - 4,  # 16-byte unit at the destination
            "last": 1,  # of the row
            "slot": slot_bits(cfg),
        }
    )


def unit_layout(cfg: Config) -> data.StructLayout:
    """16 aligned bytes for the destination."""
    return data.StructLayout(
        {
            "data": 128,
            "bytes": 16,
            "to_sbuf": 1,
            "add": 2,
            "to": address_bits(cfg) - 4,
            "last": 1,
            "slot": slot_bits(cfg),
            "read_error": 1,
        }
    )


def fetch_layout(cfg: Config) -> data.StructLayout:
    """A 16-byte unit of SBUF: group of partitions (a mover each), partition in it, unit in the partition."""
    return data.StructLayout({"pair": pair_bits(cfg), "lane": lane_bits(cfg), "group": ceil_log2(cfg.dma.engines)})

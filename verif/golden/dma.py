"""What a DMA descriptor does: the rule that accepts it, and the copy.

`check` and `copy` take the fields of rtl.contract.isa.DESCRIPTOR as a mapping (missing ones are 0).
HBM is anything sliced like a uint8 array; SBUF is a uint8 array of shape (P, partition_bytes).
"""

from collections.abc import Iterator, Mapping, MutableSequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.isa import DESCRIPTOR, Cause, Update
from rtl.contract.memmap import ADDRESS, PARTITION_STRIDE_BYTES, Space

__all__ = ["ROW_BYTES_MAX", "check", "copy", "row_addresses", "signal"]

ROW_BYTES_MAX = 1 << 18
_OFFSET_MASK = (1 << 40) - 1


def _complete(descriptor: Mapping[str, int]) -> dict[str, int]:
    return DESCRIPTOR.unpack(DESCRIPTOR.pack(descriptor))


def _dims(d: Mapping[str, int], side: str) -> tuple[tuple[int, int], ...]:
    """(count, step) of one side, outermost first, so that product() runs the innermost fastest."""
    return tuple((d[f"count{i}"], d[f"{side}_step{i}"]) for i in (2, 1, 0))


def row_addresses(descriptor: Mapping[str, int], side: str) -> Iterator[int]:
    """Offset in its space of each row of `side` ("source" or "destination"), in order."""
    d = _complete(descriptor)
    base = d[side] & _OFFSET_MASK
    dims = _dims(d, side)
    for index in product(*(range(count) for count, _ in dims)):
        yield base + sum(i * step for i, (_, step) in zip(index, dims, strict=True))


def _span(start: int, steps: list[tuple[int, int]]) -> tuple[int, int]:
    reach = [(count - 1) * step for count, step in steps]
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0)


def _fits(d: Mapping[str, int], side: str, cfg: Config) -> bool:
    place = ADDRESS.unpack(d[side])
    dims = list(_dims(d, side))
    if place["space"] == Space.HBM:
        low, high = _span(place["offset"], dims)
        return low >= 0 and high + d["row_bytes"] <= cfg.hbm.capacity_mib << 20
    # Partition and byte are held inside their limits separately; a step is a number of partitions
    # and a number of bytes of the same sign.
    stride = PARTITION_STRIDE_BYTES
    sign = [(count, -1 if step < 0 else 1, abs(step)) for count, step in dims]
    first, last = _span(place["offset"] // stride, [(c, s * (a // stride)) for c, s, a in sign])
    low, high = _span(place["offset"] % stride, [(c, s * (a % stride)) for c, s, a in sign])
    return first >= 0 and last < cfg.partitions and low >= 0 and high + d["row_bytes"] <= cfg.sbuf.partition_bytes


def check(descriptor: Mapping[str, int], cfg: Config, core_id: int = 0) -> tuple[Cause, int]:
    """(Cause.NONE, 0), or why the descriptor is refused and the address that is at fault.

    The first rule that is broken counts: form (address 0), then source, then destination (core, space),
    ranges (source, destination), then the signal.
    """
    d = _complete(descriptor)
    places = {name: ADDRESS.unpack(d[name]) for name in ("source", "destination", "signal_address")}
    malformed = (
        not 1 <= d["row_bytes"] <= ROW_BYTES_MAX
        or 0 in (d["count0"], d["count1"], d["count2"])
        or d["reserved0"] != 0
        or d["reserved1"] != 0
        or d["signal_update"] not in list(Update)
        or any(place["zero"] for place in places.values())
    )
    if malformed:
        return Cause.BAD_DESCRIPTOR, 0
    for side in ("source", "destination"):
        if d[side] >> 44 != core_id:
            return Cause.NO_ROUTE, d[side]
        if places[side]["space"] not in (Space.HBM, Space.SBUF):
            return Cause.BAD_SPACE, d[side]
    for side in ("source", "destination"):
        if not _fits(d, side, cfg):
            return Cause.OUT_OF_RANGE, d[side]
    if d["signal_update"] != Update.NONE:
        at = d["signal_address"]
        if at >> 44 != core_id:
            return Cause.NO_ROUTE, at
        index, rest = divmod(places["signal_address"]["offset"], 4)
        if places["signal_address"]["space"] != Space.SEMAPHORES or rest or index >= cfg.issue.semaphores:
            return Cause.BAD_SEMAPHORE, at
    return Cause.NONE, 0


def copy(
    descriptor: Mapping[str, int],
    hbm: NDArray[np.uint8] | MutableSequence[int] | Any,
    sbuf: NDArray[np.uint8],
) -> None:
    """Copy row after row. The descriptor must have passed `check`.

    Where rows of the destination overlap each other or the source, the hardware promises no order.
    """
    d = _complete(descriptor)
    n = d["row_bytes"]
    from_hbm = ADDRESS.unpack(d["source"])["space"] == Space.HBM
    to_hbm = ADDRESS.unpack(d["destination"])["space"] == Space.HBM
    sources = row_addresses(d, "source")
    destinations = row_addresses(d, "destination")
    for source, destination in zip(sources, destinations, strict=True):
        if from_hbm:
            row = hbm[source : source + n]
        else:
            partition, byte = divmod(source, PARTITION_STRIDE_BYTES)
            row = sbuf[partition, byte : byte + n].copy()
        if to_hbm:
            hbm[destination : destination + n] = row
        else:
            partition, byte = divmod(destination, PARTITION_STRIDE_BYTES)
            sbuf[partition, byte : byte + n] = row


def signal(descriptor: Mapping[str, int]) -> tuple[int, Update, int]:
    """(semaphore index, Update, value) done after the last byte has committed."""
    d = _complete(descriptor)
    index = (d["signal_address"] & _OFFSET_MASK) // 4
    return index, Update(d["signal_update"]), d["signal_value"]

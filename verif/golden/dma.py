"""What a DMA descriptor does: the rule that accepts it, and the copy or the sum, of rows in order or by indices.

`check` and `copy` take the fields of rtl.contract.descriptor.DESCRIPTOR as a mapping (missing ones are 0).
HBM is anything sliced like a uint8 array; SBUF is a uint8 array of shape (P, partition_bytes).
"""

from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR, DmaAdd, Indirect
from rtl.contract.isa import Cause, Update
from rtl.contract.memmap import ADDRESS, PARTITION_STRIDE_BYTES, Space, address, core_place

__all__ = [
    "ROW_BYTES_MAX",
    "added",
    "bad_index",
    "check",
    "copy",
    "gather",
    "hbm_end",
    "index_places",
    "row_addresses",
    "scatter",
    "signal",
]

ROW_BYTES_MAX = 1 << 18
_OFFSET_MASK = (1 << 40) - 1


def _complete(descriptor: Mapping[str, int]) -> dict[str, int]:
    return DESCRIPTOR.unpack(DESCRIPTOR.pack(descriptor))


_TABLES = {Indirect.SOURCE: "source", Indirect.DESTINATION: "destination"}
_INDEX_BYTES = 4


def _dims(d: Mapping[str, int], side: str) -> tuple[tuple[int, int], ...]:
    """(count, step) of one side, outermost first, so that product() runs the innermost fastest. Of a table all rows."""
    count = {n: d[f"count{n}"] for n in range(3)}
    if _TABLES.get(Indirect(d["indirect"])) == side:
        count[0] = d["table_rows"]
    return tuple((count[i], d[f"{side}_step{i}"]) for i in (2, 1, 0))


def row_addresses(descriptor: Mapping[str, int], side: str) -> Iterator[int]:
    """Offset in its space of each row of `side` ("source" or "destination"), in order. Of a table each row that an
    index may choose."""
    d = _complete(descriptor)
    base = d[side] & _OFFSET_MASK
    dims = _dims(d, side)
    for index in product(*(range(count) for count, _ in dims)):
        yield base + sum(i * step for i, (_, step) in zip(index, dims, strict=True))


def index_places(descriptor: Mapping[str, int]) -> NDArray[np.int64]:
    """Offset in SBUF of the index of each row, in order; none without indices."""
    d = _complete(descriptor)
    if d["indirect"] == Indirect.NONE:
        return np.zeros(0, np.int64)
    inner, outer = np.meshgrid(np.arange(d["count0"]), np.arange(d["count1"]))
    words = outer if d["index_down"] else outer * d["count0"] + inner
    down = inner if d["index_down"] else 0
    first = d["index"] >> 16, _INDEX_BYTES * (d["index"] & 0xFFFF)
    return ((first[0] + down) * PARTITION_STRIDE_BYTES + first[1] + _INDEX_BYTES * words).ravel()


def _indices(d: Mapping[str, int], sbuf: NDArray[np.uint8]) -> NDArray[np.int64]:
    partition, byte = np.divmod(index_places(d), PARTITION_STRIDE_BYTES)
    return (
        np.ascontiguousarray(sbuf[partition[:, None], byte[:, None] + np.arange(4)])
        .view("<u4")
        .ravel()
        .astype(np.int64)
    )


def bad_index(descriptor: Mapping[str, int], sbuf: NDArray[np.uint8]) -> int | None:
    """Address of the first index that is none of the table, if that is a fault."""
    d = _complete(descriptor)
    if d["indirect"] == Indirect.NONE or d["index_skips"]:
        return None
    beyond = np.flatnonzero(_indices(d, sbuf) >= d["table_rows"])
    return address(Space.SBUF, int(index_places(d)[beyond[0]]), core_id=d["source"] >> 44) if len(beyond) else None


def _moved(descriptor: Mapping[str, int], sbuf: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Offsets (source, destination) of each row that is moved, in order."""
    d = _complete(descriptor)
    if d["indirect"] == Indirect.NONE:
        return list(zip(row_addresses(d, "source"), row_addresses(d, "destination"), strict=True))
    table = _TABLES[Indirect(d["indirect"])]
    found: list[tuple[int, int]] = []
    for number, index in enumerate(_indices(d, sbuf).tolist()):
        outer, inner = divmod(number, d["count0"])
        if index < d["table_rows"]:
            at = {
                side: (d[side] & _OFFSET_MASK)
                + (index if side == table else inner) * d[f"{side}_step0"]
                + outer * d[f"{side}_step1"]
                for side in ("source", "destination")
            }
            found.append((at["source"], at["destination"]))
    return found


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


def check(descriptor: Mapping[str, int], cfg: Config, core_id: int = 0, *, link: bool = False) -> tuple[Cause, int]:
    """(Cause.NONE, 0), or why the descriptor is refused and the address that is at fault.

    The first rule that is broken counts: form (address 0), then source, then destination (core, space), then what
    a sum asks for (to SBUF, source here, whole elements: source, destination), what indices ask for (both ends here),
    ranges (source, destination, indices), then the signal. With a link one end may be in another core, if this one and
    that one have endpoint numbers, and the signal may go to the core of the destination, or from a copy inside to any
    that has one.
    """
    d = _complete(descriptor)
    places = {name: ADDRESS.unpack(d[name]) for name in ("source", "destination", "signal_address")}
    malformed = (
        not 1 <= d["row_bytes"] <= ROW_BYTES_MAX
        or 0 in (d["count0"], d["count1"], d["count2"])
        or _bad_form_of_indices(d, cfg)
        or d["signal_update"] not in list(Update)
        or d["class_"] not in range(cfg.dma.classes)
        or (d["add"] != DmaAdd.COPY and not cfg.sbuf.adders)
        or any(place["zero"] for place in places.values())
    )
    if malformed:
        return Cause.BAD_DESCRIPTOR, 0
    away = [side for side in ("source", "destination") if d[side] >> 44 != core_id]
    if link:
        there = [side for side in away if not _joined(cfg, core_id, d[side] >> 44)]
        away = there + [side for side in away[1:] if side not in there]  # of two that can be reached the second
    for side in ("source", "destination"):
        if side in away:
            return Cause.NO_ROUTE, d[side]
        if places[side]["space"] not in (Space.HBM, Space.SBUF):
            return Cause.BAD_SPACE, d[side]
    if d["add"] != DmaAdd.COPY:
        if places["destination"]["space"] != Space.SBUF:
            return Cause.BAD_SPACE, d["destination"]
        if d["source"] >> 44 != core_id:
            return Cause.NO_ROUTE, d["source"]
        size = {DmaAdd.FP32: 4, DmaAdd.BF16: 2, DmaAdd.INT32: 4}[DmaAdd(d["add"])]
        for side in ("source", "destination"):
            if any(x % size for x in (d[side], d["row_bytes"], *(d[f"{side}_step{n}"] for n in range(3)))):
                return Cause.MISALIGNED, d[side]
    if d["indirect"] != Indirect.NONE:
        for side in ("source", "destination"):
            if d[side] >> 44 != core_id:
                return Cause.NO_ROUTE, d[side]
    for side in ("source", "destination"):
        if not _fits(d, side, cfg):
            return Cause.OUT_OF_RANGE, d[side]
    if d["indirect"] != Indirect.NONE and not _indices_fit(d, cfg):
        return Cause.OUT_OF_RANGE, address(Space.SBUF, 4 * d["index"], core_id=core_id)
    if d["signal_update"] != Update.NONE:
        at = d["signal_address"]
        there, inside = at >> 44, core_id == d["source"] >> 44 == d["destination"] >> 44
        reached = link and (_joined(cfg, core_id, there) if inside else there == d["destination"] >> 44)
        if there != core_id and not reached:
            return Cause.NO_ROUTE, at
        index, rest = divmod(places["signal_address"]["offset"], 4)
        if places["signal_address"]["space"] != Space.SEMAPHORES or rest or index >= cfg.issue.semaphores:
            return Cause.BAD_SEMAPHORE, at
    return Cause.NONE, 0


def _bad_form_of_indices(d: Mapping[str, int], cfg: Config) -> bool:
    fields = d["index_skips"], d["index_down"], d["index"], d["table_rows"]
    if d["indirect"] == Indirect.NONE:
        return any(fields)
    return not cfg.dma.indirect or d["indirect"] not in list(Indirect) or d["count2"] != 1 or d["table_rows"] == 0


def _indices_fit(d: Mapping[str, int], cfg: Config) -> bool:
    """Every index lies in SBUF, and those of a partition in it."""
    partition, word = divmod(d["index"], 1 << 16)
    down, along = (d["count0"], d["count1"]) if d["index_down"] else (1, d["count0"] * d["count1"])
    return partition + down <= cfg.partitions and _INDEX_BYTES * (word + along) <= cfg.sbuf.partition_bytes


def _joined(cfg: Config, *cores: int) -> bool:
    """Whether packets between these cores have a number for each."""
    return all(cfg.fabric.endpoint_map.has(core_place(core)) for core in cores)


def hbm_end(descriptor: Mapping[str, int], side: str) -> int:
    """One past the last byte of HBM that `side` touches; 0 if it is elsewhere."""
    d = _complete(descriptor)
    place = ADDRESS.unpack(d[side])
    if place["space"] != Space.HBM:
        return 0
    return _span(place["offset"], list(_dims(d, side)))[1] + d["row_bytes"]


def copy(
    descriptor: Mapping[str, int],
    hbm: NDArray[np.uint8] | MutableSequence[int] | Any,
    sbuf: NDArray[np.uint8],
) -> None:
    """Copy, or add, row after row; indices are read first, and must not lie where rows go. The descriptor must have
    passed `check`.

    Where rows of the destination overlap each other or the source, the hardware promises no order but that of
    sums of one partition.
    """
    for source, destination in _moved(descriptor, sbuf):
        _store(descriptor, destination, _row(descriptor, source, hbm, sbuf), hbm, sbuf)


def gather(descriptor: Mapping[str, int], hbm: NDArray[np.uint8], sbuf: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """All rows of the source, from the memories of the core that it is in; without indices."""
    return [_row(descriptor, source, hbm, sbuf).copy() for source in row_addresses(descriptor, "source")]


def scatter(
    descriptor: Mapping[str, int],
    rows: Iterable[NDArray[np.uint8]],
    hbm: NDArray[np.uint8],
    sbuf: NDArray[np.uint8],
) -> None:
    """Store rows at the destination, in the memories of the core that it is in; without indices."""
    for row, destination in zip(rows, row_addresses(descriptor, "destination"), strict=True):
        _store(descriptor, destination, row, hbm, sbuf)


def _row(descriptor: Mapping[str, int], source: int, hbm: Any, sbuf: NDArray[np.uint8]) -> Any:
    n = descriptor["row_bytes"]
    if ADDRESS.unpack(descriptor["source"])["space"] == Space.HBM:
        return hbm[source : source + n]
    partition, byte = divmod(source, PARTITION_STRIDE_BYTES)
    return sbuf[partition, byte : byte + n].copy()


def _store(descriptor: Mapping[str, int], at: int, row: Any, hbm: Any, sbuf: NDArray[np.uint8]) -> None:
    n = descriptor["row_bytes"]
    if ADDRESS.unpack(descriptor["destination"])["space"] == Space.HBM:
        hbm[at : at + n] = row
    else:
        partition, byte = divmod(at, PARTITION_STRIDE_BYTES)
        here = sbuf[partition, byte : byte + n]
        here[:] = added(here, row, DmaAdd(descriptor.get("add", 0)))


def added(old: NDArray[np.uint8], new: NDArray[np.uint8], add: DmaAdd) -> NDArray[np.uint8]:
    """Bytes of old + new in each little-endian element; of `new` for COPY.

    FP32: nearest even, gradual underflow, every NaN 0x7fc00000. BF16: the same sum in FP32, then rounded to the
    nearest even, every NaN 0x7fc0. INT32 modulo 2^32.
    """
    new = np.ascontiguousarray(new, np.uint8)
    old = np.ascontiguousarray(old, np.uint8)
    if add == DmaAdd.COPY:
        return new
    if add == DmaAdd.INT32:
        return (old.view("<u4") + new.view("<u4")).view(np.uint8)
    kind = np.dtype("<f4") if add == DmaAdd.FP32 else np.dtype(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        total = (old.view(kind).astype(np.float32) + new.view(kind).astype(np.float32)).astype(kind)
    bits = total.view("<u4" if add == DmaAdd.FP32 else "<u2")
    bits[np.isnan(total)] = 0x7FC00000 if add == DmaAdd.FP32 else 0x7FC0
    return bits.view(np.uint8)


def signal(descriptor: Mapping[str, int]) -> tuple[int, Update, int]:
    """(semaphore index, Update, value) done after the last byte has committed."""
    d = _complete(descriptor)
    index = (d["signal_address"] & _OFFSET_MASK) // 4
    return index, Update(d["signal_update"]), d["signal_value"]

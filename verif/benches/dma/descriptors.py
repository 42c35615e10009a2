"""Random legal descriptors whose destinations do not meet."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Cause, Update
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from verif.golden.dma import check, row_addresses

__all__ = [
    "HBM_BYTES",
    "KINDS",
    "WINDOWS",
    "Window",
    "adding_descriptor",
    "directed",
    "long_rows",
    "power_row",
    "random_descriptor",
    "roam",
    "spread",
    "window",
]

KINDS = ("hbm to sbuf", "sbuf to hbm", "hbm to hbm", "sbuf to sbuf")
WINDOWS = 8
HBM_BYTES = 1 << 20
_HBM_READ = range(0, 1 << 16)
_HBM_WINDOW = 1 << 14


@dataclass(frozen=True)
class Window:
    """Where one descriptor may write: a stretch of HBM and the same bytes of every partition."""

    hbm: range
    sbuf: range


def window(cfg: Config, number: int) -> Window:
    """Window `number` of WINDOWS; the lower half of a partition is only read."""
    first = (1 << 19) + number * _HBM_WINDOW
    half = cfg.sbuf.partition_bytes // 2
    each = half // WINDOWS
    at = half + number * each
    return Window(range(first, first + _HBM_WINDOW), range(at, at + each))


def spread(
    rng: np.random.Generator, counts: list[int], size: int, area: int, partitions: int | None
) -> tuple[int, list[int]] | None:
    """(start, steps) of rows that do not overlap in `area` bytes of each partition; None if too large."""
    steps = [0] * len(counts)
    span = size
    across = 1
    start = 0
    for n in rng.permutation(len(counts)):
        reach = counts[n] - 1
        if partitions is not None and rng.random() < 0.6:
            step = across * int(rng.integers(1, 3)) * PARTITION_STRIDE_BYTES
            across += reach * step // PARTITION_STRIDE_BYTES
        else:
            step = span + int(rng.choice([0, 0, rng.integers(0, 48)]))
            span += reach * step
        backwards = rng.random() < 0.3
        start += reach * step if backwards else 0
        steps[n] = -step if backwards else step
    if span > area or (partitions is not None and across > partitions):
        return None
    slack = int(rng.integers(0, area - span + 1))
    first = 0 if partitions is None else int(rng.integers(0, partitions - across + 1))
    return start + slack + first * PARTITION_STRIDE_BYTES, steps


def roam(
    rng: np.random.Generator, counts: list[int], size: int, area: int, partitions: int | None
) -> tuple[int, list[int]] | None:
    """(start, steps) of rows that may overlap and repeat."""
    steps = []
    for _ in counts:
        kind = rng.random()
        step = 0
        if kind > 0.2:
            step = int(rng.integers(-200, 200))
        if partitions is not None and kind > 0.5:
            up = int(rng.integers(0, 3)) * PARTITION_STRIDE_BYTES
            step = step + up if step >= 0 else step - up
        steps.append(step)
    lows = [0, 0]
    highs = [0, 0]
    for count, step in zip(counts, steps, strict=True):
        sign = -1 if step < 0 else 1
        parts = divmod(abs(step), PARTITION_STRIDE_BYTES) if partitions is not None else (0, abs(step))
        for k in range(2):
            reach = sign * parts[k] * (count - 1)
            lows[k] -= min(0, reach)
            highs[k] += max(0, reach)
    if lows[1] + highs[1] + size > area or lows[0] + highs[0] >= (partitions or 1):
        return None
    byte = int(rng.integers(lows[1], area - highs[1] - size + 1))
    part = int(rng.integers(lows[0], (partitions or 1) - highs[0]))
    return part * PARTITION_STRIDE_BYTES + byte, steps


def random_descriptor(
    rng: np.random.Generator, cfg: Config, kind: str, number: int, *, longest: int = 300
) -> dict[str, int]:
    """A legal descriptor of `kind` that writes to window `number` only and reads what nobody writes."""
    place = window(cfg, number)
    from_hbm, to_hbm = kind.startswith("hbm"), kind.endswith("hbm")
    limit = min(longest, len(place.hbm if to_hbm else place.sbuf))
    while True:
        sizes = (rng.integers(1, 20), rng.integers(1, limit + 1), 16 * rng.integers(1, limit // 16 + 1))
        size = int(rng.choice(sizes))
        dims = int(rng.integers(1, 4))
        counts = [int(rng.integers(1, 6)) for _ in range(dims)]
        if np.prod(counts) > 30:
            continue
        partitions = None if from_hbm else cfg.partitions
        area = len(_HBM_READ) if from_hbm else cfg.sbuf.partition_bytes // 2
        source = roam(rng, counts, size, area, partitions)
        partitions = None if to_hbm else cfg.partitions
        target = spread(rng, counts, size, len(place.hbm if to_hbm else place.sbuf), partitions)
        if source is None or target is None:
            continue
        if rng.random() < 0.3:  # both sides aligned, the common case of real programs
            source = (source[0] & ~15, source[1])
        base = place.hbm.start if to_hbm else place.sbuf.start
        d = {
            "source": address(Space.HBM if from_hbm else Space.SBUF, source[0]),
            "destination": address(Space.HBM if to_hbm else Space.SBUF, base + target[0]),
            "row_bytes": size,
            "class_": int(rng.integers(0, cfg.dma.classes)),
            "signal_update": int(rng.choice([Update.ADD, Update.SET, Update.NONE], p=[0.5, 0.2, 0.3])),
            "signal_value": int(rng.integers(-(1 << 31), 1 << 31)),
            "signal_address": address(Space.SEMAPHORES, 4 * int(rng.integers(0, cfg.issue.semaphores))),
        }
        for n in range(3):
            d[f"count{n}"] = counts[n] if n < dims else 1
            d[f"source_step{n}"] = source[1][n] if n < dims else int(rng.integers(-9999, 9999))
            d[f"destination_step{n}"] = target[1][n] if n < dims else int(rng.integers(-9999, 9999))
        if check(d, cfg)[0] == Cause.NONE:
            return d


def adding_descriptor(
    rng: np.random.Generator, cfg: Config, kind: str, number: int, add: DmaAdd, *, size: int = 0
) -> dict[str, int]:
    """One that adds in the same window, aligned to its elements or to those of `size` bytes; of three, one has a
    dimension whose rows are added to the same bytes."""
    while True:
        d = random_descriptor(rng, cfg, kind, number)
        element = size or (2 if add == DmaAdd.BF16 else 4)
        steps = [f"{side}_step{n}" for side in ("source", "destination") for n in range(3)]
        d |= {name: d[name] - d[name] % element for name in ("source", "destination", "row_bytes", *steps)}
        if rng.random() < 0.3:
            d[f"destination_step{rng.integers(3)}"] = 0
        place = window(cfg, number)
        bytes_ = [at % PARTITION_STRIDE_BYTES for at in row_addresses(d, "destination")]
        inside = min(bytes_) >= place.sbuf.start and max(bytes_) + d["row_bytes"] <= place.sbuf.stop
        if inside and check(d | {"add": add}, cfg)[0] == Cause.NONE:
            return d | {"add": int(add)}


def directed(cfg: Config) -> Iterator[tuple[str, dict[str, int]]]:
    """(kind, descriptor) for every pair of alignments near the corners, in turn over the windows. From HBM the
    first row crosses 4 KiB."""
    number = 0
    for kind in KINDS:
        from_hbm, to_hbm = kind.startswith("hbm"), kind.endswith("hbm")
        for s in (0, 1, 15):
            for d in (0, 1, 15):
                for size in (1, 2, 15, 16, 17, 31, 33, 64):
                    place = window(cfg, number % WINDOWS)
                    base = place.hbm.start if to_hbm else place.sbuf.start
                    yield (
                        kind,
                        {
                            "source": address(Space.HBM if from_hbm else Space.SBUF, (4080 if from_hbm else 16) + s),
                            "destination": address(Space.HBM if to_hbm else Space.SBUF, base + d),
                            "row_bytes": size,
                            "count0": 3,
                            "source_step0": 80,
                            "destination_step0": 96,
                            "count1": 1,
                            "count2": 1,
                        },
                    )
                    number += 1


def long_rows(cfg: Config, number: int) -> dict[str, int]:
    """HBM to HBM, rows of several bursts, in four dimensions, read again and again, written backwards."""
    size = min(cfg.dma.burst_bytes * 2 + 100, 2000)
    first = window(cfg, number).hbm.start
    return {
        "source": address(Space.HBM, 4000 + number),
        "destination": address(Space.HBM, first + 7 * size),
        "row_bytes": size,
        "count0": 2,
        "source_step0": 0,
        "destination_step0": -size,
        "count1": 2,
        "source_step1": 333,
        "destination_step1": -2 * size,
        "count2": 2,
        "source_step2": -100,
        "destination_step2": -4 * size,
    }


def power_row(cfg: Config, number: int, power: int) -> dict[str, int]:
    """HBM to HBM, one row of 2^power bytes from the start of a burst: one after the other goes to every mover."""
    assert number < WINDOWS
    return {
        "source": address(Space.HBM, 0x8000 * number),
        "destination": address(Space.HBM, window(cfg, number).hbm.start),
        "row_bytes": 1 << power,
        "count0": 1,
        "count1": 1,
        "count2": 1,
    }

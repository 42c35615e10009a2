"""Random legal descriptors whose rows indices choose, and the indices."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd, Indirect
from rtl.contract.isa import Cause
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from verif.benches.dma.descriptors import WINDOWS, random_descriptor, roam, spread, window
from verif.golden.dma import check, index_places

__all__ = ["Chosen", "indirect_descriptor", "store"]

_HBM_READ = 1 << 16


@dataclass(frozen=True)
class Chosen:
    """A descriptor and its indices, row by row."""

    descriptor: dict[str, int]
    indices: NDArray[np.uint32]

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """Of each row: its index is none of the table."""
        return self.indices >= self.descriptor["table_rows"]


def indirect_descriptor(
    rng: np.random.Generator, cfg: Config, kind: str, number: int, table: Indirect, *, beyond: float, add: int = 0
) -> Chosen:
    """One of `kind` that writes to window `number` only; its indices lie in the lower half of SBUF, at a place of its
    number. A share `beyond` of them is none of the table. Rows of a destination meet only in sums."""
    place = window(cfg, number)
    from_hbm, to_hbm = kind.startswith("hbm"), kind.endswith("hbm")
    element = DmaAdd(add).element_bytes
    while True:
        d = random_descriptor(rng, cfg, kind, number)
        inner, outer = int(rng.integers(1, 9)), int(rng.choice([1, 1, 2, 3]))
        rows = int(rng.integers(1, 12)) if add or table == Indirect.SOURCE else inner + int(rng.integers(0, 4))
        size = int(rng.choice((rng.integers(1, 20), rng.integers(1, 100), 16 * rng.integers(1, 6))))
        size = max(element, size // element * element)
        source_counts = [rows if table == Indirect.SOURCE else inner, outer]
        target_counts = [rows if table == Indirect.DESTINATION else inner, outer]
        area = _HBM_READ if from_hbm else cfg.sbuf.partition_bytes // 2
        source = roam(rng, source_counts, size, area, None if from_hbm else cfg.partitions)
        area = len(place.hbm if to_hbm else place.sbuf)
        target = spread(rng, target_counts, size, area, None if to_hbm else cfg.partitions)
        if source is None or target is None:
            continue
        base = place.hbm.start if to_hbm else place.sbuf.start
        down = bool(rng.integers(2))
        words = cfg.sbuf.partition_bytes // 2 // WINDOWS // 4  # of each descriptor
        count = outer if down else inner * outer
        word = number * words + int(rng.integers(0, words - count + 1))
        partition = int(rng.integers(0, cfg.partitions - (inner if down else 1) + 1))
        d |= {
            "source": address(Space.HBM if from_hbm else Space.SBUF, source[0] & -element),
            "destination": address(Space.HBM if to_hbm else Space.SBUF, base + (target[0] & -element)),
            "row_bytes": size,
            "add": add,
            "indirect": int(table),
            "index_down": int(down),
            "index_skips": int(rng.integers(2)),
            "index": partition << 16 | word,
            "table_rows": rows,
            "count0": inner,
            "count1": outer,
            "count2": 1,
        }
        for n in range(2):
            d[f"source_step{n}"] = source[1][n] & -element
            d[f"destination_step{n}"] = target[1][n] & -element
        if check(d, cfg)[0] != Cause.NONE or not _inside(d, place.hbm if to_hbm else place.sbuf, to_hbm):
            continue
        return Chosen(d, _indices(rng, d, add, beyond))


def _inside(d: dict[str, int], where: range, to_hbm: bool) -> bool:
    """Whether all rows that indices may choose lie in the window, which rounding may have left."""
    mask = (1 << 40 if to_hbm else PARTITION_STRIDE_BYTES) - 1
    table = d["indirect"] == Indirect.DESTINATION
    for n0 in range(d["table_rows"] if table else d["count0"]):
        for n1 in range(d["count1"]):
            at = (d["destination"] + n0 * d["destination_step0"] + n1 * d["destination_step1"]) & mask
            if at < where.start or at + d["row_bytes"] > where.stop:
                return False
    return True


def _indices(rng: np.random.Generator, d: dict[str, int], add: int, beyond: float) -> NDArray[np.uint32]:
    rows, inner = d["table_rows"], d["count0"]
    distinct = d["indirect"] == Indirect.DESTINATION and not add
    found: list[int] = []
    for _ in range(d["count1"]):
        found += (rng.permutation(rows)[:inner] if distinct else rng.integers(0, rows, inner)).tolist()
    far = rows, rows + 1, 1 << 28, 1 << 31, 0xFFFFFFFF, int(rng.integers(rows, 1 << 32))
    chosen = [int(rng.choice(far)) if rng.random() < beyond else n for n in found]
    return np.array(chosen, np.uint32)


def store(sbuf: NDArray[np.uint8], chosen: Chosen) -> None:
    """Put the indices where the descriptor finds them."""
    for at, index in zip(index_places(chosen.descriptor).tolist(), chosen.indices, strict=True):
        partition, byte = divmod(at, PARTITION_STRIDE_BYTES)
        sbuf[partition, byte : byte + 4] = np.frombuffer(index.tobytes(), np.uint8)

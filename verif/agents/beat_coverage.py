"""Bins for what beats of the systolic array meet: row tiles, kinds, formats, specials, patterns of sparsity."""

from itertools import product

import numpy as np

from rtl.contract.formats import FORMATS
from rtl.contract.kinds import DOTS, Kind
from rtl.contract.sparsity import PATTERNS, SPARSE_FORMATS, TAG_BITS
from verif.agents.beat_source import BeatSource
from verif.agents.beats import QUADRANTS, Beat
from verif.checks.coverage import Coverage

__all__ = ["KIND_NAMES", "SPLITS", "dot_bins", "note_dots", "note_sparse", "note_tiles", "sparse_bins", "tile_bins"]

SPLITS = ("whole array", "halves", "quarters")
KIND_NAMES = {k: k.name.lower().replace("_", " ") for k in Kind}
_SPECIALS = ("finite", "infinity", "nan", "scale nan")


def tile_bins(kinds: tuple[Kind, ...]) -> list[str]:
    """Bins of note_tiles."""
    used = [KIND_NAMES[k] for k in kinds if k != Kind.RAW]
    return [f"{split}, {kind}" for split, kind in product(SPLITS, used)] + [
        "different tickets in a cycle",
        "different kinds in a cycle",
        "chains overlap",
    ]


def _split(beat: Beat, groups: int) -> str:
    """How a full beat divides the rows, if it is one of SPLITS."""
    each = QUADRANTS // groups
    head = np.flatnonzero(beat.head[::each]).tolist()
    tail = np.flatnonzero(beat.tail[each - 1 :: each]).tolist()
    split = {
        ((0,), (groups - 1,)): "whole array",
        ((0, 2), (1, 3)): "halves",
        ((0, 1, 2, 3), (0, 1, 2, 3)): "quarters",
    }.get((tuple(head), tuple(tail)), "")
    return split if groups == QUADRANTS or split == "whole array" else ""


def note_tiles(coverage: Coverage, beat: Beat, groups: int) -> None:
    """How a full beat divides the rows, with which kinds."""
    if not beat.valid.all():
        return
    each = QUADRANTS // groups
    head = np.flatnonzero(beat.head[::each]).tolist()
    tail = np.flatnonzero(beat.tail[each - 1 :: each]).tolist()
    if split := _split(beat, groups):
        for kind in set(beat.kinds):
            coverage.hit(f"{split}, {KIND_NAMES[kind]}")
    coverage.when(len({beat.tickets[(g + 1) * each - 1] for g in tail}) > 1, "different tickets in a cycle")
    coverage.when(len(set(beat.kinds)) > 1, "different kinds in a cycle")
    coverage.when(len(tail) > len(head) and any(g not in head for g in tail[1:]), "chains overlap")


def dot_bins(elements: tuple[str, ...]) -> list[str]:
    """Bins of note_dots: moving format x stationary format x special class."""
    return [
        f"{a} x {b}: {special}"
        for a, b, special in product(elements, elements, _SPECIALS)
        if special != "infinity" or FORMATS[a].infinities
    ]


def note_dots(coverage: Coverage, beat: Beat, source: BeatSource) -> None:
    """Which formats meet in a moving beat of dot products, and whether it has specials. After the beat's swap."""
    for q in range(QUADRANTS):
        rows = slice(q * source.share, (q + 1) * source.share)
        used = beat.active[rows]
        if not beat.valid[q] or beat.kinds[q] not in DOTS or not used.any():
            continue
        fmt = FORMATS[beat.dtypes[q]]
        count = 2 if beat.kinds[q] == Kind.PAIR else 4
        elements = (beat.codes[rows][used, None] >> np.arange(0, 8 * count, 8, dtype=np.uint64)) & np.uint64(0x7F)
        top = ((1 << fmt.exponent) - 1) << fmt.mantissa
        infinite = (elements == top) & fmt.infinities
        nan = elements > top if fmt.infinities else elements == 0x7F
        scale_nan = beat.kinds[q] == Kind.QUAD and (beat.scales[rows][used] == 0xFF).any()
        classes = {"infinity": infinite.any(), "nan": nan.any(), "scale nan": scale_nan}
        for other in set(source.formats[1][rows][used].ravel().tolist()) - {""}:
            pair = f"{fmt.name} x {other}"
            for name, seen in classes.items():
                coverage.when(seen, f"{pair}: {name}")
            coverage.when(not any(classes.values()), f"{pair}: finite")


def sparse_bins(groups: int) -> list[str]:
    """Bins of note_sparse: pattern x position of the kept number, pattern x row tiles that there are, formats."""
    splits = SPLITS if groups == QUADRANTS else SPLITS[:1]
    return [
        *(f"{p.name}, tag {tag}" for p in PATTERNS.values() for tag in range(p.group)),
        *(f"{p.name}, {split}" for p in PATTERNS.values() for split in splits),
        *(f"{a} x {b}" for a, b in product(SPARSE_FORMATS, SPARSE_FORMATS)),
        "patterns differ in a row",
        "tag beyond its bus",
    ]


def note_sparse(coverage: Coverage, beat: Beat, source: BeatSource) -> None:
    """Which sparse weights a moving beat meets. After the beat's swap."""
    split = _split(beat, source.groups) if beat.valid.all() else ""
    for q in range(QUADRANTS):
        rows = slice(q * source.share, (q + 1) * source.share)
        used = beat.active[rows]
        if not beat.valid[q] or beat.kinds[q] != Kind.SPARSE or not used.any():
            continue
        marks = source.sparse[1][rows][used].astype(np.int64)
        code = np.where(marks > 0, marks - 1 >> TAG_BITS, -1)
        coverage.when(((code != code[:, :1]) & (code >= 0) & (code[:, :1] >= 0)).any(), "patterns differ in a row")
        for other in set(source.formats[1][rows][used].ravel().tolist()) - {""}:
            coverage.hit(f"{beat.dtypes[q]} x {other}")
        for pattern in PATTERNS.values():
            tags = np.unique(marks[code == pattern.code] - 1 & (1 << TAG_BITS) - 1).tolist()
            coverage.when(bool(tags) and split != "", f"{pattern.name}, {split}")
            for tag in tags:
                coverage.hit(f"{pattern.name}, tag {tag}" if tag < pattern.group else "tag beyond its bus")

"""Random beats of the systolic array that mean something: what is loaded as one class is used as that class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.kinds import DOTS, Kind
from rtl.contract.sparsity import PATTERNS, SPARSE_FORMATS, TAG_BITS, Sparsity
from verif.agents.beat_codes import QuadrantCodes, random_tags
from verif.agents.beats import DENSE, QUADRANTS, Beat

__all__ = ["BeatSource", "Profile"]

MASK = NDArray[np.bool_]
Pair = tuple[Beat | None, Beat | None]

BLANK, NUMBER, DOT, DOT_E4M3, RAW, SPARSE = range(6)
"""Classes of weights. A blank is as after reset and may be used as any."""

_CLASS = {k: NUMBER for k in Kind} | {Kind.PAIR: DOT, Kind.QUAD: DOT, Kind.QUAD_E4M3: DOT_E4M3, Kind.RAW: RAW}
_CLASS |= {Kind.SPARSE: SPARSE}
_PATTERNS = tuple(PATTERNS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What random beats look like. Probabilities a cycle."""

    flavours: tuple[str, ...] = ("normal",)
    kinds: tuple[Kind, ...] = (Kind.ONE,)
    numbers: tuple[str, ...] = ("bf16", "fp16")  # formats of numbers
    elements: tuple[str, ...] = ("e4m3fn", "e5m2")  # formats in dot products
    moving: float = 0.8
    stationary: float = 0.6
    swap: float = 0.05  # of a moving beat
    partial: float = 0.2  # that the active rows change, to a part of all
    ragged: float = 0.0  # that the quadrants differ in valid, swap and dtype
    tiles: float = 0.0  # that the rows are divided anew; 0: always the whole array
    stray: float = 0.0  # that heads and tails are anywhere, in or out of order; for kinds of one class
    untimely: float = 0.02  # that a tile shifts what there is, raw or not, instead of taking a weight; if RAW is a kind
    pause: float = 0.01  # that nothing at all enters for a while; less often in larger arrays, where it lasts longer


class BeatSource:
    """Endless random beats: for each cycle a moving and a stationary one, or None.

    Loads and streams come in any order: loads overlap streams, swaps fall into loads. Each row tile has a matmul of
    its own, with its own swap, kind and ticket, and pauses of its own. When a row group's loads turn to another class,
    as many beats of it as there are columns come first; after raw ones, shifts as many as rows.
    """

    def __init__(self, cfg: Config, rng: np.random.Generator, profile: Profile):
        self.rows, self.cols = cfg.tensor.rows, cfg.tensor.cols
        self.groups = cfg.tensor.groups
        self.share = self.rows // QUADRANTS
        self.rng = rng
        self.codes = QuadrantCodes(rng, self.share)
        self.profile = profile
        self.paused = 0
        self.ticket = 0
        self.cuts = np.zeros(self.groups, np.bool_)  # a row tile begins at this group
        self.active = {"moving": np.ones(self.rows, np.bool_), "stationary": np.ones(self.rows, np.bool_)}
        self.shadow = np.zeros((self.rows, self.cols), np.uint8)  # classes
        self.working = np.zeros((self.rows, self.cols), np.uint8)
        self.formats = np.zeros((2, self.rows, self.cols), "U6")  # of the shadow and the working elements
        self.sparse = np.zeros((2, self.rows, self.cols), np.int16)  # the same: 1 + tag + 16 code of a sparse weight
        self.patterns = [DENSE] * QUADRANTS  # that quadrants load with
        self.loading = [self._some(profile.kinds)] * QUADRANTS  # kind by quadrant
        self.burst = [self.cols] * QUADRANTS  # beats to come before the kind may change
        self.shifts = [0] * QUADRANTS

    def _some(self, choices: tuple[Kind, ...]) -> Kind:
        return choices[int(self.rng.integers(len(choices)))]

    def _active(self, port: str) -> MASK:
        rng = self.rng
        if rng.random() < self.profile.partial / 4:
            kind = rng.integers(4)
            mask = np.ones(self.rows, np.bool_)
            if kind == 1:
                mask = rng.random(self.rows) < 0.5
            elif kind == 2:
                start, stop = sorted(rng.integers(0, self.rows + 1, 2))
                mask[:] = False
                mask[start:stop] = True
            elif kind == 3:
                mask[rng.integers(self.rows)] = False
            self.active[port] = mask
        return self.active[port].copy()

    def _spans(self) -> list[slice]:
        """Quadrants of each row tile; now and then the rows are divided anew, mostly in equal parts."""
        rng = self.rng
        if rng.random() < self.profile.tiles:
            size = self.groups >> int(rng.integers(self.groups.bit_length()))
            self.cuts = np.arange(self.groups) % size == 0
            if rng.random() < 0.2:
                self.cuts = rng.random(self.groups) < 0.5
            self.cuts[0] = True
        starts = [*(np.flatnonzero(self.cuts) * QUADRANTS // self.groups).tolist(), QUADRANTS]
        return [slice(a, b) for a, b in zip(starts, starts[1:])] if self.cuts.any() else [slice(0, QUADRANTS)]

    def _dtype(self, kind: Kind) -> str:
        names = self.profile.elements if kind in DOTS else self.profile.numbers
        if kind == Kind.SPARSE:
            names = tuple(n for n in names if n in SPARSE_FORMATS)
        if kind == Kind.QUAD_E4M3:
            names = tuple(n for n in names if n != "e5m2")
        return names[int(self.rng.integers(len(names)))]

    def _load_kind(self, span: slice) -> tuple[Kind, bool]:
        """What a stationary beat of a row tile carries, and whether it is a shift instead."""
        profile = self.profile
        first = span.start
        if self.shifts[first] and self.loading[first] == Kind.RAW and not self.burst[first]:
            self.shifts[first] -= 1
            return Kind.RAW, True
        if self.burst[first]:
            self.burst[first] -= 1
        elif Kind.RAW in profile.kinds and self.rng.random() < profile.untimely:
            return Kind.RAW, True  # what there is, raw or not
        elif self.rng.random() < 1 / self.cols:
            kind = self._some(profile.kinds)
            if _CLASS[kind] != _CLASS[self.loading[first]] or kind == Kind.RAW:
                self.burst[first] = self.cols
                self.shifts[first] = self.rows * (span.stop - span.start) // QUADRANTS
            self.loading[first] = kind
        kind = self.loading[first]
        if _CLASS[kind] == NUMBER:  # these mix
            kind = self._some(tuple(k for k in profile.kinds if _CLASS[k] == NUMBER))
        return kind, False

    def _pattern(self, span: slice, moving: bool) -> Sparsity:
        """A pattern for a beat of a row tile: mostly that of the beats before. The moving side's does not count."""
        rng = self.rng
        some = _PATTERNS[int(rng.integers(len(_PATTERNS)))]
        if moving or rng.random() < 0.05:
            return some
        if rng.random() < 2 / self.cols:
            self.patterns[span.start] = some
        return self.patterns[span.start]

    def _use(self, span: slice, swap: bool) -> tuple[Kind, MASK] | None:
        """A kind for a moving beat of a row tile, and the rows [rows] that can be used with it."""
        classes = (self.shadow if swap else self.working)[span.start * self.share : span.stop * self.share]
        usable = {c: ((classes == c) | (classes == BLANK)).all(axis=1) for c in (NUMBER, DOT, DOT_E4M3, SPARSE)}
        known = [k for k in self.profile.kinds if k != Kind.RAW]
        if not known:
            return None
        best = max(known, key=lambda k: (usable[_CLASS[k]].sum(), self.rng.random()))
        same = tuple(k for k in known if _CLASS[k] == _CLASS[best])
        mask = np.ones(self.rows, np.bool_)
        mask[span.start * self.share : span.stop * self.share] = usable[_CLASS[best]]
        return self._some(same), mask

    def _beat(self, port: str, spans: list[slice], rate: float) -> Beat | None:
        rng = self.rng
        profile = self.profile
        moving = port == "moving"
        ragged = rng.random() < profile.ragged
        valid, swap, head, tail, shift = (np.zeros(QUADRANTS, np.bool_) for _ in range(5))
        kinds, dtypes, tickets = [Kind.ONE] * QUADRANTS, ["bf16"] * QUADRANTS, [0] * QUADRANTS
        patterns = [DENSE] * QUADRANTS
        active = self._active(port)
        for span in spans:
            if rng.random() >= rate:
                continue
            count = span.stop - span.start
            rows = slice(span.start * self.share, span.stop * self.share)
            if moving:
                swaps = rng.random() < profile.swap * (0.3 if (self.shadow[rows] == RAW).any() else 1)
                use = self._use(span, swaps)
                if use is None:
                    continue
                kind, usable = use
                active &= usable
                swap[span] = swaps
            else:
                kind, shift[span] = self._load_kind(span)
                if self.burst[span.start]:
                    active[rows] = True
            valid[span] = True
            kinds[span] = [kind] * count
            dtypes[span] = [self._dtype(kind)] * count
            if kind == Kind.SPARSE:
                patterns[span] = [self._pattern(span, moving)] * count
            self.ticket = (self.ticket + 1) & 0xFF
            tickets[span] = [self.ticket] * count
            head[span.start] = tail[span.stop - 1] = True
        if not valid.any():
            return None
        if ragged:
            valid = valid & (rng.random(QUADRANTS) < 0.6)
            swap &= rng.random(QUADRANTS) < 0.7
            dtypes = [self._dtype(kind) for kind in kinds]
            if moving:  # whoever does not swap uses what it has
                for q in range(QUADRANTS):
                    rows = slice(q * self.share, (q + 1) * self.share)
                    classes = (self.shadow if swap[q] and valid[q] else self.working)[rows]
                    active[rows] &= ((classes == _CLASS[kinds[q]]) | (classes == BLANK)).all(axis=1)
        if rng.random() < profile.stray:
            head, tail = rng.random(QUADRANTS) < 0.5, rng.random(QUADRANTS) < 0.7
            tickets = rng.integers(0, 256, QUADRANTS).tolist()
        flavour = profile.flavours[int(rng.integers(len(profile.flavours)))]
        parts = [self.codes.some(kind, dtype, flavour) for kind, dtype in zip(kinds, dtypes, strict=True)]
        codes, scales = (np.concatenate(part) for part in zip(*parts, strict=True))
        tags = (codes & 15).astype(np.uint8)  # don't care for other kinds
        if Kind.SPARSE in kinds:
            tags = random_tags(rng, patterns, self.rows)
        return Beat(
            valid=valid,
            kinds=tuple(kinds),
            dtypes=tuple(dtypes),
            active=active,
            codes=codes,
            scales=scales,
            head=head,
            tail=tail,
            tickets=tuple(tickets),
            swap=swap,
            shift=shift,
            tags=tags,
            patterns=tuple(patterns),
        )

    def _note(self, moving: Beat | None, stationary: Beat | None) -> None:
        """Keep the classes of the weights."""
        if moving is not None:
            rows = np.repeat(moving.swap & moving.valid, self.share)
            self.working[rows] = self.shadow[rows]
            self.formats[1][rows] = self.formats[0][rows]
            self.sparse[1][rows] = self.sparse[0][rows]
        if stationary is None:
            return
        rows = stationary.loading(self.groups)
        kinds = np.repeat(np.array([_CLASS[k] for k in stationary.kinds], np.uint8), self.share)
        dtypes = np.repeat(np.array(stationary.dtypes), self.share)
        marks = np.repeat([1 + (p.code << TAG_BITS) for p in stationary.patterns], self.share) + stationary.tags
        marks = np.where(kinds == SPARSE, marks, 0)
        for plane, new in ((self.shadow, kinds), (self.formats[0], dtypes), (self.sparse[0], marks)):
            plane[rows, 1:] = plane[rows, :-1]
            plane[rows, 0] = new[rows]
        shifting = stationary.shifting(self.groups)
        size = self.rows // self.groups
        each = QUADRANTS // self.groups
        for group in reversed(np.flatnonzero(shifting).tolist()):
            above = group > 0 and shifting[group - 1] and not stationary.head[group * each]
            first, end = group * size, (group + 1) * size
            for plane, nothing in ((self.shadow, BLANK), (self.formats[0], ""), (self.sparse[0], 0)):
                plane[first + 1 : end] = plane[first : end - 1].copy()
                plane[first] = plane[first - 1] if above else nothing
            rows = self.shadow[first:end]
            rows[rows != BLANK] = RAW  # what is not raw means nothing after a shift

    def next(self) -> Pair:
        """The moving and the stationary beat of the next cycle."""
        rng = self.rng
        if self.paused:
            self.paused -= 1
            return None, None
        if rng.random() < self.profile.pause * 8 / self.rows:
            self.paused = int(rng.integers(1, 6 * self.rows))  # up to twice the latency
        spans = self._spans()
        moving = self._beat("moving", spans, self.profile.moving)
        stationary = self._beat("stationary", spans, self.profile.stationary)
        self._note(moving, stationary)
        return moving, stationary

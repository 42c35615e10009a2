"""Beats of the systolic array: random ones, their words for the ports, and what they must give."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.tensor.ports import moving_beat, stationary_beat
from verif.agents.values import random_codes
from verif.checks.coverage import Coverage
from verif.golden.numeric import decode
from verif.golden.tensor import TensorState, chain

__all__ = ["Beat", "BeatPacker", "BeatSource", "Profile", "expected_sums", "note_tiles"]

QUADRANTS = 4


@dataclass(slots=True)
class Beat:
    """One cycle of the moving or the stationary port; the quadrants may differ."""

    valid: NDArray[np.bool_]  # [4]
    dtypes: tuple[str, ...]  # of each quadrant
    active: NDArray[np.bool_]  # [rows]
    codes: NDArray[np.uint32]  # [rows]
    swap: NDArray[np.bool_]  # [4]; moving only
    head: NDArray[np.bool_]  # [4]; moving only
    tail: NDArray[np.bool_]  # [4]; moving only
    tickets: tuple[int, ...]  # of each quadrant; moving only

    def values(self) -> NDArray[np.float32]:
        """What the codes mean, [rows]."""
        share = len(self.codes) // QUADRANTS
        parts = [
            decode(self.codes[q * share : (q + 1) * share].astype(np.uint16), self.dtypes[q]) for q in range(QUADRANTS)
        ]
        return np.concatenate(parts)

    def rows(self) -> NDArray[np.bool_]:
        """Rows that take part, [rows]."""
        return self.active & np.repeat(self.valid, len(self.active) // QUADRANTS)


class BeatPacker:
    """Beats to integers for the ports, one for each quadrant."""

    def __init__(self, cfg: Config):
        self.share = cfg.tensor.rows // QUADRANTS
        self.moving_layout = moving_beat(cfg)
        self.stationary_layout = stationary_beat(cfg)

    def _words(self, beat: Beat | None, layout: object, moving: bool) -> list[int]:
        if beat is None:
            return [0] * QUADRANTS
        at = {name: field.offset for name, field in layout}  # type: ignore[attr-defined]
        words = []
        for q in range(QUADRANTS):
            rows = slice(q * self.share, (q + 1) * self.share)
            lanes = beat.codes[rows].astype("<u8").tobytes()
            word = int(beat.valid[q]) << at["valid"]
            word |= FORMATS[beat.dtypes[q]].code << at["mode"]
            word |= (
                int.from_bytes(np.packbits(beat.active[rows], bitorder="little").tobytes(), "little") << at["active"]
            )
            word |= int.from_bytes(lanes, "little") << at["data"]
            if moving:
                word |= beat.tickets[q] << at["ticket"] | int(beat.swap[q]) << at["swap"]
                word |= int(beat.head[q]) << at["head"] | int(beat.tail[q]) << at["tail"]
            words.append(word)
        return words

    def moving(self, beat: Beat | None) -> list[int]:
        """Words of moving[0] to moving[3]."""
        return self._words(beat, self.moving_layout, True)

    def stationary(self, beat: Beat | None) -> list[int]:
        """Words of stationary[0] to stationary[3]."""
        return self._words(beat, self.stationary_layout, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What random beats look like. Probabilities a cycle."""

    flavours: tuple[str, ...] = ("normal",)
    moving: float = 0.8
    stationary: float = 0.6
    swap: float = 0.05  # of a moving beat
    partial: float = 0.2  # that the active rows change, to a part of all
    ragged: float = 0.0  # that the quadrants differ in valid, swap and dtype
    tiles: float = 0.0  # that the rows are divided anew; 0: always the whole array
    stray: float = 0.0  # that heads and tails are anywhere, in or out of order
    pause: float = 0.01  # that nothing at all enters for a while; less often in larger arrays, where it lasts longer


class BeatSource:
    """Endless random beats: for each cycle a moving and a stationary one, or None.

    Loads and streams come in any order: loads overlap streams, swaps fall into loads. Each row tile has a matmul of
    its own, with its own swap, dtype and ticket, and pauses of its own.
    """

    def __init__(self, cfg: Config, rng: np.random.Generator, profile: Profile):
        self.rows = cfg.tensor.rows
        self.groups = cfg.tensor.groups
        self.cuts = np.zeros(self.groups, np.bool_)  # a row tile begins at this group
        self.rng = rng
        self.profile = profile
        self.paused = 0
        self.ticket = 0
        self.active = {"moving": np.ones(self.rows, np.bool_), "stationary": np.ones(self.rows, np.bool_)}

    def _active(self, port: str) -> NDArray[np.bool_]:
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
        return self.active[port]

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

    def _beat(self, port: str, spans: list[slice], rate: float) -> Beat | None:
        rng = self.rng
        profile = self.profile
        ragged = rng.random() < profile.ragged
        valid = np.zeros(QUADRANTS, np.bool_)
        swap, head, tail = valid.copy(), valid.copy(), valid.copy()
        dtypes = [""] * QUADRANTS
        tickets = [0] * QUADRANTS
        for span in spans:
            valid[span] = rng.random() < rate
            swap[span] = rng.random() < profile.swap
            count = span.stop - span.start
            dtypes[span] = [("bf16", "fp16")[int(rng.integers(2))]] * count
            self.ticket = (self.ticket + 1) & 0xFF
            tickets[span] = [self.ticket] * count
            head[span.start] = tail[span.stop - 1] = True
        if not valid.any():
            return None
        if ragged:
            valid = rng.random(QUADRANTS) < 0.6
            swap &= rng.random(QUADRANTS) < 0.7
            dtypes = [("bf16", "fp16")[int(i)] for i in rng.integers(0, 2, QUADRANTS)]
        if rng.random() < profile.stray:
            head, tail = rng.random(QUADRANTS) < 0.5, rng.random(QUADRANTS) < 0.7
            tickets = rng.integers(0, 256, QUADRANTS).tolist()
        flavour = profile.flavours[int(rng.integers(len(profile.flavours)))]
        share = self.rows // QUADRANTS
        codes = np.concatenate([random_codes(rng, (share,), d, flavour) for d in dtypes])
        return Beat(valid, tuple(dtypes), self._active(port).copy(), codes, swap, head, tail, tuple(tickets))

    def next(self) -> tuple[Beat | None, Beat | None]:
        """The moving and the stationary beat of the next cycle."""
        rng = self.rng
        if self.paused:
            self.paused -= 1
            return None, None
        if rng.random() < self.profile.pause * 8 / self.rows:
            self.paused = int(rng.integers(1, 6 * self.rows))  # up to twice the latency
        spans = self._spans()
        moving = self._beat("moving", spans, self.profile.moving)
        return moving, self._beat("stationary", spans, self.profile.stationary)


def expected_sums(
    state: TensorState, beats: list[tuple[Beat | None, Beat | None]]
) -> list[tuple[int, int, int, NDArray[np.uint32]]]:
    """(index of the beat, row group, ticket, sums [cols]) of every chain that leaves; `state` moves on."""
    share = state.rows // QUADRANTS
    each = QUADRANTS // state.groups
    out: list[tuple[int, int, int, NDArray[np.uint32]]] = []
    waiting: list[tuple[int, int, int, NDArray[np.float32], NDArray[np.bool_]]] = []

    def settle() -> None:
        if waiting:
            x = np.stack([values for *_, values, _ in waiting], axis=1)
            used = np.stack([rows for *_, rows in waiting], axis=1)
            sums = chain(state.working, x, used)
            out.extend((i, group, ticket, sums[:, n]) for n, (i, group, ticket, *_) in enumerate(waiting))
            waiting.clear()

    for i, (moving, stationary) in enumerate(beats):
        if moving is not None:
            swapping = np.repeat(moving.swap & moving.valid, share)
            if swapping.any():
                settle()
                state.swap(swapping)
            start = 0
            for group in range(state.groups):
                top, bottom = group * each, (group + 1) * each - 1
                if moving.valid[top] and moving.head[top]:
                    start = top * share
                if moving.valid[bottom] and moving.tail[bottom]:
                    rows = moving.rows()
                    rows[:start] = False
                    rows[(bottom + 1) * share :] = False
                    waiting.append((i, group, moving.tickets[bottom], moving.values(), rows))
        if stationary is not None:
            state.push(stationary.values(), stationary.rows())
    settle()
    return out


def note_tiles(coverage: Coverage, beat: Beat, groups: int) -> None:
    """Hit the bins for how a full beat divides the rows."""
    each = QUADRANTS // groups
    head = np.flatnonzero(beat.head[::each]).tolist()
    tail = np.flatnonzero(beat.tail[each - 1 :: each]).tolist()
    coverage.when(head == [0] and tail == [groups - 1], "whole array")
    coverage.when(groups == 4 and head == [0, 2] and tail == [1, 3], "halves")
    coverage.when(groups == 4 and head == tail == [0, 1, 2, 3], "quarters")
    coverage.when(len({beat.tickets[(g + 1) * each - 1] for g in tail}) > 1, "different tickets in a cycle")
    coverage.when(any(g not in head for g in tail[1:]) and len(tail) > len(head), "chains overlap")

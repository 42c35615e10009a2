"""Beats of the systolic array: random ones, their words for the ports, and what they must give."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.tensor.ports import moving_beat, stationary_beat
from verif.agents.values import random_codes
from verif.golden.numeric import decode
from verif.golden.tensor import TensorState, chain

__all__ = ["Beat", "BeatPacker", "BeatSource", "Profile", "expected_sums"]

QUADRANTS = 4


@dataclass(slots=True)
class Beat:
    """One cycle of the moving or the stationary port; the quadrants may differ."""

    valid: NDArray[np.bool_]  # [4]
    dtypes: tuple[str, ...]  # of each quadrant
    active: NDArray[np.bool_]  # [rows]
    codes: NDArray[np.uint32]  # [rows]
    swap: NDArray[np.bool_]  # [4]; moving only
    ticket: int = 0

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
                word |= beat.ticket << at["ticket"] | int(beat.swap[q]) << at["swap"]
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
    ragged: float = 0.0  # that the quadrants differ in valid and swap
    pause: float = 0.01  # that nothing at all enters for a while; less often in larger arrays, where it lasts longer


class BeatSource:
    """Endless random beats: for each cycle a moving and a stationary one, or None.

    Loads and streams come in any order: loads overlap streams, swaps fall into loads.
    """

    def __init__(self, cfg: Config, rng: np.random.Generator, profile: Profile):
        self.rows = cfg.tensor.rows
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

    def _beat(self, port: str) -> Beat:
        rng = self.rng
        profile = self.profile
        ragged = rng.random() < profile.ragged
        valid = rng.random(QUADRANTS) < 0.6 if ragged else np.ones(QUADRANTS, np.bool_)
        swap = np.full(QUADRANTS, rng.random() < profile.swap)
        if ragged:
            swap &= rng.random(QUADRANTS) < 0.7
        one = ("bf16", "fp16")[int(rng.integers(2))]
        dtypes = (
            tuple(("bf16", "fp16")[int(i)] for i in rng.integers(0, 2, QUADRANTS)) if ragged else (one,) * QUADRANTS
        )
        flavour = profile.flavours[int(rng.integers(len(profile.flavours)))]
        share = self.rows // QUADRANTS
        codes = np.concatenate([random_codes(rng, (share,), d, flavour) for d in dtypes])
        self.ticket = (self.ticket + 1) & 0xFF
        return Beat(valid, dtypes, self._active(port).copy(), codes, swap, self.ticket)

    def next(self) -> tuple[Beat | None, Beat | None]:
        """The moving and the stationary beat of the next cycle."""
        rng = self.rng
        if self.paused:
            self.paused -= 1
            return None, None
        if rng.random() < self.profile.pause * 8 / self.rows:
            self.paused = int(rng.integers(1, 6 * self.rows))  # up to twice the latency
        moving = self._beat("moving") if rng.random() < self.profile.moving else None
        stationary = self._beat("stationary") if rng.random() < self.profile.stationary else None
        return moving, stationary


def expected_sums(
    state: TensorState, beats: list[tuple[Beat | None, Beat | None]]
) -> list[tuple[int, int, NDArray[np.uint32]]]:
    """(index of the beat, ticket, sums [cols]) of every moving beat that gives sums; `state` moves on."""
    share = state.rows // QUADRANTS
    out: list[tuple[int, int, NDArray[np.uint32]]] = []
    waiting: list[tuple[int, Beat]] = []

    def settle() -> None:
        if waiting:
            x = np.stack([b.values() for _, b in waiting], axis=1)
            used = np.stack([b.rows() for _, b in waiting], axis=1)
            sums = chain(state.working, x, used)
            out.extend((i, b.ticket, sums[:, n]) for n, (i, b) in enumerate(waiting))
            waiting.clear()

    for i, (moving, stationary) in enumerate(beats):
        if moving is not None:
            swapping = np.repeat(moving.swap & moving.valid, share)
            if swapping.any():
                settle()
                state.swap(swapping)
            if moving.valid[0]:
                waiting.append((i, moving))
        if stationary is not None:
            state.push(stationary.values(), stationary.rows())
    settle()
    return out

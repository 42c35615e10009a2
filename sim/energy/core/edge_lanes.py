"""Lanes as the edge of the array makes them, for what lies behind it: they leave the gates of UnpackLane."""

import numpy as np
from numpy.typing import NDArray

from firmware.numbers import decode
from rtl.contract.formats import FORMATS
from rtl.contract.kinds import ELEMENTS, FP4_CODES, Kind
from sim.energy.simulation import Simulation
from sim.energy.values import Source, constant, packed

__all__ = ["EdgeLanes"]

Words = NDArray[np.uint64]
_ROW_BITS = 32
_ONE_SCALE = 127  # 2^0 as E8M0


def _fp4_codes(source: Source) -> NDArray[np.uint64]:
    """RowFeed gives the edge the E4M3FN code of the same number."""
    known = np.array(FP4_CODES, np.uint8)
    if source.kind == "bits":
        return known[source.rng.integers(0, len(known), source.streams)].astype(np.uint64)
    numbers = decode(source.codes("e4m3fn").astype(np.uint8), "e4m3fn")
    nearest = np.abs(decode(known, "e4m3fn")[None, :] - numbers[:, None]).argmin(axis=1)
    return known[nearest].astype(np.uint64)


class EdgeLanes:
    """`unpack` is a simulation of UnpackLane; its lanes are of one kind and format."""

    def __init__(self, unpack: Simulation, source: Source, kind: Kind, fmt: str):
        self.unpack, self.source, self.kind, self.fmt = unpack, source, kind, fmt

    def _row(self) -> Words:
        """What a row is given in a beat."""
        if self.fmt == "e2m1":
            parts = [packed(_fp4_codes(self.source), 8) for _ in range(ELEMENTS[self.kind])]
        else:
            parts = [self.source.numbers(self.fmt) for _ in range(ELEMENTS[self.kind])]
        bits = np.concatenate(parts)
        return np.concatenate([bits, np.zeros((_ROW_BITS - len(bits), bits.shape[1]), np.uint64)])

    def _scale(self) -> Words:
        if self.kind == Kind.QUAD_E4M3:
            return self.source.below(0x48, 8, 0x28)
        return self.source.below(_ONE_SCALE + 4, 8, _ONE_SCALE - 4) if self.kind == Kind.QUAD else constant(127, 8)

    def one(self) -> Words:
        """The lane of a beat: [bits, words]."""
        code = FORMATS["e4m3fn" if self.fmt == "e2m1" else self.fmt].code
        self.unpack.cycle(
            {"bits": self._row(), "dtype": constant(code, 4), "kind": constant(self.kind, 3), "scale": self._scale()}
        )
        return self.unpack.output("lane")

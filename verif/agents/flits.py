"""Flits for benches: random information, damage of every kind, beats of the ports."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtl.contract.link import CRC_ORDER, DLP_AT, FEC_AT, FLIT_BYTES, FLIT_INFO_BYTES
from verif.golden.flit import encode, fec

__all__ = ["DAMAGE", "beats_of", "damaged", "random_flits", "random_info"]

DAMAGE = ("clean", "one", "burst", "spread", "pair", "check", "parity", "dlp", "crc", "pad", "hidden", "noise")
"""What `damaged` can do to a flit."""


def random_info(rng: np.random.Generator, count: int) -> NDArray[np.uint8]:
    """Information [count, 242] of several kinds: noise, zeros, ones, one bit, ramps."""
    info = rng.integers(0, 256, (count, FLIT_INFO_BYTES), np.uint8)
    kind = rng.integers(0, 8, count)
    info[kind == 0] = 0
    info[kind == 1] = 255
    info[kind == 2] = np.arange(FLIT_INFO_BYTES, dtype=np.uint8)
    for row in np.flatnonzero(kind == 3):
        info[row] = 0
        info[row, rng.integers(FLIT_INFO_BYTES)] = 1 << rng.integers(8)
    return info


def damaged(rng: np.random.Generator, flit: NDArray[np.uint8], kind: str, lanes: int = 8) -> NDArray[np.uint8]:
    """The flit after damage of a kind of DAMAGE; errors of random size."""
    bad = flit.copy()

    def hit(*at: int) -> None:
        for byte in at:
            bad[byte] ^= rng.integers(1, 256)

    def some(begin: int, end: int) -> int:
        return int(rng.integers(begin, end))

    if kind == "one":
        hit(some(0, FLIT_BYTES))
    elif kind == "burst":  # consecutive bytes of one lane
        length = some(2, 5)
        start = some(0, FLIT_BYTES - lanes * (length - 1))
        hit(*(start + lanes * n for n in range(length)))
    elif kind == "spread":  # one in each group
        hit(*(3 * some(0, 84) + group for group in range(3)))
    elif kind == "pair":  # two in a group
        group, first, step = some(0, 3), some(0, 83), some(1, 83)
        hit(3 * first + group, 3 * ((first + step) % 83) + group)
    elif kind == "check":
        hit(some(FEC_AT, FEC_AT + 3))
    elif kind == "parity":
        hit(some(FEC_AT + 3, FLIT_BYTES))
    elif kind == "dlp":
        hit(some(DLP_AT, FLIT_INFO_BYTES), some(0, DLP_AT))
    elif kind == "crc":
        hit(some(FLIT_INFO_BYTES, FEC_AT))
    elif kind == "pad":  # syndromes that name the place behind the last byte of group 1 or 2
        group = some(0, 2)
        bad[FEC_AT + group] ^= 2
        bad[FEC_AT + 3 + group] ^= 1
    elif kind == "hidden":  # a word of the FEC, not of the CRC
        hit(some(0, FEC_AT))
        check, parity = fec(bad[None, :FEC_AT])
        bad[FEC_AT:] = [*np.roll(check[0], -1), *np.roll(parity[0], -1)]  # groups 1, 2, 0
    elif kind == "noise":
        bad[:] = rng.integers(0, 256, FLIT_BYTES)
    return bad


def random_flits(
    rng: np.random.Generator, kinds: Sequence[str], lanes: int = 8, order: str = CRC_ORDER
) -> NDArray[np.uint8]:
    """A random flit with each of these kinds of damage, [n, 256]; `order` of the CRC's bytes."""
    good = encode(random_info(rng, len(kinds)), order)
    return np.stack([damaged(rng, flit, kind, lanes) for flit, kind in zip(good, kinds, strict=True)])


def beats_of(flit: NDArray[np.uint8], size: int) -> list[int]:
    """Words of the ports: bit 0 first, bit 1 last, then `size` bytes."""
    count = len(flit) // size
    rows = flit.reshape(count, size)
    return [
        int(n == 0) | int(n == count - 1) << 1 | int.from_bytes(rows[n].tobytes(), "little") << 2 for n in range(count)
    ]

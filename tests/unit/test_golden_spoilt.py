"""A flit that a switch spoils, all 14 bytes of its codes inverted, is refused whatever is in it.

Both codes are linear: the flit differs from the sound one by the same 14 bytes always, and what a decoder finds wrong
depends on that difference alone. So what it makes of one flit it makes of all; these tests show each step.
"""

import numpy as np

from rtl.contract.link import CRC_AT, FLIT_BYTES, FLIT_INFO_BYTES
from verif.golden.flit import crc, decode, encode, fec

SPOILT = np.concatenate([np.zeros(CRC_AT, np.uint8), np.full(FLIT_BYTES - CRC_AT, 255, np.uint8)])
"""What spoiling adds to a flit."""


def some(n: int, seed: int = 1) -> np.ndarray:
    """Random information, [n, 242]."""
    return np.random.default_rng(seed).integers(0, 256, (n, FLIT_INFO_BYTES), np.uint8)


def test_codes_are_linear_bit_by_bit() -> None:
    """The code of any information is the sum of the codes of its bits: shown on all 1,936 bits and random sums."""
    bits = np.zeros((8 * FLIT_INFO_BYTES, FLIT_INFO_BYTES), np.uint8)
    n = np.arange(len(bits))
    bits[n, n // 8] = 1 << (n % 8)
    of_bits = encode(bits)
    for info in some(20):
        chosen = np.unpackbits(info, bitorder="little").astype(bool)
        assert np.array_equal(np.bitwise_xor.reduce(of_bits[chosen], axis=0), encode(info[None])[0])
    assert not encode(np.zeros((1, FLIT_INFO_BYTES), np.uint8)).any()


def test_what_a_decoder_sees_is_the_difference_alone() -> None:
    """Syndromes of a flit with something added are those of what was added, added to no flit at all."""
    good = encode(some(500, 2))
    added = np.random.default_rng(3).integers(0, 256, good.shape, np.uint8)
    for code in (lambda f: crc(f[:, :FLIT_INFO_BYTES]), lambda f: np.hstack(fec(f[:, :250]))):
        assert np.array_equal(code(good ^ added), code(good) ^ code(added))
    seen, alone = decode(good ^ added), decode(added)
    assert np.array_equal(seen.located, alone.located) and np.array_equal(seen.byte, alone.byte)
    assert np.array_equal(seen.valid, alone.valid)


def test_a_spoilt_flit_is_refused() -> None:
    """The difference itself is refused, and so are flits of every kind with it."""
    assert not decode(SPOILT[None]).valid[0]
    special = np.array([[0] * FLIT_INFO_BYTES, [255] * FLIT_INFO_BYTES, range(FLIT_INFO_BYTES)], np.uint8)
    flits = encode(np.concatenate([special, some(5000, 4)])) ^ SPOILT
    assert not decode(flits).valid.any()


def test_a_spoilt_flit_is_refused_with_any_wrong_byte_more() -> None:
    """The wire may damage it too: no single byte makes it a flit again."""
    error = np.arange(255 * FLIT_BYTES)
    bad = np.repeat(SPOILT[None], len(error), axis=0)
    bad[error, error // 255] ^= (error % 255 + 1).astype(np.uint8)
    assert not decode(bad).valid.any()

"""Golden codes of a flit: pinned vectors, every single error, bursts on a lane, what must be refused."""

import numpy as np
import pytest

from verif.golden.flit import crc, decode, encode

I = np.arange(242)  # noqa: E741
ZERO = np.zeros(242, np.int64)
NOP = [0x10, 0x01, 0, 0, 0, 0]
PAY = [0x71, 0x2C, 0x98, 0x83, 0x44, 0x40]

VECTORS = {
    "zero": (ZERO, "00 00 00 00 00 00 00 00", "00 00 00 00 00 00"),
    "first": (np.where(I == 0, 1, 0), "61 b9 a7 e9 1a c3 3b 0b", "7a a9 b4 64 b3 a9"),
    "last": (np.where(I == 241, 1, 0), "d5 68 fe d5 33 41 4d 69", "aa 1e 79 be 4d 32"),
    "ones": (ZERO + 255, "85 24 fe dd 34 c2 13 51", "5e cb 9d c3 4b be"),
    "count": (I, "56 50 ba 1b 43 2c e5 bc", "b3 b2 48 c7 f8 af"),
    "step7": (7 * I + 3, "e3 cd 05 b8 27 5f 3d 3b", "2d 6f b9 a0 f6 f2"),
    "nop": (np.concatenate([ZERO[:236], NOP]), "49 e0 a4 07 9a 3e 05 92", "b1 bc 18 9a 5b e9"),
    "pay": (np.concatenate([(I * I + 5 * I + 1)[:236], PAY]), "76 e2 81 ab 94 e5 d6 57", "ad b1 eb b7 49 d2"),
}
"""Information, CRC (high_first) and FEC bytes of docs/flit-codec.md."""


def info(name: str) -> np.ndarray:
    return (VECTORS[name][0] % 256).astype(np.uint8)[None]


def some(n: int, seed: int = 1) -> np.ndarray:
    """Random flits, [n, 256]."""
    return encode(np.random.default_rng(seed).integers(0, 256, (n, 242), np.uint8))


@pytest.mark.parametrize("name", VECTORS)
def test_pinned_vectors(name: str) -> None:
    _, check, fec = VECTORS[name]
    flit = encode(info(name))[0]
    assert flit[:242].tolist() == info(name)[0].tolist()
    assert flit[242:250].tobytes().hex(" ") == check
    assert flit[250:].tobytes().hex(" ") == fec


def test_the_other_order_of_the_crc_swaps_its_bytes() -> None:
    step7 = info("step7")
    assert np.array_equal(crc(step7, "low_first")[0], crc(step7)[0, ::-1])
    flits = encode(np.concatenate([step7, info("pay")]), "low_first")
    assert decode(flits, "low_first").valid.all()
    assert not decode(flits).valid.any()


def test_worked_decode() -> None:
    good = encode(info("step7"))
    bad = good.copy()
    bad[0, 100] ^= 0x5A
    seen = decode(bad)
    assert seen.valid[0] and seen.corrected[0] == 1
    assert seen.located[0].tolist() == [False, True, False] and seen.byte[0, 1] == 100
    assert np.array_equal(seen.flits, good)
    bad[0, 103] ^= 1
    seen = decode(bad)
    assert not seen.valid[0] and seen.corrected[0] == 0 and not seen.located[0].any()
    assert np.array_equal(seen.flits, bad)


def test_every_single_byte_error_is_repaired() -> None:
    good = encode(info("pay"))
    for byte in range(256):
        bad = np.repeat(good, 255, axis=0)
        bad[:, byte] ^= np.arange(1, 256).astype(np.uint8)
        seen = decode(bad)
        assert seen.valid.all() and (seen.corrected == 1).all(), f"byte {byte}"
        assert (seen.flits == good).all(), f"byte {byte}"
        assert (seen.byte[:, byte % 3] == byte).all() and (seen.located.sum(axis=1) == 1).all()


def burst(flits: np.ndarray, lanes: int, length: int, seed: int) -> np.ndarray:
    """Flits with `length` consecutive bytes of one lane damaged: every start in turn."""
    rng = np.random.default_rng(seed)
    starts = np.resize(np.arange(256 - lanes * (length - 1)), len(flits))
    bad = flits.copy()
    for n in range(length):
        bad[np.arange(len(flits)), starts + n * lanes] ^= rng.integers(1, 256, len(flits), np.uint8)
    return bad


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("length", [2, 3])
def test_bursts_on_one_lane_are_repaired(lanes: int, length: int) -> None:
    good = some(2560, lanes)
    seen = decode(burst(good, lanes, length, 7))
    assert seen.valid.all() and (seen.corrected == length).all()
    assert np.array_equal(seen.flits, good)


@pytest.mark.parametrize("lanes", [3, 6, 12])
def test_lane_counts_divisible_by_three_lose_bursts(lanes: int) -> None:
    """Consecutive bytes of a lane are in one group: why a link degrades 8, 4, 2, 1."""
    good = some(250, lanes)
    assert not decode(burst(good, lanes, 2, 8)).valid.any()


def test_two_errors_in_a_group_are_refused() -> None:
    """By the FEC in two of three; in the rest it damages a third byte, and the CRC refuses."""
    rng = np.random.default_rng(3)
    good = some(20_000, 4)
    bad = good.copy()
    group = rng.integers(0, 3, len(good))
    first, step = rng.integers(0, 83, len(good)), rng.integers(1, 83, len(good))
    for place in (first, (first + step) % 83):
        bad[np.arange(len(good)), 3 * place + group] ^= rng.integers(1, 256, len(good), np.uint8)
    seen = decode(bad)
    assert not seen.valid.any() and np.array_equal(seen.flits, bad)
    named_by_fec = ~seen.located[np.arange(len(good)), group]
    assert 0.64 < named_by_fec.mean() < 0.70


@pytest.mark.parametrize("count", [4, 8, 30, 250])
def test_many_errors_are_never_accepted_as_something_else(count: int) -> None:
    rng = np.random.default_rng(count)
    good = some(5000, 5)
    bad = good.copy()
    where = np.argsort(rng.random(good.shape), axis=1)[:, :count]
    np.put_along_axis(bad, where, np.take_along_axis(bad, where, 1) ^ rng.integers(1, 256, where.shape, np.uint8), 1)
    seen = decode(bad)
    assert not (seen.valid & (seen.flits != good).any(axis=1)).any()


def test_the_pad_of_the_short_groups_is_no_byte() -> None:
    """Syndromes that name place 83 of groups 1 and 2, which is not in a flit, are uncorrectable."""
    for group, check, parity in ((1, 250, 253), (2, 251, 254)):
        bad = encode(info("count"))
        bad[0, parity] ^= 1
        bad[0, check] ^= 2  # alpha^1 = alpha^(84 - 83)
        seen = decode(bad)
        assert not seen.valid[0] and not seen.located[0, group]

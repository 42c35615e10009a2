"""The golden DMA against plain NumPy indexing and against a walk over every row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.config import load, named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import Cause, Update
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address, core_id
from verif.golden.dma import check, copy, row_addresses, signal

CFG = named("tiny")
CAPACITY = CFG.hbm.capacity_mib << 20


def descriptor(**fields: int) -> dict[str, int]:
    """A small legal descriptor, HBM to SBUF, with `fields` changed."""
    legal = {
        "source": address(Space.HBM, 64),
        "destination": address(Space.SBUF, 2 * PARTITION_STRIDE_BYTES + 32),
        "row_bytes": 48,
        "count0": 4,
        "source_step0": 100,
        "destination_step0": PARTITION_STRIDE_BYTES,
        "count1": 2,
        "source_step1": 1000,
        "destination_step1": 64,
        "count2": 1,
    }
    return {**legal, **fields}


def signalled(space: Space, offset: int, core_id: int = 0) -> dict[str, int]:
    """Fields that ask for a signal there."""
    return {"signal_update": Update.SET, "signal_address": address(space, offset, core_id=core_id)}


def test_word_is_pinned() -> None:
    word = DESCRIPTOR.pack(descriptor(signal_update=1, signal_value=-1, signal_address=3 << 40 | 8))
    assert word & (1 << 128) - 1 == 0x0000010000080020_0000000000000040
    assert word >> 128 & (1 << 64) - 1 == 48
    assert word >> 192 & (1 << 32) - 1 == 4
    assert word >> 576 == 0xFFFFFFFF_00000001_0000030000000008


def test_three_dimensions_equal_numpy_strides() -> None:
    rng = np.random.default_rng(1)
    hbm = rng.integers(0, 256, 8192, np.uint8)
    sbuf = np.zeros((CFG.partitions, CFG.sbuf.partition_bytes), np.uint8)
    d = descriptor()
    assert check(d, CFG) == (Cause.NONE, 0)
    copy(d, hbm, sbuf)
    rows = np.lib.stride_tricks.as_strided(hbm[64:], (2, 4, 48), (1000, 100, 1))
    want = np.zeros_like(sbuf)
    want[2:6, 32:80] = rows[0]
    want[2:6, 96:144] = rows[1]
    assert np.array_equal(sbuf, want)


def test_step_of_zero_broadcasts_and_rows_go_back() -> None:
    hbm = np.arange(256, dtype=np.uint8)
    sbuf = np.zeros((CFG.partitions, CFG.sbuf.partition_bytes), np.uint8)
    copy(descriptor(source_step0=0, source_step1=0), hbm, sbuf)
    assert all(np.array_equal(sbuf[p, 32:80], hbm[64:112]) for p in range(2, 6))
    out = np.zeros(256, np.uint8)
    back = {
        "source": address(Space.SBUF, 5 * PARTITION_STRIDE_BYTES + 32),
        "destination": address(Space.HBM, 10),
        "row_bytes": 48,
        "count0": 2,
        "source_step0": -PARTITION_STRIDE_BYTES,
        "destination_step0": 50,
        "count1": 1,
        "count2": 1,
    }
    assert check(back, CFG) == (Cause.NONE, 0)
    copy(back, out, sbuf)
    assert np.array_equal(out[10:58], hbm[64:112])
    assert np.array_equal(out[60:108], hbm[64:112])
    assert not out[58:60].any()


@pytest.mark.parametrize(
    ("changes", "cause", "at"),
    [
        ({"row_bytes": 0}, Cause.BAD_DESCRIPTOR, None),
        ({"row_bytes": (1 << 18) + 1}, Cause.BAD_DESCRIPTOR, None),
        ({"count1": 0}, Cause.BAD_DESCRIPTOR, None),
        ({"index": 1}, Cause.BAD_DESCRIPTOR, None),
        ({"class_": 4}, Cause.BAD_DESCRIPTOR, None),
        ({"signal_update": 3}, Cause.BAD_DESCRIPTOR, None),
        ({"source": 1 << 62}, Cause.BAD_DESCRIPTOR, None),
        ({"source": address(Space.HBM, 0, core_id=1)}, Cause.NO_ROUTE, "source"),
        ({"destination": address(Space.PSUM, 0)}, Cause.BAD_SPACE, "destination"),
        ({"source": address(Space.HBM, CAPACITY - 47)}, Cause.OUT_OF_RANGE, "source"),
        ({"source_step1": -165}, Cause.OUT_OF_RANGE, "source"),
        ({"count0": 7}, Cause.OUT_OF_RANGE, "destination"),
        ({"destination_step1": 8192 - 79}, Cause.OUT_OF_RANGE, "destination"),
        ({"destination_step1": -33}, Cause.OUT_OF_RANGE, "destination"),
        ({"count0": 0xFFFFFFFF, "source_step0": (1 << 47) - 1}, Cause.OUT_OF_RANGE, "source"),
        (signalled(Space.SEMAPHORES, 4096), Cause.BAD_SEMAPHORE, "signal_address"),
        (signalled(Space.SEMAPHORES, 6), Cause.BAD_SEMAPHORE, "signal_address"),
        (signalled(Space.HBM, 4), Cause.BAD_SEMAPHORE, "signal_address"),
        (signalled(Space.SEMAPHORES, 4, core_id=2), Cause.NO_ROUTE, "signal_address"),
    ],
)
def test_refusals(changes: dict[str, int], cause: Cause, at: str | None) -> None:
    d = descriptor(**changes)
    assert check(d, CFG) == (cause, 0 if at is None else d[at])


def test_a_link_reaches_what_has_an_endpoint_number() -> None:
    """Where the map has none, it is as if there was no link: at the end that cannot be reached, before its space and
    before all that is said of the other end."""
    gen2 = load("tiny", ["fabric.endpoint_bits=gen2"])
    near, far = core_id(server=3), core_id(server=20)  # the plain map has none for far
    space = {"source": Space.HBM, "destination": Space.SBUF}
    for here, there in ((near, far), (far, near)):
        for side, other in (("source", "destination"), ("destination", "source")):
            d = descriptor(
                **{side: address(space[side], 64, core_id=there), other: address(space[other], 64, core_id=here)}
            )
            assert check(d, gen2, here, link=True) == (Cause.NONE, 0)
            assert check(d, CFG, here, link=True) == (Cause.NO_ROUTE, d[side])
            assert check(d, gen2, here) == (Cause.NO_ROUTE, d[side])
            wrong = d | {side: address(Space.PSUM, 0, core_id=there)}
            assert check(wrong, gen2, here, link=True) == (Cause.BAD_SPACE, wrong[side])
            assert check(wrong, CFG, here, link=True) == (Cause.NO_ROUTE, wrong[side])
        both = descriptor(source=address(Space.PSUM, 0, core_id=here), destination=address(Space.HBM, 0, core_id=there))
        assert check(both, CFG, here, link=True) == (Cause.BAD_SPACE, both["source"])
        inside = descriptor(**{side: address(space[side], 64, core_id=here) for side in space})
        assert check(inside, CFG, here, link=True) == (Cause.NONE, 0)
    third = descriptor(source=address(Space.HBM, 0, core_id=near), destination=address(Space.SBUF, 0, core_id=far))
    assert check(third, gen2, 0, link=True) == (Cause.NO_ROUTE, third["destination"])
    assert check(third, CFG, 0, link=True) == (Cause.NO_ROUTE, third["destination"])


def test_the_signal_of_a_copy_inside_goes_to_any_core_of_a_link() -> None:
    """But not where there is no link or no number; one of a copy to or from elsewhere not to a third core."""
    for core, plain in ((2, Cause.NONE), (core_id(server=16), Cause.NO_ROUTE), (core_id(rack=1), Cause.NO_ROUTE)):
        d = descriptor(**signalled(Space.SEMAPHORES, 4, core_id=core))
        assert check(d, CFG, link=True) == (plain, d["signal_address"] if plain else 0)
        assert check(d, CFG)[0] == Cause.NO_ROUTE
        assert check(d | {"signal_update": 0}, CFG) == (Cause.NONE, 0)
    wrong = descriptor(**signalled(Space.HBM, 4, core_id=2))
    assert check(wrong, CFG, link=True) == (Cause.BAD_SEMAPHORE, wrong["signal_address"])
    to, of = ({end: address(Space.HBM, 64, core_id=3)} for end in ("destination", "source"))
    for away, core, cause in (
        (to, 3, Cause.NONE),
        (to, 2, Cause.NO_ROUTE),
        (of, 3, Cause.NO_ROUTE),
        (of, 0, Cause.NONE),
    ):
        d = descriptor(**away, **signalled(Space.SEMAPHORES, 4, core_id=core))
        assert check(d, CFG, link=True)[0] == cause, (away, core)


def test_what_a_configuration_has_not_is_refused() -> None:
    fewer = load("tiny", ["dma.classes=2", "sbuf.adders=false"])
    to_sbuf = {"destination": address(Space.SBUF, 64), "source": address(Space.HBM, 64)}
    even = to_sbuf | {name: 0 for name in descriptor() if "_step" in name}
    for changes, cause in (({"class_": 1}, Cause.NONE), ({"class_": 2}, Cause.BAD_DESCRIPTOR)):
        assert check(descriptor(**changes), fewer) == (cause, 0)
    assert check(descriptor(**even, add=1), fewer) == (Cause.BAD_DESCRIPTOR, 0)
    assert check(descriptor(**even, add=1), load("tiny"))[0] == Cause.NONE


def test_edges_that_are_legal() -> None:
    for changes in (
        {"count0": 6, "destination_step1": 8192 - 80},
        {"destination_step1": -32},
        {"source_step1": -64},
        {"source": address(Space.HBM, CAPACITY - 1000 - 300 - 48)},
        {"signal_update": 2, "signal_address": address(Space.SEMAPHORES, 255 * 4)},
        {"signal_address": address(Space.HBM, 5)},
    ):
        assert check(descriptor(**changes), CFG) == (Cause.NONE, 0), changes


def test_signal_fields() -> None:
    d = descriptor(signal_update=2, signal_value=-7, signal_address=address(Space.SEMAPHORES, 12))
    assert signal(d) == (3, Update.SET, -7)


STEP = st.integers(-300, 300) | st.integers(-3, 3).map(lambda p: p * PARTITION_STRIDE_BYTES)


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(*[st.integers(1, 4)] * 3),
    st.tuples(*[STEP] * 6),
    st.integers(0, 7),
    st.integers(0, 8191),
    st.integers(1, 600),
)
def test_what_check_accepts_stays_inside(
    counts: tuple[int, ...], steps: tuple[int, ...], partition: int, byte: int, row_bytes: int
) -> None:
    d = {"source": address(Space.SBUF, partition * PARTITION_STRIDE_BYTES + byte), "row_bytes": row_bytes}
    d |= {"destination": address(Space.HBM, 300_000 * (partition + 1))}
    for i in range(3):
        d |= {f"count{i}": counts[i], f"source_step{i}": steps[i], f"destination_step{i}": steps[3 + i]}
    cause, at = check(d, CFG)
    inside = all(
        0 <= a // PARTITION_STRIDE_BYTES < CFG.partitions
        and a % PARTITION_STRIDE_BYTES + row_bytes <= CFG.sbuf.partition_bytes
        for a in row_addresses(d, "source")
    )
    linear = all(0 <= a and a + row_bytes <= CAPACITY for a in row_addresses(d, "destination"))
    if cause == Cause.NONE:
        assert inside
        assert linear
    else:
        assert cause == Cause.OUT_OF_RANGE
        assert at in (d["source"], d["destination"])
        if at == d["destination"]:
            assert not linear  # the HBM rule is exact

"""Bits of a layout by name: the same numbers as Amaranth's own reading of them."""

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.lib import data, enum

from rtl.base.dma_port import SEMAPHORE_UPDATE
from rtl.gpsimd.layouts import RETIRED
from verif.agents.opened import opened


class Kind(enum.IntEnum, shape=3):
    """Of a part."""

    ONE = 1
    TWO = 2


INNER = data.StructLayout({"low": 5, "below": signed(4)})
NESTED = data.StructLayout(
    {"kind": Kind, "inner": INNER, "many": data.ArrayLayout(signed(7), 3), "pairs": data.ArrayLayout(INNER, 2)}
)


def words(layout: data.StructLayout) -> list[int]:
    size = layout.size
    rng = np.random.default_rng(1)
    return [0, (1 << size) - 1, *(int.from_bytes(rng.bytes(size // 8 + 1), "little") % (1 << size) for _ in range(50))]


@pytest.mark.parametrize("layout", [SEMAPHORE_UPDATE, RETIRED], ids=["semaphore update", "retired"])
def test_fields_are_amaranths(layout: data.StructLayout) -> None:
    read = opened(layout)
    for word in words(layout):
        assert {n: getattr(read(word), n) for n in layout.members} == {
            n: int(layout.from_bits(word)[n]) for n in layout.members
        }


def test_structures_and_arrays_inside() -> None:
    read = opened(NESTED)
    for word in words(NESTED):
        got, want = read(word), NESTED.from_bits(word & ~7 | 1)
        assert got.kind == word & 7
        assert (got.inner.low, got.inner.below) == (want.inner.low, want.inner.below)
        assert got.many == tuple(int(want.many[i]) for i in range(3))
        assert [(p.low, p.below) for p in got.pairs] == [(want.pairs[i].low, want.pairs[i].below) for i in range(2)]


def test_it_tells_itself_and_lacks_other_names() -> None:
    one = opened(INNER)(0b1000_00011)
    assert repr(one) == "low 3, below -8"
    with pytest.raises(AttributeError):
        one.other  # noqa: B018

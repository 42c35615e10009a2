"""The golden hart's vectors against what QEMU left of the same records, which is kept as digests.

`python -m verif.truth.vectors` compares with QEMU itself. What that cannot tell is in test_riscv_vector_traps.py.
"""

from collections.abc import Callable

import numpy as np
import pytest

from verif.checks.vector_golden import golden_left
from verif.checks.vector_records import random_records
from verif.checks.vector_words import vtypes
from verif.golden.riscv.vector import fixed_point, integer, legality, registers
from verif.golden.riscv.vector.state import VectorState
from verif.golden.riscv.vector.vtype import VType
from verif.truth.differences import DIFFERENCES
from verif.truth.digests import SEEDS, Digests

VILL = 1 << 31
ILLEGAL = 4
FEW = [(128, 1, 5000), (512, 2, 5000)]


def digests_of(seeds: list[tuple[int, int, int]]) -> Digests:
    found = Digests()
    for vlen, seed, count in seeds:
        records = random_records(seed, vlen, count)
        found.add(records, *golden_left(records))
    return found


def unlike(one: dict[tuple[str, int], str], other: dict[tuple[str, int], str]) -> set[str]:
    """Labels with a digest that differs."""
    return {key[0] for key in one.keys() | other if one.get(key) != other.get(key)}


def test_leaves_what_qemu_left() -> None:
    """Every form of every instruction, each SEW, LMUL and VLEN, illegal ones too."""
    assert sum(count for *_, count in SEEDS) == 200000
    digests = digests_of(SEEDS)
    found, kept = digests.found(), Digests.kept()
    given = [key for key in kept if key[0] == "records" and found.get(key) != kept[key]]
    assert not given, "the records are others than those that QEMU was given: verif.truth.vectors --write"
    assert not unlike(found, kept)
    assert {name for name, _ in kept} == {"records", "illegal", *digests.legal}
    legal = digests.legal.values()
    print(f"\n{sum(legal)} legal of {len(legal)} kinds, {min(legal)} of the rarest")
    assert {vtype for name, vtype in kept if name == "ivv-000000"} == set(vtypes())
    assert set(digests.different) == {(name, ILLEGAL) for name in DIFFERENCES}


def _wrong_rounding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fixed_point, "NEAREST_EVEN", fixed_point.ODD)


def _shifted_mask(patch: pytest.MonkeyPatch) -> None:
    real = VectorState.mask
    patch.setattr(VectorState, "mask", lambda self, register, count: np.roll(real(self, register, count), 1))


def _tail_written(patch: pytest.MonkeyPatch) -> None:
    """Of results that are one number."""

    def put(self: registers.Registers, i: object, dest: np.ndarray) -> Callable[[int, np.ndarray], None]:
        def write(count: int, result: np.ndarray) -> None:
            dest[: count + (0 < count < len(dest))] = np.resize(result, count + (0 < count < len(dest)))

        return write

    patch.setattr(registers.Registers, "put", put)


def _sticky_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(fixed_point.FIXED_POINT, "vsadd", integer.Operation(lambda a, b, mode: (a + b, None), "ii"))


def _division_by_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(integer.INTEGER_OPERATIONS, "vdivu", integer.Operation(lambda a, b: a // np.maximum(b, 1)))


def _any_overlap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(legality, "_may_overlap", lambda dest, source: True)


def _unaligned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(legality.Group, "exists", property(lambda self: self.eew in (1, 8, 16, 32) and self.end <= 32))


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], set[str]]] = {
    "rounding": (_wrong_rounding, {"ivi-101010", "mvv-001000", "ivx-100111"}),
    "mask shifted": (_shifted_mask, {"ivv-000000", "mvv-010100-16", "load-strided-0-1"}),
    "tail written": (_tail_written, {"ivv-000000", "ivi-001111"}),
    "vxsat lost": (_sticky_lost, {"ivv-100001"}),
    "division by 0": (_division_by_zero, {"mvv-100000"}),
    "overlap": (_any_overlap, {"illegal"}),
    "unaligned groups": (_unaligned, {"illegal"}),
}


@pytest.fixture(scope="module")
def few() -> dict[tuple[str, int], str]:
    """Digests of fewer records, enough for faults."""
    return digests_of(FEW).found()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(
    few: dict[tuple[str, int], str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, least = FAULTS[fault]
    plant(monkeypatch)
    found = digests_of(FEW).found()
    names = unlike(found, few)
    assert least <= names, (least - names, names)
    assert "records" not in names
    if fault in ("vxsat lost", "division by 0"):
        assert names <= {f"{form}-{name[4:]}" for name in least for form in ("ivv", "ivx", "ivi", "mvv", "mvx")}


SPECIFIED = {
    # Section 3.4.2: LMUL must be at least SEW / ELEN; 111 is 1/2, 110 1/4, 101 1/8, 100 reserved.
    8: (0, 1, 2, 3, 6, 7), 16: (0, 1, 2, 3, 7), 32: (0, 1, 2, 3),
}  # fmt: skip


def test_which_vtypes_exist() -> None:
    exist = {bits for bits in range(1 << 11) if VType.of(bits)}
    plain = {lmul | (sew // 16) << 3 for sew, lmuls in SPECIFIED.items() for lmul in lmuls}
    assert exist == {bits | policy << 6 for bits in plain for policy in range(4)}
    assert set(vtypes()) == {bits for bits in exist if bits < 64}
    assert not any(VType.of(1 << bit) for bit in range(8, 32))
    assert VType.of(VILL) is None
    assert [VType.of(b).vlmax(256) for b in (0, 3, 6, 8, 15, 16, 19)] == [32, 256, 8, 16, 8, 8, 64]  # type: ignore[union-attr]


@pytest.mark.parametrize("vlen", [0, 64, 96, 1024])
def test_a_length_that_no_core_has(vlen: int) -> None:
    with pytest.raises(ValueError, match=f"VLEN is 128, 256 or 512, not {vlen}"):
        VectorState(vlen)

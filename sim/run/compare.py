"""Two devices' outputs, bit against bit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Comparison", "Mismatch", "compare", "compare_printed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first element that differs, as bits; `count` elements of this tensor differ."""

    tensor: str
    index: tuple[int, ...]
    got: int
    expected: int
    count: int
    width: int  # hexadecimal digits

    def as_dict(self) -> dict[str, Any]:
        """As plain values; bits in hexadecimal."""
        return {
            "tensor": self.tensor,
            "index": list(self.index),
            "got": f"0x{self.got:0{self.width}x}",
            "expected": f"0x{self.expected:0{self.width}x}",
            "count": self.count,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`match` only if every bit that was compared is the same: of every output, or of `tiles` result tiles of them.
    `why`: why there was nothing to compare. `unchecked`: by request. `kept`: the golden machine's bits were there from
    an earlier run. `of`: elements of all outputs."""

    match: bool
    elements: int
    first: Mismatch | None = None
    why: str = ""
    unchecked: bool = False
    kept: bool = False
    tiles: int | None = None
    of: int = 0


def compare(
    got: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray] | None = None
) -> Comparison:
    """Outputs of the device against those of the golden machine, in order of definition. `places`: of each output the
    flat places that are compared."""
    elements = 0
    first: Mismatch | None = None
    for name, want in expected.items():
        have = got[name]
        differ = have.reshape(-1) != want.reshape(-1)
        if places is not None:
            there = np.zeros(want.size, np.bool_)
            there[places[name]] = True
            differ &= there
        elements += want.size if places is None else len(places[name])
        wrong = np.flatnonzero(differ)
        if len(wrong) and first is None:
            at = int(wrong[0])
            first = Mismatch(
                tensor=name,
                index=tuple(int(i) for i in np.unravel_index(at, want.shape)),
                got=int(have.reshape(-1)[at]),
                expected=int(want.reshape(-1)[at]),
                count=len(wrong),
                width=2 * want.dtype.itemsize,
            )
    of = sum(want.size for want in expected.values())
    return Comparison(match=first is None, elements=elements, first=first, of=of)


def compare_printed(got: Mapping[int, bytes], expected: Mapping[int, bytes]) -> Mismatch | None:
    """The first byte in which texts of programs differ, by core; a byte that is not there is 0 here."""
    for core in sorted({*got, *expected}):
        texts = [np.frombuffer(text.get(core, b""), np.uint8) for text in (got, expected)]
        common = min(map(len, texts))
        differ = np.flatnonzero(texts[0][:common] != texts[1][:common])
        count = len(differ) + max(map(len, texts)) - common
        if count:
            at = int(differ[0]) if len(differ) else common
            have, want = (int(text[at]) if at < len(text) else 0 for text in texts)
            name = f"text of gp{core}"
            return Mismatch(tensor=name, index=(at,), got=have, expected=want, count=count, width=2)
    return None

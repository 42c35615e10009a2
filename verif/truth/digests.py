"""Digests of what instructions leave, one for each instruction, SEW and LMUL, over all VLEN."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verif.checks.vector_records import Records
from verif.truth.differences import difference

__all__ = ["FILE", "SEEDS", "VLENS", "Digests", "label"]

FILE = Path(__file__).with_name("vectors.txt")
VLENS = (128, 256, 512)
SEEDS = [(vlen, seed, 5000) for vlen in VLENS for seed in range({128: 14, 256: 14, 512: 12}[vlen])]
"""VLEN, seed and number of the records that are kept: 200,000."""

UNUSED = 4  # register x that holds the data of the program that executes records
FORMS = {0: "ivv", 2: "mvv", 3: "ivi", 4: "ivx", 6: "mvx"}
DIGITS = 8
KEPT_BITS = 0x8000003F  # of vtype, without what it says of tails and inactive elements


def label(word: int) -> str:
    """The instruction as the listing has it: form and funct6; of loads and stores mop, lumop, width and fields."""
    funct3, funct6, vs1 = word >> 12 & 7, word >> 26, word >> 15 & 31
    if word & 0x7F == 0x57:
        if funct3 == 7:
            return ("vsetvli", "vsetvli", "vsetvl", "vsetivli")[word >> 30]
        unary = f"-{vs1:02d}" if funct3 == 2 and funct6 in (0x10, 0x12, 0x14) else ""
        return f"{FORMS[funct3]}-{funct6:06b}{unary}"
    mop = word >> 26 & 3
    kind = f"unit{word >> 20 & 31:02d}" if mop == 0 else ("", "unordered", "strided", "ordered")[mop]
    return f"{'load' if word & 0x7F == 7 else 'store'}-{kind}-{funct3}-{(word >> 29) + 1}"


class Digests:
    """Results are added in order, but for vstart; those where a difference is known are not.

    What was illegal is one group for each vtype; the records themselves are the group "records" by VLEN, which tells
    when it is they that have changed.
    """

    def __init__(self):
        self._hashes: dict[tuple[str, int], hashlib.blake2s] = {}
        self.records = 0
        self.legal: Counter[str] = Counter()
        self.different: Counter[tuple[str, int]] = Counter()  # its name, the signal

    def add(self, records: Records, left: NDArray[np.void], memory: list[bytes]) -> None:
        """Results of records."""
        self._of("records", records.vlen).update(records.given.tobytes() + records.memory)
        state = np.stack([left[name] for name in ("vl", "vtype", "vxsat", "vxrm")], 1)
        x = left["x"].copy()
        x[:, UNUSED] = 0
        after = iter(memory)
        for number, given in enumerate(records.given):
            word, vtype, signal = int(given["word"]), int(given["vtype"]), int(left["signal"][number])
            there = next(after) if given["memory"] else b""
            self.records += 1
            if name := difference(word, vtype):
                self.different[name, signal] += 1
            elif signal:
                self._of("illegal", vtype & KEPT_BITS).update(word.to_bytes(4, "little") + bytes((signal,)))
            else:
                name = label(word)
                self.legal[name] += 1
                result = state[number].tobytes() + x[number].tobytes() + left["v"][number].tobytes() + there
                self._of(name, vtype & KEPT_BITS).update(result)

    def _of(self, name: str, number: int) -> hashlib.blake2s:
        return self._hashes.setdefault((name, number), hashlib.blake2s())

    def found(self) -> dict[tuple[str, int], str]:
        """By label and vtype without its agnostic bits."""
        return {key: one.hexdigest()[:DIGITS] for key, one in sorted(self._hashes.items())}

    def text(self) -> str:
        """A line for each label: its digests by vtype."""
        lines: dict[str, list[str]] = {}
        for (name, vtype), digest in self.found().items():
            lines.setdefault(name, []).append(f"{vtype:x}:{digest}")
        return "".join(f"{name} {' '.join(parts)}\n" for name, parts in lines.items())

    @staticmethod
    def kept() -> dict[tuple[str, int], str]:
        """Those in FILE."""
        found = {}
        for line in FILE.read_text().splitlines():
            name, *parts = line.split()
            for part in parts:
                vtype, digest = part.split(":")
                found[name, int(vtype, 16)] = digest
        return found

"""The name of an instruction set as toolchains write it into an image: rv32i2p1_m2p0_..._zvl128b1p0."""

import re
from dataclasses import dataclass

__all__ = ["Arch", "parse_arch"]


@dataclass(frozen=True)
class Arch:
    """Width of the registers, extensions without their versions, and the least VLEN, in bits, that code relies on."""

    xlen: int
    extensions: frozenset[str]
    vlen_bits: int


def parse_arch(text: str) -> Arch:
    """Parts of `text`. ValueError if it is no such name."""
    head = re.fullmatch(r"rv(32|64|128)(.*)", text.strip().lower())
    if head is None:
        raise ValueError(f"{text!r} does not begin with rv32, rv64 or rv128")
    found: set[str] = set()
    for part in filter(None, head[2].split("_")):
        plain = re.sub(r"\d+p\d+$", "", part)
        letters = re.match(r"[a-wy]*", plain)
        if plain[0] in "szx":
            found.add(plain)
        elif letters and letters[0] == plain:  # "imc", or one letter with its version
            found |= set(plain)
        else:
            versions = re.fullmatch(r"(?:[a-wy]\d+p\d+)*[a-wy]", plain)  # i2p1m2p0 without underscores
            if versions is None:
                raise ValueError(f"{part!r} in {text!r} is no extension")
            found |= set(re.sub(r"\d+p\d+", "", plain))
    lengths = [int(match[1]) for name in found if (match := re.fullmatch(r"zvl(\d+)b", name))]
    return Arch(int(head[1]), frozenset(found), max(lengths, default=0))

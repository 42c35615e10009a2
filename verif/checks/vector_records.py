"""Single vector instructions with all that they read, made of a seed; and what one leaves."""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verif.checks.vector_words import random_vector_word, vtypes

__all__ = ["MEMORY", "MEMORY_BYTES", "Records", "given_type", "left_type", "random_records"]

MEMORY, MEMORY_BYTES = 0x20000000, 4096
VILL = 1 << 31
CORNERS = np.array((0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF, 0xFF), np.uint8)
LOADS_AND_STORES = (0x07, 0x27)
INDEXED, STRIDED = (1, 3), 2
ASIDE = 320  # bytes behind the middle of memory where elements may begin and a segment end


def given_type(vlen: int) -> np.dtype:
    """A record, as the program that executes them takes it. `memory`: 1 if the instruction may use memory."""
    head = [(name, "<u4") for name in ("word", "vtype", "vl", "vxrm", "vxsat", "vstart", "memory")]
    return np.dtype([*head, ("x", "<u4", 32), ("v", "u1", (32, vlen // 8))])


def left_type(vlen: int) -> np.dtype:
    """What an instruction left, as that program tells it. `signal`: 4 if it was illegal, else 0."""
    head = [(name, "<u4") for name in ("signal", "vl", "vtype", "vxsat", "vxrm", "vstart")]
    return np.dtype([*head, ("x", "<u4", 32), ("v", "u1", (32, vlen // 8))])


@dataclass(frozen=True)
class Records:
    """`given` of given_type; `memory` is what is in memory before each."""

    vlen: int
    given: NDArray[np.void]
    memory: bytes


def _values(rng: np.random.Generator, count: int, vlen: int) -> NDArray[np.uint8]:
    """Vector registers: random bits, corners of every width, or small numbers of 16 bits."""
    v = rng.integers(0, 256, (count, 32, vlen // 8), np.uint8)
    style = rng.integers(0, 4, count)
    v[style == 1] = CORNERS[v[style == 1] & 7]
    v[style == 2, :, 1::2] = 0
    v[style == 2, :, ::2] &= 0x3F
    return v


def _scalars(rng: np.random.Generator, count: int) -> NDArray[np.uint32]:
    """Registers x: random, small, or corners."""
    x = rng.integers(0, 1 << 32, (count, 32), np.uint32)
    style = rng.integers(0, 4, (count, 32))
    x = np.where(style == 1, x & 0x3F, x)
    x = np.where(style == 2, (x & 3) + np.uint32(0x7FFFFFFE), x)
    x = np.where(style == 3, (x & 7) - np.uint32(4), x)
    x[:, 0] = 0
    return x.astype(np.uint32)


def _address(rng: random.Random, record: np.void, sew: int) -> None:
    """Make what a load or store reaches lie in memory, aligned: its address, stride, indices."""
    word, vl = int(record["word"]), int(record["vl"])
    width = {0: 1, 5: 2, 6: 4}.get(word >> 12 & 7, 8)
    mop = word >> 26 & 3
    size = sew // 8 if mop in INDEXED else width
    record["x"][word >> 15 & 31] = MEMORY + MEMORY_BYTES // 2 + rng.randrange(64) * size
    if mop == STRIDED and (rs2 := word >> 20 & 31):
        most = (MEMORY_BYTES // 2 - ASIDE) // max(vl, 1) // size
        record["x"][rs2] = rng.randint(-most, most) // rng.choice((1, 1, 4)) * size & 0xFFFFFFFF
    if mop in INDEXED:
        vs2 = word >> 20 & 31
        there = record["v"][vs2 : vs2 + 8].reshape(-1).view(f"<u{min(width, 4)}")
        there &= 0x3FF & -size if width > 1 else 0xFF & -size


def random_records(seed: int, vlen: int, count: int) -> Records:
    """Records of every instruction of Zve32x with every vtype, none of which faults; vstart is 0 but of some
    loads and stores."""
    rng, draws = np.random.default_rng([seed, vlen]), random.Random(seed << 10 | vlen)
    configurations = vtypes()
    given = np.zeros(count, given_type(vlen))
    given["x"], given["v"] = _scalars(rng, count), _values(rng, count, vlen)
    given["vxrm"], given["vxsat"] = rng.integers(0, 4, count), rng.integers(0, 2, count)
    memory = rng.integers(0, 256, MEMORY_BYTES, np.uint8).tobytes()
    for record in given:
        vtype = draws.choice(configurations)
        sew, lmul = 8 << (vtype >> 3), (vtype & 7 ^ 4) - 4
        vlmax = int(vlen // sew * 2.0**lmul)
        word = random_vector_word(draws, lmul)
        some = draws.randrange(vlmax + 1), draws.randrange(vlmax + 1), draws.randrange(vlmax // 4 + 1)
        vl = draws.choice((vlmax, *some))
        record["word"], record["vtype"], record["vl"] = word, vtype | draws.getrandbits(2) << 6, vl
        if draws.random() < 0.02:
            record["vtype"], record["vl"] = VILL, 0
        if word & 0x7F in LOADS_AND_STORES:
            record["memory"] = 1
            if draws.random() < 0.1:
                record["vstart"] = draws.randrange(vl + 2) & vlen - 1
            _address(draws, record, sew)
    return Records(vlen, given, memory)

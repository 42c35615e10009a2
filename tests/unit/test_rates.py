"""rtl.contract.rates: the rows of the instruction table, and which patterns run wide."""

from fractions import Fraction

import pytest

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import named
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space
from rtl.contract.rates import cycles, table_cycles, width

FULL, TRN2 = named("full"), named("trn2")


def at(dtype: str, *dims: tuple[int, int], space: Space = Space.SBUF, offset: int = 0) -> AccessPattern:
    return AccessPattern(
        space=space, dtype=FORMATS[dtype].code, partition_start=0, partition_count=8, offset=offset, dims=dims
    )


HALF, WORD, BYTE = at("bf16", (1, 512)), at("fp32", (1, 512)), at("e4m3fn", (1, 512))
PSUM = at("fp32", (1, 512), space=Space.PSUM)
ONE = at("fp32", (1, 1))


@pytest.mark.parametrize(
    ("opcode", "src0", "src1", "dst", "expected"),
    [
        (Opcode.TENSOR_COPY, HALF, None, HALF, 128),
        (Opcode.TENSOR_COPY, BYTE, None, HALF, 128),
        (Opcode.TENSOR_COPY, PSUM, None, HALF, 256),
        (Opcode.TENSOR_SCALAR, HALF, None, PSUM, 256),
        (Opcode.TENSOR_SCALAR, WORD, None, HALF, 512),
        (Opcode.MEMSET, None, None, HALF, 128),
        (Opcode.MEMSET, None, None, WORD, 512),
        (Opcode.TENSOR_TENSOR, HALF, HALF, HALF, 256),
        (Opcode.TENSOR_TENSOR, HALF, HALF, WORD, 1024),
        (Opcode.TENSOR_TENSOR, PSUM, HALF, HALF, 512),
        (Opcode.SCALAR_TENSOR_TENSOR, HALF, HALF, HALF, 1024),
        (Opcode.SCALAR_TENSOR_TENSOR, HALF, PSUM, HALF, 512),
        (Opcode.TENSOR_SCAN, WORD, WORD, WORD, 1024),
        (Opcode.SELECT, WORD, BYTE, WORD, 1024),
        (Opcode.TENSOR_REDUCE, HALF, None, ONE, 256),
        (Opcode.TENSOR_REDUCE, WORD, None, ONE, 512),
        (Opcode.EXP, HALF, None, HALF, 128),
        (Opcode.EXP, WORD, None, HALF, 256),
        (Opcode.EXP, PSUM, None, HALF, 256),
        (Opcode.RECIPROCAL, WORD, None, WORD, 4096),
        (Opcode.BN_AGGR, at("fp32", (1, 12)), None, at("fp32", (1, 2)), 52),
        (Opcode.MAX8, HALF, None, at("bf16", (1, 8)), 512),
        (Opcode.ACTIVATION, HALF, None, HALF, 256),
        (Opcode.ACTIVATION, BYTE, None, HALF, 256),
        (Opcode.ACTIVATION, PSUM, None, HALF, 512),
        (Opcode.ACTIVATION, HALF, None, WORD, 512),
        (Opcode.SCALAR_COPY, HALF, None, BYTE, 256),
        (Opcode.SCALAR_COPY, WORD, None, WORD, 512),
        (Opcode.SCALAR_AFFINE, HALF, None, HALF, 256),
        (Opcode.LOAD_TABLE, at("uint32", (1, 100)), None, None, 400),
        (Opcode.NOP, None, None, None, 0),
    ],
)
def test_cycles(opcode: Opcode, src0: AccessPattern, src1: AccessPattern, dst: AccessPattern, expected: int):
    assert cycles(opcode, FULL, src0, src1, dst) == expected
    assert table_cycles(opcode, FULL, src0, src1, dst) == (max(64, expected) if expected else 0)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (at("bf16", (1, 512), offset=4), 256),
        (at("bf16", (1, 512), offset=2), 512),
        (at("bf16", (2, 512)), 512),
        (at("bf16", (1, 511)), 511),
        (at("bf16", (1, 4), (6, 128)), 256),
        (at("bf16", (1, 4), (7, 128)), 512),
    ],
)
def test_pairs_of_the_scalar_engine(source: AccessPattern, expected: int):
    target = at("uint8", *source.dims[:1], *((4, n) for _, n in source.dims[1:]))
    for opcode in (Opcode.ACTIVATION, Opcode.SCALAR_COPY, Opcode.SCALAR_AFFINE):
        assert cycles(opcode, FULL, source, None, target) == expected


def test_elements_of_a_reduction_come_one_by_one():
    assert cycles(Opcode.ACTIVATION, FULL, HALF, None, HALF, sums=True) == 512


def test_exp_at_trn2_is_one_element_a_cycle():
    assert cycles(Opcode.EXP, TRN2, HALF, None, HALF) == 512


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (at("bf16", (1, 512), offset=8), 4),
        (at("bf16", (1, 512), offset=4), 2),  # not on a word of 8 bytes
        (at("bf16", (1, 512), offset=2), 1),
        (at("bf16", (2, 512)), 1),
        (at("bf16", (1, 4), (6, 128)), 2),  # the second row begins inside a word
        (at("bf16", (1, 4), (7, 128)), 1),
        (at("bf16", (1, 4), (8, 128)), 4),
        (at("bf16", (1, 4), (3, 1), (8, 128)), 4),  # one of a dimension: its step means nothing
        (at("bf16", (1, 2), (2, 256)), 2),
        (at("bf16", (1, 4), (0, 128)), 4),  # the same word again and again
        (at("e5m2", (1, 512), offset=4), 4),
    ],
)
def test_patterns_that_run_wide(source: AccessPattern, expected: int):
    assert width(Opcode.TENSOR_COPY, FULL, source, None, HALF) == expected
    assert width(Opcode.TENSOR_COPY, FULL, HALF, None, source) == expected


def test_fractions_are_kept():
    six = at("bf16", (1, 7))
    assert cycles(Opcode.TENSOR_TENSOR, FULL, at("bf16", (1, 4)), at("bf16", (1, 4)), at("bf16", (1, 4))) == 2
    assert cycles(Opcode.TENSOR_COPY, FULL, six, None, six) == Fraction(7)
    assert cycles(Opcode.BN_AGGR, FULL, at("fp32", (1, 3)), None, ONE) == Fraction(13)

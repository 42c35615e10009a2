"""Words of the assembler, pinned bit for bit, and what does not fit in them."""

import pytest

from firmware.assemble import descriptor_word, instruction_word
from firmware.program import Descriptor, Instruction, Place, SemaphoreWait
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.isa import AluOp, Opcode, Reduce
from rtl.contract.memmap import Space


def words(data: bytes) -> list[str]:
    """Sixteen 64-bit words, least significant first, without the zeros at the end."""
    found = [f"{int.from_bytes(data[i : i + 8], 'little'):016x}" for i in range(0, len(data), 8)]
    assert len(found) == 16
    while found and int(found[-1], 16) == 0:
        found.pop()
    return found


def test_matmul():
    word = instruction_word(
        Instruction(
            opcode=Opcode.MULTIPLY_MOVING,
            update=0,
            waits=(SemaphoreWait(5, 3), SemaphoreWait(1, 70000)),
            accumulate=True,
            src0=AccessPattern(space=1, dtype=1, partition_start=0, partition_count=7, offset=0x1234, dims=((1, 33),)),
            dst=AccessPattern(
                space=2, dtype=0, partition_start=0, partition_count=8, offset=0x100, dims=((1, 11), (16, 3))
            ),
        )
    )
    assert words(word) == [
        "0011005100000111",
        "0001117000000003",
        "0000000100000001",
        "0000000000000000",
        "0001110700001234",
        "0000000100000021",
        "0000000100000001",
        "0000000000000000",
        "0000000000000000",
        "0000000000000000",
        "0001020800000100",
        "000000030010000b",
        "0000000100000001",
    ]


def test_trigger():
    word = instruction_word(Instruction(opcode=Opcode.DMA_TRIGGER, update=4, imm0=1, imm1=9))
    assert words(word) == [
        "0000000000000001",
        *["0" * 16],
        "0000000100000041",
        *["0" * 16] * 10,
        f"{1:016x}",
        f"{9:016x}",
    ]


def test_exp():
    """Every field of the header that an engine of elements uses."""
    pattern = AccessPattern(space=1, dtype=1, partition_start=0, partition_count=8, offset=0x40, dims=((1, 16),))
    word = instruction_word(
        Instruction(
            opcode=Opcode.EXP,
            update=1,
            op0=AluOp.SHIFT_RIGHT,
            op1=AluOp.RELU,
            reverse0=True,
            column1=True,
            reduce=Reduce.LOAD_REDUCE,
            store=True,
            axes=2,
            negate=True,
            src0=pattern,
            src1=pattern,
            dst=pattern,
            imm0=0x3F8000003FC00000,
            imm1=0x80,
            imm2=0x84,
        )
    )
    header = 50 | 37 << 9 | 19 << 15 | 1 << 21 | 1 << 24 | 3 << 25 | 1 << 27 | 2 << 28 | 1 << 30
    found = words(word)
    assert found[0] == f"{header:016x}"
    assert found[4:7] == found[7:10] == found[10:13]
    assert found[4] == "0001110800000040"
    assert found[13:] == ["3f8000003fc00000", f"{0x80:016x}", f"{0x84:016x}"]


def test_descriptor():
    word = descriptor_word(
        Descriptor(
            source=Place(Space.HBM, 64, "x"),
            destination=Place(Space.SBUF, 3 * 2**18 + 32),
            row_bytes=128,
            dims=((8, 128, 2**18), (2, -4096, 128)),
            signal=5,
            class_=2,
        ),
        {(0, "x"): 0x1000},
    )
    assert words(word) == [
        "0000000000001040",
        "00000100000c0020",
        "0000000200000080",
        "0000008000000008",
        "0000000400000000",
        "fffff00000000002",
        "000000000080ffff",
        "0000000000000001",
        "0000000000000000",
        "0000030000000014",
        "0000000100000001",
    ]


def test_what_does_not_fit():
    three = tuple(SemaphoreWait(i, 1) for i in range(3))
    with pytest.raises(ValueError, match="two wait slots, not 3"):
        instruction_word(Instruction(opcode=Opcode.NOP, update=0, waits=three))
    place = Place(Space.HBM, 0)
    four = Descriptor(source=place, destination=place, row_bytes=1, dims=((2, 1, 1),) * 4, signal=0)
    with pytest.raises(ValueError, match="three dimensions of rows, not 4"):
        descriptor_word(four, {})
    with pytest.raises(ValueError, match="instruction.update_semaphore = 4096 does not fit in 12 bits"):
        instruction_word(Instruction(opcode=Opcode.NOP, update=4096))

"""What issue asks of GP_LOAD, GP_STORE and GP_RUN: each rule of docs/isa.md, one word that breaks it."""

import pytest

from rtl.contract.config import load, named
from rtl.contract.gpsimd import cores
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Queue
from rtl.contract.memmap import Space, address
from verif.checks.gpsimd_program import after, gp_load, gp_run, gp_store, nop, pattern, then
from verif.golden.issue import check

TINY = named("tiny")
LANES = TINY.partitions // cores(TINY.partitions)
SOURCE = pattern("src0", 4, LANES, 64, 16)
TARGET = pattern("dst", 4, LANES, 64, 16)
WORDS = {Opcode.GP_LOAD: gp_load(SOURCE, 3), Opcode.GP_STORE: gp_store(TARGET, 1), Opcode.GP_RUN: gp_run(1 << 28, 3)}
OPERAND = {Opcode.GP_LOAD: "src0", Opcode.GP_STORE: "dst"}
HEADER = (
    *("accumulate", "op0", "op1", "reverse0", "reverse1", "column0", "column1", "reduce", "store", "axes", "negate"),
    *("flags", "kind", "tile", "sparsity", "rounding", "header_reserved", "header_pad"),
)
PATTERN = [n.removeprefix("src0_") for n in (f.name for f in INSTRUCTION) if n.startswith("src0_")]


def changed(word: int, **fields: int) -> int:
    return INSTRUCTION.pack({**INSTRUCTION.unpack(word), **fields})


def cause_of(word: int, queue: Queue = Queue.GPSIMD) -> tuple[Cause, int]:
    return check(word, TINY, queue)


@pytest.mark.parametrize("opcode", WORDS)
def test_a_legal_word_is_of_the_gpsimd_queue_and_an_engine_that_is_there(opcode: Opcode) -> None:
    word = changed(WORDS[opcode], **after(3, -1), **then(2))
    assert [cause_of(word, queue)[0] for queue in Queue] == [
        Cause.NONE if queue == Queue.GPSIMD else Cause.ILLEGAL_OPCODE for queue in Queue
    ]
    without = load("tiny", ["gpsimd.enabled=false"])
    assert check(word, without, Queue.GPSIMD) == (Cause.ILLEGAL_OPCODE, 0)
    assert check(nop(**then(2)), without, Queue.GPSIMD) == (Cause.NONE, 0)


@pytest.mark.parametrize("opcode", WORDS)
@pytest.mark.parametrize("field", HEADER)
def test_fields_of_the_header_are_zero(opcode: Opcode, field: str) -> None:
    assert cause_of(changed(WORDS[opcode], **{field: 1})) == (Cause.ILLEGAL_OPCODE, 0)


@pytest.mark.parametrize("opcode", OPERAND)
def test_immediates_beyond_their_words_are_zero(opcode: Opcode) -> None:
    tohost = 32 if opcode == Opcode.GP_LOAD else 0
    for name, bits in (("imm0", 40), ("imm1", tohost), ("imm2", 0)):
        assert cause_of(changed(WORDS[opcode], **{name: (1 << bits) - 1})) == (Cause.NONE, 0)
        for bit in {bits, 63}:
            assert cause_of(changed(WORDS[opcode], **{name: 1 << bit})) == (Cause.ILLEGAL_OPCODE, 0)


@pytest.mark.parametrize("opcode", OPERAND)
def test_other_operands_are_zero(opcode: Opcode) -> None:
    for other in {"src0", "src1", "dst"} - {OPERAND[opcode]}:
        for field in PATTERN:
            assert cause_of(changed(WORDS[opcode], **{f"{other}_{field}": 1})) == (Cause.ILLEGAL_OPCODE, 0)
    assert cause_of(changed(WORDS[opcode], **{f"{OPERAND[opcode]}_reserved": 1})) == (Cause.ILLEGAL_OPCODE, 0)


@pytest.mark.parametrize("opcode", OPERAND)
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"space": int(Space.PSUM)}, Cause.BAD_SPACE),
        ({"space": int(Space.HBM)}, Cause.BAD_SPACE),
        ({"dtype": 11}, Cause.ILLEGAL_DTYPE),
        ({"dtype": 0}, Cause.ILLEGAL_DTYPE),
        ({"partition_start": 1}, Cause.BAD_PARTITION),
        ({"partition_count": 0}, Cause.BAD_PARTITION),
        ({"offset": 66}, Cause.MISALIGNED),
        ({"count2": 0}, Cause.BAD_PATTERN),
        ({"offset": TINY.sbuf.partition_bytes - 60}, Cause.OUT_OF_RANGE),
        ({"step0": -2}, Cause.OUT_OF_RANGE),
        ({"count0": 1}, Cause.NONE),
        ({"count0": 3, "step0": -2, "count1": 5, "step1": 0}, Cause.NONE),
        ({"partition_count": LANES // 2}, Cause.NONE),  # the engine finds that
    ],
)
def test_the_operand_is_judged_like_any_other(opcode: Opcode, fields: dict[str, int], cause: Cause) -> None:
    word = changed(WORDS[opcode], **{f"{OPERAND[opcode]}_{name}": value for name, value in fields.items()})
    f = INSTRUCTION.unpack(word)
    start, offset, space = (f[f"{OPERAND[opcode]}_{name}"] for name in ("partition_start", "offset", "space"))
    where = address(Space(space), start * 2**18 + offset) if cause else 0
    assert cause_of(word) == (cause, where)


def test_all_but_the_reserved_bits_of_a_run_are_the_programs_own() -> None:
    free = dict[str, int]()
    for f in INSTRUCTION:
        if f.name.startswith(("src0_", "src1_", "dst_", "imm")) and not f.name.endswith("_reserved"):
            free[f.name] = -1 if f.signed else (1 << f.width) - 1
    assert cause_of(changed(WORDS[Opcode.GP_RUN], **free)) == (Cause.NONE, 0)
    for name in ("src0", "src1", "dst"):
        for bit in range(16):
            word = changed(WORDS[Opcode.GP_RUN], **{f"{name}_reserved": 1 << bit})
            assert cause_of(word) == (Cause.ILLEGAL_OPCODE, 0)


@pytest.mark.parametrize("opcode", WORDS)
def test_semaphores_exist(opcode: Opcode) -> None:
    count = TINY.issue.semaphores
    for fields in (after(count, 0), then(count)):
        assert cause_of(changed(WORDS[opcode], **fields)) == (
            Cause.BAD_SEMAPHORE,
            address(Space.SEMAPHORES, 4 * count),
        )


def test_what_the_engine_finds_is_no_matter_of_issue() -> None:
    for word in (gp_load(SOURCE, 0), gp_load(SOURCE, 255, offset=2), gp_run(0, 0), gp_store(TARGET, 3)):
        assert cause_of(word) == (Cause.NONE, 0)


def test_no_other_opcode_is_there() -> None:
    for opcode in (95, 99, 127):
        assert cause_of(changed(WORDS[Opcode.GP_RUN], opcode=opcode)) == (Cause.ILLEGAL_OPCODE, 0)

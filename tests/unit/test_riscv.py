"""The golden RISC-V hart against unicorn, which others wrote: every compressed encoding, random 32-bit ones, corners.

What unicorn cannot tell (CSRs, traps, misaligned accesses, interrupts) is in test_riscv_traps.py.
"""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from verif.checks.unicorn_hart import UnicornHart
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Memory
from verif.golden.riscv.retired import Retired
from verif.golden.riscv.traps import Cause

CODE, CODE_BYTES = 0x10000000, 0x80000
DATA, DATA_BYTES = 0x20000000, 0x1000
CORNERS = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)
COUNT = 600
USER_ECALL = 8  # what unicorn says of any ECALL; in machine mode it is 11

Predicate = Callable[[int], bool]


def _bits(low: int, high: int) -> Callable[[int], int]:
    return lambda half: half >> low & (1 << high - low + 1) - 1


QUADRANT, FUNCT3, HIGH, KIND = _bits(0, 1), _bits(13, 15), _bits(12, 12), _bits(10, 11)
UNICORN_EXECUTES: dict[str, Predicate] = {
    # Volume I, chapter "C": instructions of F and D, which this hart does not have. Unicorn knows C.FLW and C.FSW.
    "C.FLD": lambda h: (QUADRANT(h), FUNCT3(h)) == (0, 1),
    "C.FSD": lambda h: (QUADRANT(h), FUNCT3(h)) == (0, 5),
    "C.FLDSP": lambda h: (QUADRANT(h), FUNCT3(h)) == (2, 1),
    "C.FLWSP": lambda h: (QUADRANT(h), FUNCT3(h)) == (2, 3),
    "C.FSDSP": lambda h: (QUADRANT(h), FUNCT3(h)) == (2, 5),
    "C.FSWSP": lambda h: (QUADRANT(h), FUNCT3(h)) == (2, 7),
    # Table "RVC opcode map": quadrant 0, funct3 100 is reserved.
    "quadrant 0, funct3 4": lambda h: (QUADRANT(h), FUNCT3(h)) == (0, 4),
    # "For RV32C, shamt[5] must be zero; the code points with shamt[5]=1 are designated for custom extensions."
    "C.SLLI, shamt[5]": lambda h: (QUADRANT(h), FUNCT3(h), HIGH(h)) == (2, 0, 1),
    "C.SRLI and C.SRAI, shamt[5]": lambda h: (QUADRANT(h), FUNCT3(h), HIGH(h)) == (1, 4, 1) and KIND(h) < 2,
    # "C.SUBW", "C.ADDW": RV64C and RV128C only; beside them two reserved ones.
    "C.SUBW, C.ADDW and beside": lambda h: (QUADRANT(h), FUNCT3(h), HIGH(h), KIND(h)) == (1, 4, 1, 3),
}
"""Encodings that are illegal here and that unicorn's translator takes for instructions that change nothing or more."""


class Pair:
    """A golden hart and unicorn, with the same memory and registers."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.unicorn = UnicornHart(CODE, CODE_BYTES, DATA, DATA_BYTES)
        self.data = bytearray(self.rng.randbytes(DATA_BYTES))
        self.unicorn.write(DATA, bytes(self.data))
        self.code = bytearray(CODE_BYTES)
        memory = Memory()
        memory.add(CODE, self.code)
        memory.add(DATA, self.data)
        self.hart = Hart(memory)

    def set(self, **registers: int) -> None:
        """Registers by name, x5=..."""
        pairs = [(int(name[1:]), value & 0xFFFFFFFF) for name, value in registers.items() if name != "x0"]
        for number, value in pairs:
            self.hart.x[number] = value
        self.unicorn.set(pairs)

    def value(self) -> int:
        """A random value, often a corner."""
        rng = self.rng
        return rng.choice(
            (rng.choice(CORNERS), rng.getrandbits(32), rng.getrandbits(8), -rng.getrandbits(12) & 0xFFFFFFFF)
        )

    def both(self, bits: int, size: int) -> tuple[Retired, int]:
        """Execute an instruction in both, compare what the golden hart retires; its record and unicorn's cause or 0."""
        instruction = bits.to_bytes(size, "little")
        pc = self.unicorn.place(instruction)
        self.code[pc - CODE : pc - CODE + size] = instruction
        self.hart.pc = pc
        before = self.hart.x[:32]
        retired = self.hart.step()
        cause, next_pc, registers = self.unicorn.step(pc)
        if not retired.trap:
            assert (cause, next_pc) == (None, retired.pc_wdata), (hex(bits), cause, hex(next_pc), retired)
            assert list(registers) == self.hart.x[:32], (hex(bits), retired)
            if retired.mem_wmask:
                at = retired.mem_addr
                assert self.unicorn.read(at, 4) == self.data[at - DATA : at - DATA + 4], (hex(bits), retired)
        else:
            assert self.hart.x[:32] == before, (hex(bits), retired)
            if list(registers) != before:  # put right what only unicorn did
                self.unicorn.set(enumerate(before))
            if bits & 0x7F in (0x63, 0x67):
                self.unicorn.clear(pc)
        return retired, cause or 0


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Pair:
    """Seeded by the name of the test."""
    return Pair(sum(request.node.name.encode()))


def jumps(half: int) -> bool:
    """By an offset. Their targets must not be places of illegal instructions."""
    return QUADRANT(half) == 1 and FUNCT3(half) in (1, 5, 6, 7)


def test_every_compressed_encoding(pair: Pair) -> None:
    halves = sorted((h for h in range(1 << 16) if QUADRANT(h) < 3), key=jumps)
    assert len(halves) == 49152
    rng = pair.rng
    causes: Counter[int] = Counter()
    differs: Counter[str] = Counter()
    known: Counter[str] = Counter()
    first_jump = next(h for h in halves if jumps(h))
    for half in halves:
        if half == first_jump:
            pair.unicorn.skip(4096)
        if half % 8 < 4:  # others meet what these leave
            pair.set(**{f"x{n}": pair.value() for n in (half >> 7 & 31, half >> 2 & 31)})
        pointer = 8 + (half >> 7 & 7)
        pair.set(**{"x2": DATA + 0x400, f"x{pointer}": DATA + 0x800 + 4 * rng.getrandbits(6)})
        retired, cause = pair.both(half, 2)
        causes[retired.cause] += 1
        reasons = [name for name, is_one in UNICORN_EXECUTES.items() if is_one(half)]
        known.update(reasons)
        if cause != retired.cause:
            assert (retired.cause, cause) == (Cause.ILLEGAL, 0), (hex(half), cause, retired)
            assert len(reasons) == 1, (hex(half), retired)
            differs.update(reasons)
        elif reasons:
            assert retired.cause == Cause.ILLEGAL, (hex(half), retired)
    assert set(differs) == set(UNICORN_EXECUTES)
    assert causes[Cause.BREAKPOINT] == 1
    assert differs == known


WORDS = {
    "lui": 0x37, "auipc": 0x17, "jal": 0x6F, "jalr": 0x67, "branch": 0x63, "load": 0x03, "store": 0x23,
    "immediate": 0x13, "register": 0x33,
}  # fmt: skip


@pytest.mark.parametrize("kind", WORDS)
def test_random_words(pair: Pair, kind: str) -> None:
    """All bits beside the opcode are random, so many are illegal; JALR, shifts and REGISTER are helped to be legal."""
    rng, opcode = pair.rng, WORDS[kind]
    illegal = 0
    pair.set(**{f"x{n}": pair.value() for n in range(1, 32)})
    for count in range(COUNT):
        word = rng.getrandbits(32) & ~0x7F | opcode
        if kind == "register" and count % 8:
            word = word & 0x1FFFFFF | rng.choice((0, 1, 1, 0x20)) << 25
        if kind == "jalr" and count % 8:
            word &= ~0x7000
        if kind == "immediate" and word >> 12 & 3 == 1 and count % 8:
            word = word & 0x1FFFFFF | rng.choice((0, 0x20)) << 25
        rs1, rs2 = word >> 15 & 31, word >> 20 & 31
        pair.set(**{f"x{rs1}": pair.value(), f"x{rs2}": pair.value()})
        if kind == "branch" and rng.random() < 0.3:
            pair.set(**{f"x{n}": pair.hart.x[rs1] for n in (rs1, rs2) if rs1})
        if kind in ("load", "store"):
            if not rs1:
                continue
            imm = word >> 20 if kind == "load" else word >> 25 << 5 | word >> 7 & 31
            imm -= (imm & 0x800) << 1
            size = 1 << (word >> 12 & 3)
            pair.set(**{f"x{rs1}": DATA + rng.randrange(0, DATA_BYTES, min(size, 4)) - imm})
        retired, cause = pair.both(word, 4)
        assert cause == retired.cause, (hex(word), cause, retired)
        illegal += retired.trap
    assert illegal < COUNT * 0.75


def test_words_of_any_opcode(pair: Pair) -> None:
    """Legal are those of the parts above, which are left out here, and those that unicorn has beyond."""
    others = [op for op in range(3, 128, 4) if op not in (*WORDS.values(), 0x73)]
    for op in others:
        for _ in range(COUNT // 16):
            word = pair.rng.getrandbits(32) & ~0x7F | op
            retired, cause = pair.both(word, 4)
            if op == 0x0F and not retired.trap or op == 0x2F and not cause:
                continue
            assert cause == retired.cause, (hex(word), cause, retired)


@pytest.mark.parametrize("funct3", range(8))
def test_multiply_and_divide_corners(pair: Pair, funct3: int) -> None:
    for a in CORNERS:
        for b in CORNERS:
            pair.set(x5=a, x6=b)
            retired, cause = pair.both(1 << 25 | 6 << 20 | 5 << 15 | funct3 << 12 | 7 << 7 | 0x33, 4)
            assert (retired.cause, cause, retired.rd_addr) == (0, 0, 7)


@pytest.mark.parametrize(("word", "cause", "unicorn"), [(0x73, Cause.ECALL, USER_ECALL), (0x100073, 3, 3)])
def test_environment(pair: Pair, word: int, cause: int, unicorn: int) -> None:
    retired, said = pair.both(word, 4)
    assert (retired.cause, said) == (cause, unicorn)

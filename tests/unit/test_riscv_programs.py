"""Random programs on the golden RISC-V hart: all end; together they meet all instructions, traps and CSRs."""

import time
from collections import Counter

import pytest

from verif.checks.riscv_program import random_program
from verif.checks.riscv_words import branch, c_immediate, c_register
from verif.golden.riscv import decode as tables
from verif.golden.riscv.csrs import ADDRESSES
from verif.golden.riscv.decode import decode
from verif.golden.riscv.expand import expand
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Device, Memory
from verif.golden.riscv.retired import Retired
from verif.golden.riscv.traps import INTERRUPT, Cause

BASE, BYTES = 0x10000000, 0x10000
DATA, DATA_BYTES = 0x20000000, 2048
TOHOST = 0x40000000
SEEDS, LENGTH, LIMIT = 200, 80, 20000
PENDING = (1 << 11, 1 << 7, 1 << 3, 1 << 7 | 1 << 3)

NAMES = {
    "lui", "auipc", "jal", "jalr", "addi", "ecall", "ebreak", "mret", "wfi", "fence", "fence.i",
    *tables.LOADS.values(), *tables.STORES.values(), *tables.BRANCHES.values(), *tables.IMMEDIATES.values(),
    *tables.SHIFTS.values(), *tables.REGISTERS.values(), *tables.CSRS.values(),
}  # fmt: skip


class Machine:
    """A hart with a program, its data and the word that ends it."""

    def __init__(self, seed: int, length: int = LENGTH, **options: bool):
        self.told: list[int] = []
        memory = Memory()
        program = random_program(seed, length, BASE, DATA, DATA_BYTES, TOHOST, **options)
        memory.add(BASE, program.ljust(BYTES, b"\0"))
        memory.add(DATA, bytes(DATA_BYTES))
        memory.add(TOHOST, Device(4, lambda address, size: 0, lambda address, size, value: self.told.append(value)))
        self.hart = Hart(memory, reset_pc=BASE)

    def steps(self, pending: tuple[int, ...] = (0,)) -> list[Retired]:
        """All there are up to the store that ends the program. Errors: AssertionError if it does not come."""
        records: list[Retired] = []
        while not self.told:
            records.append(self.hart.step(pending[len(records) // 7 % len(pending)] if len(records) % 7 == 0 else 0))
            assert len(records) < LIMIT, hex(self.hart.pc)
        assert self.told == [1]
        return records


def test_programs_end_and_meet_everything() -> None:
    names: Counter[str] = Counter()
    causes: Counter[int] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    branches: Counter[tuple[str, bool]] = Counter()
    compressed: Counter[tuple[int, int]] = Counter()
    csrs: Counter[int] = Counter()
    rewritten = 0
    most = 0
    for seed in range(SEEDS):
        executed: dict[int, int] = {}
        records = Machine(seed, wfi=True).steps()
        most = max(most, len(records))
        for r in records:
            causes[r.cause] += 1
            size = 4 if r.insn & 3 == 3 else 2
            sizes[size, r.pc_rdata & 2] += 1
            rewritten += executed.setdefault(r.pc_rdata, r.insn) != r.insn
            word = r.insn if size == 4 else expand(r.insn)
            instruction = None if word is None or r.cause == Cause.FETCH_ACCESS else decode(word)
            if size == 2:
                compressed[r.insn & 3, r.insn >> 13] += not r.trap
            if not instruction:
                continue
            names[instruction.name] += 1
            if instruction.name in tables.BRANCHES.values():
                branches[instruction.name, r.pc_wdata != r.pc_rdata + size] += 1
            if instruction.name.startswith("csr") and not r.trap:
                csrs[instruction.imm] += 1
    print(f"\n{sum(names.values())} instructions, at most {most} a program, {rewritten} times another at an address")
    assert set(names) == NAMES, NAMES - set(names)
    assert min(names.values()) >= 10, names
    assert {c: causes[c] >= 50 for c in Cause} == dict.fromkeys(Cause, True), causes
    assert min(sizes[key] for key in ((2, 0), (2, 2), (4, 0), (4, 2))) > 5000, sizes
    assert len(branches) == 12 and min(branches.values()) >= 10, branches
    assert set(+compressed) == {(0, 0), (0, 2), (0, 6), *((1, f) for f in range(8)), (2, 0), (2, 2), (2, 4), (2, 6)}
    assert set(csrs) == set(ADDRESSES.values())
    assert rewritten > 100


def test_interrupts_come_back() -> None:
    met: Counter[int] = Counter()
    for seed in range(30):
        machine = Machine(seed, interrupts=True)
        met.update(r.cause & ~INTERRUPT for r in machine.steps(PENDING) if r.intr)
    assert set(met) == {3, 7, 11} and min(met.values()) >= 20, met


def test_the_same_seed_gives_the_same_program() -> None:
    def make(seed: int) -> bytes:
        return random_program(seed, 30, BASE, DATA, DATA_BYTES, TOHOST)

    assert make(1) == make(1)
    assert make(1) != make(2)


def test_run_and_steps_end_alike() -> None:
    """And how fast both are, printed with -s."""
    seconds = {"step": 0.0, "run": 0.0}
    steps = 0
    for seed in range(20):
        one, other = Machine(seed, 200), Machine(seed, 200)
        start = time.perf_counter()
        made = len(one.steps())
        middle = time.perf_counter()
        assert other.hart.run(made) == made
        seconds["run"] += time.perf_counter() - middle
        seconds["step"] += middle - start
        steps += made
        assert other.told == [1]
        assert (one.hart.pc, one.hart.x) == (other.hart.pc, other.hart.x)
        assert all(one.hart.csrs.read(a) == other.hart.csrs.read(a) for a in ADDRESSES.values())
        assert all(
            one.hart.memory.load(at, 4) == other.hart.memory.load(at, 4) for at in range(DATA, DATA + DATA_BYTES, 4)
        )
    print(*(f"\n{name}: {steps / took / 1e6:.2f} million instructions a second" for name, took in seconds.items()))


def test_how_fast_a_loop_is() -> None:
    """Printed with -s: a library's loop has few traps and repeats its instructions, unlike random programs."""
    memory = Memory()
    words = (0x00052283, 0x00530333, 0x00662023, 0x00B343B3, 0x00339E13)  # LW, ADD, SW, XOR, SLLI
    loop = b"".join(word.to_bytes(4, "little") for word in words)
    loop += c_immediate(0, 11, 1) + c_register(False, 14, 28) + c_immediate(0, 15, -1)
    loop += branch(1, 15, 0, -len(loop))
    memory.add(BASE, loop.ljust(1024, b"\0"))
    hart = Hart(memory, reset_pc=BASE)
    hart.x[10] = hart.x[12] = BASE + 512
    hart.x[15] = 1 << 20
    start = time.perf_counter()
    assert hart.run(90000) == 90000
    rate = 90000 / (time.perf_counter() - start) / 1e6
    assert (hart.pc, hart.csrs.trapped, hart.x[11]) == (BASE, 0, 10000)
    print(f"\nloop: {rate:.2f} million instructions a second")


@pytest.mark.parametrize(
    ("base", "data", "data_bytes"),
    [(BASE + 4, DATA, DATA_BYTES), (BASE, DATA + 1, 2048), (BASE, DATA, 512), (BASE, DATA, 8192), (BASE, DATA, 2044)],
)
def test_places_that_cannot_be(base: int, data: int, data_bytes: int) -> None:
    with pytest.raises(ValueError, match="see the rules of random_program"):
        random_program(1, 10, base, data, data_bytes, TOHOST)

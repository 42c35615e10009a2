"""Programs that decide, on the core: what queues work out by themselves issues what a straight program would."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from firmware.image import Image, Segment, build_image
from firmware.kernel import Kernel
from firmware.workloads import find_workload
from rtl.contract.config import named
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Queue, Update
from rtl.contract.memmap import Control, QueueRegister
from rtl.contract.sequence import FILLED, SeqOp
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks.gpsimd_beside import of_words
from verif.checks.gpsimd_program import WordImage
from verif.checks.random_kernel import random_kernel
from verif.checks.scrambled_image import scrambled_image
from verif.checks.sequence_programs import ZERO, Instructions, operation, random_program, sequence, with_fills
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")
OWN = 12  # semaphores of a queue


def run(image: Image) -> RunResult:
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        return device.run()


def compare(image: Image, seed: int | None = None) -> RunResult:
    """On the RTL and on the golden machine."""
    golden = GoldenMachine(TINY, seed)
    golden.load(image)
    want = golden.run()
    got = run(image)
    assert (got.end, want.faults) == ("done", []), f"{got.end}: {got.faults} {got.progress}"
    assert got.retired_total == sum(want.retired.values())
    for name, bits in want.outputs.items():
        assert (got.outputs[name] == bits).all(), f"{name} differs"
    return got


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.regress) for n in range(8, 200))])
def test_random_kernels_scrambled(seed: int) -> None:
    """Queues of random kernels with fields from registers, runs of words in any order and branches between them."""
    rng = np.random.default_rng(seed)
    image = build_image(random_kernel(TINY, seed, elements=seed % 2 == 1))
    straight, other = compare(image), compare(scrambled_image(image, rng), seed)
    assert straight.retired_total == other.retired_total and other.cycles > straight.cycles


def nops(first: int) -> Instructions:
    """NOPs that change semaphores from `first` on, by what registers hold."""
    code = FILLED.index(("update_value", 0))

    def nop(rng: np.random.Generator, update: int = Update.ADD, value: int | None = None) -> int:
        change = int(rng.integers(-(1 << 31), 1 << 31)) if value is None else value
        return INSTRUCTION.pack(
            opcode=Opcode.NOP, update=update, update_semaphore=first + int(rng.integers(OWN)), update_value=change
        )

    def plain(rng: np.random.Generator) -> int:
        return nop(rng, int(rng.choice((Update.ADD, Update.ADD, Update.SET))))

    def revealing(rng: np.random.Generator, registers: Sequence[int]) -> int:
        return with_fills(nop(rng, value=0), [(code, int(rng.choice(registers)))])

    return Instructions(plain, [code], revealing)


@pytest.mark.parametrize("first", [0, *(pytest.param(60 * n, marks=pytest.mark.regress) for n in range(1, 34))])
def test_random_programs_of_loops_and_branches(first: int) -> None:
    """60 runs with a program in each of the five queues: nested loops, branches, fields; of all, the semaphores they
    leave and how many instructions they issue."""
    issued = 0
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        for n in range(first, first + 60):
            rng = np.random.default_rng(n)
            programs = {q: random_program(rng, int(rng.choice((5, 15, 30))), 0, kind=nops(OWN * q)) for q in Queue}
            image = of_words(WordImage(words=programs))
            golden = GoldenMachine(TINY, n)
            golden.load(image)
            want = golden.run()
            device.load(image)
            got = device.run()
            assert (got.end, want.faults) == ("done", [])
            at = [Control.QUEUE + 0x100 * q + QueueRegister.RETIRED for q in Queue]
            assert [device.core.host_read(place) for place in at] == [want.retired[q] for q in Queue]
            semaphores = [device.core.host_read(Control.SEMAPHORE + 8 * s) for s in range(TINY.issue.semaphores)]
            assert [s & 0xFFFF_FFFF for s in semaphores] == [s & 0xFFFF_FFFF for s in want.semaphores], f"program {n}"
            issued += sum(want.retired.values())
    assert issued > 60 * 5 * 15


def test_a_product_as_a_loop() -> None:
    """The same bits as without, in fewer words."""
    found: dict[bool, tuple[np.ndarray, int]] = {}
    for loop in (False, True):
        program = find_workload("gemm").build(
            TINY, {"m": 160, "k": 24, "n": 40, "resident": True, "loop": loop}, seed=1
        )
        image = build_image(program)
        (bits,) = compare(image).outputs.values()
        found[loop] = bits, sum(count for _, count in image.queues.values())
    assert (found[True][0] == found[False][0]).all()
    assert found[True][1] < found[False][1]


@pytest.mark.parametrize("moves", [0, 1], ids=["the same each turn", "one further each turn"])
@pytest.mark.parametrize(("columns", "most"), [(64, 3.0), (8, 3.0)])
def test_a_turn_takes_what_its_instruction_takes(columns: int, most: float, moves: int) -> None:
    """A loop of one copy of so many columns against 200 copies in a row: cycles a turn that it takes more."""
    turns, p = 200, TINY.partitions
    k = Kernel(TINY, "copies")
    source, target = (k.sbuf(name, partitions=p, columns=512, dtype="bf16") for name in ("source", "target"))
    with k.loop(turns) as i:
        k.vector.copy(target[:, moves * i : moves * i + columns], source[:, moves * i : moves * i + columns])
    program = k.program()
    unrolled, rolled = (run(build_image(program, rolled=rolled)) for rolled in (False, True))
    assert unrolled.retired_total == rolled.retired_total == turns
    assert rolled.cycles - unrolled.cycles <= most * turns / 10
    assert sum(count for _, count in build_image(program).queues.values()) <= 3


@pytest.mark.parametrize("turns", [0, 1, 7, 300])
def test_a_loop_of_as_many_turns_as_hbm_says(turns: int) -> None:
    """In every queue: the number is data in HBM."""
    counts, rounds, at = 1, 2, 4096
    load = operation(SeqOp.LOAD, counts, ZERO, None, at // 4)
    body = INSTRUCTION.pack(opcode=Opcode.NOP, update=Update.ADD, update_semaphore=0, update_value=1)
    program = [
        sequence(load, operation(SeqOp.BRANCH_EQUAL, 0, counts, ZERO, 3), fence=True),
        0,
        sequence(operation(SeqOp.ADD, rounds, rounds, None, 1), operation(SeqOp.BRANCH_LESS, 0, rounds, counts, 1)),
    ]
    words = {q: [*program] for q in Queue}
    for q in Queue:
        words[q][1] = body + (INSTRUCTION.pack(update_semaphore=int(q)) if q else 0)
    data = WordImage(words=words)
    image = of_words(data)
    number = Segment(at, np.frombuffer(turns.to_bytes(4, "little"), np.uint8))
    image = replace(image, segments=(*image.segments, number), hbm_bytes=at + 4)
    golden = GoldenMachine(TINY, 1)
    golden.load(image)
    want = golden.run()
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        got = device.run()
        left = [device.core.host_read(Control.SEMAPHORE + 8 * q) for q in Queue]
    assert got.end == "done" and left == list(want.semaphores[: len(Queue)]) == [turns] * len(Queue)
    assert got.retired_total == turns * len(Queue)


@pytest.mark.parametrize("queue", list(Queue), ids=lambda q: q.name.lower())
@pytest.mark.parametrize("cause", [Cause.BAD_SEQUENCE, Cause.ENDLESS_LOOP])
def test_what_a_queue_cannot_execute_halts_it_alone(queue: Queue, cause: Cause) -> None:
    """Behind three instructions; the other queues end theirs."""
    jump = operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO, 3)
    wrong = sequence(jump) if cause == Cause.ENDLESS_LOOP else sequence(operation(SeqOp.ADD)) | 1 << 1023
    rng = np.random.default_rng(int(queue))
    words = {q: [nops(OWN * q).plain(rng) for _ in range(3)] for q in Queue}
    words[queue] = [*words[queue], wrong, *words[queue]]
    got = run(of_words(WordImage(words=words)))
    (fault,) = got.faults
    assert (got.end, fault.queue, fault.cause, fault.sequence, fault.address) == (
        "fault", queue.name.lower(), cause, 3, 0,
    )  # fmt: skip
    assert got.retired_total == 3 * len(Queue) + 1

"""Random programs of the GPSIMD engine on whole cores, beside the golden machine: results, ends, counters."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from firmware.image import build_image
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.gpsimd import Mailbox, Region, cores, lane_address, lanes, row_address
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Queue
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks import riscv_words as w
from verif.checks.gpsimd_beside import Beside, beside
from verif.checks.gpsimd_core import core_image, hart_program
from verif.checks.gpsimd_program import WordImage, after, gp_load, gp_run, nop, pattern, then
from verif.checks.gpsimd_random import ENDS, EngineProgram, engine_program
from verif.golden.gpsimd.core import Core
from verif.golden.gpsimd.mailbox import MailboxRegisters
from verif.golden.riscv.decode import Instruction
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.vector.unit import VectorUnit

pytestmark = pytest.mark.sim
TINY, SMALL = (load(name, ["gpsimd.vectors=false"]) for name in ("tiny", "small"))
VECTORS, SMALL_VECTORS = named("tiny"), named("small")
ODD = load(
    "tiny",
    (
        "gpsimd.clock_mhz=961",
        "gpsimd.local_bytes=16384",
        "vector.clock_mhz=1801",
        "hbm.ports=2",
        "hbm.bytes_per_cycle=37",
        "sbuf.banks=2",
        "issue.queue_depth=2",
    ),
)
MANY = 10_000_000


def chain(cfg: Config, seed: int, end: str, statements: int = 12, *, dense: bool = False) -> Beside:
    """Two programs that end well, then one that ends as `end` says."""
    rng = random.Random(seed)
    well = ("done", "tohost")
    first = engine_program(rng.getrandbits(32), cfg, rng.choice(well), statements, dense=dense)
    other = rng.getrandbits(32)
    second = engine_program(other, cfg, rng.choice(well), statements, dense=True) if dense else hart_program(other, cfg)
    programs = [first, second, engine_program(seed, cfg, end, statements, dense=dense)]
    return beside(cfg, core_image(cfg, programs, seed), rng.choice((None, seed)))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_core_leaves_what_golden_leaves(end: str, seed: int) -> None:
    found = chain(TINY, 100 * seed + ENDS.index(end), end)
    assert found.differences == [] and found.instructions > 0


@pytest.mark.parametrize("cfg", [VECTORS, pytest.param(SMALL_VECTORS, marks=pytest.mark.regress)], ids=lambda c: c.name)
@pytest.mark.parametrize("end", ENDS)
def test_a_core_with_vectors_leaves_what_golden_leaves(end: str, cfg: Config) -> None:
    found = chain(cfg, 50 + ENDS.index(end), end, 24)
    assert found.differences == [] and found.instructions > 0


@pytest.mark.regress
@pytest.mark.parametrize(
    "cfg", [TINY, SMALL, VECTORS, SMALL_VECTORS], ids=lambda c: f"{c.name}{'v' * c.gpsimd.vectors}"
)
def test_ten_million_instructions(cfg: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer programs, until so many have retired on the cores; half of them are vectors', if cores have them."""
    retired = runs = vectors = 0
    prepare = VectorUnit.prepare

    def counted(unit: VectorUnit, word: int) -> tuple[Instruction, Callable[[int], int]] | None:
        prepared = prepare(unit, word)
        if prepared is None:
            return None

        def step(pc: int) -> int:
            nonlocal vectors
            vectors += 1
            return prepared[1](pc)

        return prepared[0], step

    monkeypatch.setattr(VectorUnit, "prepare", counted)
    statements = 12 if cfg.gpsimd.vectors else 30
    # the loop that these two end in would be most of the instructions
    ends = [end for end in ENDS if not cfg.gpsimd.vectors or end not in ("watchdog", "asleep")]
    while retired < MANY:
        found = chain(cfg, 1000 + runs, ends[runs % len(ends)], statements, dense=cfg.gpsimd.vectors)
        assert found.differences == [], f"run {runs}"
        retired, runs = retired + found.instructions, runs + 1
    print(f"{cfg.name}: {retired:,} instructions, {vectors:,} of vectors, in {runs} runs")
    assert (2 * vectors >= retired) == cfg.gpsimd.vectors


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(60))
def test_other_clocks_and_sizes(seed: int) -> None:
    """An engine of an odd clock, two ports of HBM, small memories."""
    assert chain(ODD, 2000 + seed, ENDS[seed % len(ENDS)], 30).differences == []


@pytest.mark.parametrize("seed", range(6))
def test_instructions_are_counted_as_golden_retires_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, calls and traps: what traps does not retire. The store that ends a run does; golden stops within it."""
    made: list[Core] = []

    def kept(hart: Hart, mailbox: MailboxRegisters) -> Core:
        made.append(Core(hart, mailbox))
        return made[-1]

    monkeypatch.setattr("verif.golden.gpsimd.cluster.Core", kept)
    found = beside(TINY, core_image(TINY, [hart_program(seed + k, TINY) for k in (0, 50)], seed))
    assert found.differences == []
    assert found.instructions == sum(core.hart.csrs.retired + 1 for core in made) > 1000


def straight(rng: random.Random, cfg: Config) -> tuple[bytes, int, int]:
    """A program without a branch, its instructions, and the bytes of SBUF that it loads and stores."""
    code, size_bytes = b"", 0
    for _ in range(rng.randrange(20, 60)):
        size, lane = rng.randrange(3), rng.randrange(lanes(cfg.partitions))
        byte = rng.randrange(2048) >> size << size
        outside = rng.random() < 0.3
        place = (row_address(lane, byte), lane_address(lane, byte, lanes(cfg.partitions)))
        code += w.load_constant(5, Region.LOCAL + 0x2000 + byte if outside else rng.choice(place))
        stores = rng.random() < 0.5
        code += w.store(size, 6, 5, 0) if stores else w.immediate(0x03, size, 6, 5, 0)
        size_bytes += 0 if outside else 1 << size
        code += b"".join(w.register(rng.randrange(2), rng.randrange(8), 7, 6, 5) for _ in range(rng.randrange(3)))
    code += w.load_constant(5, Region.MAILBOX + Mailbox.DONE) + w.store(2, 0, 5, 0)
    return code, len(code) // 4, size_bytes


@pytest.mark.parametrize("seed", range(4))
def test_counters_are_exact(seed: int) -> None:
    """The states of a core are the engine's cycles, instructions and bytes those of the program."""
    rng = random.Random(seed)
    made = {core: straight(rng, TINY) for core in range(cores(TINY.partitions))}
    program = EngineProgram({core: code for core, (code, *_) in made.items()}, "done", Cause.NONE)
    found = beside(TINY, core_image(TINY, [program], seed))
    result, moved = found.result, found.sbuf_bytes
    assert found.differences == []
    assert [one.instructions for one in result.gpsimd_cores] == [count for _, count, _ in made.values()]
    assert moved == [size for *_, size in made.values()]
    for one in result.gpsimd_cores:
        cycles = one.busy + one.idle + sum(one.stall.values())
        assert abs(cycles - result.cycles // 2) <= 1


@pytest.mark.parametrize("place", ["rows", "shared", "semaphore", "register", "local"])
def test_a_load_under_way_is_answered_before_a_core_sleeps(place: str) -> None:
    mailbox = Region.MAILBOX
    at = {
        "rows": row_address(0, 64), "shared": Region.SHARED + 64, "semaphore": mailbox + Mailbox.SEMAPHORE_BASE + 20,
        "register": mailbox + Mailbox.CORES, "local": Region.LOCAL + 0x100,
    }  # fmt: skip
    code = w.load_constant(5, 1 << 7) + w.immediate(0x73, 1, 0, 5, 0x304) + w.load_constant(5, mailbox)
    code += w.immediate(0x03, 2, 6, 5, Mailbox.MTIME) + w.immediate(0x03, 2, 7, 5, Mailbox.MTIMEH)
    code += w.immediate(0x13, 0, 6, 6, 400) + w.store(2, 6, 5, Mailbox.MTIMECMP) + w.store(2, 7, 5, Mailbox.MTIMECMPH)
    code += w.load_constant(5, at[place]) + w.immediate(0x03, 2, 10, 5, 0) + (0x10500073).to_bytes(4, "little")
    code += w.load_constant(5, row_address(1, 256)) + w.store(2, 10, 5, 0)
    code += w.load_constant(5, mailbox + Mailbox.DONE) + w.store(2, 0, 5, 0)
    found = beside(TINY, core_image(TINY, [EngineProgram({0: code}, "done", Cause.NONE)], 1))
    assert found.differences == [] and found.result.gpsimd_cores[0].stall["sleep"] > 100


def test_nothing_is_lost_where_all_add_to_one_semaphore() -> None:
    """Cores and queues, at the same time."""
    shared, added, count, times = 20, 21, cores(TINY.partitions), 100
    add = w.load_constant(5, Region.MAILBOX + Mailbox.SEMAPHORE_ADD + 4 * shared) + w.load_constant(6, 1)
    body = w.store(2, 6, 5, 0) + w.immediate(0x13, 0, 7, 7, -1)
    code = add + w.load_constant(7, times) + body + w.branch(1, 7, 0, -len(body))
    code += w.load_constant(5, Region.MAILBOX + Mailbox.DONE) + w.store(2, 0, 5, 0)
    program = EngineProgram(dict.fromkeys(range(count), code), "done", Cause.NONE)
    image = core_image(TINY, [program], 1)
    others = (Queue.TENSOR, Queue.VECTOR, Queue.SCALAR, Queue.SYNC)
    words = {**image.words, **{queue: [nop(**after(10, 1)), *[nop(**then(shared))] * times] for queue in others}}
    words[Queue.SYNC] = [*words[Queue.SYNC], nop(**then(added, -7))]
    found = beside(TINY, WordImage(words=words, descriptors=image.descriptors, data=image.data, outputs=image.outputs))
    assert found.differences == []
    assert found.semaphores[shared] == times * (count + len(others)) and found.semaphores[added] == -7


def run(program: Program) -> RunResult:
    with VerilatedDevice(program.config, build_core(program.config).binary) as device:
        device.load(build_image(program))
        return device.run()


def test_a_core_without_the_engine() -> None:
    """Its opcodes are illegal, and other programs take the cycles that they take beside the engine."""
    without = load("tiny", ("gpsimd.enabled=false",))
    operand = pattern("src0", 0, 4, 0, 4)
    store = INSTRUCTION.pack({"opcode": Opcode.GP_STORE, "imm0": 1 << 32, **pattern("dst", 0, 4, 0, 4)})
    for word in (gp_run(Region.LOCAL, 1), gp_load(operand, 1), store):
        found = beside(without, WordImage(words={Queue.GPSIMD: [nop(), word]}))
        assert found.differences == []
        assert [(f.sequence, f.cause) for f in found.result.faults] == [(1, Cause.ILLEGAL_OPCODE)]
    for workload, params in (("softmax", {"rows": 19, "columns": 33}), ("gemm", {"m": 9, "k": 17, "n": 65})):
        programs = [find_workload(workload).build(cfg, params, 1) for cfg in (TINY, without)]
        one, other = map(run, programs)
        assert one.cycles == other.cycles and one.end == other.end == "done" and other.gpsimd_cores == ()
        assert all(np.array_equal(bits, other.outputs[name]) for name, bits in one.outputs.items())

"""Images on the golden programmable engine: one core beside unicorn, all cores beside Python, what compilers make."""

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from firmware.gpsimd.build import build
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.image import Image, Section
from firmware.gpsimd.options import Options
from rtl.contract.config import named
from rtl.contract.gpsimd import FAULT, Mailbox, Region, cores, row_address
from rtl.contract.isa import Cause, Queue
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from sim.toolchain import ROOT
from verif.checks import riscv_words as w
from verif.checks.gpsimd_program import WordImage, after, by_lane, gp_load, gp_run, nop, pattern, then
from verif.golden.machine import GoldenMachine, RunResult

APPS = ROOT / "firmware" / "gpsimd" / "apps"
LOOPS = ROOT / "firmware" / "gpsimd" / "bench" / "loops.c"
MISSING = [name for name in ("ziglang", "unicorn") if importlib.util.find_spec(name) is None]
SEEDS = (None, 1, 2)
IMAGE_AT = 4096
"""Byte of the SBUF partitions where a test puts an image."""

unicorn = pytest.mark.skipif("unicorn" in MISSING, reason="no unicorn: make setup")


def compiled(test):
    """A test that needs the compiler, and what runs its code."""
    return pytest.mark.firmware(pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}")(test))


def made(source: Path) -> Image:
    return read_image(build([source], options=Options(vector=False)).path)


def written(tmp_path: Path, text: str) -> Image:
    source = tmp_path / "a.c"
    source.write_text(text)
    return made(source)


class Engine:
    """A golden machine whose queue gpsimd loads an image and runs it on some cores."""

    def __init__(
        self,
        image: Image,
        mask: int = 1,
        seed: int | None = None,
        config: str = "small",
        watchdog: int = 0,
        sync: tuple[int, ...] = (),
        **fields: int,
    ):
        self.cfg = named(config)
        self.lanes = self.cfg.partitions // cores(self.cfg.partitions)
        row = 4 * self.lanes
        front = (image.start - Region.LOCAL) % row
        rows = by_lane(bytes(front) + image.bytes(), self.lanes)
        source = pattern("src0", 0, self.lanes, IMAGE_AT, rows.shape[1] // 4)
        load = gp_load(source, mask, image.start - Region.LOCAL - front)
        self.machine = GoldenMachine(self.cfg, seed)
        words = {Queue.GPSIMD: [load, gp_run(image.entry, mask, watchdog, **fields)], Queue.SYNC: sync}
        self.machine.load(WordImage(words=words))
        self.sbuf = self.machine.sbuf.bytes
        self.sbuf[: self.lanes, IMAGE_AT : IMAGE_AT + rows.shape[1]] = rows

    def run(self) -> RunResult:
        return self.machine.run()


def random_image(seed: int) -> Image:
    """Arithmetic on all registers; what they hold is stored to SBUF, summed, printed, and the sum is the exit value."""
    rng = random.Random(seed)
    code = b"".join(w.load_constant(n, rng.choice((0, 1, 1 << 31, rng.getrandbits(32)))) for n in range(1, 32))
    for _ in range(400):
        rd, rs1, rs2, funct3 = rng.randrange(1, 32), rng.randrange(32), rng.randrange(32), rng.randrange(8)
        funct7 = rng.choice((0, 1, 0x20 if funct3 in (0, 5) else 1))
        code += rng.choice(
            (
                w.register(funct7, funct3, rd, rs1, rs2),
                w.immediate(0x13, funct3, rd, rs1, rng.randrange(32 if funct3 in (1, 5) else 2048)),
                w.c_register(True, rd, rng.randrange(1, 32)),
            )
        )
    for n in range(3, 32):
        code += w.load_constant(1, row_address(n % 4, 4 * n)) + w.store(2, n, 1, 0)
    code += w.load_constant(1, Region.MAILBOX)
    for n in range(3, 32):
        code += w.store(2, n, 1, Mailbox.PUT) + w.register(0, 0, 2, 2, n)
    code += w.store(2, 2, 1, Mailbox.DONE)
    start = Region.LOCAL + 0x1000
    return Image(Path("random"), start, (Section("text", start, len(code), True, code),), None, {}, {})


@unicorn
@pytest.mark.parametrize("seed", range(20))
def test_a_core_does_what_unicorn_does(seed: int) -> None:
    from verif.checks.unicorn_core import run_image

    image = random_image(seed)
    engine = Engine(image)
    sbuf = bytes(engine.sbuf[: engine.lanes])
    theirs = run_image(image, sbuf=widened(sbuf, engine))
    ours = engine.run()
    assert theirs.done is not None and theirs.trap is None
    low = theirs.done % 2**32
    assert [(f.cause, f.address) for f in ours.faults] == (
        [(Cause.GP_EXIT, address(Space.GPSIMD, FAULT.pack(low=low)))] if low else []
    )
    assert ours.printed[0].decode("latin-1") == theirs.printed
    assert widened(bytes(engine.sbuf[: engine.lanes]), engine) == theirs.memory


def widened(rows: bytes, engine: Engine) -> bytes:
    """Partitions as they lie in a core's window of rows."""
    size = engine.cfg.sbuf.partition_bytes
    return b"".join(rows[at : at + size].ljust(PARTITION_STRIDE_BYTES, b"\0") for at in range(0, len(rows), size))


@compiled
@pytest.mark.parametrize("config", ["tiny", "small", "full"])
def test_hello_prints_and_sums(config: str) -> None:
    image = made(APPS / "hello.cpp")
    cfg = named(config)
    count, lanes, n = cores(cfg.partitions), cfg.partitions // cores(cfg.partitions), 16
    fields = pattern("src0", 0, cfg.partitions, 512, n, dtype="int32")
    fields |= pattern("dst", 0, cfg.partitions, 1024, 1, dtype="int32")
    data = np.random.default_rng(5).integers(-(2**31), 2**31, (cfg.partitions, n)).astype("<i4")
    for seed in SEEDS[: 1 if config == "full" else None]:
        engine = Engine(image, (1 << count) - 1, seed, config, **fields)
        engine.sbuf[:, 512 : 512 + 4 * n] = data.view(np.uint8)
        result = engine.run()
        assert result.faults == []
        sums = data.sum(axis=1, dtype=np.int32)
        for core in range(count):
            total = int(sums[core * lanes : (core + 1) * lanes].sum(dtype=np.int64))
            line = f"hello from core {core} of {count}: partitions 0 to {lanes}, sum {total}\n"
            assert result.printed[core].decode() == line
        assert (np.ascontiguousarray(engine.sbuf[:, 1024:1028]).view("<i4")[:, 0] == sums).all()


@compiled
def test_one_core_of_hello_beside_unicorn() -> None:
    from verif.checks.unicorn_core import run_image

    image = made(APPS / "hello.cpp")
    fields = pattern("src0", 0, 8, 512, 9, dtype="int32") | pattern("dst", 0, 8, 1024, 1, dtype="int32")
    engine = Engine(image, **fields)
    engine.sbuf[:8, 512:1024] = np.random.default_rng(1).integers(0, 256, (8, 512), np.uint8)
    word = gp_run(image.entry, 1, 0, **fields)
    registers = {4 * i: word >> 32 * i & 0xFFFFFFFF for i in range(32)}
    registers |= {Mailbox.CORES: cores(engine.cfg.partitions), Mailbox.LANES: engine.lanes}
    theirs = run_image(image, registers=registers, sbuf=widened(bytes(engine.sbuf[:8]), engine))
    ours = engine.run()
    assert (ours.faults, theirs.done) == ([], 0)
    assert ours.printed == {0: theirs.printed.encode()}
    assert widened(bytes(engine.sbuf[:8]), engine) == theirs.memory


@compiled
def test_loops_count_their_instructions() -> None:
    from verif.checks.unicorn_core import run_image

    def sums(printed: str) -> list[tuple[str, str]]:
        return [(line.split()[0], line.split()[-1]) for line in printed.splitlines()]

    image = made(LOOPS)
    engine = Engine(image)
    result = engine.run()
    assert [(f.cause, f.address) for f in result.faults] == [(Cause.GP_EXIT, address(Space.GPSIMD, 42))]
    ours, theirs = result.printed[0].decode(), run_image(image)
    assert theirs.done == 42 and len(ours.splitlines()) == 8 and sums(ours) == sums(theirs.printed)
    assert all(int(line.split()[1]) > 256 for line in ours.splitlines())


@compiled
def test_a_trap_tells_where_it_was(tmp_path: Path) -> None:
    from verif.checks.unicorn_core import run_image

    image = written(tmp_path, "int main(void) { return *(volatile int *)0; }")
    result = Engine(image, 4).run()
    (fault,) = result.faults
    found = FAULT.unpack(fault.address - address(Space.GPSIMD, 0))
    assert fault.cause == Cause.GP_TRAP and (found["cause"], found["core"]) == (5, 2)
    trap = run_image(image).trap
    assert trap is not None and trap[:2] == (found["cause"], found["low"])


@compiled
def test_a_stack_that_overflows_traps(tmp_path: Path) -> None:
    text = "int deep(int n) { volatile int a[64]; a[0] = n; return n ? deep(n - 1) + a[0] : 0; }"
    result = Engine(written(tmp_path, text + " int main(void) { return deep(1000); }")).run()
    assert [f.cause for f in result.faults] == [Cause.GP_TRAP]
    assert FAULT.unpack(result.faults[0].address - address(Space.GPSIMD, 0))["cause"] == 7


MEETING = r"""
#include <plexus/gp.h>
int main(void) {
    volatile uint32_t *shared = (volatile uint32_t *)gp_shared(0);
    uint32_t me = gp_run_rank(), all = gp_run_cores(), sum = 0;
    gp_wait_semaphore_ge(3, 1);
    for (uint32_t round = 0; round < 4; round++) {
        shared[me] = 100 * round + me;
        gp_barrier();
        for (uint32_t i = 0; i < all; i++) sum += shared[i];
        gp_barrier();
    }
    gp_semaphore_add(4, 1);
    gp_wait_semaphore_eq(5, 7);
    gp_wait_time(gp_time() + 1000);
    gp_printf("%u %u\n", gp_core(), sum);
    return 0;
}"""


@compiled
@pytest.mark.parametrize("seed", [None, *range(6)])
def test_cores_meet_each_other_and_a_queue(tmp_path: Path, seed: int | None) -> None:
    mask, members = 0b1101, (0, 2, 3)
    sync = (nop(**then(3)), nop(**after(4, len(members)), **then(5, 7)))
    result = Engine(written(tmp_path, MEETING), mask, seed, sync=sync).run()
    assert result.faults == []
    total = sum(100 * n + rank for n in range(4) for rank in range(len(members)))
    assert result.printed == {core: b"%d %d\n" % (core, total) for core in members}

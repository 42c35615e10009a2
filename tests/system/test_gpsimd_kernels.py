"""Programs of the GPSIMD engine between work of other engines: hazards, semaphores both ways, a queue that fails."""

import numpy as np
import pytest

from firmware.gpsimd.image import Image
from firmware.image import build_image
from firmware.kernel import Kernel
from rtl.contract.config import Config, named
from rtl.contract.gpsimd import Mailbox, Region, cores, lanes
from rtl.contract.isa import Cause, Queue
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks import riscv_words as w
from verif.checks.gpsimd_beside import beside
from verif.checks.gpsimd_words import (
    BOX,
    DONE,
    IMM1,
    IMM2,
    TO,
    VALUE,
    VALUE2,
    argument,
    code_image,
    each,
    enabled,
    waited,
)
from verif.checks.random_elements import RandomElements
from verif.checks.random_maker import Maker
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY, SMALL = named("tiny"), named("small")


def tripled(cfg: Config, columns: int) -> Image:
    """dst = 3 src0 + 7, 32-bit integers of all partitions; imm1 and imm2 are bytes of the two."""
    body = w.load_constant(VALUE2, 3) + w.register(1, 0, VALUE, VALUE, VALUE2)
    body += w.immediate(0x13, 0, VALUE, VALUE, 7) + w.store(2, VALUE, TO, 0)
    loops = b"".join(each(columns, lane, body, 4) for lane in range(lanes(cfg.partitions)))
    return code_image("tripled", argument(8, IMM1) + argument(9, IMM2) + loops + DONE)


@pytest.mark.parametrize("columns", [1, 6, 37])
def test_a_program_between_vector_instructions_and_copies(columns: int) -> None:
    """Three rounds through the same tiles, so that each waits for who reads and who writes."""
    k = Kernel(TINY, "rounds")
    p, rounds = TINY.partitions, 3
    data = np.random.default_rng(columns).integers(-9999, 9999, (rounds * p, columns)).astype(np.int16)
    x = k.hbm("x", data.shape, "int16", data.view(np.uint16))
    y, z = (k.hbm(name, data.shape, dtype) for name, dtype in (("y", "int32"), ("z", "fp32")))
    formats = {"given": "int16", "wide": "int32", "result": "int32", "real": "fp32"}
    tiles = {name: k.sbuf(name, partitions=p, columns=columns, dtype=dtype) for name, dtype in formats.items()}
    given, wide, result, real = (tile[:, :] for tile in tiles.values())
    image = tripled(TINY, columns)
    for n in range(rounds):
        rows = slice(n * p, (n + 1) * p)
        k.dma(given, x[rows, :])
        k.vector.copy(wide, given)
        k.gpsimd.run(image, src=wide, dst=result, args=(wide.offset, result.offset))
        k.vector.copy(real, result)
        k.dma(y[rows, :], result)
        k.dma(z[rows, :], real)
    built = build_image(k.program())
    for seed in (None, 1, 2):
        found = beside(TINY, built, seed)
        assert found.differences == []
    assert (found.result.outputs["y"].view(np.int32) == 3 * data.astype(np.int32) + 7).all()
    assert (found.result.outputs["z"].view(np.float32) == 3 * data.astype(np.float32) + 7).all()


@pytest.mark.parametrize("seed", range(6))
def test_programs_beside_random_statements(seed: int) -> None:
    """Cores go back and forth between two tiles of their own while all engines and rings work on others."""
    maker = Maker(TINY, seed)
    k, p, columns = maker.k, TINY.partitions, 48
    maker.triggers = [Queue.SYNC, Queue.GPSIMD]
    data = maker.rng.integers(0, 1 << 32, (p, columns), np.uint32)
    x, y = k.hbm("x", data.shape, "int32", data), k.hbm("y", data.shape, "int32")
    one, other = (k.sbuf(name, partitions=p, columns=columns, dtype="int32")[:, :] for name in ("one", "other"))
    image, kinds = tripled(TINY, columns), [maker.multiply, maker.move, RandomElements(maker).statement]
    maker.begin()
    k.dma(one, x[:, :])
    want = data
    for n in range(60):
        kinds[n % len(kinds)]()
        if n % 6 == 0:
            k.gpsimd.run(image, src=one, dst=other, args=(one.offset, other.offset))
            one, other, want = other, one, 3 * want + 7
    k.dma(y[:, :], one)
    maker.end()
    found = beside(TINY, build_image(k.program()), seed)
    assert found.differences == []
    assert (found.result.outputs["y"] == want).all()
    assert sum(found.result.conflicts.values()) > 0


@pytest.mark.parametrize("cfg", [TINY, pytest.param(SMALL, marks=pytest.mark.regress)], ids=lambda c: c.name)
def test_a_program_waits_for_queues_and_they_for_it(cfg: Config) -> None:
    """A product goes by way of the program to the next product: each side waits for a semaphore of the other."""
    k = Kernel(cfg, "both ways")
    n, count, p = cfg.tensor.rows, cores(cfg.partitions), cfg.partitions
    data = np.random.default_rng(3).integers(0, 1 << 16, (p, n), np.uint16) & 0xBFFF  # below 2
    x, y, z = k.hbm("x", data.shape, "bf16", data), k.hbm("y", (n, n), "fp32"), k.hbm("z", (p, n), "int32")
    names = (("given", "bf16"), ("sums", "fp32"), ("weights", "bf16"), ("last", "fp32"), ("turned", "int32"))
    given, sums, weights, last, turned = (k.sbuf(a, partitions=p, columns=n, dtype=b)[:, :] for a, b in names)
    psum = [k.psum(f"psum {i}", partitions=n, columns=n)[:, :] for i in range(2)]
    handed = k.semaphore("handed")
    k.dma(given, x[:, :])
    for view in (sums, last):
        k.vector.memset(view, 1.5)
    k.tensor.load(given[:n, :])
    k.tensor.matmul(given[:n, :], psum[0])
    products = k.items(Queue.TENSOR)
    k.vector.copy(sums[:n, :], psum[0])
    copies = k.items(Queue.VECTOR)
    k.wait(Queue.TENSOR, handed, count, weights)
    k.tensor.load(weights[:n, :])
    k.tensor.matmul(given[:n, :], psum[1])
    k.vector.copy(last[:n, :], psum[1])
    code = enabled() + argument(13, IMM1) + argument(14, IMM1 + 4) + w.load_constant(15, k.items(Queue.VECTOR))
    code += w.load_constant(8, sums.offset) + w.load_constant(9, weights.offset)
    code += waited(Queue.TENSOR, 13) + waited(Queue.VECTOR, 14)
    upper = w.immediate(0x13, 5, VALUE, VALUE, 16) + w.store(1, VALUE, TO, 0)  # FP32 to BF16
    code += b"".join(each(n, lane, upper, 2) for lane in range(lanes(p)))
    code += w.load_constant(VALUE, Region.MAILBOX + Mailbox.SEMAPHORE_ADD + 4 * handed.index)
    code += w.immediate(0x13, 0, VALUE2, 0, 1) + w.store(2, VALUE2, VALUE, 0) + waited(Queue.VECTOR, 15)
    code += argument(8, IMM2) + argument(9, IMM2 + 4)
    turn = w.immediate(0x13, 4, VALUE, VALUE, -1) + w.store(2, VALUE, TO, 0)
    code += b"".join(each(n, lane, turn, 4) for lane in range(lanes(p))) + DONE
    args = (products | copies << 32, last.offset | turned.offset << 32)
    k.gpsimd.run(code_image("both", code), args=args, touches=[turned])
    k.dma(y[:, :], last[:n, :])
    k.dma(z[:, :], turned)
    built = build_image(k.program())
    for seed in (None, 1, 2):
        found = beside(cfg, built, seed)
        assert found.differences == []
    outputs = found.result.outputs
    assert (outputs["z"][:n] == ~outputs["y"]).all() and len(np.unique(outputs["y"])) > n


ENDS = {
    Cause.GP_TRAP: bytes(4),
    Cause.GP_EXIT: w.immediate(0x13, 0, 5, 0, 3) + w.store(2, 5, BOX, Mailbox.DONE),
    Cause.GP_WATCHDOG: w.jump(0, 0),
}


@pytest.mark.parametrize("cause", ENDS, ids=lambda cause: cause.name)
@pytest.mark.parametrize("seed", range(3))
def test_the_queue_faults_and_a_kernel_beside_it_ends_bit_equal(cause: Cause, seed: int) -> None:
    """The same random kernel alone is what must be left. Its copies go by other queues than the one that halts."""

    def kernel(fails: bool) -> Kernel:
        maker = Maker(TINY, seed)
        maker.triggers = [Queue.SYNC, Queue.SCALAR]
        kinds = [maker.multiply, maker.turn, maker.convert, maker.move, RandomElements(maker).statement]
        maker.begin()
        for n in range(40):
            kinds[int(maker.rng.integers(len(kinds)))]()
            if fails and n == 5:
                maker.k.gpsimd.run(code_image("bad", ENDS[cause]), watchdog_cycles=500)
        for tile in maker.everything:
            maker.k.dma(maker.outputs[tile.name], tile[:, :], ring=1, queue=Queue.SCALAR)
        return maker.k

    alone, beside_it = (build_image(kernel(fails).program()) for fails in (False, True))
    golden = GoldenMachine(TINY)
    golden.load(alone)
    want = golden.run()
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(beside_it)
        got = device.run()
    assert want.faults == [] and [(f.queue, f.cause) for f in got.faults] == [("gpsimd", cause)]
    assert got.end == "fault" and list(got.progress) == ["gpsimd"]
    for name, bits in want.outputs.items():
        assert np.array_equal(got.outputs[name], bits), name

"""The golden machine itself: faults, deadlocks, and that its random orders find a wait that is missing."""

import dataclasses

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.kernels.gemm import gemm
from firmware.program import Place, Program, SemaphoreWait
from rtl.contract.config import named
from rtl.contract.isa import Cause, Function, Opcode, Queue
from rtl.contract.memmap import Space, address
from verif.golden.machine import DeadlockError, Fault, GoldenMachine, RunResult

TINY = named("tiny")


def run(program: Program, seed: int | None = None) -> RunResult:
    machine = GoldenMachine(TINY, seed)
    machine.load(build_image(program))
    return machine.run()


def small_gemm(m: int = 16, k: int = 24, n: int = 130) -> Program:
    rng = np.random.default_rng(3)
    return gemm(TINY, rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32))


def change(program: Program, queue: Queue, index: int, **fields: object) -> None:
    old = program.queues[queue][index]
    program.queues[queue][index] = dataclasses.replace(old, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("queue", [Queue.TENSOR, Queue.VECTOR, Queue.GPSIMD])
def test_without_a_queues_waits_some_order_differs(queue: Queue):
    program = small_gemm()
    reference = run(program).outputs["c"]
    for i in range(len(program.queues[queue])):
        change(program, queue, i, waits=())
    different = [not np.array_equal(run(program, seed).outputs["c"], reference) for seed in range(6)]
    assert any(different)


def test_a_wait_for_too_much_is_a_deadlock():
    program = small_gemm()
    change(program, Queue.VECTOR, 0, waits=(SemaphoreWait(Queue.TENSOR, 10**6),))
    with pytest.raises(
        DeadlockError, match=r"queue vector waits at instruction 0 for semaphore 0 \(now \d+\) to reach"
    ):
        run(program)


def test_a_fault_halts_its_queue_and_touches_nothing():
    program = small_gemm()
    clean = run(program)
    pattern = program.queues[Queue.VECTOR][2].dst
    assert pattern is not None
    bad = dataclasses.replace(pattern, offset=TINY.sbuf.partition_bytes - 4)
    change(program, Queue.VECTOR, 2, dst=bad)
    for seed in (None, 1, 2):
        result = run(program, seed)
        assert result.faults == [
            Fault(
                queue="vector",
                sequence=2,
                cause=Cause.OUT_OF_RANGE,
                address=address(Space.SBUF, TINY.sbuf.partition_bytes - 4),
            )
        ]
        assert result.retired[Queue.VECTOR] == 2
        assert np.array_equal(result.outputs["c"][:8, :48], clean.outputs["c"][:8, :48])


NEVER = (SemaphoreWait(TINY.issue.semaphores - 1, 1),)  # nobody updates it


def test_an_instruction_is_judged_before_it_waits():
    program = small_gemm()
    pattern = program.queues[Queue.VECTOR][2].dst
    assert pattern is not None
    bad = dataclasses.replace(pattern, offset=TINY.sbuf.partition_bytes - 4)
    change(program, Queue.VECTOR, 2, dst=bad, waits=NEVER)
    for seed in (None, 1, 2):
        result = run(program, seed)
        assert [(f.queue, f.sequence, f.cause) for f in result.faults] == [("vector", 2, Cause.OUT_OF_RANGE)]


def test_a_ring_that_no_core_has_is_found_before_the_wait():
    program = small_gemm()
    change(program, Queue.SYNC, 0, imm0=TINY.dma.rings, waits=NEVER)
    assert [(f.queue, f.cause) for f in run(program).faults] == [("sync", Cause.BAD_RING)]


def test_what_is_left_of_a_ring_is_asked_after_the_wait():
    program = small_gemm()
    change(program, Queue.SYNC, 0, imm1=10**6, waits=NEVER)
    with pytest.raises(DeadlockError, match="queue sync waits at instruction 0"):
        run(program)


def test_a_bad_descriptor_halts_its_ring():
    program = small_gemm()
    old = program.rings[1][1]
    program.rings[1][1] = dataclasses.replace(old, destination=Place(Space.PSUM, 64))
    result = run(program)
    assert result.faults == [Fault(queue="ring 1", sequence=1, cause=Cause.BAD_SPACE, address=address(Space.PSUM, 64))]


def test_more_descriptors_than_there_are():
    program = small_gemm()
    change(program, Queue.SYNC, 0, imm1=10**6)
    result = run(program)
    assert [(f.queue, f.cause) for f in result.faults] == [("sync", Cause.BAD_RING)]
    assert set(result.outputs["c"].view(np.uint8).reshape(-1)) == {0xFF}, "nothing has been written"


def test_a_function_needs_the_table_loaded_last():
    k = Kernel(TINY, "function")
    x = k.sbuf("x", partitions=8, columns=4, dtype="fp32")[:, :]
    k.vector.memset(x, 0.0)
    k.scalar.load_table(["tanh"])
    k.scalar.activation(x, x, "tanh")
    program = k.program()
    assert run(program).faults == []
    queue = program.queues[Queue.SCALAR]
    held = [i for i, one in enumerate(queue) if one.opcode == Opcode.LOAD_TABLE and one.imm0]
    change(program, Queue.SCALAR, held[-1], imm0=1 << Function.EXP)
    fault = Fault(queue="scalar", sequence=len(queue) - 1, cause=Cause.NOT_LOADED, address=0)
    for seed in (None, 1, 2):
        assert run(program, seed).faults == [fault]


def test_accumulation_partitions_and_conversion():
    """What GEMM does not use: tiles that start in the middle, strided and repeated patterns, SBUF to SBUF."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0x3F00, 0x4080, (4, 32), dtype=np.uint16)
    k = Kernel(TINY, "corners")
    x = k.hbm("x", (4, 32), "bf16", bits)
    y = k.hbm("y", (4, 32), "fp32")
    z = k.hbm("z", (2, 32), "bf16")
    low = k.sbuf("low", partitions=4, columns=32, dtype="bf16")
    high = k.sbuf("high", partitions=4, columns=32, dtype="fp32", start=4)
    back = k.sbuf("back", partitions=2, columns=32, dtype="bf16", start=2)
    k.dma(low[:, :], x[:, :])
    k.vector.copy(high[:, :], low[:, :])
    k.vector.copy(back[:, ::2], high[2:4, 0:16])
    k.vector.copy(back[:, 1::2], high[2:4, 16:32])
    k.dma(y[:, :], high[:, :])
    k.dma(z[:, :], back[:, :])
    program = k.program()
    for seed in (None, 1, 2, 3):
        out = run(program, seed).outputs
        assert np.array_equal(out["y"], bits.astype(np.uint32) << 16)
        expected = np.empty((2, 32), np.uint16)
        expected[:, ::2], expected[:, 1::2] = bits[2:4, :16], bits[2:4, 16:]
        assert np.array_equal(out["z"], expected)


def test_regions_of_sbuf_can_be_read():
    program = small_gemm()
    machine = GoldenMachine(TINY)
    image = build_image(program)
    machine.load(image)
    machine.run()
    region = dataclasses.replace(image.outputs["c"], space=Space.SBUF, offset=0, shape=(8, 4), dtype="uint32")
    assert np.array_equal(machine.read(region), machine.sbuf.bytes[:8, :16].copy().view(np.uint32))

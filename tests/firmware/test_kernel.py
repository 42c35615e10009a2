"""The kernel language: what it refuses, which waits it finds, where an instruction comes from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.kernel import Kernel, KernelError
from firmware.numbers import decode, encode
from firmware.program import SemaphoreWait
from rtl.contract.config import named
from rtl.contract.isa import Opcode, Queue

TINY = named("tiny")
RING0 = len(Queue)  # semaphores: queues first, then rings
RING1 = RING0 + 1


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint16)


def start() -> Kernel:
    """A kernel with one of everything: x in HBM, a in SBUF (bf16), f (fp32), s in PSUM, y in HBM."""
    return Kernel(TINY, "test")


def tiles(k: Kernel):
    a = k.sbuf("a", partitions=8, columns=64, dtype="bf16")
    f = k.sbuf("f", partitions=8, columns=64, dtype="fp32")
    s = k.psum("s", partitions=8, columns=64)
    return a, f, s


def refuse(sentence: str, action: Callable[[Kernel], object]) -> None:
    with pytest.raises(KernelError) as error:
        action(start())
    text = str(error.value)
    assert sentence in text and "\n" not in text


def test_allocation_errors():
    refuse(
        "tile t needs 16384 bytes of each SBUF partition, but only 8192 of 8192 are free",
        lambda k: k.sbuf("t", partitions=8, columns=4096, dtype="fp32"),
    )
    refuse(
        "tile u needs 768 bytes of each PSUM partition, but only 512 of 1024 are free",
        lambda k: (k.psum("t", partitions=8, columns=128), k.psum("u", partitions=8, columns=192)),
    )
    refuse(
        "tile t takes partitions 4 to 11; there are 8 from 0",
        lambda k: k.sbuf("t", partitions=8, columns=1, dtype="bf16", start=4),
    )
    refuse(
        "tile t must have at least 1 column, not 0",
        lambda k: k.sbuf("t", partitions=8, columns=0, dtype="bf16"),
    )
    refuse(
        "the name 'a' is empty or taken already",
        lambda k: (k.hbm("a", (1,), "bf16"), k.hbm("a", (1,), "bf16")),
    )


def test_tensor_errors():
    refuse(
        "tensor x has shape (0, 4); every axis must have at least 1 element",
        lambda k: k.hbm("x", (0, 4), "bf16"),
    )
    refuse(
        "tensor x needs uint16 bits of shape (2, 2), not float64 of (2, 2)",
        lambda k: k.hbm("x", (2, 2), "bf16", np.zeros((2, 2))),
    )
    refuse(
        "tensor x: dtype must be one of fp32, bf16, fp16, tf32, e4m3fn, e4m3, e5m2, e8m0, int8, int16, int32, uint8, "
        "uint16, uint32, e4m3fn_x2, e4m3_x2, e5m2_x2, bf16_x2, fp16_x2, e4m3fn_x4, e5m2_x4, e2m1_x4, bf16_x4, fp16_x4, "
        "not 'int4'",
        lambda k: k.hbm("x", (2, 2), "int4"),
    )


def test_view_errors():
    refuse(
        "x has 4 elements along axis 1; the index 2:6:1 is not inside",
        lambda k: k.hbm("x", (4, 4), "bf16")[:, 2:6],
    )
    refuse("x has 2 axes here, not 3", lambda k: k.hbm("x", (4, 4), "bf16")[0, 0, 0])
    refuse("x has 4 elements along axis 0, no multiple of 3", lambda k: k.hbm("x", (4, 4), "bf16").split(0, 3))
    refuse("is sliced with a partition step of 2; it must be 1", lambda k: tiles(k)[0][0:8:2])


def test_dma_errors():
    refuse(
        "DMA needs the same shape on both sides: a is (8, 64), x is (8, 32)",
        lambda k: k.dma(tiles(k)[0][:, :], k.hbm("x", (8, 32), "bf16", zeros(8, 32))[:]),
    )
    refuse(
        "DMA moves bytes without conversion: f is fp32, x is bf16",
        lambda k: k.dma(tiles(k)[1][:, :], k.hbm("x", (8, 64), "bf16", zeros(8, 64))[:]),
    )
    refuse(
        "DMA reaches HBM and SBUF, not PSUM, where s lies",
        lambda k: k.dma(k.hbm("y", (8, 64), "fp32"), tiles(k)[2][:, :]),
    )
    refuse(
        "tensor x is an input, so a kernel must not write to it",
        lambda k: k.dma(k.hbm("x", (8, 64), "bf16", zeros(8, 64)), tiles(k)[0][:, :]),
    )
    refuse(
        "ring must be from 0 to 1, not 2",
        lambda k: k.dma(tiles(k)[0][:, :], k.hbm("x", (8, 64), "bf16", zeros(8, 64))[:], ring=2),
    )
    refuse(
        "needs 5 dimensions of rows; a descriptor has 3",
        lambda k: k.dma(
            k.sbuf("t", partitions=4, columns=60, dtype="bf16").view().split(0, 30).split(1, 15).split(2, 3),
            k.hbm("z", (3, 5, 2, 2, 4), "bf16", zeros(3, 5, 2, 2, 4)).permute((4, 3, 2, 1, 0)),
        ),
    )


def test_a_ring_has_one_queue():
    def two_queues(k: Kernel) -> None:
        a = tiles(k)[0]
        x = k.hbm("x", (8, 64), "bf16", zeros(8, 64))
        k.dma(a[:, :], x[:], ring=1, queue=Queue.SCALAR)
        k.dma(a[:, :], x[:], ring=1, queue=Queue.SYNC)

    refuse("ring 1 is triggered by queue scalar, so queue sync must not be used", two_queues)


def test_engine_errors():
    refuse(
        "a matmul of a needs a stationary operand loaded before it",
        lambda k: (t := tiles(k), k.tensor.matmul(t[0][:, :], t[2][:, :])),
    )
    refuse(
        "stationary operand a has 64 columns, more than tensor.cols (8)",
        lambda k: k.tensor.load(tiles(k)[0][:, :]),
    )
    refuse(
        "stationary operand i is int8; the array takes fp32, tf32, bf16, fp16, e4m3fn, e4m3, e5m2, and packed",
        lambda k: k.tensor.load(k.sbuf("i", partitions=8, columns=8, dtype="int8")[:, :]),
    )
    refuse(
        "stationary operand a takes 3 partitions from 1; with 8 partitions that many cannot start there",
        lambda k: k.tensor.load(tiles(k)[0][1:4, :8]),
    )

    def wrong_partitions(k: Kernel) -> None:
        a, _, s = tiles(k)
        k.tensor.load(a[:4, :8])
        k.tensor.matmul(a[:8, :], s[:, :])

    refuse("they must be the same", wrong_partitions)

    def wrong_result(k: Kernel) -> None:
        a, _, s = tiles(k)
        k.tensor.load(a[:, :4])
        k.tensor.matmul(a[:, :], s[:, :])

    refuse("a matmul with 4 stationary columns writes to 4 PSUM partitions from 0, not to 8 PSUM", wrong_result)

    def too_wide(k: Kernel) -> None:
        a = k.sbuf("a", partitions=8, columns=65, dtype="bf16")
        s = k.psum("s", partitions=8, columns=65)
        k.tensor.load(a[:, :8])
        k.tensor.matmul(a[:, :], s[:, :])

    refuse("at most tensor.moving_max (64)", too_wide)

    def copy_shapes(k: Kernel) -> None:
        a, f, _ = tiles(k)
        k.vector.copy(a[:, :32], f[:, :])

    refuse("a copy needs the same shape on both sides: a is (8, 32), f is (8, 64)", copy_shapes)


def build_small() -> Kernel:
    k = start()
    a, f, s = tiles(k)
    x = k.hbm("x", (8, 64), "bf16", zeros(8, 64))
    y = k.hbm("y", (8, 64), "fp32")
    k.dma(a[:, :32], x[:, :32])
    k.dma(a[:, 32:], x[:, 32:])
    k.tensor.load(a[:, :8])
    k.tensor.matmul(a[:, :], s[:, :])
    k.vector.copy(f[:, :], s[:, :])
    k.dma(y[:, :], f[:, :])
    return k


def test_dependencies_become_waits():
    program = build_small().program()
    tensor, vector = program.queues[Queue.TENSOR], program.queues[Queue.VECTOR]
    sync, gpsimd = program.queues[Queue.SYNC], program.queues[Queue.GPSIMD]
    assert [i.opcode for i in tensor] == [Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING]
    assert tensor[0].waits == (SemaphoreWait(RING0, 1),)
    assert tensor[1].waits == (SemaphoreWait(RING0, 2),)
    assert vector[0].waits == (SemaphoreWait(Queue.TENSOR, 2),)
    assert gpsimd[0].waits == (SemaphoreWait(Queue.VECTOR, 1),)
    assert len(sync) == 1 and sync[0].waits == () and (sync[0].imm0, sync[0].imm1) == (0, 2)
    assert [len(ring) for ring in program.rings] == [2, 1]
    assert [d.signal for ring in program.rings for d in ring] == [RING0, RING0, RING1]


def test_what_is_known_is_not_waited_for_again():
    k = build_small()
    a = k.sbuf("b", partitions=8, columns=8, dtype="bf16")
    # The load of x's second half is complete: the matmul before waited for it.
    k.vector.copy(a[:, :], k.sbuf("c", partitions=8, columns=8, dtype="bf16")[:, :])
    assert k.program().queues[Queue.VECTOR][1].waits == ()


def test_write_after_read_waits_for_the_reader():
    k = build_small()
    tile = k.sbuf("again", partitions=8, columns=8, dtype="bf16")
    x = k.hbm("x2", (8, 8), "bf16", zeros(8, 8))
    k.dma(tile[:, :], x[:, :])
    k.tensor.load(tile[:, :])
    k.dma(tile[:, :], x[:, :])
    sync = k.program().queues[Queue.SYNC]
    assert len(sync) == 2, "the second load must not share the first one's trigger"
    assert sync[1].waits == (SemaphoreWait(Queue.TENSOR, 3),), "it implies that the first load is complete"


def test_a_ring_waits_for_itself():
    k = start()
    tile = k.sbuf("t", partitions=8, columns=8, dtype="bf16")
    x = k.hbm("x", (8, 8), "bf16", zeros(8, 8))
    k.dma(tile[:, :], x[:, :])
    k.dma(tile[:, :], x[:, :])
    assert k.program().queues[Queue.SYNC][1].waits == (SemaphoreWait(RING0, 1),)


def test_the_vector_queue_never_waits_for_itself():
    k = start()
    a, b, c = (k.sbuf(n, partitions=8, columns=8, dtype="bf16") for n in "abc")
    k.vector.copy(b[:, :], a[:, :])
    k.vector.copy(c[:, :], b[:, :])  # reads what was written: the engine waits by itself
    k.vector.copy(b[:, :], a[:, :])  # overwrites what was read
    k.scalar.copy(a[:, :], c[:, :])  # another queue
    k.vector.copy(c[:, :], a[:, :])
    program = k.program()
    assert [i.waits for i in program.queues[Queue.VECTOR]] == [(), (), (), (SemaphoreWait(Queue.SCALAR, 1),)]
    assert [i.waits for i in program.queues[Queue.SCALAR]] == [(SemaphoreWait(Queue.VECTOR, 3),)]


def test_more_than_two_waits_go_to_nops():
    k = Kernel(named("small"), "test")
    parts = [k.sbuf(f"t{i}", partitions=8, columns=8, dtype="bf16") for i in range(4)]
    x = k.hbm("x", (8, 8), "bf16", zeros(8, 8))
    for i, tile in enumerate(parts):
        k.dma(tile[:, :], x[:, :], ring=i, queue=Queue.SYNC)
    k.tensor.barrier()
    k.tensor.load(parts[0][:, :])
    queue = k.program().queues[Queue.TENSOR]
    assert [i.opcode for i in queue] == [Opcode.NOP, Opcode.NOP, Opcode.NOP, Opcode.LOAD_STATIONARY]
    assert sorted(w.semaphore for i in queue for w in i.waits) == [Queue.SYNC, *range(RING0, RING0 + 4)]
    assert all(len(i.waits) <= 2 for i in queue)


def test_rows_merge():
    k = start()
    tile = k.sbuf("t", partitions=8, columns=64, dtype="bf16")
    x = k.hbm("x", (8, 4, 16), "bf16", np.zeros((8, 4, 16), np.uint16))
    k.dma(tile.view().split(0, 16), x)
    (descriptor,) = k.program().rings[0]
    assert descriptor.row_bytes == 128
    # Two partitions a mover: the first of each, then the second of each.
    assert descriptor.dims == ((4, 256, 2 << 18), (2, 128, 1 << 18))


def test_instructions_know_their_line():
    program = build_small().program()
    sources = [i.source for q in program.queues.values() for i in q]
    assert all(s.startswith("tests/firmware/test_kernel.py:") for s in sources)
    assert len(set(program.source(Queue.TENSOR, i) for i in range(2))) == 2
    assert program.source(Queue.TENSOR, 99) == ""


def test_the_example_in_the_docs_runs():
    text = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, "example", "exec"), names)
    exact = decode(encode(names["a"], "bf16"), "bf16").T @ decode(encode(names["b"], "bf16"), "bf16")
    assert np.allclose(names["c"], exact, atol=1e-5)

"""Arguments of the wrong type or value: one sentence of the kernel language each, never a traceback."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware.kernel import Kernel, KernelError
from rtl.contract.config import named
from rtl.contract.isa import Queue

NAN = float("nan")


class Desk:
    """A kernel with something in each memory."""

    def __init__(self) -> None:
        self.k = k = Kernel(named("tiny"), "wrong")
        self.t, self.u = (k.sbuf(name, partitions=8, columns=16, dtype="bf16") for name in "tu")
        self.f = k.sbuf("f", partitions=8, columns=16, dtype="fp32")
        self.p = k.psum("p", partitions=8, columns=16)
        self.h = k.hbm("h", (8, 16), "bf16")
        self.x = k.hbm("x", (8, 16), "bf16", np.zeros((8, 16), np.uint16))

    def tile(self, **changes: Any) -> Any:
        return self.k.sbuf(**({"name": "a", "partitions": 4, "columns": 4, "dtype": "bf16"} | changes))

    def add(self, a: Any, op: Any = "add") -> None:
        self.k.vector.tensor_scalar(self.t[:, :], self.u[:, :], op, a)

    def dma(self, **options: Any) -> None:
        self.k.dma(self.t[:, :], self.x[:, :], **options)

    def matmul(self, **options: Any) -> None:
        self.k.tensor.load(self.t[:, :8])
        self.k.tensor.matmul(self.u[:, :8], self.p[:, :8], **options)


Use = Callable[[Desk], object]
WRONG: list[tuple[str, Use]] = [
    ("copy: dst must be a view of a tile, .* not the tile t itself", lambda d: d.k.vector.copy(d.t, d.u)),
    ("copy: dst must be a view", lambda d: d.k.scalar.copy(d.t, d.u)),
    ("partitions must be a whole number, not '4'", lambda d: d.tile(partitions="4")),
    ("columns must be a whole number, not 4.0", lambda d: d.tile(columns=4.0)),
    ("columns must be a whole number, not True", lambda d: d.tile(columns=True)),
    ("columns must be a whole number, not nan", lambda d: d.tile(columns=NAN)),
    ("only .* are free", lambda d: d.tile(columns=10**30)),
    ("at least 1 column, not 0", lambda d: d.tile(columns=0)),
    ("dtype must be one of fp32", lambda d: d.tile(dtype="float")),
    ("dtype must be a text, not None", lambda d: d.tile(dtype=None)),
    ("a power of two, at least 1", lambda d: d.tile(align=0)),
    ("a power of two, at least 1", lambda d: d.tile(align=-4)),
    ("name must be a text, not 5", lambda d: d.tile(name=5)),
    ("empty or taken", lambda d: d.tile(name="")),
    ("unexpected keyword argument 'partition'", lambda d: d.tile(partition=3)),
    ("missing a required argument", lambda d: d.k.psum("q")),
    ("shape must be a tuple", lambda d: d.k.hbm("a", [4, 4], "bf16")),  # pyright: ignore[reportArgumentType]
    ("shape must be a tuple", lambda d: d.k.hbm("a", (4.0, 4), "bf16")),  # pyright: ignore[reportArgumentType]
    ("data must be a NumPy array", lambda d: d.k.hbm("a", (2,), "bf16", [1, 2])),  # pyright: ignore[reportArgumentType]
    ("t is indexed with 4.0", lambda d: d.t[0:4.0, :]),
    ("t is indexed with 'a'", lambda d: d.t["a"]),  # pyright: ignore[reportArgumentType]
    ("t is indexed with None", lambda d: d.t[None]),  # pyright: ignore[reportArgumentType]
    ("h is indexed with 1.5", lambda d: d.h[1.5]),  # pyright: ignore[reportArgumentType]
    ("no axis 3 to split", lambda d: d.t[:, :].split(3, 2)),
    ("no axis 7 to split", lambda d: d.h.split(7, 2)),
    ("no order of them", lambda d: d.t[:, :].permute(3)),  # pyright: ignore[reportArgumentType]
    ("no order of them", lambda d: d.h.permute("ab")),  # pyright: ignore[reportArgumentType]
    ("at least once", lambda d: d.t[:, :].repeat(0)),
    ("dtype must be one of", lambda d: d.t.reinterpret("float99")),
    ("dma: dst must be", lambda d: d.k.dma(d.t, d.x[:, :])),  # pyright: ignore[reportArgumentType]
    ("ring must be a whole number or None, not '0'", lambda d: d.dma(ring="0")),
    ("queue must be a Queue or None, not 'sync'", lambda d: d.dma(queue="sync")),
    ("after must be several, each a Completion", lambda d: d.dma(after=[3])),
    ("signal must be a Semaphore", lambda d: d.dma(signal="s")),
    ("rounding must be a text", lambda d: d.matmul(rounding=3)),
    ("seed must be a whole number", lambda d: d.matmul(seed=1.5)),
    ("1, 2 or 4 tiles, not 3", lambda d: d.matmul(tiles=3)),
    ("a must be a number", lambda d: d.add("1")),
    ("a must be a number", lambda d: d.add(1j)),
    ("a must be a number", lambda d: d.add(np.zeros(3))),
    ("needs a number", lambda d: d.add(10**400)),
    ("op0 must be a text or a AluOp, not 3", lambda d: d.add(1.0, 3)),
    ("takes the operators", lambda d: d.add(1.0, "plus")),
    ("names must be several", lambda d: d.k.scalar.load_table(None)),  # pyright: ignore[reportArgumentType]
    ("several, each a text or a Function, not .gelu.", lambda d: d.k.scalar.load_table("gelu")),
    ("semaphore must be a Semaphore", lambda d: d.k.wait(Queue.SYNC, 3, 1)),  # pyright: ignore[reportArgumentType]
    ("queue must be a Queue", lambda d: d.k.barrier(None)),  # pyright: ignore[reportArgumentType]
    ("cfg must be a Config, not 'tiny'", lambda d: Kernel("tiny", "x")),  # pyright: ignore[reportArgumentType]
    ("core must be a tuple of 4", lambda d: Kernel(named("tiny"), "x", (0, 0))),  # pyright: ignore[reportArgumentType]
    ("no field 'nonsense'", lambda d: d.k.program(nonsense=3)),
]


@pytest.mark.parametrize(("says", "use"), WRONG)
def test_wrong_argument_gets_a_sentence(says: str, use: Use) -> None:
    with pytest.raises(KernelError, match=says) as caught:
        use(Desk())
    assert "\n" not in str(caught.value)


def test_numpy_numbers_are_numbers() -> None:
    desk = Desk()
    desk.tile(columns=np.int64(4))
    desk.add(np.float32(1.5))
    assert desk.t[np.int32(1), : np.uint8(3)].shape == (1, 3)

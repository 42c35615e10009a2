"""Operators that take columns in pieces through shared memory: more columns than a piece, all partitions and some,
columns that do not lie side by side, cores whose local memory has no room for tables."""

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel
from rtl.contract.config import Config, load, named
from rtl.contract.gpsimd import lanes
from verif.golden.gpsimd.operators import MEANINGS
from verif.golden.machine import GoldenMachine

TINY, SMALL, FULL = named("tiny"), named("small"), named("full")
NO_ROOM = [load(name, ["gpsimd.local_bytes=16384"]) for name in ("tiny", "full")]
PLAIN = load("tiny", ["gpsimd.vectors=false"])
CASES = pytest.mark.parametrize(
    ("cfg", "columns"),
    [(TINY, 900), (SMALL, 600), (FULL, 300), *((cfg, 150) for cfg in NO_ROOM), (PLAIN, 150)],
    ids=["tiny", "small", "full", "tiny-no-room", "full-no-room", "tiny-scalar"],
)
ANY = (-(1 << 31), 1 << 31)


def ran(k: Kernel) -> dict[str, np.ndarray]:
    """Outputs by the golden machine, which takes any order that the waits allow."""
    machine = GoldenMachine(k.cfg, 1)
    machine.load(build_image(k.program()))
    result = machine.run()
    assert not result.faults
    return {name: bits.view(np.int32) for name, bits in result.outputs.items()}


@CASES
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_partition_reduce(cfg: Config, columns: int, step: int, op: str) -> None:
    columns //= step  # a partition of SBUF has room for no more
    rng = np.random.default_rng(columns)
    x = rng.integers(*ANY, (cfg.partitions, columns), np.int64).astype(np.int32)
    k = Kernel(cfg, "reduce")
    of = k.sbuf("x", partitions=cfg.partitions, columns=columns, dtype="int32")
    to = k.sbuf("to", partitions=1, start=cfg.partitions - 2, columns=columns * step, dtype="int32")
    k.dma(of[:, :], k.hbm("given", x.shape, "int32", x.view(np.uint32))[:, :])
    k.gpsimd.partition_reduce(to[:, ::step], of[:, :], op)
    k.dma(k.hbm("found", (1, columns * step), "int32")[:, ::step], to[:, ::step])
    assert np.array_equal(ran(k)["found"][:, ::step], MEANINGS["partition_reduce"](x=x, op=op)["dst"])


@CASES
@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_gather_from_any_partition(cfg: Config, columns: int, some: bool) -> None:
    columns //= 2
    rng = np.random.default_rng(columns)
    rows = cfg.partitions - 3 if some else cfg.partitions
    x = rng.integers(*ANY, (rows, columns), np.int64).astype(np.int32)
    index = rng.integers(-1, rows + 1, (cfg.partitions, columns)).astype(np.int32)
    k = Kernel(cfg, "gather")
    of = k.sbuf("x", partitions=rows, start=cfg.partitions - rows, columns=columns, dtype="int32")
    at, to = (k.sbuf(name, partitions=cfg.partitions, columns=columns, dtype="int32") for name in ("at", "to"))
    k.dma(of[:, :], k.hbm("given", x.shape, "int32", x.view(np.uint32))[:, :])
    k.dma(at[:, :], k.hbm("index", index.shape, "int32", index.view(np.uint32))[:, :])
    k.gpsimd.gather(to[:, :], of[:, :], at[:, :], mode="partitions", fill=7)
    k.dma(k.hbm("found", (cfg.partitions, columns), "int32")[:, :], to[:, :])
    want = MEANINGS["gather"](x=x, index=index, columns=columns, lanes=lanes(cfg.partitions), mode="partitions", fill=7)
    assert np.array_equal(ran(k)["found"], want["dst"])

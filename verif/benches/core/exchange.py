"""Two kernels that exchange tensors: what the pair of cores and the pair of golden machines run."""

from dataclasses import dataclass

import numpy as np

from firmware.gpsimd.image import Image
from firmware.kernel import Kernel
from firmware.program import Program, Semaphore
from firmware.views import Tile
from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.gpsimd import Mailbox
from rtl.contract.isa import INSTRUCTION_BYTES, Queue, Update
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from verif.checks import riscv_words as w
from verif.checks.gpsimd_words import BOX, DONE, VALUE, code_image

__all__ = ["COLUMNS", "SIGNALS", "Exchange", "exchange", "misdirected", "whole_sbuf"]

COLUMNS = 240  # FP32: a row takes three packets
CLASS = 1
LOCAL_SUMS = 7
SIGNALS = 4  # that core 1 waits for
THERE = (0, 0, 0, 1)
NOWHERE = (0, 2, 0, 1)  # no core of the pair
PACKET_BYTES = 448


@dataclass(frozen=True, slots=True)
class Exchange:
    """Programs of cores 0 and 1, what must come out at core 0 in `back` and `fetched`, and what core 1 is sent;
    `total` is also what core 0 has added there."""

    programs: tuple[Program, Program]
    total: np.ndarray
    sent: np.ndarray


def exchange(cfg: Config, rng: np.random.Generator, *, lost: bool = False) -> Exchange:
    """Core 0 sends x to a tile and y to a tensor of core 1, which adds them, keeps the sum and writes it back to
    core 0; core 0 then reads it from core 1 too. Core 0 also sends x to another tile of core 1 and adds y there. x
    leaves from a tensor that core 0 overwrites as soon as it may. A program on a GPSIMD core of core 0 sends a tile of
    its own, which core 1 keeps as `sent`.
    `lost`: core 0 first reads on a ring of its own, for a link that is lost, and goes on when core 1 has begun.
    """
    p = cfg.partitions
    shape = p, COLUMNS
    x, y, more = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    near, far = Kernel(cfg, "near"), Kernel(cfg, "far", THERE)
    x_near, y_near = (near.hbm(name, shape, "fp32", data.view(np.uint32)) for name, data in (("x", x), ("y", y)))
    leaves, back, fetched = (near.hbm(name, shape, "fp32") for name in ("leaves", "back", "fetched"))
    y_far, sum_far = (far.hbm(name, shape, "fp32") for name in ("y", "sum"))
    more_far = far.hbm("more", shape, "fp32", more.view(np.uint32))
    x_tile, y_tile, sum_tile, added_tile, local_tile = (
        far.sbuf(name, partitions=p, columns=COLUMNS, dtype="fp32")
        for name in ("x_tile", "y_tile", "sum_tile", "added_tile", "local_tile")
    )
    own, sent_tile = (k.sbuf("own", partitions=p, columns=COLUMNS, dtype="fp32") for k in (near, far))
    sent, added, doubled = (far.hbm(name, shape, "fp32") for name in ("sent", "added", "doubled"))
    arrived, answered, begun = far.semaphore("arrived"), near.semaphore("answered"), near.semaphore("begun")

    if lost:
        waste, begins = near.hbm("waste", shape, "fp32"), near.hbm("begins", (1, COLUMNS), "fp32")
        near.dma(waste[:, :], more_far[:, :], class_=CLASS, ring=1, queue=Queue.SCALAR)
        far.dma(begins[:, :], more_far[0:1, :], class_=CLASS, signal=begun)
        near.wait(Queue.SYNC, begun, 1, begins[:, :])
    near.dma(own[:, :], x_near[:, :], ring=0, queue=Queue.SYNC)
    near.gpsimd.run(_sends(own, sent_tile, arrived), cores=[0], touches=[own[:, :]])
    near.dma(leaves[:, :], x_near[:, :], ring=0, queue=Queue.SYNC)
    near.dma(added_tile[:, :], x_near[:, :], class_=CLASS, ring=0)
    near.dma(added_tile[:, :], y_near[:, :], class_=CLASS, ring=0, add="fp32", signal=arrived)
    near.dma(x_tile[:, :], leaves[:, :], class_=CLASS, ring=0, signal=arrived)
    near.dma(y_far[:, :], y_near[:, :], class_=CLASS, ring=0, signal=arrived)
    near.dma(leaves[:, :], y_near[:, :], ring=0)
    near.wait(Queue.SYNC, answered, 1, back[:, :])
    near.dma(fetched[:, :], sum_far[:, :], class_=CLASS, ring=0)

    far.dma(local_tile[:, :], more_far[:, :], ring=1, queue=Queue.GPSIMD)
    for _ in range(LOCAL_SUMS):  # beside those of core 0
        far.dma(local_tile[:, :], more_far[:, :], ring=1, queue=Queue.GPSIMD, add="fp32")
    far.dma(doubled[:, :], local_tile[:, :], ring=1, queue=Queue.GPSIMD)
    far.wait(Queue.SYNC, arrived, SIGNALS, x_tile[:, :], y_far[:, :], sent_tile[:, :], added_tile[:, :])
    far.dma(sent[:, :], sent_tile[:, :])
    far.dma(added[:, :], added_tile[:, :])
    far.dma(y_tile[:, :], y_far[:, :])
    far.vector.tensor_tensor(sum_tile[:, :], x_tile[:, :], "add", y_tile[:, :])
    kept = far.dma(sum_far[:, :], sum_tile[:, :])
    far.dma(back[:, :], sum_tile[:, :], class_=CLASS, after=[kept], signal=answered)
    return Exchange((near.program(), far.program()), x + y, x)


def _sends(source: Tile, target: Tile, signal: Semaphore) -> Image:
    """A program that pushes one copy, of all of a tile to one of another core."""
    places = {"source": source, "destination": target}
    d = {"row_bytes": source.columns * 4, "count0": source.partitions, "count1": 1, "count2": 1, "class_": CLASS}
    for name, tile in places.items():
        at = tile.start * PARTITION_STRIDE_BYTES + tile.offset
        d |= {name: address(Space.SBUF, at, core_id=tile.core), f"{name}_step0": PARTITION_STRIDE_BYTES}
    signal_address = address(Space.SEMAPHORES, 4 * signal.index, core_id=signal.core)
    d |= {"signal_address": signal_address, "signal_update": Update.ADD, "signal_value": 1}
    place = code_image("sends", b"").entry + INSTRUCTION_BYTES
    code = w.load_constant(VALUE, place) + w.store(2, VALUE, BOX, Mailbox.DMA_PUSH) + DONE
    before = len(code_image("sends", b"").sections[0].data)
    word = DESCRIPTOR.pack(d).to_bytes(INSTRUCTION_BYTES, "little")
    return code_image("sends", code.ljust(INSTRUCTION_BYTES - before, b"\0") + word)


def misdirected(cfg: Config) -> tuple[tuple[Program, Program, Program], int]:
    """Core 0 writes to a core that is not there, then reads a row of it; core 1 does nothing. The programs, that of the
    missing core too, and the packets that are sent."""
    near, idle, nowhere = Kernel(cfg, "near"), Kernel(cfg, "idle", THERE), Kernel(cfg, "nowhere", NOWHERE)
    x = near.hbm("x", (2, COLUMNS), "uint32", np.arange(2 * COLUMNS, dtype=np.uint32).reshape(2, COLUMNS))
    back = near.hbm("back", (1, COLUMNS), "uint32")
    far = nowhere.hbm("far", (2, COLUMNS), "uint32")
    left = near.dma(far[:, :], x[:, :], ring=0, queue=Queue.SYNC)
    near.dma(back[:, :], far[0:1, :], ring=1, queue=Queue.SCALAR, after=[left])
    written, read = (-(-rows * 4 * COLUMNS // PACKET_BYTES) for rows in (2, 1))
    return (near.program(), idle.program(), nowhere.program()), written + read


def whole_sbuf(cfg: Config, core: tuple[int, int, int, int]) -> Program:
    """Copies all of SBUF to the tensor `sbuf`: [partitions, bytes]."""
    k = Kernel(cfg, "whole_sbuf", core)
    size = cfg.sbuf.partition_bytes
    tile = k.sbuf("tile", partitions=cfg.partitions, columns=size, dtype="uint8")
    out = k.hbm("sbuf", (cfg.partitions, size), "uint8")
    k.dma(out[:, :], tile[:, :])
    return k.program()

"""Workload `dma` with `descriptors`: many small copies of one ring, a descriptor each."""

import numpy as np

from firmware.kernel import Kernel, KernelError
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["dma_descriptors"]


def dma_descriptors(cfg: Config, *, descriptors: int, row_bytes: int, direction: str, seed: int) -> Program:
    """A program that moves `descriptors` rows, each by a descriptor of ring 0 and to or from a place of its own: with
    `read` from HBM to partitions in turn, with `write` from there to HBM.

    What a descriptor costs beside others of its ring: the cycles of a run with more of them less those of one with
    fewer. Errors: KernelError.
    """
    if direction not in ("read", "write"):
        raise KernelError(f"descriptors go with direction=read or write, not {direction}")
    p = cfg.partitions
    blocks = -(-descriptors // p) if direction == "read" else 1
    room = -(-row_bytes // 16) * 16
    if blocks * room > cfg.sbuf.partition_bytes:
        most = cfg.sbuf.partition_bytes // room * p
        raise KernelError(
            f"descriptors must be at most {most} with row_bytes={row_bytes}, a row each in SBUF, not {descriptors}"
        )
    k = Kernel(cfg, "dma")
    read = direction == "read"
    given = descriptors if read else min(p, descriptors)  # what is written is the same rows again and again
    bits = np.random.default_rng(seed).integers(0, 256, (given, row_bytes), np.uint8)
    rows = k.hbm("rows", bits.shape, "uint8", bits)
    moved = k.hbm("moved", (descriptors, row_bytes), "uint8")
    tile = k.sbuf("tile", partitions=min(p, descriptors), columns=blocks * room if read else room, dtype="uint8")
    last = cfg.dma.rings - 1
    if not read:
        k.dma(tile[:, :row_bytes], rows[:, :], ring=last)
    for n in range(descriptors):
        block, partition = divmod(n, p)
        column = block * room if read else 0
        here = tile[partition : partition + 1, column : column + row_bytes]
        there = (rows if read else moved)[n : n + 1, :]
        k.dma(*((here, there) if read else (there, here)), ring=0)
    for first in range(0, descriptors if read else 0, p):
        count, column = min(p, descriptors - first), first // p * room
        k.dma(moved[first : first + count, :], tile[:count, column : column + row_bytes], ring=last)
    way = "HBM to SBUF" if read else "SBUF to HBM"
    return k.program(notes=[f"{descriptors} descriptors of ring 0 move a row of {row_bytes} bytes each, {way}"])

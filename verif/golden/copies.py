"""What a released descriptor does to a golden machine whose core has no link."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import Cause
from rtl.contract.memmap import ADDRESS, Space
from verif.golden import dma
from verif.golden.lines import Failed, Item
from verif.golden.memory import Memory

__all__ = ["Alone", "Copies", "Memories", "local_copy"]


class Memories(Protocol):
    """What copies see of a machine."""

    cfg: Config
    core_id: int
    hbm: NDArray[np.uint8]
    sbuf: Memory

    def grow(self, end: int) -> None: ...


class Copies(Protocol):
    """Judges a descriptor and makes an item of it; without an item the ring halts for (cause, address)."""

    def start(self, machine: Memories, word: int) -> tuple[Cause, int, Item | None]: ...


def local_copy(machine: Memories, descriptor: dict[str, int]) -> Item:
    """A copy inside the core is one step: what it reads and writes lies between its start and its signal either way.
    A sum comes behind what its ring has written before in its class; what it adds may have been read at any time since
    its start."""
    for side in ("source", "destination"):
        machine.grow(dma.hbm_end(descriptor, side))
    place = ADDRESS.unpack(descriptor["destination"])
    way = (machine.core_id, descriptor["class_"]) if place["space"] == Space.SBUF else None
    if descriptor["indirect"]:
        return _by_indices(machine, descriptor, way)
    if descriptor["add"]:
        return Item(
            lambda: dma.gather(descriptor, machine.hbm, machine.sbuf.bytes),
            lambda rows: dma.scatter(descriptor, rows, machine.hbm, machine.sbuf.bytes),
            dma.signal(descriptor),
            way=way,
            follows=True,
        )
    return Item(
        lambda: None,
        lambda _: dma.copy(descriptor, machine.hbm, machine.sbuf.bytes),
        dma.signal(descriptor),
        way=way,
    )


def _by_indices(machine: Memories, descriptor: dict[str, int], way: tuple[int, ...] | None) -> Item:
    """Rows are chosen and moved in one step. A bad index ends the ring when all other rows have been moved."""

    def indices() -> Failed | None:
        at = dma.bad_index(descriptor, machine.sbuf.bytes)
        return None if at is None else Failed(Cause.BAD_INDEX, at)

    return Item(
        indices,
        lambda _: dma.copy(descriptor, machine.hbm, machine.sbuf.bytes),
        dma.signal(descriptor),
        way=way,
        follows=bool(descriptor["add"]),
    )


class Alone:
    """A core without a link: an address of another core is a fault, NO_ROUTE."""

    def start(self, machine: Memories, word: int) -> tuple[Cause, int, Item | None]:
        """See Copies."""
        descriptor = DESCRIPTOR.unpack(word)
        cause, address = dma.check(descriptor, machine.cfg, machine.core_id)
        return cause, address, None if cause else local_copy(machine, descriptor)

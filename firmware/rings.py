"""Copies of a kernel: descriptors on rings, who releases them, what they signal, ends in other cores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from firmware.builder import Builder
from firmware.chosen import By, chosen_rows
from firmware.copies import place, rows
from firmware.decisions.numbers import Number
from firmware.decisions.reckoner import need_room
from firmware.engines.base import access, caller, name_of, need
from firmware.hazards import Access, Hazards, Known, meet
from firmware.numbers import element_bytes
from firmware.program import Completion, Descriptor, HbmTensor, Place, Semaphore
from firmware.views import CopyView, HbmView, KernelError, TileView
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import COPY_QUEUES, Opcode, Queue
from rtl.contract.memmap import Space, core_place
from rtl.contract.sequence import FILLS

__all__ = ["Rings"]

LOAD_QUEUE, LOAD_RING = Queue.SYNC, 0
STORE_QUEUE, STORE_RING = Queue.GPSIMD, 1
FENCE = "fence"  # two words of HBM, of which the first is copied to the second
FENCE_BYTES = 4
_SUMS = {"fp32": ("fp32",), "bf16": ("bf16",), "int32": ("int32", "uint32")}  # formats that they take


class Rings:
    """The rings of a kernel. Errors: KernelError, one sentence."""

    def __init__(self, kernel: Builder, hazards: Hazards, known: dict[Queue, Known]):
        self._k = kernel
        self._hazards = hazards
        self._known = known
        self._owners: dict[int, Queue] = {}
        self._classes: dict[str, int] = {}  # of what lies in other cores
        self._ways: dict[tuple[int, str], set[int | None]] = {}  # by ring and memory that it writes: classes
        self.direct = False
        """Queues have copied directly: the last semaphores count these copies."""
        self.descriptors: list[list[Descriptor]] = [[] for _ in range(kernel.cfg.dma.rings)]

    def copy(
        self,
        dst: CopyView,
        src: CopyView,
        *,
        ring: int | None,
        queue: Queue | None,
        class_: int,
        add: str | None,
        after: Sequence[Completion],
        signal: Semaphore | None,
        direct: bool,
        by: By | None,
    ) -> Completion:
        """See Kernel.dma."""
        cfg = self._k.cfg
        moves = tuple(
            (side, number * (stride * element_bytes(view.dtype)))
            for side, view in (("source", src), ("destination", dst))
            if isinstance(view, HbmView)
            for number, stride in view.moved
        )
        need(len(moves) <= FILLS, f"a copy has a place that {len(moves)} numbers move; there may be {FILLS}")
        need_room([number for _, number in moves])
        if direct or moves or self._k.may_be_left_out():
            queue, producer = self._of_queue(ring, queue, signal)
            ring = None
        else:
            ring, queue = self._in_hbm(ring, queue, isinstance(dst, HbmView) or dst.core != self._k.core)
            producer = self._producer(ring)
        most = cfg.dma.classes - 1
        need(0 <= class_ <= most, f"a traffic class must be from 0 to {most} (dma.classes - 1), not {class_}")
        for view in (dst, src):
            need(
                isinstance(view, HbmView) or view.tile.space == Space.SBUF,
                f"DMA reaches HBM and SBUF, not PSUM, where {name_of(view)} lies",
            )
        need(
            dst.dtype == src.dtype,
            f"DMA moves bytes without conversion: {name_of(dst)} is {dst.dtype}, {name_of(src)} is {src.dtype}",
        )
        if isinstance(dst, HbmView):
            need(not dst.tensor.input, f"tensor {dst.tensor.name} is an input, so a kernel must not write to it")
        self._reaches(dst, src, class_, signal)
        adds = self._sum(dst, src, add)
        choice = None
        if by is None:
            row_bytes, dims = rows(cfg, dst, src, adds=bool(adds))
        else:
            self._need_here(dst, src, by.indices)
            row_bytes, dims, choice = chosen_rows(cfg, dst, src, by, adds=bool(adds))
        written = access(dst, True)
        way = class_ if src.core == self._k.core else None  # what is read from elsewhere comes another way
        ways = self._ways.setdefault((producer, written.memory), set())
        ways.add(way)
        accesses = (replace(written, behind=bool(adds) and ways == {class_}), access(src, False))
        accesses += (access(by.indices, False),) if by else ()
        self._append(
            Descriptor(
                source=place(src),
                destination=place(dst),
                row_bytes=row_bytes,
                dims=dims,
                signal=producer if signal is None else signal.index,
                signal_core=self._k.core if signal is None else signal.core,
                class_=class_,
                add=adds,
                choice=choice,
                origin=caller(),
            ),
            ring,
            queue,
            accesses,
            after,
            counted=signal is None,
            moves=moves,
        )
        return Completion(producer, self._hazards.reach(producer))

    def settle(self, needs: Known) -> None:
        """Make what `needs` asks for visible: a copy that signals elsewhere is counted by the next of its ring."""
        for producer, count in needs.items():
            if count > self._hazards.count(producer):
                self._fence(producer - len(Queue))

    def settle_all(self) -> None:
        """Count what copies that signal elsewhere have left uncounted: a block that a run may leave out must not."""
        self.settle({producer: self._hazards.reach(producer) for producer in sorted(self._hazards.pending)})

    def finished(self) -> list[list[Descriptor]]:
        """All descriptors, without the rings behind the last one in use."""
        used = [n for n, ring in enumerate(self.descriptors) if ring]
        return self.descriptors[: used[-1] + 1 if used else 0]

    @staticmethod
    def _producer(ring: int) -> int:
        return len(Queue) + ring

    def own_producer(self, queue: Queue) -> int:
        """The semaphore in which the ring of a queue with DMA_COPY counts: the last ones."""
        return self._k.cfg.issue.semaphores - 1 - COPY_QUEUES.index(queue)

    def _in_hbm(self, ring: int | None, queue: Queue | None, store: bool) -> tuple[int, Queue]:
        """The ring of a copy whose descriptor lies in HBM, and the queue that triggers it."""
        cfg = self._k.cfg
        if ring is None:
            ring = min(STORE_RING if store else LOAD_RING, cfg.dma.rings - 1)
        need(0 <= ring < cfg.dma.rings, f"ring must be from 0 to {cfg.dma.rings - 1}, not {ring}")
        if queue is None:
            queue = self._owners.get(ring, STORE_QUEUE if store else LOAD_QUEUE)
        owner = self._owners.setdefault(ring, queue)
        need(
            owner == queue,
            f"ring {ring} is triggered by queue {owner.name.lower()}, so queue {queue.name.lower()} must not be used",
        )
        return ring, queue

    def _of_queue(self, ring: int | None, queue: Queue | None, signal: Semaphore | None) -> tuple[Queue, int]:
        """The queue of a copy whose descriptor is part of an instruction, and the producer that counts it."""
        queue = LOAD_QUEUE if queue is None else queue
        names = " or ".join(one.name.lower() for one in COPY_QUEUES)
        where = "a direct copy, as all in a block that a run may leave out or to a place that it moves,"
        need(queue in COPY_QUEUES, f"{where} is made by queue {names}, not {queue.name.lower()}")
        need(ring is None, f"{where} goes to its queue's own ring, so ring {ring} must not be used")
        need(
            signal is None,
            f"{where} signals its own queue's ring, so semaphore {signal.name if signal else ''} must not",
        )
        self._k.reserve_own_rings()
        return queue, self.own_producer(queue)

    def _reaches(self, dst: CopyView, src: CopyView, class_: int, signal: Semaphore | None) -> None:
        """The rules of docs/endpoint.md for a copy with an end in another core, and for its signal."""
        here = self._k.core
        need(
            here in (dst.core, src.core),
            f"a copy of core {core_place(here)} has an end there; {name_of(dst)} lies in core "
            f"{core_place(dst.core)} and {name_of(src)} in core {core_place(src.core)}",
        )
        if signal is not None:
            inside = here == dst.core == src.core
            need(
                inside or signal.core in (here, dst.core),
                f"a copy signals in its own core {core_place(here)} or in that of its destination "
                f"{core_place(dst.core)}; semaphore {signal.name} is one of core {core_place(signal.core)}",
            )
            self._numbered(f"a copy that signals {signal.name}", signal.core)
        for view in (dst, src):
            if view.core != here:
                self._numbered(f"a copy of {name_of(view)}", view.core)
                first = self._classes.setdefault(access(view, False).memory, class_)
                need(
                    first == class_,
                    f"copies of {name_of(view)} in core {core_place(view.core)} have class {first}, so class {class_} "
                    f"must not be used: one class may overtake another",
                )

    def _need_here(self, dst: CopyView, src: CopyView, indices: TileView) -> None:
        """What indices choose stays in the core; none of them, and no row, is read behind another row's write."""
        need(isinstance(indices, TileView), "indices are a view of a tile, as in tile[:, :]")
        for view in (dst, src):
            need(
                view.core == self._k.core,
                f"indices choose rows of core {core_place(self._k.core)} alone; {name_of(view)} lies in core "
                f"{core_place(view.core)}",
            )
        to = access(dst, True)
        for view in (src, indices):
            of = access(view, False)
            need(
                to.memory != of.memory or not meet(to.box, of.box),
                f"indices choose rows that go to {name_of(dst)}, which overlaps {name_of(view)}: that could be read "
                f"behind a write",
            )

    def _numbered(self, what: str, there: int) -> None:
        """Packets have a number for this core and that core, if it is another."""
        numbers = self._k.cfg.fabric.endpoint_map
        for core in (self._k.core, there) if there != self._k.core else ():
            try:
                numbers.encode(core_place(core))
            except ValueError as error:
                raise KernelError(f"{what} in core {core_place(there)}: {error}") from None

    def _sum(self, dst: CopyView, src: CopyView, add: str | None) -> DmaAdd:
        """The rules of a sum."""
        if add is None:
            return DmaAdd.COPY
        need(add in _SUMS, f"a copy adds {', '.join(_SUMS)}, not {add!r}")
        cfg = self._k.cfg
        need(cfg.sbuf.adders, f"configuration {cfg.name} has no adders beside SBUF: sbuf.adders is false")
        need(
            not isinstance(dst, HbmView),
            f"a copy adds beside SBUF, not in HBM, where {name_of(dst)} lies",
        )
        need(
            src.dtype in _SUMS[add],
            f"{name_of(src)} is {src.dtype}; a copy that adds {add} takes {' or '.join(_SUMS[add])}",
        )
        need(
            src.core == self._k.core,
            f"what a copy adds must lie in its own core {core_place(self._k.core)}; {name_of(src)} lies in core "
            f"{core_place(src.core)}",
        )
        to, of = access(dst, True), access(src, False)
        same = place(dst) == place(src) and dst.axes_bytes() == src.axes_bytes()
        need(
            same or to.memory != of.memory or not meet(to.box, of.box),
            f"a sum reads {name_of(src)} while it changes it: the two must not overlap, or be the same elements",
        )
        size = DmaAdd[add.upper()].element_bytes
        for view in (dst, src):
            at = place(view).offset
            need(at % size == 0, f"{name_of(view)} begins at byte {at}, no multiple of the {size} bytes of {add}")
        return DmaAdd[add.upper()]

    def _append(
        self,
        descriptor: Descriptor,
        ring: int | None,
        queue: Queue,
        accesses: tuple[Access, ...],
        after: Sequence[Completion],
        *,
        counted: bool,
        moves: tuple[tuple[str, Number], ...] = (),
    ) -> None:
        """Put a descriptor on its ring, released by the ring's queue when what it needs is complete; without one it
        is part of the instruction."""
        producer = self.own_producer(queue) if ring is None else self._producer(ring)
        needs = self._hazards.needs(producer, accesses)
        for one in after:
            needs[one.producer] = max(needs.get(one.producer, 0), one.count)
        self.settle(needs)
        known = self._known[queue]
        waits = self._hazards.unknown(needs, known)
        instructions = self._k.instructions(queue)
        last = instructions[-1] if instructions else None
        if ring is None:
            self._k.issue(
                queue, Opcode.DMA_COPY, needs=waits, descriptor=descriptor, moves=moves, source=descriptor.origin
            )
        elif not waits and last and last.opcode == Opcode.DMA_TRIGGER and last.imm0 == ring:
            instructions[-1] = replace(last, imm1=last.imm1 + 1)
        else:
            self._k.issue(queue, Opcode.DMA_TRIGGER, needs=waits, imm0=ring, imm1=1, source=descriptor.origin)
        if counted:
            self._hazards.add(producer, accesses, known)
        else:
            self._hazards.pend(producer, accesses)
        if ring is not None:
            self.descriptors[ring].append(descriptor)

    def _fence(self, ring: int) -> None:
        """A copy of one word that counts what its ring did before: descriptors of a ring complete in order."""
        assert not self._k.may_be_left_out()
        core = self._k.core
        self._k.add_tensor(
            HbmTensor(
                name=FENCE,
                shape=(2,),
                dtype="uint32",
                bytes=2 * FENCE_BYTES,
                data=np.zeros(2, np.uint32),
                core=core,
            )
        )
        self._append(
            Descriptor(
                source=Place(Space.HBM, 0, FENCE, core),
                destination=Place(Space.HBM, FENCE_BYTES, FENCE, core),
                row_bytes=FENCE_BYTES,
                dims=(),
                signal=self._producer(ring),
                signal_core=core,
                origin=caller(),
            ),
            ring,
            self._owners[ring],
            (),
            (),
            counted=True,
        )

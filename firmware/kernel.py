"""The kernel language: tensors and tiles by name, engines by name, dependencies found by itself.

    k = Kernel(cfg, "double")
    x = k.hbm("x", (128, 64), "bf16", data)        # an input; without data an output
    tile = k.sbuf("tile", partitions=128, columns=64, dtype="bf16")
    k.dma(tile[:, :], x[:, :])                     # copy, destination first
    k.tensor.load(tile[:, 0:32])                   # stationary operand [K, M]
    k.tensor.matmul(tile[:, :], psum[0:32, 0:64])  # moving [K, N] -> PSUM [M, N]
    k.vector.copy(out[0:32, :], psum[0:32, 0:64])
    program = k.program()

Every queue and every ring counts its completed items in a semaphore of its own. An item that touches
what an item elsewhere touched before waits for that count. docs/kernels.md tells all rules.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any

import numpy as np

from firmware.arguments import at_once, checked
from firmware.chosen import By
from firmware.decisions.regions import Regions
from firmware.engines.base import access, caller, need
from firmware.engines.gpsimd_operators import GpsimdOperators
from firmware.engines.scalar import ScalarEngine
from firmware.engines.tensor import TensorEngine
from firmware.engines.vector import VectorEngine
from firmware.hazards import Access, Hazards, Known
from firmware.loops.indexed import Indexed
from firmware.loops.record import Recorder
from firmware.loops.registers import Decisions
from firmware.loops.statements import Loops
from firmware.loops.turns import Turns
from firmware.numbers import element_bytes, split_format
from firmware.program import Completion, HbmTensor, Instruction, Program, Semaphore, SemaphoreWait
from firmware.rings import Rings
from firmware.room import Room, held_in
from firmware.views import CopyView, HbmView, KernelError, MemoryFullError, Tile, TileView
from rtl.contract.access_pattern import DIMENSIONS, AccessPattern, start_partition_rule
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import COPY_QUEUES, Opcode, Queue
from rtl.contract.memmap import Space, core_id, core_place

__all__ = ["HbmView", "Kernel", "KernelError", "Tile", "TileView"]

ALLOCATION_BYTES = 16  # what a DMA mover moves at once


@checked
class Kernel(Loops, Decisions, Indexed):
    """Builds a Program for `cfg`, for the core at `core`: (rack, server, chip, core). Errors: KernelError, one
    sentence."""

    def __init__(self, cfg: Config, name: str, core: tuple[int, int, int, int] = (0, 0, 0, 0)):
        self.cfg = cfg
        try:
            self.core = core_id(*core)
        except ValueError as error:
            raise KernelError(f"kernel {name} is for core {core}, but {error}") from None
        self._program = Program(name=name, config=cfg, core=self.core, queues={q: [] for q in Queue})
        self._regions = Regions(self._counts, self._keeps, self._forgets, self._settle_all, self._own)
        self._read: set[str] = set()  # memories that registers come from
        self._recorder = Recorder(Turns(self._program.queues), self._regions)
        self._program.loops = self._recorder.turns.found
        self._room = Room(cfg, self.core)
        self._program.tiles = self._room.tiles
        self._hbm_bytes = 0  # of tensors
        self._semaphores = 0  # named ones
        self._known: dict[Queue, Known] = {q: {} for q in Queue}
        self._hazards = Hazards(
            ordered=frozenset(int(q) for q in Queue), interlocked=frozenset((int(Queue.VECTOR), int(Queue.SCALAR)))
        )
        self._rings = Rings(self, self._hazards, self._known)
        self.tensor = TensorEngine(self)
        self.vector = VectorEngine(self)
        self.scalar = ScalarEngine(self)
        self.gpsimd = GpsimdOperators(self)
        self._producers = producers = len(Queue) + cfg.dma.rings
        need(
            producers <= cfg.issue.semaphores,
            f"a kernel needs a semaphore for each queue and ring ({producers}), "
            f"more than issue.semaphores ({cfg.issue.semaphores})",
        )

    @at_once()
    def hbm(
        self, name: str, shape: tuple[int, ...], dtype: str, data: np.ndarray | None = None, *, inner: bool = False
    ) -> HbmView:
        """A tensor in HBM: an input with the bits `data` (numbers.encode), else an output, or an `inner` one, which the
        host does not read."""
        name = self._room.name(name)
        need(
            len(shape) >= 1 and all(n >= 1 for n in shape),
            f"tensor {name} has shape {shape}; every axis must have at least 1 element",
        )
        kind = held_in(f"tensor {name}", dtype)
        if data is not None:
            need(
                data.shape == shape and data.dtype == kind,
                f"tensor {name} needs {kind.name} bits of shape {shape}, not {data.dtype.name} of {data.shape}",
            )
        size = prod(shape) * element_bytes(dtype)
        self._hbm_bytes += size
        if self._hbm_bytes > self.cfg.hbm.capacity_mib << 20:  # the image would say so, once all else is built
            raise MemoryFullError(
                f"program {self._program.name} needs {self._hbm_bytes} bytes of HBM with tensor {name}, more than "
                f"hbm.capacity_mib = {self.cfg.hbm.capacity_mib} MiB"
            )
        tensor = HbmTensor(name=name, shape=shape, dtype=dtype, bytes=size, data=data, core=self.core, inner=inner)
        self.add_tensor(tensor)
        strides = tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
        return HbmView(tensor, 0, shape, strides, tuple((0, n) for n in shape))

    @at_once()
    def sbuf(
        self,
        name: str,
        *,
        partitions: int,
        columns: int,
        dtype: str,
        start: int = 0,
        align: int = ALLOCATION_BYTES,
    ) -> Tile:
        """Allocate `columns` elements on each of `partitions` partitions of SBUF."""
        return self._room.tile(Space.SBUF, name, start, partitions, columns, dtype, align)

    @at_once()
    def psum(self, name: str, *, partitions: int, columns: int, align: int = 4) -> Tile:
        """Allocate `columns` FP32 sums on each of `partitions` partitions of PSUM."""
        return self._room.tile(Space.PSUM, name, 0, partitions, columns, "fp32", align)

    @at_once()
    def sbuf_free(self) -> int:
        """Bytes of an SBUF partition that are not allocated yet."""
        return self._room.free_bytes(Space.SBUF)

    @at_once()
    def psum_free(self, align: int = 4) -> int:
        """Bytes of a PSUM partition behind the next allocation with this alignment."""
        return self._room.free_bytes(Space.PSUM, align)

    def dma(
        self,
        dst: CopyView,
        src: CopyView,
        *,
        ring: int | None = None,
        queue: Queue | None = None,
        class_: int = 0,
        add: str | None = None,
        after: Sequence[Completion] = (),
        signal: Semaphore | None = None,
        direct: bool = False,
        by: By | None = None,
    ) -> Completion:
        """Copy `src` to `dst`: same shape and dtype. Stores to HBM and to other cores go by default over ring 1 and
        queue gpsimd, all else over ring 0 and queue sync, so that neither waits behind the other. A ring belongs
        to the queue that triggers it first: two queues would release each other's descriptors.

        One of the two may be a view of another kernel: it lies in that kernel's core. `signal` gets +1 when all
        data are there; it is a semaphore of this core or of that of `dst`, or of any if both are in this one.
        `add`: fp32, bf16 or int32: dst + src goes to `dst`, which lies in SBUF, of this core or another; `src` lies
        here. `dst` may repeat elements: then all of `src` is added, in its order. Sums of one ring come
        behind what it has copied and added to `dst` before, without a wait; other rings, copies and readers wait.
        `after`: what earlier copies returned, to be complete before this one starts. Returns its own. A copy to
        another core is complete here when `src` has been read and has left.

        `direct`: the descriptor is part of an instruction of queue sync or scalar, and goes to a ring of that queue's
        own. So are all copies in blocks that a run may leave out; they signal no other core. `by`: see gather, scatter.
        """
        self._stays((access(dst, True),))
        self._own(number for view in (dst, src) if isinstance(view, HbmView) for number, _ in view.moved)
        return self._rings.copy(
            dst, src, ring=ring, queue=queue, class_=class_, add=add, after=after, signal=signal, direct=direct, by=by
        )

    @at_once()
    def semaphore(self, name: str) -> Semaphore:
        """A semaphore of this core for copies to add to, its own and those of other cores; it begins at 0."""
        self._room.name(name)
        index = self._producers + self._semaphores
        need(
            index < self.cfg.issue.semaphores - len(COPY_QUEUES) * self._rings.direct,
            f"semaphore {name} would be number {index}; there are issue.semaphores = {self.cfg.issue.semaphores}",
        )
        self._semaphores += 1
        return Semaphore(name, self.core, index)

    def wait(self, queue: Queue, semaphore: Semaphore, value: int, *arrives: TileView | HbmView) -> None:
        """The next instruction of `queue` waits until `semaphore` is at least `value`. `arrives`: what other cores
        have then written here; whoever reads it later, in any queue, waits for this wait.
        """
        need(not self._regions.open, "a queue waits for a semaphore in every run, not in a block that may be left out")
        need(
            semaphore.core == self.core,
            f"queue {queue.name.lower()} of core {core_place(self.core)} cannot wait for semaphore {semaphore.name} "
            f"of core {core_place(semaphore.core)}",
        )
        need(1 <= value < 1 << 31, f"the value to wait for must be from 1 to {(1 << 31) - 1}, not {value}")
        accesses = tuple(access(view, True) for view in arrives)
        self._stays(accesses)
        wait = SemaphoreWait(semaphore.index, value)
        self.issue(queue, Opcode.NOP, accesses=accesses, more=(wait,), source=caller())

    def barrier(self, queue: Queue) -> None:
        """The next instruction of `queue` waits for everything that the kernel has said so far."""
        producers = set(self._hazards.implied) | self._hazards.pending
        needs = {p: self._hazards.reach(p) for p in producers if p != int(queue)}
        self.issue(queue, Opcode.NOP, needs=needs, source=caller())

    @at_once()
    def program(self, **fields: Any) -> Program:
        """The finished program; `fields` (macs, notes, params, metrics) are set on it."""
        need(not self._recorder.open, "a program is finished behind its loops, not in the body of one")
        program = self._program
        program.rings = self._rings.finished()
        program.steps = self._steps()
        program.sbuf_bytes = self._room.most_bytes[Space.SBUF]
        program.psum_bytes = self._room.most_bytes[Space.PSUM]
        for key, value in fields.items():
            need(hasattr(program, key), f"a program has no field {key!r} to set")
            setattr(program, key, value)
        return program

    @at_once()
    def share(self) -> None:
        """Hazards of tiles are found by their bytes from now on, whatever they are called; before the first tile."""
        self._room.share()

    @at_once()
    def scratch(self, name: str) -> AbstractContextManager[None]:
        """Tiles of this block are gone at its end, and their room is for others. Names in it begin with `name`."""
        return self._room.scratch(name)

    def add_tensor(self, tensor: HbmTensor) -> None:
        """For rings: a tensor under its name, unless there is one."""
        self._program.tensors.setdefault(tensor.name, tensor)

    def instructions(self, queue: Queue) -> list[Instruction]:
        """For rings: what a queue has so far."""
        return self._program.queues[queue]

    def issue(
        self,
        queue: Queue,
        opcode: Opcode,
        *,
        accesses: tuple[Access, ...] = (),
        needs: Known | None = None,
        more: tuple[SemaphoreWait, ...] = (),
        source: str = "",
        **fields: Any,
    ) -> None:
        """For engines: append an instruction with its waits, and `more` of them; what does not fit its two slots goes
        to NOPs before it."""
        for one in accesses:
            need(
                one.core == self.core,
                f"queue {queue.name.lower()} reaches the memories of core {core_place(self.core)}, not {one.memory}; "
                f"copies do",
            )
        self._stays(accesses)
        known = self._known[queue]
        if needs is None:
            needs = self._hazards.needs(int(queue), accesses)
        self._rings.settle(needs)
        waits = self._hazards.unknown(needs, known)
        items = [*(SemaphoreWait(p, n) for p, n in sorted(waits.items())), *more]
        self._hazards.learn(known, waits)
        instructions = self._program.queues[queue]
        while len(items) > 2:
            early, items = items[:2], items[2:]
            self._hazards.add(int(queue), (), known)
            instructions.append(Instruction(opcode=Opcode.NOP, update=int(queue), waits=tuple(early), source=source))
        self._hazards.add(int(queue), accesses, known)
        instructions.append(Instruction(opcode=opcode, update=int(queue), waits=tuple(items), source=source, **fields))

    def needs(self, queue: Queue, accesses: tuple[Access, ...]) -> Known:
        """For engines: what must be complete before an instruction with these accesses."""
        needs = self._hazards.needs(int(queue), accesses)
        self._rings.settle(needs)
        return needs

    def follows(self, queue: Queue, needs: Known, producer: int, count: int) -> bool:
        """For engines: whether an instruction of `queue` with these needs starts after item `count` of a producer."""
        return (
            max(
                self._known[queue].get(producer, 0),
                needs.get(producer, 0),
                *(self._hazards.after(p, n).get(producer, 0) for p, n in needs.items()),
            )
            >= count
        )

    def items(self, queue: Queue) -> int:
        """For engines: items of a queue so far."""
        return self._hazards.count(int(queue))

    def columns_sent(self, count: int) -> None:
        """For the tensor engine: count moving columns, those of row groups at once as one."""
        self._program.tensor_columns += count

    def pattern(self, view: TileView, what: str) -> AccessPattern:
        """For engines: the pattern of an operand, called `what` in errors."""
        cfg = self.cfg
        need(
            start_partition_rule(view.start, view.partitions, cfg.partitions),
            f"{what} {view.tile.name} takes {view.partitions} partitions from {view.start}; with "
            f"{cfg.partitions} partitions that many cannot start there",
        )
        return self.free_pattern(view, what)

    def free_pattern(self, view: TileView, what: str) -> AccessPattern:
        """The same for an operand whose partitions have a rule of their own."""
        need(
            len(view.dims) <= DIMENSIONS,
            f"{what} {view.tile.name} has {len(view.dims)} free dimensions; an instruction has {DIMENSIONS}",
        )
        for step, count in view.dims:
            need(
                count < 1 << 16 and -(1 << 15) <= step < 1 << 15,
                f"{what} {view.tile.name} has step {step} and count {count}; a step has 16 bits with sign, "
                f"a count 16 bits",
            )
        return AccessPattern(
            space=int(view.tile.space),
            dtype=FORMATS[split_format(view.dtype)[0]].code,
            partition_start=view.start,
            partition_count=view.partitions,
            offset=view.offset,
            dims=tuple(reversed(view.dims)),
        )

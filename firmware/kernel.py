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

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from firmware.hazards import Access, Hazards, Known
from firmware.numbers import bits_dtype, element_bytes
from firmware.program import Completion, Descriptor, HbmTensor, Instruction, Place, Program, SemaphoreWait
from firmware.views import HbmView, KernelError, Tile, TileView
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import DIMENSIONS, AccessPattern, Opcode, Queue, start_partition_rule
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space

__all__ = ["HbmView", "Kernel", "KernelError", "Tile", "TileView"]

LOAD_QUEUE, LOAD_RING = Queue.SYNC, 0
STORE_QUEUE, STORE_RING = Queue.GPSIMD, 1
ROW_BYTES_MAX = 1 << 18
ALLOCATION_BYTES = 16  # what a DMA mover moves at once
_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent
_LANGUAGE = {str(_HERE / name) for name in ("kernel.py", "views.py", "hazards.py")}


def _caller() -> str:
    """file:line of the statement of the kernel that is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _LANGUAGE:
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"


@cache
def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name


def _need(ok: bool, sentence: str) -> None:
    if not ok:
        raise KernelError(sentence)


class Kernel:
    """Builds a Program for `cfg`. Errors: KernelError, one sentence."""

    def __init__(self, cfg: Config, name: str):
        self.cfg = cfg
        self._program = Program(name=name, config=cfg, queues={q: [] for q in Queue})
        self._rings: list[list[Descriptor]] = [[] for _ in range(cfg.dma.rings)]
        self._owners: dict[int, Queue] = {}
        self._used = {Space.SBUF: 0, Space.PSUM: 0}
        self._names: set[str] = set()
        self._known: dict[Queue, Known] = {q: {} for q in Queue}
        self._hazards = Hazards(ordered=frozenset(int(q) for q in Queue))
        self.tensor = TensorEngine(self)
        self.vector = VectorEngine(self)
        producers = len(Queue) + cfg.dma.rings
        _need(
            producers <= cfg.issue.semaphores,
            f"a kernel needs a semaphore for each queue and ring ({producers}), "
            f"more than issue.semaphores ({cfg.issue.semaphores})",
        )

    def hbm(self, name: str, shape: tuple[int, ...], dtype: str, data: np.ndarray | None = None) -> HbmView:
        """A tensor in HBM: an input with the bits `data` (numbers.encode), else an output."""
        self._name(name)
        _need(
            len(shape) >= 1 and all(n >= 1 for n in shape),
            f"tensor {name} has shape {shape}; every axis must have at least 1 element",
        )
        try:
            kind = bits_dtype(dtype)
        except ValueError as error:
            raise KernelError(f"tensor {name}: {error}") from None
        if data is not None:
            _need(
                data.shape == shape and data.dtype == kind,
                f"tensor {name} needs {kind.name} bits of shape {shape}, not {data.dtype.name} of {data.shape}",
            )
        size = int(np.prod(shape)) * element_bytes(dtype)
        tensor = HbmTensor(name=name, shape=shape, dtype=dtype, bytes=size, data=data)
        self._program.tensors[name] = tensor
        strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        return HbmView(tensor, 0, shape, strides, tuple((0, n) for n in shape))

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
        return self._allocate(Space.SBUF, self.cfg.sbuf.partition_bytes, name, start, partitions, columns, dtype, align)

    def psum(self, name: str, *, partitions: int, columns: int, align: int = 4) -> Tile:
        """Allocate `columns` FP32 sums on each of `partitions` partitions of PSUM."""
        size = self.cfg.psum.partition_bytes
        return self._allocate(Space.PSUM, size, name, 0, partitions, columns, "fp32", align)

    def sbuf_free(self) -> int:
        """Bytes of an SBUF partition that are not allocated yet."""
        return self.cfg.sbuf.partition_bytes - self._used[Space.SBUF]

    def dma(
        self,
        dst: TileView | HbmView,
        src: TileView | HbmView,
        *,
        ring: int | None = None,
        queue: Queue | None = None,
        class_: int = 0,
        after: Sequence[Completion] = (),
    ) -> Completion:
        """Copy `src` to `dst`: same shape and dtype. Stores to HBM go by default over ring 1 and queue
        gpsimd, all else over ring 0 and queue sync, so that neither waits behind the other. A ring belongs
        to the queue that triggers it first: two queues would release each other's descriptors.

        `after`: what earlier copies returned, to be complete before this one starts. Returns its own.
        """
        store = isinstance(dst, HbmView)
        if ring is None:
            ring = min(STORE_RING if store else LOAD_RING, self.cfg.dma.rings - 1)
        _need(0 <= ring < self.cfg.dma.rings, f"ring must be from 0 to {self.cfg.dma.rings - 1}, not {ring}")
        if queue is None:
            queue = self._owners.get(ring, STORE_QUEUE if store else LOAD_QUEUE)
        owner = self._owners.setdefault(ring, queue)
        _need(
            owner == queue,
            f"ring {ring} is triggered by queue {owner.name.lower()}, so queue {queue.name.lower()} must not be used",
        )
        _need(0 <= class_ <= 7, f"a traffic class must be from 0 to 7, not {class_}")
        for view in (dst, src):
            _need(
                not isinstance(view, TileView) or view.tile.space == Space.SBUF,
                f"DMA reaches HBM and SBUF, not PSUM, where {_name_of(view)} lies",
            )
        _need(
            dst.dtype == src.dtype,
            f"DMA moves bytes without conversion: {_name_of(dst)} is {dst.dtype}, {_name_of(src)} is {src.dtype}",
        )
        if isinstance(dst, HbmView):
            _need(dst.tensor.output, f"tensor {dst.tensor.name} is an input, so a kernel must not write to it")
        row_bytes, dims = self._rows(dst, src)
        producer = len(Queue) + ring
        accesses = (_access(dst, True), _access(src, False))
        origin = _caller()
        needs = self._hazards.needs(producer, accesses)
        for one in after:
            needs[one.producer] = max(needs.get(one.producer, 0), one.count)
        waits = self._hazards.unknown(needs, self._known[queue])
        instructions = self._program.queues[queue]
        last = instructions[-1] if instructions else None
        if not waits and last and last.opcode == Opcode.DMA_TRIGGER and last.imm0 == ring:
            instructions[-1] = Instruction(
                opcode=last.opcode,
                update=last.update,
                waits=last.waits,
                imm0=ring,
                imm1=last.imm1 + 1,
                source=last.source,
            )
        else:
            self._issue(queue, Opcode.DMA_TRIGGER, needs=waits, imm0=ring, imm1=1, source=origin)
        count = self._hazards.add(producer, accesses, self._known[queue])
        self._rings[ring].append(
            Descriptor(
                source=_place(src),
                destination=_place(dst),
                row_bytes=row_bytes,
                dims=dims,
                signal=producer,
                class_=class_,
                origin=origin,
            )
        )
        return Completion(producer, count)

    def barrier(self, queue: Queue) -> None:
        """The next instruction of `queue` waits for everything that the kernel has said so far."""
        needs = {p: len(items) for p, items in self._hazards.implied.items() if p != int(queue)}
        self._issue(queue, Opcode.NOP, needs=needs, source=_caller())

    def program(self, **fields: Any) -> Program:
        """The finished program; `fields` (macs, notes, params, metrics) are set on it."""
        program = self._program
        while self._rings and not self._rings[-1]:
            self._rings.pop()
        program.rings = self._rings
        program.sbuf_bytes = self._used[Space.SBUF]
        program.psum_bytes = self._used[Space.PSUM]
        for key, value in fields.items():
            setattr(program, key, value)
        return program

    def _name(self, name: str) -> None:
        _need(bool(name) and name not in self._names, f"the name {name!r} is empty or taken already")
        self._names.add(name)

    def _allocate(
        self,
        space: Space,
        size: int,
        name: str,
        start: int,
        partitions: int,
        columns: int,
        dtype: str,
        align: int,
    ) -> Tile:
        self._name(name)
        total = self.cfg.partitions
        _need(columns >= 1, f"tile {name} must have at least 1 column, not {columns}")
        _need(
            partitions >= 1 and start >= 0 and start + partitions <= total,
            f"tile {name} takes partitions {start} to {start + partitions - 1}; there are {total} from 0",
        )
        offset = -(-self._used[space] // align) * align
        need = columns * element_bytes(dtype)
        _need(
            offset + need <= size,
            f"tile {name} needs {need} bytes of each {space.name} partition, but only "
            f"{max(0, size - offset)} of {size} are free",
        )
        self._used[space] = offset + need
        return Tile(name, space, start, partitions, offset, columns, dtype)

    def _rows(self, dst: TileView | HbmView, src: TileView | HbmView) -> tuple[int, tuple[tuple[int, int, int], ...]]:
        """Rows of contiguous bytes and up to three dimensions of them, innermost first."""
        d, s = dst.axes_bytes(), src.axes_bytes()
        counts = [n for n, _ in d if n > 1]
        _need(
            counts == [n for n, _ in s if n > 1],
            f"DMA needs the same shape on both sides: {_name_of(dst)} is {dst.shape}, {_name_of(src)} is {src.shape}",
        )
        dst_steps = [step for n, step in d if n > 1]
        src_steps = [step for n, step in s if n > 1]
        _need(0 not in dst_steps, f"{_name_of(dst)} repeats elements, which only a source may do")
        row = element_bytes(dst.dtype)
        sbuf_sides = isinstance(src, TileView), isinstance(dst, TileView)
        merged: list[tuple[int, int, int]] = []  # innermost first
        for count, a, b in zip(reversed(counts), reversed(src_steps), reversed(dst_steps), strict=True):
            if not merged and a == row and b == row and row * count <= ROW_BYTES_MAX:
                row *= count
            elif merged and a == merged[-1][0] * merged[-1][1] and b == merged[-1][0] * merged[-1][2]:
                merged[-1] = (merged[-1][0] * count, merged[-1][1], merged[-1][2])
            else:
                merged.append((count, a, b))
        _need(
            len(merged) <= 3,
            f"a copy from {_name_of(src)} to {_name_of(dst)} needs {len(merged)} dimensions of rows; "
            f"a descriptor has 3",
        )
        # Partitions innermost, those of different movers first: so all movers soon have a row.
        merged.sort(key=lambda dim: not _steps_over_partitions(dim, sbuf_sides))
        lanes = self.cfg.partitions // self.cfg.dma.engines
        if merged and len(merged) < 3 and _steps_over_partitions(merged[0], sbuf_sides):
            count, a, b = merged[0]
            if count % lanes == 0 and count > lanes > 1:
                merged[:1] = [(count // lanes, a * lanes, b * lanes), (lanes, a, b)]
        return row, tuple(merged)

    def _issue(
        self,
        queue: Queue,
        opcode: Opcode,
        *,
        accesses: tuple[Access, ...] = (),
        needs: Known | None = None,
        source: str = "",
        **fields: Any,
    ) -> None:
        """Append an instruction with its waits; what does not fit its two slots goes to NOPs before it."""
        known = self._known[queue]
        if needs is None:
            needs = self._hazards.needs(int(queue), accesses)
        waits = self._hazards.unknown(needs, known)
        items = [SemaphoreWait(p, n) for p, n in sorted(waits.items())]
        self._hazards.learn(known, waits)
        instructions = self._program.queues[queue]
        while len(items) > 2:
            early, items = items[:2], items[2:]
            self._hazards.add(int(queue), (), known)
            instructions.append(Instruction(opcode=Opcode.NOP, update=int(queue), waits=tuple(early), source=source))
        self._hazards.add(int(queue), accesses, known)
        instructions.append(Instruction(opcode=opcode, update=int(queue), waits=tuple(items), source=source, **fields))

    def _pattern(self, view: TileView, what: str) -> AccessPattern:
        cfg = self.cfg
        _need(
            start_partition_rule(view.start, view.partitions, cfg.partitions),
            f"{what} {view.tile.name} takes {view.partitions} partitions from {view.start}; with "
            f"{cfg.partitions} partitions that many cannot start there",
        )
        _need(
            len(view.dims) <= DIMENSIONS,
            f"{what} {view.tile.name} has {len(view.dims)} free dimensions; an instruction has {DIMENSIONS}",
        )
        for step, count in view.dims:
            _need(
                count < 1 << 16 and -(1 << 15) <= step < 1 << 15,
                f"{what} {view.tile.name} has step {step} and count {count}; a step has 16 bits with sign, "
                f"a count 16 bits",
            )
        return AccessPattern(
            space=int(view.tile.space),
            dtype=FORMATS[view.dtype].code,
            partition_start=view.start,
            partition_count=view.partitions,
            offset=view.offset,
            dims=tuple(reversed(view.dims)),
        )


def _steps_over_partitions(dim: tuple[int, int, int], sbuf: tuple[bool, bool]) -> bool:
    """Whether a dimension (count, source step, destination step) goes from partition to partition."""
    return any(side and step >= PARTITION_STRIDE_BYTES for step, side in zip(dim[1:], sbuf, strict=True))


def _name_of(view: TileView | HbmView) -> str:
    return view.tensor.name if isinstance(view, HbmView) else view.tile.name


def _access(view: TileView | HbmView, writes: bool) -> Access:
    if isinstance(view, HbmView):
        return Access(f"hbm {view.tensor.name}", view.box, writes)
    return Access(f"tile {view.tile.name}", view.box, writes)  # tiles never overlap


def _place(view: TileView | HbmView) -> Place:
    if isinstance(view, HbmView):
        return Place(Space.HBM, view.offset * element_bytes(view.dtype), view.tensor.name)
    return Place(Space.SBUF, view.first_byte)


class TensorEngine:
    """The systolic array: `k.tensor`."""

    def __init__(self, kernel: Kernel):
        self._k = kernel
        self._stationary: TileView | None = None

    def load(self, view: TileView) -> None:
        """Load a stationary operand [K partitions, M columns] of SBUF, for the matmuls that follow."""
        k, cfg = self._k, self._k.cfg.tensor
        self._operand(view, "stationary operand")
        _need(
            view.elements <= cfg.cols,
            f"stationary operand {view.tile.name} has {view.elements} columns, more than tensor.cols ({cfg.cols})",
        )
        pattern = k._pattern(view, "stationary operand")
        k._issue(
            Queue.TENSOR,
            Opcode.LOAD_STATIONARY,
            accesses=(_access(view, False),),
            src0=pattern,
            source=_caller(),
        )
        self._stationary = view

    def matmul(self, moving: TileView, psum: TileView, *, accumulate: bool = False) -> None:
        """psum[M, N] = (or += with `accumulate`) stationary[K, M]^T moving[K, N]."""
        k, cfg, stationary = self._k, self._k.cfg.tensor, self._stationary
        if stationary is None:
            raise KernelError(f"a matmul of {moving.tile.name} needs a stationary operand loaded before it")
        self._operand(moving, "moving operand")
        _need(
            (moving.start, moving.partitions) == (stationary.start, stationary.partitions),
            f"moving operand {moving.tile.name} is on {moving.partitions} partitions from {moving.start}, "
            f"the stationary one on {stationary.partitions} from {stationary.start}; they must be the same",
        )
        _need(
            psum.tile.space == Space.PSUM and psum.start == 0 and psum.partitions == stationary.elements,
            f"a matmul with {stationary.elements} stationary columns writes to {stationary.elements} PSUM "
            f"partitions from 0, not to {psum.partitions} {psum.tile.space.name} partitions "
            f"from {psum.start}",
        )
        _need(
            psum.elements == moving.elements <= cfg.moving_max,
            f"a matmul of {moving.elements} moving columns writes {psum.elements}; they must be equal and at "
            f"most tensor.moving_max ({cfg.moving_max})",
        )
        span = 1
        for step, count in reversed(psum.dims):
            if count > 1:
                _need(
                    step >= span,
                    f"a matmul writes {psum.tile.name} with step {step}, which meets an element twice; "
                    f"steps must ascend without overlap",
                )
                span = step * count
        fields: dict[str, Any] = {
            "src0": k._pattern(moving, "moving operand"),
            "dst": k._pattern(psum, "result"),
            "accumulate": accumulate,
        }
        # Accumulation reads PSUM too, but in the order of the queue, which the array keeps.
        accesses = (_access(moving, False), _access(psum, True))
        k._issue(Queue.TENSOR, Opcode.MULTIPLY_MOVING, accesses=accesses, source=_caller(), **fields)
        k._program.tensor_columns += moving.elements

    def nop(self) -> None:
        """An instruction that does nothing."""
        self._k._issue(Queue.TENSOR, Opcode.NOP, source=_caller())

    def barrier(self) -> None:
        """The next instruction waits for everything that the kernel has said so far."""
        self._k.barrier(Queue.TENSOR)

    def _operand(self, view: TileView, what: str) -> None:
        cfg = self._k.cfg.tensor
        _need(view.tile.space == Space.SBUF, f"{what} {view.tile.name} lies in PSUM; the array reads from SBUF")
        _need(
            view.dtype in ("bf16", "fp16"),
            f"{what} {view.tile.name} is {view.dtype}; it must be bf16 or fp16",
        )
        _need(
            view.start + view.partitions <= cfg.rows,
            f"{what} {view.tile.name} ends at partition {view.start + view.partitions - 1}; "
            f"the array has rows 0 to {cfg.rows - 1}",
        )


class VectorEngine:
    """The vector engine: `k.vector`."""

    def __init__(self, kernel: Kernel):
        self._k = kernel

    def copy(self, dst: TileView, src: TileView) -> None:
        """dst = src, converted to dst's dtype with rounding to nearest even. PSUM or SBUF to SBUF."""
        k = self._k
        _need(dst.tile.space == Space.SBUF, f"a copy writes to SBUF, not to PSUM, where {dst.tile.name} lies")
        for view in (dst, src):
            _need(
                view.dtype in ("fp32", "bf16", "fp16"),
                f"{view.tile.name} is {view.dtype}; a copy converts fp32, bf16 and fp16",
            )
        _need(
            (dst.partitions, dst.elements) == (src.partitions, src.elements),
            f"a copy needs the same shape on both sides: {dst.tile.name} is {dst.shape}, "
            f"{src.tile.name} is {src.shape}",
        )
        fields: dict[str, Any] = {"src0": k._pattern(src, "source"), "dst": k._pattern(dst, "destination")}
        accesses = (_access(dst, True), _access(src, False))
        k._issue(Queue.VECTOR, Opcode.TENSOR_COPY, accesses=accesses, source=_caller(), **fields)
        k._program.vector_elements += src.elements

    def nop(self) -> None:
        """An instruction that does nothing."""
        self._k._issue(Queue.VECTOR, Opcode.NOP, source=_caller())

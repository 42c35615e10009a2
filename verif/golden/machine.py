"""The golden machine: runs an image word by word on NumPy memories, and leaves the bits that RTL must leave.

It decodes instructions and descriptors itself from HBM. Without a seed it completes each item before
the next; cores of the programmable engine go on when nothing else can. With a seed it chooses, at every step, any
event that the contract allows: items of a queue are issued, read and commit in order but overlap; released
descriptors of a ring read and write in any order and signal in order; cores execute some instructions. A program
whose semaphores suffice leaves the same bits under every seed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from rtl.contract.config import Config
from rtl.contract.isa import COPY_AT, Cause, Opcode, Queue, Update, Wait
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from verif.golden import issue
from verif.golden.copies import Alone, Copies
from verif.golden.gpsimd.cluster import Cluster
from verif.golden.groups import WeightKinds
from verif.golden.lines import Failed, Item, Line, behind, words
from verif.golden.memory import Memory
from verif.golden.operands import Fields, Operands
from verif.golden.results import Fault, ImageLike, RegionLike, RunResult
from verif.golden.scalar_instructions import ScalarInstructions
from verif.golden.sequencer import Sequencer
from verif.golden.tensor_instructions import TensorInstructions
from verif.golden.vector_instructions import VectorInstructions

__all__ = ["DeadlockError", "Fault", "GoldenMachine", "ImageLike", "RegionLike", "RunResult"]

IN_FLIGHT = 4  # items of a queue that may overlap under a seed
RING_IN_FLIGHT = 64  # of a ring, whatever dma.ring_depth is: a program must not depend on it
_SEES_ITSELF = (Queue.VECTOR, Queue.SCALAR, Queue.GPSIMD)
"""Queues in which a read waits until all writes before it have been made."""


class _EngineModel(Protocol):
    """What an engine does with a decoded instruction: `write` stores what `read` has computed."""

    def read(self, f: Fields) -> Any: ...
    def write(self, f: Fields, stored: Any) -> None: ...


class DeadlockError(RuntimeError):
    """No queue can go on and none has faulted; the text names what each waits for."""


class GoldenMachine:
    """A device without time. `load` an image, `run`, then `read` regions.

    `core_id`: its place in the address map. `copies`: what its descriptors do, and what other cores they reach.
    """

    name = "golden"

    def __init__(self, cfg: Config, seed: int | None = None, core_id: int = 0, copies: Copies | None = None):
        self.cfg = cfg
        self.core_id = core_id
        self.copies = copies or Alone()
        self.rng = None if seed is None else np.random.default_rng(seed)

    def load(self, image: ImageLike) -> None:
        """Take an image; SBUF and PSUM hold 0xFF, semaphores and weights 0."""
        cfg = self.cfg
        self.image = image
        self.hbm = image.memory()
        self.sbuf = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.psum = Memory(cfg.partitions, cfg.psum.partition_bytes)
        self.cluster = Cluster(cfg, self.sbuf, self, self.rng, copy=lambda word: self.copies.start(self, word))
        self.engines: dict[Queue, _EngineModel] = {
            Queue.TENSOR: TensorInstructions(self.sbuf, self.psum, cfg.tensor.rows, cfg.tensor.cols, cfg.tensor.groups),
            Queue.VECTOR: VectorInstructions(Operands(self.sbuf, self.psum), cfg.partitions),
            Queue.SCALAR: ScalarInstructions(Operands(self.sbuf, self.psum), cfg.scalar.table_rows),
            Queue.GPSIMD: self.cluster,
        }
        self.weights = WeightKinds(cfg.tensor.rows, cfg.tensor.cols, cfg.tensor.groups)
        self.loaded = 0  # functions of the table that the scalar queue loaded last, a bit each
        self.semaphores = [0] * cfg.issue.semaphores
        self.faults: list[Fault] = []
        self.queues = [self._queue(q, words(self.hbm, *image.queues.get(q, (0, 0)))) for q in Queue]
        self.rings = [Line(f"ring {i}", words(self.hbm, *r), False) for i, r in enumerate(image.rings)]
        self.rings += [Line(f"ring {i}", [], False) for i in range(len(self.rings), cfg.dma.rings)]
        self.released = [0] * len(self.rings)
        self.own_rings = {q: Line(f"{q.name.lower()} copies", [], False) for q in (Queue.SCALAR, Queue.SYNC)}

    def _queue(self, queue: Queue, program: list[int]) -> Line:
        def load(number: int) -> int | Cause:
            if not 0 <= number < self.cfg.hbm.capacity_mib << 18:
                return Cause.OUT_OF_RANGE
            data = self.hbm[4 * number : 4 * number + 4].tobytes()
            return int.from_bytes(data + b"\xff" * (4 - len(data)), "little")

        shows = Sequencer(program, lambda n: self.semaphores[n], self.cfg.issue.semaphores, load=load)
        return Line(queue.name.lower(), program, True, iter(shows), sees_itself=queue in _SEES_ITSELF)

    def run(self) -> RunResult:
        """Execute until all is done or halted. DeadlockError if it stops before, without a fault."""
        while events := self.events() or self.expiry():
            if self.rng is None:
                events[0]()
            else:
                events[int(self.rng.integers(len(events)))]()
        if self.stuck() and not self.faults:
            raise DeadlockError(self.stuck())
        return self.result()

    def stuck(self) -> str:
        """What the queues wait for that cannot go on; empty if all have ended or halted."""
        return "; ".join(self._waiting(q) for q in self.queues if not q.halted and not q.ended)

    def result(self) -> RunResult:
        """What is there now."""
        return RunResult(
            outputs={name: self.read(region) for name, region in self.image.outputs.items()},
            sbuf=self.sbuf.bytes,
            psum=self.psum.bytes,
            hbm=self.hbm,
            semaphores=list(self.semaphores),
            faults=list(self.faults),
            retired={q: self.queues[q].done for q in Queue},
            printed={core: bytes(text) for core, text in enumerate(self.cluster.printed) if text},
        )

    def read(self, region: RegionLike) -> np.ndarray:
        """The bits of a region. In SBUF and PSUM its rows lie on successive partitions."""
        kind = np.dtype(region.dtype)
        size = int(np.prod(region.shape)) * kind.itemsize
        if region.space == Space.HBM:
            return self.hbm[region.offset : region.offset + size].copy().view(kind).reshape(region.shape)
        memory = self.sbuf if region.space == Space.SBUF else self.psum
        partition, byte = divmod(region.offset, PARTITION_STRIDE_BYTES)
        rows = memory.bytes[partition : partition + region.shape[0], byte : byte + size // region.shape[0]]
        return np.ascontiguousarray(rows).view(kind).reshape(region.shape)

    def events(self) -> list[Callable[[], None]]:
        """What may happen next. Without a seed: one event."""
        work = self.work()
        return work if work and self.rng is None else work + self.slices()

    def slices(self) -> list[Callable[[], None]]:
        """What cores of the programmable engine may do next: they execute a GP_RUN, and not all of them sleep."""
        item = self._runs()
        return [lambda: self.advance(item)] if item and item.steps and item.steps.ready else []

    def expiry(self) -> list[Callable[[], None]]:
        """The watchdog of a GP_RUN whose cores all sleep; it comes when nothing else can happen."""
        item = self._runs()
        return [item.steps.expire] if item and item.steps else []

    def _runs(self) -> Item | None:
        """The GP_RUN that is executed now."""
        item = next((i for i in self.queues[Queue.GPSIMD].flight if i.state < 2), None)
        return item if item and item.steps and item.state == 0 else None

    def work(self) -> list[Callable[[], None]]:
        """What queues and rings may do next. Without a seed: one event, oldest work first."""
        events: list[Callable[[], None]] = []
        for line in (*self.queues, *self.rings, *self.own_rings.values(), self.cluster.copies.line):
            events += self._progress(line)
            if events and self.rng is None:
                return events
        for queue in Queue:
            line = self.queues[queue]
            ready = not line.halted and len(line.flight) < IN_FLIGHT and line.next_shown() is not None
            if ready and (self._refused(line, queue) or (self._may_issue(line) and self._has_ring(line, queue))):
                events.append(lambda queue=queue: self._issue(queue))
                if self.rng is None:
                    return events
        for index, line in enumerate(self.rings):
            if not line.halted and line.issued < self.released[index] and len(line.flight) < RING_IN_FLIGHT:
                events.append(lambda index=index: self._start(index))
        return events

    def _progress(self, line: Line) -> Iterable[Callable[[], None]]:
        """Reads and commits of the items in flight, and the completion of the oldest."""
        if not line.flight:
            return []
        if line.ordered:
            reads = next((i for i in line.flight if i.state == 0), None)
            commits = next((i for i in line.flight if i.state < 2), None)
            if line.sees_itself and commits is not reads:
                reads = None
            items = [i for i in (reads, commits if commits and commits.state == 1 else None) if i]
        else:
            items = [
                item
                for n, item in enumerate(line.flight)
                if item.state < 2 and not (item.follows and item.state and behind(item, line.flight[:n]))
            ]
        items = [i for i in items if i.steps is None or i.state]
        events: list[Callable[[], None]] = [lambda item=item: self.advance(item) for item in items]
        if line.flight[0].state == 2:
            events.append(lambda: self._complete(line))
        return events

    def advance(self, item: Item) -> None:
        """Let an item in flight read, or store."""
        if item.state == 0:
            if item.steps is not None and not item.steps.advance():
                return
            value = item.value = item.read()
            if isinstance(value, Cause) and value:
                value = Failed(value)
            item.failed = value if isinstance(value, Failed) else None
        else:
            item.commit(item.value)
            item.value = None
        item.state += 1

    def _complete(self, line: Line) -> None:
        item = line.flight.pop(0)
        if item.failed:
            # What is behind it leaves no trace, its own fault neither.
            line.flight.clear()
            line.halted = True
            self.faults = [fault for fault in self.faults if fault.queue != line.name]
            cause, address = item.failed.cause, item.failed.address
            number = item.sequence if line in self.own_rings.values() else line.done
            self.faults.append(Fault(queue=line.name, sequence=number, cause=cause, address=address))
            return
        line.done += 1
        if item.signal is not None:
            self.update(*item.signal)
        if item.ended is not None:
            item.ended()

    def update(self, index: int, update: Update, value: int) -> None:
        """Add to a semaphore or set it."""
        if update == Update.ADD:
            value += self.semaphores[index]
        if update != Update.NONE:
            self.semaphores[index] = (value + (1 << 31)) % (1 << 32) - (1 << 31)

    def _refused(self, line: Line, queue: Queue) -> bool:
        """Whether the next instruction is wrong by itself, which no wait delays."""
        if line.judged[0] != line.issued:
            line.judged = (line.issued, bool(self._check(line, queue)[0]))
        return line.judged[1]

    def _may_issue(self, line: Line) -> bool:
        f = line.next_instruction()
        for slot in ("wait0", "wait1"):
            kind, index = f[slot], f[f"{slot}_semaphore"]
            if kind not in (Wait.GE, Wait.EQ):
                continue  # nothing to wait for
            have, want = self.semaphores[index], f[f"{slot}_value"]
            if not (have >= want if kind == Wait.GE else have == want):
                return False
        return True

    def _has_ring(self, line: Line, queue: Queue) -> bool:
        """A DMA_COPY is taken unless one before it has failed."""
        return line.next_instruction()["opcode"] != Opcode.DMA_COPY or not self.own_rings[queue].halted

    def _halt(self, line: Line, cause: Cause, address: int, sequence: int | None = None) -> None:
        line.halted = True
        number = line.issued if sequence is None else sequence
        self.faults.append(Fault(queue=line.name, sequence=number, cause=cause, address=address))

    def _issue(self, queue: Queue) -> None:
        line = self.queues[queue]
        word = line.next_word()
        # How much of a ring is left is known only now, after the waits.
        left = [len(ring.words) - released for ring, released in zip(self.rings, self.released, strict=True)]
        cause, address = self._check(line, queue, left)
        if cause:
            self._halt(line, cause, address)
            return
        f = {**line.next_instruction(), "sequence": line.issued % 2**16}
        signal = (f["update_semaphore"], Update(f["update"]), f["update_value"])
        if f["opcode"] == Opcode.LOAD_TABLE:
            self.loaded = f["imm0"]
        if queue == Queue.TENSOR:
            self.weights.issue(f)
        read, commit = self.action(f, queue)
        if f["opcode"] == Opcode.DMA_COPY:
            descriptor, sequence = word >> COPY_AT, line.issued
            commit = lambda _: self._copy(queue, descriptor, sequence)  # noqa: E731
        item = Item(read, commit, signal if f["update"] else None, word=word, queue=queue, sequence=line.issued)
        if f["opcode"] == Opcode.GP_RUN:
            run = self.cluster.run(word)
            item.steps, item.read, item.commit = run, run.outcome, lambda _: None
        line.flight.append(item)
        line.issued += 1

    def _check(self, line: Line, queue: Queue, left: list[int] | None = None) -> tuple[Cause, int]:
        shown = line.next_shown()
        if shown and shown.cause:
            return shown.cause, 0
        return issue.check(line.next_word(), self.cfg, queue, left, self.loaded, self.weights)

    def action(self, f: Mapping[str, int], queue: Queue) -> tuple[Callable[[], Any], Callable[[Any], None]]:
        """What an instruction reads and what it then stores."""
        opcode = Opcode(f["opcode"])
        if opcode in (Opcode.NOP, Opcode.DMA_COPY):
            return (lambda: None), (lambda _: None)
        if opcode == Opcode.DMA_TRIGGER:
            return (lambda: None), (lambda _: self._release(f["imm0"], f["imm1"]))
        engine = self.engines[queue]
        return (lambda: engine.read(f)), (lambda result: engine.write(f, result))

    def _release(self, ring: int, count: int) -> None:
        self.released[ring] += count

    def _copy(self, queue: Queue, word: int, sequence: int) -> None:
        """A descriptor for the ring of the queue, from its instruction `sequence`."""
        line = self.own_rings[queue]
        if line.halted:
            return
        cause, address, item = self.copies.start(self, word)
        if item is None:
            self._halt(line, cause, address, sequence)
            return
        item.word, item.sequence = word, sequence
        line.flight.append(item)

    def _start(self, index: int) -> None:
        line = self.rings[index]
        cause, address, item = self.copies.start(self, line.next_word())
        if item is None:
            self._halt(line, cause, address)
            return
        item.word, item.sequence = line.next_word(), line.issued
        line.flight.append(item)
        line.issued += 1

    def grow(self, end: int) -> None:
        """HBM is as large as anybody asked for; new bytes are 0xFF."""
        if end > len(self.hbm):
            self.hbm = np.concatenate((self.hbm, np.full(end - len(self.hbm), 0xFF, np.uint8)))

    def _waiting(self, line: Line) -> str:
        if line.next_shown() is None:
            return f"queue {line.name} has issued all and waits for itself"
        f = line.next_instruction()
        waits = [
            f"semaphore {f[f'{slot}_semaphore']} (now {self.semaphores[f[f'{slot}_semaphore']]}) "
            f"to reach {f[f'{slot}_value']}"
            for slot in ("wait0", "wait1")
            if f[slot]
        ]
        return f"queue {line.name} waits at instruction {line.issued} for {' and '.join(waits)}"

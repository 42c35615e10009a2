"""A program: tensors, instructions of five queues and descriptors of the rings; nothing that runs it.

The kernel language (firmware/kernel.py) makes one, firmware/assemble.py turns it into words and
firmware/image.py into the contents of HBM. A place in HBM is (tensor, byte) until then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firmware.gpsimd.image import Image
from firmware.host_array import HostArray
from firmware.loops.places import turns_of
from rtl.contract import rates
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd, Indirect
from rtl.contract.isa import OPCODE_QUEUE, AluOp, Opcode, Queue, Reduce
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.roles import Uses

if TYPE_CHECKING:
    from firmware.decisions.numbers import Number, Register
    from firmware.decisions.steps import Step

__all__ = [
    "Allocation",
    "Choice",
    "Completion",
    "Descriptor",
    "HbmTensor",
    "Instruction",
    "Meaning",
    "Place",
    "Program",
    "Semaphore",
    "SemaphoreWait",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmTensor:
    """A tensor in HBM, rows contiguous. `data` are its bits (numbers.encode), None for an output."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    data: np.ndarray | None = None
    core: int = 0  # whose HBM it is (memmap.core_id)
    inner: bool = False  # the program writes and reads it, the host does neither

    @property
    def output(self) -> bool:
        """Whether the program writes it and the host reads it."""
        return self.data is None and not self.inner

    @property
    def input(self) -> bool:
        """Whether the host writes it and the program only reads it."""
        return self.data is not None


@dataclass(frozen=True, slots=True)
class Semaphore:
    """A semaphore by name: `index` in the core `core`. Copies of other cores may add to it."""

    name: str
    core: int
    index: int


@dataclass(frozen=True, slots=True)
class SemaphoreWait:
    """Wait until `semaphore` >= `value`."""

    semaphore: int
    value: int


@dataclass(frozen=True, slots=True)
class Completion:
    """The moment at which the first `count` items of a producer (a queue or ring) are complete."""

    producer: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction; its ticket is its position in its queue. It adds `adds` to `update` when complete, usually 1."""

    opcode: Opcode
    update: int
    adds: int = 1
    waits: tuple[SemaphoreWait, ...] = ()
    src0: AccessPattern | None = None
    src1: AccessPattern | None = None
    dst: AccessPattern | None = None
    accumulate: bool = False
    op0: AluOp = AluOp.BYPASS
    op1: AluOp = AluOp.BYPASS
    reverse0: bool = False
    reverse1: bool = False
    column0: bool = False
    column1: bool = False
    reduce: Reduce = Reduce.IDLE
    store: bool = False
    axes: int = 0
    negate: bool = False
    kind: Kind = Kind.ONE
    tile: int = 0
    rounding: int = 0
    sparsity: int = 0
    imm0: int = 0
    imm1: int = 0
    imm2: int = 0
    place1: "Place | None" = None  # imm1 and imm2 are the addresses of these
    place2: "Place | None" = None
    source: str = ""  # where the kernel says so: file:line
    descriptor: "Descriptor | None" = None  # of a DMA_COPY
    moves: "tuple[tuple[str, Number], ...]" = field(default=(), compare=False)  # side, and bytes that only a run knows
    part: str = ""  # what the report calls its beats, if it is not what its opcode is for
    image: Image | None = field(default=None, compare=False, repr=False)  # that a GP_RUN runs, for who explains a fault


@dataclass(frozen=True, slots=True)
class Place:
    """First byte of one side of a descriptor; `tensor` names the HBM tensor that `offset` counts from."""

    space: Space
    offset: int
    tensor: str = ""
    core: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Indices that choose rows of side `table`, which has `rows`: the first at byte `offset` of SBUF."""

    table: Indirect
    rows: int
    offset: int
    down: bool  # dimension 0 goes down the partitions
    skips: bool  # an index that is none of a row leaves its row out


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """One copy: `dims` are (count, source step, destination step) in bytes, innermost first, at most 3. With `choice`
    they are 2; the step of the table in the first is from one of its rows to the next."""

    source: Place
    destination: Place
    row_bytes: int
    dims: tuple[tuple[int, int, int], ...]
    signal: int  # semaphore that gets +1 when the last byte has committed
    signal_core: int = 0
    class_: int = 0
    add: DmaAdd = DmaAdd.COPY
    choice: Choice | None = None
    origin: str = ""  # the kernel's line

    @property
    def written(self) -> tuple[tuple[int, int], ...]:
        """(count, step) of all rows of the destination that it may write, innermost first."""
        rows = self.choice.rows if self.choice and self.choice.table == Indirect.DESTINATION else None
        return tuple((count if n or rows is None else rows, step) for n, (count, _, step) in enumerate(self.dims))

    @property
    def bytes(self) -> int:
        """Bytes that it moves for sure: none if indices may leave any row out."""
        if self.choice and self.choice.skips:
            return 0
        n = self.row_bytes
        for count, _, _ in self.dims:
            n *= count
        return n


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A tile: `bytes` from `offset` on of `partitions` partitions from `start` on, of SBUF or PSUM."""

    name: str
    space: Space
    start: int
    partitions: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What an operator of the GPSIMD engine must leave, beside what the golden machine makes of its instructions:
    `operator` by its name, `given` by the names of the model in NumPy. `loads` and `stores`: elements that it cannot do
    without; `elements`: those of its largest operand."""

    operator: str
    given: dict[str, Any]
    elements: int
    loads: int
    stores: int


def _nothing(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
    return {}


@dataclass(slots=True, kw_only=True)
class Program:
    """What a kernel built. `metrics` maps the outputs' bits to the workload's own numbers."""

    name: str
    config: Config
    core: int = 0  # that runs it (memmap.core_id)
    tensors: dict[str, HbmTensor] = field(default_factory=dict)
    queues: dict[Queue, list[Instruction]] = field(default_factory=dict)
    loops: dict[Queue, list[tuple[int, ...]]] = field(default_factory=dict)  # Turns.found: image.py rolls them up
    steps: dict[Queue, "list[Step]"] = field(default_factory=dict)  # of queues whose runs decide what they execute
    registers: "list[Register]" = field(default_factory=list)  # that it reads
    turn_texts: dict[Queue, list[str]] = field(default_factory=dict)  # of a program that a run has executed
    rings: list[list[Descriptor]] = field(default_factory=list)
    tiles: list[Allocation] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    metrics: Callable[[dict[str, np.ndarray]], dict[str, Any]] = _nothing
    meaning: Meaning | None = None
    out: Path | None = None  # .npz file for `arrays`, if the run ends by itself
    arrays: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] = _nothing  # of the outputs' bits
    results: Callable[[dict[str, np.ndarray]], dict[str, HostArray]] | None = None  # of them, as the user asked for it
    macs: int = 0  # useful multiply-adds
    pe_macs: Fraction = Fraction(1)  # that a processing element does in a cycle, in the program's kinds
    tensor_columns: int = 0  # moving beats: a bound on the tensor engine's cycles
    sbuf_bytes: int = 0  # allocated bytes of a partition
    psum_bytes: int = 0

    def copies(self) -> Iterator[Descriptor]:
        """All descriptors: of the rings in HBM, then those in instructions."""
        for ring in self.rings:
            yield from ring
        for instructions in self.queues.values():
            yield from (i.descriptor for i in instructions if i.descriptor is not None)

    @property
    def uses(self) -> Uses:
        """What it needs of a model. It gives GPSIMD cores something to do if it loads, starts or reads one."""
        uses = Uses(0)
        if any(OPCODE_QUEUE.get(i.opcode) == Queue.GPSIMD for i in self.queues.get(Queue.GPSIMD, [])):
            uses |= Uses.CORES
        for descriptor in self.copies():
            uses |= Uses.SUMS if descriptor.add else Uses(0)
            uses |= Uses.CLASSES if descriptor.class_ else Uses(0)
            uses |= Uses.INDICES if descriptor.choice else Uses(0)
        return uses

    @property
    def hbm_read_bytes(self) -> int:
        """Bytes that descriptors read from the core's HBM (words fetched by queues and rings come on top)."""
        return sum(d.bytes for d in self.copies() if self._in_hbm(d.source))

    @property
    def hbm_written_bytes(self) -> int:
        """Bytes that descriptors write to the core's HBM."""
        return sum(d.bytes for d in self.copies() if self._in_hbm(d.destination))

    def _in_hbm(self, place: Place) -> bool:
        return place.space == Space.HBM and place.core == self.core

    @property
    def vector_cycles(self) -> Fraction:
        """Vector cycles that its instructions cannot do without: a bound on the vector engine's cycles."""
        return sum((self._cycles(i) for i in self.queues.get(Queue.VECTOR, [])), Fraction(0))

    @property
    def scalar_cycles(self) -> Fraction:
        """The same for the scalar engine, in scalar cycles."""
        return sum((self._cycles(i) for i in self.queues.get(Queue.SCALAR, [])), Fraction(0))

    @property
    def vector_table_cycles(self) -> int:
        """Vector cycles by the table of instructions, which gives none less than 64."""
        return sum(
            rates.table_cycles(i.opcode, self.config, i.src0, i.src1, i.dst) for i in self.queues.get(Queue.VECTOR, [])
        )

    def _cycles(self, i: Instruction) -> Fraction:
        return rates.cycles(i.opcode, self.config, i.src0, i.src1, i.dst, sums=i.reduce != Reduce.IDLE)

    def source(self, queue: Queue, sequence: int) -> str:
        """The kernel's line of the instruction with this ticket, and its turn in a loop."""
        instructions = self.queues.get(queue, [])
        if sequence >= len(instructions):
            return ""
        turn = self.turns(queue)[sequence]
        return f"{instructions[sequence].source}{f', turn {turn}' if turn else ''}"

    def turns(self, queue: Queue) -> list[str]:
        """Of each instruction of a queue its turn: loops.places.turns_of."""
        if queue in self.turn_texts:
            return self.turn_texts[queue]
        return turns_of(len(self.queues.get(queue, [])), self.loops.get(queue, ()))

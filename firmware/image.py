"""The contents of HBM when a program starts: queues, rings and tensors, and where results will be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from firmware.assemble import Offsets, descriptor_word, instruction_word
from firmware.decisions.executed import executed_program, given_registers
from firmware.decisions.numbers import Number, Register
from firmware.decisions.words import queue_words
from firmware.loops.roll import roll
from firmware.numbers import bits_dtype
from firmware.program import Instruction, Program
from firmware.views import KernelError
from rtl.contract.isa import INSTRUCTION_BYTES, Queue
from rtl.contract.memmap import Space, core_place

__all__ = ["Image", "ImageError", "Region", "Segment", "build_image", "build_images"]

ALIGNMENT_BYTES = 128
REGISTER_BYTES = 4


class ImageError(KernelError):
    """A program that has no place in HBM; one sentence."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes (uint8 array) that lie at `offset` of HBM before the run."""

    offset: int
    data: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A named array in a memory. `dtype` names the NumPy dtype of its bits (uint8, uint16, uint32)."""

    name: str
    space: Space
    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a device loads. `queues` and `rings` hold (HBM offset, words); rings by index. `instructions`: how many a
    queue issues, which are more than its words where loops are rolled up; where a run decides by what
    it computes, as if it left nothing out. `registers`: where their numbers lie."""

    segments: tuple[Segment, ...]
    queues: Mapping[Queue, tuple[int, int]]
    instructions: Mapping[Queue, int]
    rings: tuple[tuple[int, int], ...]
    outputs: Mapping[str, Region]
    tensors: Mapping[str, Region]
    hbm_bytes: int  # one past the last byte in use
    registers: Mapping[int, Region] = field(default_factory=dict[int, Region])

    def memory(self) -> np.ndarray:
        """All of it as one uint8 array of `hbm_bytes`; bytes that nobody set are 0xFF."""
        hbm = np.full(self.hbm_bytes, 0xFF, np.uint8)
        for segment in self.segments:
            hbm[segment.offset : segment.offset + len(segment.data)] = segment.data
        return hbm


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a program's parts lie in HBM, and where the next would. `words`: of queues that name no place."""

    queues: dict[Queue, int]
    words: dict[Queue, bytes]
    rings: tuple[tuple[int, int], ...]
    tensors: dict[str, Region]
    end: int


def _queue_words(program: Program, queue: Queue, offsets: Offsets | None, rolled: bool) -> bytes:
    """The words of a queue, its loops rolled up or not."""
    words = [instruction_word(i, offsets) for i in program.queues.get(queue, [])]
    steps = program.steps.get(queue)
    if steps:
        return _decided(program, queue, words, offsets or {})
    loops = program.loops.get(queue) if rolled else None
    if not loops:
        return b"".join(words)
    fewer = roll([int.from_bytes(word, "little") for word in words], loops)
    return b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in fewer)


def _moves(program: Program, queue: Queue) -> dict[int, tuple[tuple[str, Number], ...]]:
    return {n: i.moves for n, i in enumerate(program.queues.get(queue, [])) if i.moves}


def _decided(program: Program, queue: Queue, words: list[bytes], offsets: Offsets) -> bytes:
    """Words of a queue whose runs decide what they execute."""

    def encode(instruction: Instruction) -> int:
        return int.from_bytes(instruction_word(instruction), "little")

    def place(register: Register) -> int:
        number = (offsets.get((program.core, register.tensor), 0) + register.offset) // REGISTER_BYTES
        if number >= 1 << 31:
            raise ImageError(f"tensor {register.tensor} lies beyond the first 8 GiB of HBM, which registers reach")
        return number

    plain = [int.from_bytes(word, "little") for word in words]
    made = queue_words(program.steps[queue], plain, encode, place, _moves(program, queue))
    return b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in made)


def _names_places(program: Program, queue: Queue) -> bool:
    """Whether its words say where tensors lie."""
    places = any(
        i.place1 is not None or i.place2 is not None or i.descriptor is not None for i in program.queues.get(queue, [])
    )
    return places or bool(program.steps.get(queue))


def _room(program: Program, queue: Queue) -> int:
    """Bytes that its words take, wherever tensors are."""
    count, steps = len(program.queues.get(queue, [])), program.steps.get(queue)
    if steps:
        count = len(queue_words(steps, [0] * count, lambda _: 0, lambda _: 0, _moves(program, queue)))
    return count * INSTRUCTION_BYTES


def _lay_out(program: Program, rolled: bool) -> _Layout:
    at = 0

    def take(size: int) -> int:
        nonlocal at
        start = at
        at = -(-(at + size) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return start

    # Addresses come behind the layout, and may decide what rolls: those queues have room for all words.
    words = {q: _queue_words(program, q, None, rolled) for q in Queue if not _names_places(program, q)}
    queues = {q: take(len(words.get(q, b"")) or _room(program, q)) for q in Queue}
    rings = tuple((take(len(ring) * INSTRUCTION_BYTES), len(ring)) for ring in program.rings)
    tensors = {
        t.name: Region(
            name=t.name,
            space=Space.HBM,
            offset=take(t.bytes),
            shape=t.shape,
            dtype=bits_dtype(t.dtype).name,
        )
        for t in program.tensors.values()
    }
    capacity = program.config.hbm.capacity_mib << 20
    if at > capacity:
        raise ImageError(
            f"program {program.name} needs {at} bytes of HBM, more than hbm.capacity_mib = "
            f"{program.config.hbm.capacity_mib} MiB ({capacity} bytes)"
        )
    return _Layout(queues, words, rings, tensors, at)


def _register(register: Register, layout: _Layout) -> Region:
    at = layout.tensors[register.tensor].offset + register.offset
    return Region(name=f"register {register.index}", space=Space.HBM, offset=at, shape=(1,), dtype="uint32")


def _fill(program: Program, layout: _Layout, offsets: Offsets, rolled: bool) -> Image:
    segments: list[Segment] = []

    def put(offset: int, data: bytes | np.ndarray) -> None:
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        if len(array):
            segments.append(Segment(offset, array))

    for descriptor in program.copies():
        for place in (descriptor.source, descriptor.destination):
            if place.tensor and (place.core, place.tensor) not in offsets:
                raise ImageError(
                    f"program {program.name} copies tensor {place.tensor} of core {core_place(place.core)}, "
                    f"whose program is not among those that are laid out"
                )
    words = {q: layout.words[q] if q in layout.words else _queue_words(program, q, offsets, rolled) for q in Queue}
    for queue, base in layout.queues.items():
        put(base, words[queue])
    for (base, _), ring in zip(layout.rings, program.rings, strict=True):
        put(base, b"".join(descriptor_word(d, offsets) for d in ring))
    for tensor in program.tensors.values():
        if tensor.data is not None:
            place = layout.tensors[tensor.name].offset
            put(place, np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1))
    known = executed_program(program, given_registers(program))
    return Image(
        segments=tuple(segments),
        queues={queue: (base, len(words[queue]) // INSTRUCTION_BYTES) for queue, base in layout.queues.items()},
        instructions={queue: len(known.queues.get(queue, [])) for queue in Queue},
        rings=layout.rings,
        outputs={n: r for n, r in layout.tensors.items() if program.tensors[n].output},
        registers={r.index: _register(r, layout) for r in program.registers},
        tensors=layout.tensors,
        hbm_bytes=layout.end,
    )


def build_image(program: Program, *, rolled: bool = True) -> Image:
    """Lay a program out in HBM: queues, rings, then tensors in order of definition, 128-byte aligned.

    `rolled`: loops of the program become loops of its queues, in fewer words.
    Errors: ImageError if it does not fit in hbm.capacity_mib, or copies tensors of another core.
    """
    return build_images([program], rolled=rolled)[program.core]


def build_images(programs: Sequence[Program], *, rolled: bool = True) -> dict[int, Image]:
    """The images of programs that copy from and to each other's tensors, by core id; each is laid out by itself.

    Errors: ImageError; two programs of one core or of two configurations are errors too.
    """
    layouts: dict[int, _Layout] = {}
    for program in programs:
        if program.core in layouts:
            raise ImageError(f"program {program.name} is the second one of core {core_place(program.core)}")
        if program.config != programs[0].config:
            raise ImageError(
                f"programs {programs[0].name} and {program.name} are of two configurations; cores that copy from and "
                f"to each other are alike"
            )
        layouts[program.core] = _lay_out(program, rolled)
    offsets = {(core, name): r.offset for core, layout in layouts.items() for name, r in layout.tensors.items()}
    return {program.core: _fill(program, layouts[program.core], offsets, rolled) for program in programs}

"""The contents of HBM when a program starts: queues, rings and tensors, and where results will be."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firmware.assemble import descriptor_word, instruction_word
from firmware.numbers import bits_dtype
from firmware.program import Program
from firmware.views import KernelError
from rtl.contract.isa import INSTRUCTION_BYTES, Queue
from rtl.contract.memmap import Space

__all__ = ["Image", "ImageError", "Region", "Segment", "build_image"]

ALIGNMENT_BYTES = 128


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
    """What a device loads. `queues` and `rings` hold (HBM offset, words); rings by index."""

    segments: tuple[Segment, ...]
    queues: Mapping[Queue, tuple[int, int]]
    rings: tuple[tuple[int, int], ...]
    outputs: Mapping[str, Region]
    tensors: Mapping[str, Region]
    hbm_bytes: int  # one past the last byte in use

    def memory(self) -> np.ndarray:
        """All of it as one uint8 array of `hbm_bytes`; bytes that nobody set are 0xFF."""
        hbm = np.full(self.hbm_bytes, 0xFF, np.uint8)
        for segment in self.segments:
            hbm[segment.offset : segment.offset + len(segment.data)] = segment.data
        return hbm


def build_image(program: Program) -> Image:
    """Lay a program out in HBM: queues, rings, then tensors in order of definition, 128-byte aligned.

    Errors: ImageError if it does not fit in hbm.capacity_mib.
    """
    at = 0

    def take(size: int) -> int:
        nonlocal at
        start = at
        at = -(-(at + size) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return start

    queues = {
        queue: (
            take(len(program.queues.get(queue, [])) * INSTRUCTION_BYTES),
            len(program.queues.get(queue, [])),
        )
        for queue in Queue
    }
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
    offsets = {name: region.offset for name, region in tensors.items()}
    segments: list[Segment] = []

    def put(offset: int, data: bytes | np.ndarray) -> None:
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        if len(array):
            segments.append(Segment(offset, array))

    for queue, (base, _) in queues.items():
        put(base, b"".join(instruction_word(i) for i in program.queues.get(queue, [])))
    for (base, _), ring in zip(rings, program.rings, strict=True):
        put(base, b"".join(descriptor_word(d, offsets) for d in ring))
    for tensor in program.tensors.values():
        if tensor.data is not None:
            put(offsets[tensor.name], np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1))
    return Image(
        segments=tuple(segments),
        queues=queues,
        rings=rings,
        outputs={n: r for n, r in tensors.items() if program.tensors[n].output},
        tensors=tensors,
        hbm_bytes=at,
    )

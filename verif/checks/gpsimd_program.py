"""Words of the GPSIMD queue, and images made of words; for tests that need no compiler and no kernel language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.formats import FORMATS
from rtl.contract.gpsimd import LOAD, RUN
from rtl.contract.isa import INSTRUCTION, INSTRUCTION_BYTES, Opcode, Queue, Update, Wait
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address

__all__ = [
    "WordImage", "after", "by_lane", "copy", "gp_load", "gp_run", "gp_store", "nop", "pattern", "then", "trigger",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WordImage:
    """An image of instructions and data; rings hold descriptors as words."""

    words: Mapping[Queue, Iterable[int]]
    descriptors: Iterable[Iterable[int]] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    """By byte of HBM, behind all words."""

    def _lists(self) -> list[list[int]]:
        return [list(self.words.get(queue, ())) for queue in Queue] + [list(ring) for ring in self.descriptors]

    def _places(self) -> list[tuple[int, int]]:
        places, at = list[tuple[int, int]](), 0
        for words in self._lists():
            places.append((at, len(words)))
            at += len(words) * INSTRUCTION_BYTES
        return places

    @property
    def queues(self) -> dict[Queue, tuple[int, int]]:
        return dict(zip(Queue, self._places(), strict=False))

    @property
    def instructions(self) -> dict[Queue, int]:
        """One a word."""
        return {queue: count for queue, (_, count) in self.queues.items()}

    @property
    def rings(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._places()[len(Queue) :])

    def memory(self) -> NDArray[np.uint8]:
        words = [word for words in self._lists() for word in words]
        filled = bytearray(b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in words))
        for at, part in sorted(self.data.items()):
            if at < len(filled):
                raise ValueError(f"{len(part)} bytes at {at} of HBM lie on {len(filled)} bytes before them")
            filled += bytes(at - len(filled)) + part
        return np.frombuffer(filled, np.uint8).copy()


def pattern(
    name: str, start: int, count: int, offset: int, elements: int, *, step: int = 1, dtype: str = "uint32"
) -> dict[str, int]:
    """Fields of an operand in SBUF: `elements` of one row, `step` apart."""
    values = {"space": int(Space.SBUF), "dtype": FORMATS[dtype].code, "partition_start": start}
    values |= {"partition_count": count, "offset": offset, "step0": step, "count0": elements}
    values |= {f"count{i}": 1 for i in (1, 2, 3)}
    return {f"{name}_{key}": value for key, value in values.items()}


def by_lane(data: bytes, lanes: int) -> NDArray[np.uint8]:
    """Bytes as GP_LOAD takes them from SBUF, [partition, byte]; zeros fill the last row of words."""
    data += bytes(-len(data) % (4 * lanes))
    words = np.frombuffer(data, "<u4").reshape(-1, lanes)
    return np.ascontiguousarray(words.T).view(np.uint8)


def after(semaphore: int, value: int, kind: Wait = Wait.GE) -> dict[str, int]:
    """Fields of an instruction that waits."""
    return {"wait0": int(kind), "wait0_semaphore": semaphore, "wait0_value": value}


def then(semaphore: int, value: int = 1, kind: Update = Update.ADD) -> dict[str, int]:
    """Fields of an instruction that updates a semaphore."""
    return {"update": int(kind), "update_semaphore": semaphore, "update_value": value}


def nop(**fields: int) -> int:
    """Waits and updates only."""
    return INSTRUCTION.pack({"opcode": Opcode.NOP, **fields})


def trigger(ring: int, count: int = 1, **fields: int) -> int:
    """The next `count` descriptors of a ring may run."""
    return INSTRUCTION.pack({"opcode": Opcode.DMA_TRIGGER, "imm0": ring, "imm1": count, **fields})


def copy(target: tuple[Space, int], source: tuple[Space, int], rows: int, row_bytes: int, semaphore: int) -> int:
    """A descriptor: rows lie on successive partitions of SBUF and side by side in HBM; `semaphore` gets +1."""
    fields: dict[str, int] = {"row_bytes": row_bytes, "count0": rows, "count1": 1, "count2": 1}
    for name, (space, offset) in (("source", source), ("destination", target)):
        fields[name] = address(space, offset)
        fields[f"{name}_step0"] = row_bytes if space == Space.HBM else PARTITION_STRIDE_BYTES
    signal = address(Space.SEMAPHORES, 4 * semaphore)
    fields |= {"signal_address": signal, "signal_update": Update.ADD, "signal_value": 1}
    return DESCRIPTOR.pack(fields)


def gp_load(source: Mapping[str, int], cores: int, offset: int = 0, tohost: int = 0, **fields: int) -> int:
    """Local memory of `cores` from `offset` on is what `source`, a pattern "src0", holds."""
    imm0 = LOAD.pack(offset=offset, cores=cores)
    return INSTRUCTION.pack({"opcode": Opcode.GP_LOAD, "imm0": imm0, "imm1": tohost, **source, **fields})


def gp_store(target: Mapping[str, int], cores: int, offset: int = 0, **fields: int) -> int:
    """`target`, a pattern "dst", is what local memory of the one core of `cores` holds from `offset` on."""
    imm0 = LOAD.pack(offset=offset, cores=cores)
    return INSTRUCTION.pack({"opcode": Opcode.GP_STORE, "imm0": imm0, **target, **fields})


def gp_run(entry: int, cores: int, watchdog: int = 0, **fields: int) -> int:
    """`cores` run from `entry` on."""
    imm0 = RUN.pack(entry=entry, cores=cores, watchdog=watchdog)
    return INSTRUCTION.pack({"opcode": Opcode.GP_RUN, "imm0": imm0, **fields})

"""From what the driver kept, the retire log and the program to a Recorded."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from firmware.program import Descriptor, Instruction, Place, Program
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS
from rtl.contract.gpsimd import RUN
from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from sim.native.library import whole_sequences
from sim.native.tracing import RawTrace, Traced
from sim.trace.recorded import FORMAT, NEVER, Recorded
from sim.trace.rings import own_ring

__all__ = ["record"]

_DTYPES = {f.code: name for name, f in FORMATS.items()}


class _Texts:
    """Numbers of texts, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def array(self) -> np.ndarray:
        return np.array(list(self._numbers) or [""])


def _pattern(pattern: AccessPattern | None) -> str:
    """`sbuf 128 x 512 bf16`: partitions, then counts from the outermost on."""
    if pattern is None:
        return ""
    counts = " x ".join(str(count) for _, count in reversed(pattern.dims))
    dtype = _DTYPES.get(pattern.dtype, str(pattern.dtype))
    return f"{Space(pattern.space).name.lower()} {pattern.partition_count} x {counts} {dtype}"


def _shape(i: Instruction) -> str:
    if i.descriptor is not None:
        return _copy(i.descriptor)
    if i.opcode == Opcode.DMA_TRIGGER:
        return f"ring {i.imm0}, {i.imm1} descriptor{'s' if i.imm1 != 1 else ''}"
    sources = ", ".join(text for text in (_pattern(i.src0), _pattern(i.src1)) if text)
    return f"{sources} -> {_pattern(i.dst)}" if i.dst is not None else sources


def _program(i: Instruction) -> str:
    """The function that a GP_RUN starts, or its address; empty for all else."""
    if i.opcode != Opcode.GP_RUN:
        return ""
    entry = int(RUN.unpack(i.imm0)["entry"])
    return (i.image.function_at(entry) if i.image else "") or f"{entry:#010x}"


def _copy(d: Descriptor) -> str:
    return f"{_end(d.source)} -> {_end(d.destination)}, rows of {d.row_bytes} bytes"


def _end(place: Place) -> str:
    return place.tensor or place.space.name.lower()


class _Tiles:
    """Which tile a place is in."""

    def __init__(self, program: Program):
        self.tiles = program.tiles

    def at(self, space: int, partition: int, offset: int) -> int:
        for n, tile in enumerate(self.tiles):
            inside = tile.start <= partition < tile.start + tile.partitions
            if tile.space == space and inside and tile.offset <= offset < tile.offset + tile.bytes:
                return n
        return NEVER

    def of_pattern(self, pattern: AccessPattern) -> int:
        return self.at(pattern.space, pattern.partition_start, pattern.offset)

    def of_place(self, place: Place) -> int:
        return self.at(place.space, place.offset // PARTITION_STRIDE_BYTES, place.offset % PARTITION_STRIDE_BYTES)


def _column(values: Iterable[Any], dtype: str = "<i8") -> np.ndarray:
    return np.array(list(values), dtype)


def _accesses(program: Program, items: list[Instruction], copies: list[Descriptor]) -> dict[str, np.ndarray]:
    """Who reads and writes which tile."""
    tiles = _Tiles(program)
    rows: list[tuple[int, int, int, int]] = []
    seen: dict[AccessPattern, int] = {}
    for n, i in enumerate(items):
        for pattern, writes in ((i.src0, 0), (i.src1, 0), (i.dst, 1)):
            if pattern is not None:
                if pattern not in seen:
                    seen[pattern] = tiles.of_pattern(pattern)
                rows.append((seen[pattern], writes, n, NEVER))
    for n, d in enumerate(copies):
        for place, writes in ((d.source, 0), (d.destination, 1)):
            if place.space in (Space.SBUF, Space.PSUM) and place.core == program.core:
                rows.append((tiles.of_place(place), writes, NEVER, n))
    table = np.array([row for row in rows if row[0] != NEVER], "<i4").reshape(-1, 4)
    names = ("access_tile", "access_writes", "access_item", "access_copy")
    return {name: table[:, n] for n, name in enumerate(names)}


def _rings(program: Program) -> list[tuple[int, list[Descriptor]]]:
    """Rings by number, in the order of Program.copies: those in HBM, then the queues' own."""
    own = {q: [i.descriptor for i in some if i.descriptor is not None] for q, some in program.queues.items()}
    return [*enumerate(program.rings), *((own_ring(q), copies) for q, copies in own.items() if copies)]


def _triggers(items: list[Instruction], program: Program) -> np.ndarray:
    """The item that releases each copy: triggers of a ring release its descriptors in order."""
    released: dict[int, list[int]] = {r: [] for r in range(len(program.rings))}
    for n, i in enumerate(items):
        if i.opcode == Opcode.DMA_TRIGGER and i.imm0 in released:
            released[i.imm0] += [n] * i.imm1
    of_rings = [
        released[r][n] if n < len(released[r]) else NEVER
        for r, ring in enumerate(program.rings)
        for n in range(len(ring))
    ]
    return _column([*of_rings, *(n for n, i in enumerate(items) if i.descriptor is not None)])


def _times(raw: RawTrace, retired: np.ndarray, program: Program, first: dict[int, int]) -> dict[str, np.ndarray]:
    """When items were issued and retired, when copies began and ended. The log is in the order of cycles."""
    records = raw.records
    total = sum(len(queue) for queue in program.queues.values())
    issue, retire, cause = np.full(total, NEVER), np.full(total, NEVER), np.zeros(total, "<i4")
    log = whole_sequences(retired)
    for queue in Queue:
        mine = records[(records["kind"] == Traced.ISSUE) & (records["place"] == queue)]
        count = min(len(mine), len(program.queues.get(queue, [])))
        issue[first[queue] : first[queue] + count] = mine["cycle"][:count]
        ends = log[log["queue"] == queue]
        ends = ends[ends["sequence"] < len(program.queues.get(queue, []))]
        at = first[queue] + ends["sequence"].astype(np.int64)
        cycles = ends["cycle"].astype(np.int64) - raw.first
        retire[at] = np.where(cycles < raw.cycles, cycles, NEVER)
        cause[at] = ends["cause"]
    begins, completes = [], []
    for ring, descriptors in _rings(program):
        for kind, found in ((Traced.BEGIN, begins), (Traced.END, completes)):
            cycles = records["cycle"][(records["kind"] == kind) & (records["place"] == ring)].astype(np.int64)
            padded = np.full(len(descriptors), NEVER)
            padded[: len(cycles)] = cycles[: len(descriptors)]
            found.append(padded)
    none = np.zeros(0, np.int64)
    return {
        "item_issue": issue,
        "item_retire": retire,
        "item_cause": cause,
        "copy_begin": np.concatenate([none, *begins]),
        "copy_end": np.concatenate([none, *completes]),
    }


def record(raw: RawTrace, retired: np.ndarray, program: Program) -> Recorded:
    """The trace of a run of `program`; `retired` is its retire log (sim.native.library.RETIRED)."""
    texts = _Texts()
    items = [i for queue in Queue for i in program.queues.get(queue, [])]
    first: dict[int, int] = {}
    at = 0
    for queue in Queue:
        first[queue] = at
        at += len(program.queues.get(queue, []))
    copies = list(program.copies())
    rings = _rings(program)
    kinds = {kind: raw.records[raw.records["kind"] == kind] for kind in Traced}
    waits = np.full((len(items), 2, 2), NEVER, "<i4")
    for n, i in enumerate(items):
        for k, wait in enumerate(i.waits):
            waits[n, k] = wait.semaphore, wait.value
    tiles = program.tiles
    return Recorded(
        format=FORMAT,
        cycles=raw.cycles,
        coarse_from=raw.coarse_from,
        lost=raw.lost,
        state_cycle=kinds[Traced.STATE]["cycle"].astype("<i8"),
        state_engine=kinds[Traced.STATE]["place"].astype("u1"),
        state_value=kinds[Traced.STATE]["value"].astype("u1"),
        refused_cycle=kinds[Traced.REFUSED]["cycle"].astype("<i8"),
        refused_ports=kinds[Traced.REFUSED]["value"].astype("<u2"),
        movers_cycle=kinds[Traced.MOVERS]["cycle"].astype("<i8"),
        movers_busy=kinds[Traced.MOVERS]["value"].astype("<u2"),
        beats=raw.beats,
        coarse=raw.coarse,
        cores_from=raw.cores_from,
        cores_recorded=raw.cores_recorded,
        cores_step=np.diff(raw.cores["cycle"].astype("<i8"), prepend=0),
        cores_passed=raw.cores["passed"].astype("<i8"),
        cores_states=raw.cores["states"].astype("<u4"),
        cores_sums=raw.core_sums.astype("<i8"),
        item_queue=_column((queue for queue in Queue for _ in program.queues.get(queue, [])), "u1"),
        item_sequence=_column((n for queue in Queue for n in range(len(program.queues.get(queue, [])))), "<i4"),
        item_opcode=_column((i.opcode for i in items), "u1"),
        item_beats=_column((i.dst.elements if i.dst is not None else 0 for i in items), "<i4"),
        item_line_text=_column((texts.number(i.source) for i in items), "<i4"),
        item_turn_text=_column((texts.number(turn) for queue in Queue for turn in program.turns(queue)), "<i4"),
        item_shape_text=_column((texts.number(_shape(i)) for i in items), "<i4"),
        item_program_text=_column((texts.number(_program(i)) for i in items), "<i4"),
        item_adds=_column((i.adds for i in items), "<i4"),
        item_update=_column((i.update for i in items), "<i4"),
        item_waits=waits,
        item_ring=_column((i.imm0 if i.opcode == Opcode.DMA_TRIGGER else NEVER for i in items), "<i2"),
        item_copies=_column((i.imm1 if i.opcode == Opcode.DMA_TRIGGER else 0 for i in items), "<i4"),
        copy_ring=_column((r for r, ring in rings for _ in ring), "u1"),
        copy_index=_column((n for _, ring in rings for n in range(len(ring))), "<i4"),
        copy_bytes=_column(d.bytes for d in copies),
        copy_line_text=_column((texts.number(d.origin) for d in copies), "<i4"),
        copy_shape_text=_column((texts.number(_copy(d)) for d in copies), "<i4"),
        copy_signal=_column((d.signal if d.signal_core == program.core else NEVER for d in copies), "<i4"),
        copy_item=_triggers(items, program),
        tile_text=_column((texts.number(tile.name) for tile in tiles), "<i4"),
        tile_space=_column((tile.space for tile in tiles), "u1"),
        tile_bytes=_column((tile.bytes for tile in tiles), "<i4"),
        tile_partitions=_column((tile.partitions for tile in tiles), "<i4"),
        **_accesses(program, items, copies),
        **_times(raw, retired, program, first),
        texts=texts.array(),
    )

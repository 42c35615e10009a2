"""Events of a run, counted in its program: what each engine does how often, and how often rows of RAM are reached.

Nothing here looks at a result: a program that ran to its end did all of it, whatever the cycles.
"""

from collections import Counter
from typing import Any

from firmware.program import Descriptor, Instruction, Place, Program
from rtl.contract import rates
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.config import Config
from rtl.contract.formats import by_code
from rtl.contract.isa import AluOp, Function, Opcode, Queue, Reduce
from rtl.contract.kinds import SCALE_ROWS, Kind, group_bytes, moving_bytes, tag_elements
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS
from sim.energy.core.walks import QUADRANTS, WORD_BYTES, quadrants_of, row_units, words_walked

__all__ = ["events_of"]

_BY_CODE = {pattern.code: pattern for pattern in PATTERNS.values()}
_MULTIPLIES = (AluOp.MULTIPLY, AluOp.SQUARE)
_ADDS = (AluOp.ADD, AluOp.SUBTRACT)
_COPIES = (Opcode.TENSOR_COPY, Opcode.MEMSET, Opcode.TRANSPOSE, Opcode.SHUFFLE)
_SPECIAL = (Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.RECIPROCAL, Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)


def work_of(i: Instruction) -> str:
    """What a lane of the vector engine does with an element of an instruction: docs/energy.md has the list."""
    if i.opcode in _COPIES:
        return "copy"
    if i.opcode == Opcode.QUANTIZE_MX:
        return "quantize"
    if i.opcode in _SPECIAL:
        return "special"
    if i.opcode == Opcode.EXP:
        return "exp" if i.reduce == Reduce.IDLE else "exp and sum"
    if i.opcode == Opcode.TENSOR_REDUCE:
        return "sum" if i.op0 == AluOp.ADD else "compare"
    if i.opcode in (Opcode.SELECT, Opcode.COPY_PREDICATED, Opcode.RANGE_SELECT):
        return "compare"
    used = (i.op0,) if i.opcode == Opcode.TENSOR_TENSOR else (i.op0, i.op1)
    multiplies, adds = (any(op in some for op in used) for some in (_MULTIPLIES, _ADDS))
    if multiplies:
        return "multiply add" if adds else "multiply"
    return "add" if adds else "compare"


class _Counts:
    """Adds up."""

    def __init__(self, program: Program):
        self.cfg: Config = program.config
        self.core = program.core
        self.events: dict[str, Counter[str]] = {
            name: Counter()
            for name in (
                "pe_beats", "pe_loads", "pe_passes", "row_beats", "psum_adds", "vector_beats", "scalar_elements",
                "sbuf_rows_read", "sbuf_rows_written", "psum_rows_read", "psum_rows_written", "table_rows_read",
            )
        }  # fmt: skip
        self.row_partitions = self.cfg.partitions // self.cfg.dma.engines
        groups = self.cfg.dma.engines // QUADRANTS
        self.rows_a_quadrant = max(1, groups)
        for i in program.queues.get(Queue.TENSOR, []):
            self._tensor(i)
        for i in program.queues.get(Queue.VECTOR, []):
            self._vector(i)
        for i in program.queues.get(Queue.SCALAR, []):
            self._scalar(i)
        for copy in program.copies():
            self._copy(copy)

    def _add(self, group: str, name: str, count: int) -> None:
        if count:
            self.events[group][name] += count

    def _sbuf_rows(self, pattern: AccessPattern, words: int) -> int:
        return words * quadrants_of(pattern, self.cfg.partitions) * self.rows_a_quadrant

    def _tensor(self, i: Instruction) -> None:
        cols, rows = self.cfg.tensor.cols, self.cfg.tensor.rows
        if i.opcode not in (Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING, Opcode.TENSOR_TRANSPOSE) or i.src0 is None:
            return
        source = i.src0
        kind = Kind(i.kind)
        name = f"{kind.name.lower()} {by_code(source.dtype).name}"
        moves = i.opcode == Opcode.MULTIPLY_MOVING
        size = group_bytes(kind, by_code(source.dtype).name)
        if moves and kind == Kind.SPARSE:
            size = moving_bytes(_BY_CODE[i.sparsity])
        beats, active = source.elements, source.partition_count
        port = "moving" if moves else "stationary"
        self._add("sbuf_rows_read", port, self._sbuf_rows(source, words_walked(source, size)))
        if kind == Kind.SPARSE and not moves:
            words = -(-2 * tag_elements(beats) // WORD_BYTES)
            self._add("sbuf_rows_read", "tags", self._sbuf_rows(source, words))
        if kind in SCALE_ROWS:
            words = -(-beats // WORD_BYTES) * self._groups(source)  # each reads its own, in one quadrant
            self._add("sbuf_rows_read", f"{port} scales", words * self.rows_a_quadrant)
        self._add("row_beats", name, beats * active)
        if moves:
            self._add("pe_beats", name, beats * active * cols)
            self._add("pe_passes", "all", beats * (self._rows_of(i) - active) * cols)
            self._add("psum_adds", "add" if i.accumulate else "write", beats * self.cfg.partitions)
            self._add("psum_rows_written", "tensor", beats)
            self._add("psum_rows_read", "tensor", beats if i.accumulate else 0)
        else:
            self._add("pe_loads", "all", beats * active * cols)
            if i.opcode == Opcode.TENSOR_TRANSPOSE:  # shifts out to the south, a row a cycle
                self._add("pe_loads", "all", rows * rows * cols)
                self._add("psum_rows_written", "tensor", active)

    def _groups(self, source: AccessPattern) -> int:
        """Row groups that an operand has rows in."""
        rows = self.cfg.tensor.rows // self.cfg.tensor.groups
        first = source.partition_start
        return (first + source.partition_count - 1) // rows - first // rows + 1

    def _rows_of(self, i: Instruction) -> int:
        """Of the row tile that an instruction works on."""
        return self.cfg.tensor.rows >> i.tile

    def _read(self, by: str, pattern: AccessPattern, beats: int) -> None:
        if pattern.space == Space.PSUM:
            self._add("psum_rows_read", by, 2 * beats)  # the even and the odd numbers
        else:
            self._add("sbuf_rows_read", by, self._sbuf_rows(pattern, beats))

    def _write(self, by: str, pattern: AccessPattern, beats: int, width: int = 1) -> None:
        if pattern.space == Space.PSUM:
            self._add("psum_rows_written", by, min(2, width) * beats)
        else:
            self._add("sbuf_rows_written", by, self._sbuf_rows(pattern, beats))

    def _columns(self, by: str, i: Instruction, source: AccessPattern | None) -> None:
        """Columns a and b come from SBUF, from the partitions of the source."""
        count = int(i.column0) + int(i.column1)
        if count and source is not None:
            self._add("sbuf_rows_read", by, self._sbuf_rows(source, count))

    def _store(self, by: str, i: Instruction, partitions: AccessPattern) -> None:
        """The accumulator goes to SBUF, whatever the destination is in."""
        if i.store:
            self._add("sbuf_rows_written", by, self._sbuf_rows(partitions, 1))

    def _vector(self, i: Instruction) -> None:
        if i.src0 is None and i.dst is None:
            return
        source = i.src0 or i.dst
        assert source is not None
        width = rates.width(i.opcode, self.cfg, i.src0, i.src1, i.dst)
        beats = source.elements // width
        fills = i.opcode == Opcode.MEMSET or i.opcode == Opcode.RANGE_SELECT and i.src0 is None
        if not fills and i.src0 is not None:
            self._read("vector", i.src0, beats)
        if i.src1 is not None:
            self._read("vector", i.src1, i.src1.elements // width)
        self._columns("vector", i, i.src0)
        if i.dst is not None:
            reduces = i.opcode == Opcode.TENSOR_REDUCE
            out = 1 if reduces else 2 if i.opcode == Opcode.QUANTIZE_MX else width
            self._write("vector", i.dst, i.dst.elements // out, out)
        self._store("vector", i, i.dst or source)
        self._add("vector_beats", f"{work_of(i)} x{width}", beats * source.partition_count)

    def _scalar(self, i: Instruction) -> None:
        if i.src0 is None:
            return
        count = i.src0.elements
        width = rates.width(i.opcode, self.cfg, i.src0, None, i.dst, sums=i.reduce != Reduce.IDLE)
        self._read("scalar", i.src0, count // width)
        if i.opcode == Opcode.LOAD_TABLE:
            return
        self._columns("scalar", i, i.src0)
        if i.dst is not None:
            self._write("scalar", i.dst, count // width, width)
        self._store("scalar", i, i.dst or i.src0)
        function = Function(i.imm2 >> 32 & 63)
        self._add("scalar_elements", function.name.lower(), count * i.src0.partition_count)
        if function >= FIRST_TABLE_FUNCTION:
            self._add("table_rows_read", "scalar", count * self.cfg.partitions)

    def _copy(self, copy: Descriptor) -> None:
        for place, group, source in (
            (copy.source, "sbuf_rows_read", True),
            (copy.destination, "sbuf_rows_written", False),
        ):
            if self._here(place) and copy.bytes:
                self._add(group, "dma", 2 * row_units(copy, source=source))  # two banks a unit
                if copy.add and not source:  # the old bytes
                    self._add("sbuf_rows_read", "dma", 2 * row_units(copy, source=False))

        if choice := copy.choice:
            inner, outer = (dim[0] for dim in copy.dims)
            first = choice.offset // 4 % 4
            units = inner * outer if choice.down else (first + inner * outer + 3) // 4
            self._add("sbuf_rows_read", "dma", 2 * units)

    def _here(self, place: Place) -> bool:
        return place.space == Space.SBUF and place.core == self.core


def events_of(program: Program) -> dict[str, Any]:
    """Counts by group and name, as docs/report.md lists them. `dma_bytes`: those of all descriptors."""
    groups = {name: dict(sorted(found.items())) for name, found in _Counts(program).events.items()}
    return {**groups, "dma_bytes": sum(copy.bytes for copy in program.copies())}

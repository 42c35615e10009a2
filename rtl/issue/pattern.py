"""Checks one operand of an instruction: memory, format, partitions, alignment, shape, range."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import MX_ROWS, Cause, Opcode, block
from rtl.contract.kinds import SCALE_FORMATS, SCALE_ROWS, Kind, group_bytes, kinds_of, moving_bytes
from rtl.contract.memmap import Space
from rtl.contract.rule import ELEMENTS_MAX, OperandRule
from rtl.contract.sparsity import PATTERNS, Sparsity
from rtl.issue.table import row_of

__all__ = ["ELEMENT_BITS", "PatternCheck"]

ELEMENT_BITS = ELEMENTS_MAX.bit_length()  # counts saturate at ELEMENTS_MAX + 1


_SPACES = {Space.SBUF: "sbuf", Space.PSUM: "psum"}


def _codes(names: tuple[str, ...]) -> int:
    """A bit for each format."""
    return sum(1 << FORMATS[name].code for name in names)


class PatternCheck(wiring.Component):
    """Looks at one dimension a cycle: `step` counts 0 to 3, then `cause` and `elements` are right while
    `step` is 4. `pattern` and `opcode` hold meanwhile.

    `rules` says what each opcode may ask of this operand; the table is rtl.contract.rules. `present`: the opcode has
    it. `kind`, `sparsity`, `tile`, `beside` and `beside_count`: the instruction's kind, pattern of sparsity and row
    tile, and the first partition of src0 and their number, where a rule asks for them. `groups`: the product of the
    counts of dimensions beyond `axes`, if the check is to `group`, else 0.
    """

    def __init__(self, cfg: Config, rules: Mapping[Opcode, OperandRule], *, group: bool = False):
        self.cfg = cfg
        self.rules = rules
        self.group = group
        self.kinds = any(rule.kinds for rule in rules.values())
        self.scales = any(rule.scales for rule in rules.values())
        self.sparse = cfg.tensor.sparsity and (self.kinds or self.scales)
        super().__init__(
            {
                "opcode": In(8),
                "pattern": In(PATTERN_LAYOUT),
                "step": In(3),
                "axes": In(2),
                "kind": In(3),
                "sparsity": In(3),
                "tile": In(2),
                "beside": In(8),
                "beside_count": In(8),
                "present": Out(1),
                "elements": Out(ELEMENT_BITS),
                "groups": Out(ELEMENT_BITS),
                "cause": Out(8),
            }
        )

    def _row(self, rule: OperandRule) -> dict[str, int]:
        return {
            "present": 1,
            "sbuf": _codes(rule.dtypes.get(Space.SBUF, ())),
            "psum": _codes(rule.dtypes.get(Space.PSUM, ())),
            "end": rule.end(self.cfg),
            "from_zero": int(rule.from_zero),
            "ascending": int(rule.ascending),
            "blocks": int(rule.blocks),
            "least": rule.least,
            "most": rule.elements_limit(self.cfg),
            "pairs": int(rule.multiple == 2),
            "triples": int(rule.multiple == 3),
            "in_blocks": int(rule.multiple == "block"),
            "sixteens": int(rule.multiple == 16),
            "eights": int(rule.eights),
            "row": int(rule.row),
            "aligned_log2": rule.aligned.bit_length() - 1,
            "fours": int(rule.fours),
            "moves": int(rule.moves),
            "tags": int(rule.tags),
            "raw": int(rule.raw),
        }

    def _partitions(self, row: data.View) -> Value:
        """Whether the partitions may start there and lie inside the limit: access_pattern.start_partition_rule."""
        total = self.cfg.partitions
        start = self.pattern.partition_start
        count = self.pattern.partition_count
        quarter = (start & (total // 4 - 1)) == 0
        half = (start & (total // 2 - 1)) == 0
        legal = (start < total) & (count >= 1) & (count <= total)
        legal &= Mux(count > total // 2, start == 0, Mux(count > total // 4, half, quarter))
        legal |= fault("partitions may start anywhere")
        cut = ((start | count) & (block(total) - 1)).any() & ~fault("blocks of partitions may be cut")
        eighths = row.eights & ((start | count) & (MX_ROWS - 1)).any() & ~fault("blocks of 8 partitions may be cut")
        legal &= ((start + count) <= row.end) & ~(row.from_zero & start.any()) & ~(row.blocks & cut) & ~eighths
        for kind, rows in SCALE_ROWS.items() if self.kinds else ():
            legal &= (self.kind != kind) | ~((start | count) & (rows - 1)).any()
        if self.kinds and self.sparse:
            legal &= (self.kind != Kind.SPARSE) | ~start[:2].any() | fault("sparse rows may begin at any bus")
            for bus in (2, 4):
                cut = (count & (bus - 1)).any() & ~fault("a bus of sparse rows may be cut")
                legal &= ~(self._is_pattern(tuple(p for p in PATTERNS.values() if p.kept == bus)) & cut)
        if self.kinds:
            rows = self.cfg.tensor.rows
            for tile in range(1, exact_log2(self.cfg.tensor.groups) + 1):
                legal &= (
                    (self.tile != tile) | (count <= rows >> tile) | fault("an operand may reach beyond its row tile")
                )
        return legal

    def _scale_partitions(self) -> Value:
        """Whether scales lie in a slot of the first block of partitions of src0: kinds.scale_partition."""
        size = block(self.cfg.partitions)
        start = self.pattern.partition_start
        elsewhere = ((start ^ self.beside) & ~(size - 1) & 0xFF).any() & ~fault(
            "scales may lie in another block of partitions than their elements"
        )
        legal = ~elsewhere & ((start & (size - 1)) < size // 2)
        for kind, rows in SCALE_ROWS.items():
            each = size // rows
            slot = ~(start & (each - 1)).any() & (self.pattern.partition_count == each)
            legal &= (self.kind != kind) | slot
        alike = (start == self.beside) & (self.pattern.partition_count == self.beside_count)
        return (
            Mux(self.kind == Kind.SPARSE, alike | fault("tags may lie on other partitions than their elements"), legal)
            if self.sparse
            else legal
        )

    def _is_pattern(self, patterns: tuple[Sparsity, ...]) -> Value:
        """Whether the operand is sparse, of one of the patterns."""
        codes = sum(1 << p.code for p in patterns)
        return (self.kind == Kind.SPARSE) & (Const(codes, 8) >> self.sparsity)[0]

    def _size(self, m: Module, row: data.View) -> Value:
        """Logarithm of an element's bytes."""
        size = Signal(2)
        with m.Switch(self.pattern.dtype):
            for fmt in FORMATS.values():
                with m.Case(fmt.code):
                    m.d.comb += size.eq({4: 2, 2: 1}.get(fmt.bytes, 0))
        for kind, formats in kinds_of(self.cfg.tensor).items() if self.kinds else ():
            for name in formats:
                logarithm = group_bytes(kind, name).bit_length() - 1
                if logarithm != {4: 2, 2: 1}.get(FORMATS[name].bytes, 0):
                    packed = (self.kind == kind) & (self.pattern.dtype == FORMATS[name].code)
                    with m.If(packed & ~fault("elements of packed formats count as single ones")):
                        m.d.comb += size.eq(logarithm)
        if self.kinds and self.sparse:
            for width in (4, 8):
                of_row = self._is_pattern(tuple(p for p in PATTERNS.values() if moving_bytes(p) == width))
                with m.If(row.moves & of_row & ~fault("the moving numbers of a sparse row take as much room as one")):
                    m.d.comb += size.eq(width.bit_length() - 1)
        return size

    def _format(self, row: data.View) -> Value:
        """Whether the kind of the instruction goes with the format, and with the opcode."""
        if self.kinds:
            takes = [(k, _codes(formats)) for k, formats in kinds_of(self.cfg.tensor).items()]
        elif self.scales:
            takes = [(k, _codes((name,))) for k, name in SCALE_FORMATS.items()]
            takes += [(Kind.SPARSE, _codes(("uint16",)))] if self.sparse else []
        else:
            return Const(1, 1)
        anyway = fault("scales of every kind are E8M0") & self.scales & (self.pattern.dtype == FORMATS["e8m0"].code)
        known = [(self.kind == kind) & (Const(codes, 16) >> self.pattern.dtype)[0] for kind, codes in takes]
        raw = (self.kind == Kind.RAW) == row.raw if self.kinds else Const(1, 1)
        return (Cat(*known).any() & (raw | fault("raw bits may be multiplied, and numbers moved"))) | anyway

    def _is_there(self, row: data.View) -> Value:
        """Whether the kind of the instruction has the operand."""
        if not self.scales:
            return Const(1, 1)
        tagged = row.tags & (self.kind == Kind.SPARSE)
        return Cat(*(self.kind == kind for kind in SCALE_FORMATS), tagged).any()

    def _bytes(self, elements: Value, size_log2: Value) -> Value:
        """Bytes of so many elements."""
        words = Mux(size_log2[0], elements << 3, elements << 2) if self.kinds and self.sparse else elements << 2
        return Mux(size_log2[1], words, Mux(size_log2[0], elements << 1, elements))

    def _number(self, elements: Value, row: data.View) -> Value:
        """Whether the opcode takes so many elements."""
        # What a sum of base-4 digits leaves over by 3, the number leaves over too.
        digits = sum(elements[i : i + 2] for i in range(2, ELEMENT_BITS, 2)) + elements[:2]
        digits = digits[:2] + digits[2:4] + digits[4:]
        odd = (row.pairs & elements[0]) | (row.triples & ~((digits == 0) | (digits == 3) | (digits == 6)))
        odd |= row.sixteens & elements[:4].any()
        odd |= row.in_blocks & (elements & (block(self.cfg.partitions) - 1)).any()
        return (
            (elements >= row.least)
            & (elements <= row.most)
            & ~(odd & ~fault("elements may be no multiple of what the opcode takes"))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pattern = self.pattern
        row = row_of(m, self.opcode, {opcode: self._row(rule) for opcode, rule in self.rules.items()})
        first = Signal()
        step = Signal(signed(16))
        count = Signal(16)
        with m.Switch(self.step):
            for i in range(DIMENSIONS):
                with m.Case(i):
                    m.d.comb += [step.eq(pattern[f"step{i}"]), count.eq(pattern[f"count{i}"])]

        # What the inner dimensions add up to; at the first one, the values of a single element.
        elements = Signal(ELEMENT_BITS)
        low = Signal(signed(35))
        high = Signal(signed(35))
        apart = Signal(signed(35))  # an ascending step must be at least this
        mixed = Signal()  # steps of an ascending pattern overlap
        elements_in = Mux(first, 1, elements)
        low_in = Mux(first, 0, low)
        high_in = Mux(first, 0, high)
        apart_in = Mux(first, 1, apart)
        product = Signal(ELEMENT_BITS + 16)
        extent = Signal(signed(33))  # from the first to the last element of this dimension
        m.d.comb += [
            first.eq(self.step == 0),
            product.eq(
                elements_in
                * Mux(
                    fault("a count of the outermost dimension is not part of the elements") & (self.step == 3), 1, count
                )
            ),
            extent.eq(step * (count - 1).as_signed()),
        ]
        with m.If(self.step < DIMENSIONS):
            m.d.sync += [
                elements.eq(Mux(product > ELEMENTS_MAX, ELEMENTS_MAX + 1, product)),
                low.eq(low_in + Mux((extent < 0) & ~fault("the range forgets steps that go downwards"), extent, 0)),
                high.eq(high_in + Mux(extent < 0, 0, extent)),
                apart.eq(Mux(count > 1, extent + step, apart_in)),
                mixed.eq((mixed & ~first) | ((count > 1) & (step < apart_in))),
            ]

        if self.group:
            outer = Signal(ELEMENT_BITS + 16)
            m.d.comb += outer.eq(Mux(first, 1, self.groups) * Mux(self.step > self.axes, count, 1))
            with m.If(self.step < DIMENSIONS):
                m.d.sync += self.groups.eq(Mux(outer > ELEMENTS_MAX, ELEMENTS_MAX + 1, outer))

        size_log2 = self._size(m, row)
        space_ok = Signal()
        dtype_ok = Signal()
        aligned = Signal()
        apart_log2 = Signal(2)  # of the bytes that the offset must be a multiple of
        lowest = Signal(signed(40))
        highest = Signal(signed(40))
        room = Signal(signed(24))
        inside = [(pattern.space == space) & row[name].any() for space, name in _SPACES.items()]
        taken = [(row[name] >> pattern.dtype)[0] for name in _SPACES.values()]
        m.d.comb += [
            self.present.eq(row.present & self._is_there(row)),
            space_ok.eq(inside[0] | inside[1]),
            dtype_ok.eq(((inside[0] & taken[0]) | (inside[1] & taken[1])) & self._format(row)),
            apart_log2.eq(size_log2 + Mux(fault("groups of elements may lie anywhere"), 0, row.aligned_log2)),
            aligned.eq(~(pattern.offset[:3] & ((1 << apart_log2) - 1)).any()),
            lowest.eq(pattern.offset + self._bytes(low, size_log2)),
            highest.eq(pattern.offset + self._bytes(high + 1, size_log2)),
            room.eq(
                Mux(
                    pattern.space == Space.PSUM,
                    self.cfg.psum.partition_bytes,
                    self.cfg.sbuf.partition_bytes,
                )
            ),
            self.elements.eq(elements),
        ]
        narrow = pattern.dtype == FORMATS["e2m1"].code
        with m.If(row.fours & ~fault("four elements take as much room as one")):
            m.d.comb += size_log2.eq(Mux(narrow, 1, 2))
        spread = Cat(pattern.step0 != 1, *(pattern[f"count{i}"] != 1 for i in range(1, DIMENSIONS))).any()
        with m.If(~space_ok):
            m.d.comb += self.cause.eq(Cause.BAD_SPACE)
        with m.Elif(~dtype_ok):
            m.d.comb += self.cause.eq(Cause.ILLEGAL_DTYPE)
        with m.Elif(~(self._scale_partitions() if self.scales else self._partitions(row))):
            m.d.comb += self.cause.eq(Cause.BAD_PARTITION)
        with m.Elif(~aligned):
            m.d.comb += self.cause.eq(Cause.MISALIGNED)
        with m.Elif(row.row & spread & ~fault("what must be one row may have more")):
            m.d.comb += self.cause.eq(Cause.BAD_PATTERN)
        with m.Elif(~self._number(elements, row) | (row.ascending & mixed)):
            m.d.comb += self.cause.eq(Cause.BAD_PATTERN)
        with m.Elif((lowest < 0) | (highest > room)):
            m.d.comb += self.cause.eq(Cause.OUT_OF_RANGE)
        return m

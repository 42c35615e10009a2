"""Checks one operand of an instruction: memory, format, partitions, alignment, shape, range."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import DIMENSIONS, Cause, Opcode
from rtl.contract.memmap import Space
from rtl.contract.rules import ELEMENTS_MAX, OperandRule, elements_limit, partitions_limit

__all__ = ["ELEMENT_BITS", "PatternCheck"]

ELEMENT_BITS = ELEMENTS_MAX.bit_length()  # counts saturate at ELEMENTS_MAX + 1


def _any(bits: list[Value]) -> Value:
    return Cat(*bits).any() if bits else Const(0, 1)


class PatternCheck(wiring.Component):
    """Looks at one dimension a cycle: `step` counts 0 to 3, then `cause` and `elements` are right while
    `step` is 4. `pattern` and `opcode` hold meanwhile.

    `rules` says what each opcode may ask of this operand; the table is rtl.contract.rules. `groups`: the product of
    the counts of dimensions beyond `axes`.
    """

    FAULTS = {
        1: "the range forgets steps that go downwards",
        2: "a count of the outermost dimension is not part of the elements",
        3: "partitions may start anywhere",
    }

    def __init__(self, cfg: Config, rules: dict[Opcode, OperandRule], plant: ValueLike = 0):
        self.cfg = cfg
        self.rules = rules
        self.plant = plant
        super().__init__(
            {
                "opcode": In(8),
                "pattern": In(PATTERN_LAYOUT),
                "step": In(3),
                "axes": In(2),
                "elements": Out(ELEMENT_BITS),
                "groups": Out(ELEMENT_BITS),
                "cause": Out(8),
            }
        )

    def _is(self, opcode: Opcode) -> Value:
        return self.opcode == opcode

    def _formats(self) -> tuple[Value, Value]:
        """Whether some rule of the opcode has the space, and has the format in that space."""
        spaces: list[Value] = []
        formats: list[Value] = []
        for opcode, rule in self.rules.items():
            for space, names in rule.dtypes.items():
                here = self._is(opcode) & (self.pattern.space == space)
                spaces.append(here)
                formats += [here & (self.pattern.dtype == FORMATS[name].code) for name in names]
        return _any(spaces), _any(formats)

    def _partitions(self) -> Value:
        """Whether the partitions may start there and lie inside the limit: isa.start_partition_rule."""
        total = self.cfg.partitions
        start = self.pattern.partition_start
        count = self.pattern.partition_count
        quarter = (start & (total // 4 - 1)) == 0
        half = (start & (total // 2 - 1)) == 0
        legal = (start < total) & (count >= 1) & (count <= total)
        legal &= Mux(count > total // 2, start == 0, Mux(count > total // 4, half, quarter))
        legal |= planted(self.plant, 3)
        for opcode, rule in self.rules.items():
            inside = (start + count) <= partitions_limit(self.cfg, rule)
            if rule.from_zero:
                inside &= start == 0
            legal &= inside | ~self._is(opcode)
        return legal

    def _few(self, elements: Value) -> Value:
        """Whether there is at least one element and not more than the opcode takes."""
        few = elements >= 1
        for opcode, rule in self.rules.items():
            few &= (elements <= elements_limit(self.cfg, rule)) | ~self._is(opcode)
        return few

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pattern = self.pattern
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
        groups = Signal(ELEMENT_BITS)
        outer = Signal(ELEMENT_BITS + 16)
        m.d.comb += [
            outer.eq(Mux(first, 1, groups) * Mux(self.step > self.axes, count, 1)),
            self.groups.eq(groups),
        ]
        extent = Signal(signed(33))  # from the first to the last element of this dimension
        m.d.comb += [
            first.eq(self.step == 0),
            product.eq(elements_in * Mux(planted(self.plant, 2) & (self.step == 3), 1, count)),
            extent.eq(step * (count - 1).as_signed()),
        ]
        with m.If(self.step < DIMENSIONS):
            m.d.sync += [
                groups.eq(Mux(outer > ELEMENTS_MAX, ELEMENTS_MAX + 1, outer)),
                elements.eq(Mux(product > ELEMENTS_MAX, ELEMENTS_MAX + 1, product)),
                low.eq(low_in + Mux((extent < 0) & ~planted(self.plant, 1), extent, 0)),
                high.eq(high_in + Mux(extent < 0, 0, extent)),
                apart.eq(Mux(count > 1, extent + step, apart_in)),
                mixed.eq((mixed & ~first) | ((count > 1) & (step < apart_in))),
            ]

        size_log2 = Signal(2)
        space_ok = Signal()
        dtype_ok = Signal()
        aligned = Signal()
        lowest = Signal(signed(40))
        highest = Signal(signed(40))
        room = Signal(signed(24))
        with m.Switch(pattern.dtype):
            for fmt in FORMATS.values():
                with m.Case(fmt.code):
                    m.d.comb += size_log2.eq({4: 2, 2: 1}.get(fmt.bytes, 0))
        spaces, formats = self._formats()
        ascending = _any([self._is(op) for op, rule in self.rules.items() if rule.ascending])
        m.d.comb += [
            space_ok.eq(spaces),
            dtype_ok.eq(formats),
            aligned.eq(~(pattern.offset[0] & (size_log2 != 0)) & ~(pattern.offset[1] & size_log2[1])),
            lowest.eq(pattern.offset + Mux(size_log2[1], low << 2, Mux(size_log2[0], low << 1, low))),
            highest.eq(
                pattern.offset + Mux(size_log2[1], (high << 2) + 4, Mux(size_log2[0], (high << 1) + 2, high + 1))
            ),
            room.eq(
                Mux(
                    pattern.space == Space.PSUM,
                    self.cfg.psum.partition_bytes,
                    self.cfg.sbuf.partition_bytes,
                )
            ),
            self.elements.eq(elements),
        ]
        with m.If(~space_ok):
            m.d.comb += self.cause.eq(Cause.BAD_SPACE)
        with m.Elif(~dtype_ok):
            m.d.comb += self.cause.eq(Cause.ILLEGAL_DTYPE)
        with m.Elif(~self._partitions()):
            m.d.comb += self.cause.eq(Cause.BAD_PARTITION)
        with m.Elif(~aligned):
            m.d.comb += self.cause.eq(Cause.MISALIGNED)
        with m.Elif(~self._few(elements) | (ascending & mixed)):
            m.d.comb += self.cause.eq(Cause.BAD_PATTERN)
        with m.Elif((lowest < 0) | (highest > room)):
            m.d.comb += self.cause.eq(Cause.OUT_OF_RANGE)
        return m

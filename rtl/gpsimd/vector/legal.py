"""Whether a vector instruction may be executed with the vtype that there is."""

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.vector.configuration import setting
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Second, Source, log_of_whole, unread

__all__ = ["Legal"]

_LOG = signed(5)
"""Of logarithms of how many registers a group has."""
_ONE = Const(0, _LOG)


class Legal(wiring.Component):
    """`legal`: groups of registers lie as `now` demands, no operand is wider than 32 bits, and only where it is
    allowed does the result overlap what it comes from (RISC-V "V" extension, sections 3.4.2, 5.2, 5.3, 7.8, 16).

    field_group: logarithm of how many registers a field in memory has; first, second, to: of groups vs2, vs1 and vd of
    an instruction whose passes are elementwise.
    Timing: combinational.
    """

    def __init__(self, lanes: int):
        logs = {name: Out(_LOG) for name in ("field_group", "first", "second", "to")}
        super().__init__({"i": In(VECTOR), "now": In(setting(lanes)), "legal": Out(1), **logs})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, now = self.i, self.now
        operands = i.operands
        wrong = Signal()  # any rule is broken; each adds its own
        faults: list[Value] = [i.illegal]
        group, size = Signal(_LOG), Signal(signed(4))
        m.d.comb += [group.eq(now.lmul), size.eq(now.size)]
        from_vector = i.second == Second.VECTOR
        elements = (i.kind == Kind.LANES) & ~i.is_whole & ~i.scalar_result
        elements |= i.kind == Kind.DIVIDE
        reduces, permutes = i.kind == Kind.REDUCE, i.kind == Kind.PERMUTE
        memory = i.kind == Kind.MEMORY
        whole = i.is_whole
        needs_type = ~(whole & memory) & (i.kind != Kind.CONFIG)
        faults.append(needs_type & now.vill)
        faults.append((i.kind != Kind.CONFIG) & ~memory & (now.vstart != 0) & ~fault("vstart is not looked at"))

        # elementwise: groups of the result and of both operands
        extends = elements & operands.swaps & operands.widens_first
        wide = elements & (operands.widens_first | operands.widens_second) & ~operands.narrows & ~extends
        to, first, second = self.to, self.first, self.second
        m.d.comb += [
            to.eq(group + wide),
            first.eq(Mux(wide & ~operands.widens_first, group + 1, group)),
            second.eq(group),
        ]
        with m.If(operands.narrows):
            m.d.comb += first.eq(group + 1)
        with m.If(extends):
            m.d.comb += first.eq(group - Mux(operands.quarters, 2, 1))
        faults.append(extends & ((size < Mux(operands.quarters, 2, 1)) | (first < -3)))
        doubles = wide | (elements & operands.narrows) | (reduces & operands.widens_first)
        faults.append(doubles & (size == 2))
        faults.append((wide | (elements & operands.narrows)) & (group == 3))
        has_second = from_vector & ~extends
        mask_to = i.mask_result
        faults += [
            elements & ~mask_to & ~self._aligned(i.vd, to),
            elements & ~unread(i) & ~self._aligned(i.vs2, first),
            elements & has_second & ~self._aligned(i.vs1, second),
        ]
        over_first, over_second = self._overlap(i.vd, to, i.vs2, first), self._overlap(i.vd, to, i.vs1, second)
        with_mask = elements & mask_to
        faults += [
            with_mask & ~unread(i) & self._overlap(i.vd, _ONE, i.vs2, first) & (i.vd != i.vs2),
            with_mask & has_second & self._overlap(i.vd, _ONE, i.vs1, second) & (i.vd != i.vs1),
            wide & operands.widens_first & over_first & ~self._highest(i.vs2, first, 1),
            wide & has_second & over_second & ~self._highest(i.vs1, second, 1),
            elements & operands.narrows & over_first & (i.vd != i.vs2),
            extends
            & over_first
            & ~Mux(operands.quarters, self._highest(i.vs2, first, 2), self._highest(i.vs2, first, 1)),
        ]
        # a mask is not where its result goes, unless that is a mask or one element
        only_one = reduces | (i.kind == Kind.COUNT) | (i.kind == Kind.CONFIG) | (memory & i.store)
        bit_results = (i.kind == Kind.LANES) & mask_to
        faults.append(i.masked & (i.vd == 0) & ~only_one & ~bit_results & ~fault("a mask may be overwritten"))

        # the others
        faults += [
            reduces & ~self._aligned(i.vs2, group),
            whole
            & ~memory
            & ~(self._aligned(i.vd, log_of_whole(i.whole)) & self._aligned(i.vs2, log_of_whole(i.whole))),
            (i.kind == Kind.FIRST) & (i.vd == i.vs2),
            (i.kind == Kind.IOTA) & ~self._aligned(i.vd, group),
            (i.kind == Kind.IOTA) & ~i.bits[0] & self._overlap(i.vd, group, i.vs2, _ONE),
        ]
        index = Signal(_LOG)  # of a permutation or of memory
        m.d.comb += index.eq(group)
        with m.If(permutes & (i.source == Source.HALVES)):
            m.d.comb += index.eq(group + 1 - size)
        by_vector = permutes & ((i.source == Source.VECTOR) | (i.source == Source.HALVES))
        up = (i.source == Source.UP) | (i.source == Source.UP_ONE)
        compress = i.source == Source.COMPRESS
        apart = by_vector | up | compress | (i.source == Source.SAME)
        faults += [
            permutes & ~(self._aligned(i.vd, group) & self._aligned(i.vs2, group)),
            permutes & apart & self._overlap(i.vd, group, i.vs2, group),
            by_vector & ((index > 3) | (index < -3) | ~self._aligned(i.vs1, index)),
            by_vector & self._overlap(i.vd, group, i.vs1, index),
            permutes & compress & self._overlap(i.vd, group, i.vs1, _ONE),
        ]
        # a register is read with one width of elements
        over_sources = self._overlap(i.vs2, first, i.vs1, second)
        reads_first = (elements & ~unread(i)) | reduces | permutes | (memory & i.indexed)
        reads_second = (elements & has_second) | reduces | by_vector
        faults += [
            i.masked & (i.vs2 == 0) & reads_first,
            i.masked & (i.vs1 == 0) & reads_second,
            i.masked & (i.vd == 0) & memory & i.store,
            (wide & ~operands.widens_first | elements & operands.narrows) & has_second & over_sources,
            wide & operands.accumulates & (over_first | (has_second & over_second)),
            reduces & operands.widens_first & self._overlap(i.vs1, _ONE, i.vs2, group),
            permutes & compress & self._overlap(i.vs1, _ONE, i.vs2, group),
            by_vector & (i.source == Source.HALVES) & (size != 1) & self._overlap(i.vs1, index, i.vs2, group),
        ]
        faults += self._memory(m, group, size)
        m.d.comb += [wrong.eq(sum_or(faults)), self.legal.eq(~wrong)]
        return m

    def _memory(self, m: Module, group: Value, size: Value) -> list[Value]:
        """Groups of loads and stores; whole registers and masks have one of their own."""
        i = self.i
        memory = i.kind == Kind.MEMORY
        plain = memory & ~i.is_whole & ~i.is_mask
        other, field = Signal(_LOG), Signal(_LOG)
        m.d.comb += [other.eq(group + i.width - size), field.eq(Mux(i.indexed, group, other))]
        with m.If(i.is_mask):
            m.d.comb += field.eq(0)
        with m.If(i.is_whole):
            m.d.comb += field.eq(log_of_whole(i.whole))
        m.d.comb += self.field_group.eq(field)
        fields, registers = Signal(4), Signal(7)
        m.d.comb += [
            fields.eq(i.fields + 1),
            registers.eq(fields << Mux(field < 0, 0, field[:2])),
        ]
        indexed = plain & i.indexed & ~i.store
        over = self._overlap(i.vd, field, i.vs2, other)
        same, smaller = other == field, other > field  # the index is as wide, or wider
        allowed = same | Mux(smaller, i.vd == i.vs2, self._highest_of(i.vs2, other, field))
        segment_over = (i.vd <= self._last(i.vs2, other)) & (i.vs2 < i.vd + registers)
        return [
            memory & ~self._aligned(i.vd, field),
            plain & ((other > 3) | (other < -3)),
            plain & ((registers > 8) | (i.vd + registers > 32)),
            plain & i.indexed & ~self._aligned(i.vs2, other),
            indexed & (i.fields == 0) & over & ~allowed,
            indexed & (i.fields != 0) & segment_over,
            plain & i.indexed & i.store & segment_over & ~same,
        ]

    @staticmethod
    def _aligned(register: Value, group: Value) -> Value:
        """The number of a group's first register is a multiple of its size."""
        return ~(((group >= 1) & register[0]) | ((group >= 2) & register[1]) | ((group >= 3) & register[2]))

    @staticmethod
    def _overlap(a: Value, group_a: Value, b: Value, group_b: Value) -> Value:
        """Two groups that are aligned have a register in common."""
        differ = a ^ b
        least = (group_a < 1) & (group_b < 1), (group_a < 2) & (group_b < 2), (group_a < 3) & (group_b < 3)
        return ~(differ[3:].any() | (differ[2] & least[2]) | (differ[1] & least[1]) | (differ[0] & least[0]))

    @staticmethod
    def _highest(source: Value, group: Value, times: int) -> Value:
        """A source that overlaps a result `1 << times` as large is its highest part, and whole registers."""
        found = 0
        for n in range(4 - times):
            found = Mux(group == n, source[n : n + times].all(), found)
        return found

    @classmethod
    def _highest_of(cls, source: Value, group: Value, result: Value) -> Value:
        return Mux(result - group == 1, cls._highest(source, group, 1), cls._highest(source, group, 2))

    @staticmethod
    def _last(register: Value, group: Value) -> Value:
        more = Mux(group == 3, 7, Mux(group == 2, 3, Mux(group == 1, 1, 0)))
        return register + more


def sum_or(values: list[Value]) -> Value:
    """1 if any is."""
    found = values[0]
    for value in values[1:]:
        found = found | value
    return found

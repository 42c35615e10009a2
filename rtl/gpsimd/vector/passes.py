"""The passes that a vector instruction takes, one a cycle, and the registers that each reads."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.gpsimd.vector.active import log_elements
from rtl.gpsimd.vector.configuration import setting
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Source

__all__ = ["PASS", "Passes", "Phase", "distance_of"]


class Phase(enum.Enum, shape=2):
    """Of an instruction."""

    FIRST = 0  # what all passes need is read
    EACH = 1
    FOLD = 2  # halves of what has been reduced are combined
    LAST = 3  # a mask or one element is written


PASS = data.StructLayout(
    {
        "phase": Phase,
        "outer": 4,  # register, of what has most of them
        "inner": 3,
        "step": 2,  # element of a word
        "number": 3,  # register of the result's group
        "from_number": signed(13),  # of a permutation: register of the group vs2
        "begins": 1,  # first for its register of the result
        "closes": 1,  # last
        "ends": 1,  # last of all
    }
)


def distance_of(source: Value, scalar: Value, bits: int) -> Value:
    """Elements that a slide moves by, or the index that all have; 1 << bits for all that is more."""
    one = (source == Source.UP_ONE) | (source == Source.DOWN_ONE)
    return Mux(one, 1, Mux(scalar[bits:].any(), 1 << bits, scalar[:bits]))


class Passes(wiring.Component):
    """`now`: a pass of instruction `i`, whose registers `first`, `second` and `third` are to be read; the first one
    behind the last of the instruction before. `go`: it is taken.

    elements: how many it is for, one at least, if its passes depend on them. size: of the elements that are computed.
    distance: of distance_of.
    Timing: combinational.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.element_bits = exact_log2(32 * lanes)
        super().__init__(
            {
                "go": In(1),
                "i": In(VECTOR),
                "setting": In(setting(lanes)),
                "elements": In(self.element_bits + 1),
                "size": In(2),
                "distance": In(self.element_bits + 1),
                "now": Out(PASS),
                "first": Out(5),
                "second": Out(5),
                "third": Out(5),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, now, kind = self.i, self.now, self.i.kind
        size, lmul = self.setting.size, self.setting.lmul
        operands, source = i.operands, i.source
        permutes, reduces = kind == Kind.PERMUTE, kind == Kind.REDUCE
        compress = permutes & (source == Source.COMPRESS)
        quarters = permutes & (source == Source.HALVES) & (size == 0)  # two registers of indices for each of the result
        log_bytes = exact_log2(4 * self.lanes)

        # how many
        registers = Signal(4)
        outer_last, inner_last, step_last, fold_last = Signal(4), Signal(3), Signal(2), Signal(3)
        group_last = Mux(lmul <= 0, 0, Mux(lmul == 1, 1, Mux(lmul == 2, 3, 7)))
        m.d.comb += [
            registers.eq(((self.elements << self.size) + (4 * self.lanes - 1)) >> log_bytes),
            outer_last.eq(Mux(quarters, (registers << 1) - 1, registers - 1)[:4]),
            fold_last.eq(log_elements(self.lanes, self.size) - 1),
        ]
        with m.Switch(kind):
            with m.Case(Kind.BITS, Kind.COUNT, Kind.FIRST, Kind.MOVE_OUT):
                m.d.comb += outer_last.eq(0)
            with m.Case(Kind.PERMUTE, Kind.DIVIDE):
                m.d.comb += step_last.eq(Mux(size == 2, 0, Mux(size == 1, 1, 3)))
        with m.If(permutes):
            with m.Switch(source):
                with m.Case(Source.VECTOR, Source.HALVES):
                    m.d.comb += inner_last.eq(group_last)
                with m.Case(Source.SAME):
                    pass
                with m.Default():
                    m.d.comb += inner_last.eq(1)

        # where it is
        running, phase = Signal(), Signal(Phase)
        outer, inner, step, fold = Signal(4), Signal(3), Signal(2), Signal(3)
        begins_with = Mux(reduces | (kind == Kind.IOTA) | compress, Phase.FIRST.value, Phase.EACH.value)
        current = Mux(running, phase.as_value(), begins_with)
        of_each = current == Phase.EACH.value
        last_step, last_inner = step == step_last, inner == inner_last
        last_outer = outer == outer_last
        all_passes = last_step & last_inner & last_outer
        lasts = Signal()  # of all
        to_mask = i.mask_result & (kind == Kind.LANES)
        with m.Switch(current):
            with m.Case(Phase.EACH.value):
                m.d.comb += lasts.eq(all_passes & ~reduces & ~to_mask)
            with m.Case(Phase.LAST.value):
                m.d.comb += lasts.eq(1)
        with m.If(self.go):
            m.d.sync += [running.eq(~lasts), phase.eq(current)]
            with m.Switch(current):
                with m.Case(Phase.FIRST.value):
                    m.d.sync += phase.eq(Phase.EACH)
                with m.Case(Phase.EACH.value):
                    m.d.sync += step.eq(Mux(last_step, 0, step + 1))
                    with m.If(last_step):
                        m.d.sync += inner.eq(Mux(last_inner, 0, inner + 1))
                        with m.If(last_inner):
                            m.d.sync += outer.eq(Mux(last_outer, 0, outer + 1))
                    with m.If(all_passes):
                        m.d.sync += phase.eq(Mux(reduces, Phase.FOLD.value, Phase.LAST.value))
                with m.Case(Phase.FOLD.value):
                    m.d.sync += fold.eq(Mux(fold == fold_last, 0, fold + 1))
                    with m.If(fold == fold_last):
                        m.d.sync += phase.eq(Phase.LAST)

        # what the pass is
        number, near = Signal(3), Signal(signed(13))
        up = (source == Source.UP) | (source == Source.UP_ONE)
        begin = number << log_elements(self.lanes, size)
        away = Mux(up, begin - self.distance, begin + self.distance)
        m.d.comb += [
            number.eq(Mux(quarters, outer >> 1, outer >> operands.narrows)),
            near.eq(Mux(source == Source.SAME, self.distance, away) >> log_elements(self.lanes, size)),
            now.phase.eq(current),
            now.outer.eq(outer),
            now.inner.eq(Mux(current == Phase.FOLD.value, fold, inner)),
            now.step.eq(step),
            now.number.eq(number),
            now.begins.eq((inner == 0) & (step == 0) & ~(quarters & outer[0])),
            now.closes.eq(last_inner & last_step & ~(quarters & ~outer[0]) & of_each),
            now.ends.eq(lasts),
        ]
        with m.Switch(source):
            with m.Case(Source.VECTOR, Source.HALVES):
                m.d.comb += now.from_number.eq(inner)
            with m.Case(Source.COMPRESS):
                m.d.comb += now.from_number.eq(outer)
            with m.Default():
                m.d.comb += now.from_number.eq(near + inner)
        of_first, of_second = Signal(5), Signal(5)
        quarter = operands.widens_first & operands.quarters
        m.d.comb += [
            of_first.eq(outer >> Mux(quarter, 2, operands.widens_first)),
            of_second.eq(outer >> (operands.widens_second | (permutes & (source == Source.HALVES) & (size == 2)))),
            self.first.eq((i.vs2 + Mux(permutes, now.from_number, of_first))[:5]),
            self.second.eq((i.vs1 + of_second)[:5]),
            self.third.eq((i.vd + Mux(current == Phase.LAST.value, 0, number))[:5]),
        ]
        return m

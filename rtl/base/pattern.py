"""Access patterns in hardware: one element address a cycle, by additions only."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT, PATTERN_LAYOUT
from rtl.contract.access_pattern import DIMENSIONS, PATTERN
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import INSTRUCTION

__all__ = ["LastElement", "PatternWalker", "operand", "partition_mask", "size_log2"]


def operand(word: data.View, name: str) -> data.View:
    """The access pattern `name` (src0, src1 or dst) of an instruction word."""
    assert word.shape() == INSTRUCTION_LAYOUT
    at = INSTRUCTION.offset(f"{name}_offset")
    return data.View(PATTERN_LAYOUT, word.as_value()[at : at + PATTERN.width])


def partition_mask(start: Value, count: Value, width: int) -> Value:
    """Bit p is 1 if start <= p < start + count, for p below `width`."""
    ones = ((1 << count)[:width] - 1)[:width]
    return (ones << start)[:width]


def size_log2(m: Module, dtype: Value) -> Value:
    """Logarithm of an element's bytes; packed formats count as one byte."""
    size = Signal(2)
    with m.Switch(dtype):
        for fmt in FORMATS.values():
            with m.Case(fmt.code):
                m.d.comb += size.eq({0: 0, 1: 0, 2: 1, 4: 2}[fmt.bytes])
    return size


class PatternWalker(wiring.Component):
    """Walks an access pattern: byte offsets in the partition, one element a step.

    `command` takes a pattern that issue has checked; `valid` says that `address` is an element, `last` that it is
    the final one, bit k of `ends` that dimensions 0 to k are at their ends, `step` (only with valid) goes on.
    `next_address` is what follows if it is not the last.
    `width` (with the command) is the logarithm of how many neighbours a step takes at once; the innermost step of
    such a pattern is 1 and its count a multiple of them. `address` is that of the first.
    `reverse` walks from the last element to the first; the offset in its command is that of the last.
    `sized`: elements have 2^`size` bytes (with the command), whatever their format.
    Timing: the first element is there in the cycle after the command, and a command is taken in the
    cycle of the last step, so that patterns follow each other without a gap.
    No multiplier: every dimension keeps the address where it stands; a step adds one stride to the
    innermost unfinished dimension and the finer ones start again from there.
    """

    def __init__(self, cfg: Config, *, reverse: bool = False, sized: bool = False):
        self.bits = ceil_log2(max(cfg.sbuf.partition_bytes, cfg.psum.partition_bytes))
        self.reverse = reverse
        self.sized = sized
        super().__init__(
            {
                "command": In(stream.Signature(PATTERN_LAYOUT)),
                "width": In(2),
                "size": In(2),
                "valid": Out(1),
                "address": Out(self.bits),
                "next_address": Out(self.bits),
                "last": Out(1),
                "ends": Out(DIMENSIONS),
                "step": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pattern = self.command.payload
        dims = range(DIMENSIONS)
        base = [Signal(self.bits, name=f"base{k}") for k in dims]
        stride = [Signal(self.bits, name=f"stride{k}") for k in dims]  # bytes; negated in reverse
        most = [Signal(16, name=f"most{k}") for k in dims]  # count - 1
        left = [Signal(16, name=f"left{k}") for k in dims]

        size = self.size if self.sized else size_log2(m, pattern.dtype)
        done = [left[k] == 0 for k in dims]
        following = Signal(self.bits)
        m.d.comb += [
            self.address.eq(base[0]),
            self.next_address.eq(following),
            self.last.eq(done[0] & done[1] & done[2] & done[3]),
            self.command.ready.eq(~self.valid | (self.step & self.last)),
        ]
        early = Signal()  # planted: one element before the end counts as the end
        m.d.comb += early.eq(
            fault("the last element of a pattern with more than one dimension is left out")
            & (left[0] == 1)
            & done[1]
            & done[2]
            & done[3]
            & (most[1] != 0)
        )
        with m.If(early):
            m.d.comb += self.last.eq(1)

        advance = self.valid & self.step
        finer: Value | int = 1  # all finer dimensions are at their end
        for k in dims:
            here = Signal(name=f"here{k}")
            m.d.comb += here.eq(finer & ~done[k])
            with m.If(here):
                m.d.comb += following.eq(base[k] + stride[k])
                if k == 1:
                    with m.If(fault("the stride of a pattern's second dimension is forgotten")):
                        m.d.comb += following.eq(base[k])
                with m.If(advance):
                    m.d.sync += left[k].eq(left[k] - 1)
                    m.d.sync += [base[j].eq(following) for j in range(k + 1)]
                    m.d.sync += [left[j].eq(most[j]) for j in range(k)]
            finer = finer & done[k]
            m.d.comb += self.ends[k].eq(finer)

        live = Signal()
        m.d.comb += self.valid.eq(live)
        with m.If(advance & self.last):
            m.d.sync += live.eq(0)

        with m.If(self.command.valid & self.command.ready):
            for k in dims:
                step_bytes = (pattern[f"step{k}"] << size)[: self.bits]
                steps = pattern[f"count{k}"] - 1
                if k == 0:
                    step_bytes = (step_bytes << self.width)[: self.bits]
                    steps = steps >> self.width
                m.d.sync += [
                    stride[k].eq(-step_bytes if self.reverse else step_bytes),
                    most[k].eq(steps),
                    left[k].eq(steps),
                    base[k].eq(pattern.offset),
                ]
            m.d.sync += live.eq(1)
        return m


class LastElement(wiring.Component):
    """Finds the byte offset of the last element of a pattern: where a walk in reverse starts.

    `pattern` must be stable while `run` is 1; `found` says that `address` is there, until `run` falls.
    `sized`: elements have 2^`size` bytes, whatever their format.
    Timing: two cycles, and one for each bit of each count above 1.
    """

    def __init__(self, cfg: Config, *, sized: bool = False):
        self.bits = ceil_log2(max(cfg.sbuf.partition_bytes, cfg.psum.partition_bytes))
        self.sized = sized
        super().__init__(
            {
                "pattern": In(PATTERN_LAYOUT),
                "size": In(2),
                "run": In(1),
                "found": Out(1),
                "address": Out(self.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dims = range(DIMENSIONS)
        most = [Signal(16, name=f"most{k}") for k in dims]
        stride = [Signal(self.bits, name=f"stride{k}") for k in dims]
        size = self.size if self.sized else size_log2(m, self.pattern.dtype)
        for k in dims:
            m.d.comb += [
                most[k].eq(self.pattern[f"count{k}"] - 1),
                stride[k].eq(self.pattern[f"step{k}"] << size),
            ]
        # (count - 1) * step of every dimension, one bit of count - 1 a cycle
        started = Signal()
        left = Signal(DIMENSIONS)  # dimensions to add
        factor = Signal(16)
        addend = Signal(self.bits)
        total = Signal(self.bits)
        choose = Signal()
        of = Signal(DIMENSIONS)
        m.d.comb += [
            choose.eq(factor[1:] == 0),
            of.eq(Mux(started, left, Cat(most[k] != 0 for k in dims))),
            self.address.eq(total),
            self.found.eq(started & (left == 0) & (factor == 0)),
        ]
        with m.If(~self.run):
            m.d.sync += [started.eq(0), factor.eq(0)]
        with m.Else():
            m.d.sync += [
                started.eq(1),
                total.eq(Mux(started, total + Mux(factor[0], addend, 0), self.pattern.offset)),
                factor.eq(factor >> 1),
                addend.eq(addend << 1),
            ]
            with m.If(choose):
                m.d.sync += left.eq(of & (of - 1))
                for k in reversed(dims):
                    with m.If(of[k]):
                        m.d.sync += [factor.eq(most[k]), addend.eq(stride[k])]
        return m

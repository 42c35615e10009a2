"""QUANTIZE_MX: columns of four elements in, pairs of columns of MX elements and groups of four scales out."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import MX_ROWS, block, mx_scale_partition
from rtl.numeric.formats.quantize import Quantize

__all__ = ["QuantizeMx"]

_FOUR = 4  # elements of a column, and columns whose scales are written at once


class QuantizeMx(wiring.Component):
    """A column of every partition a cycle: `valid` with `words`, 64 bits a lane, BF16 or FP16 by `src`.

    `out`, with `out_valid`: two columns in format `dst`, the first lowest, repeated over the 64 bits of their lane.
    `scales`, with `scales_valid`: the scales of four columns, likewise, in the lanes `scale_lanes` that `slot` gives
    the blocks of 8 among `partitions`. Columns come in fours. `busy`: some are inside.
    Timing: `valid` may pause; `out_valid` 2 cycles after every second column, `scales_valid` 2 after every fourth.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        wide = 64 * cfg.partitions
        super().__init__(
            {
                "valid": In(1),
                "words": In(wide),
                "src": In(4),
                "dst": In(4),
                "rule": In(1),
                "slot": In(2),
                "partitions": In(cfg.partitions),
                "out_valid": Out(1),
                "out": Out(wide),
                "scales_valid": Out(1),
                "scales": Out(wide),
                "scale_lanes": Out(cfg.partitions),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.cfg.partitions
        blocks = count // MX_ROWS
        m.submodules.blocks = unit = Quantize(blocks)
        stages = Signal(Quantize.LATENCY)  # columns on their way
        comes = stages[-1]
        number = Signal(2)  # of the column, in its group
        m.d.sync += stages.eq(Cat(self.valid, stages))
        m.d.comb += [
            unit.x.eq(self.words),
            unit.src.eq(self.src),
            unit.fmt.eq(self.dst),
            unit.rule.eq(self.rule),
            unit.hold.eq(~(self.valid | stages.any())),
            self.busy.eq(stages.any() | (number != 0)),
            self.out_valid.eq(comes & number[0]),
            self.scales_valid.eq(comes & number.all()),
        ]
        kept = Signal(32 * count, reset_less=True)  # the first column of a pair
        with m.If(comes):
            m.d.sync += number.eq(number + 1)
            with m.If(number[0] == fault("the first column of a pair is that of the pair before")):
                m.d.sync += kept.eq(unit.elements)

        narrow = (self.dst == FORMATS["e2m1"].code) & ~fault("E2M1 codes keep the room of a byte")
        with m.If(narrow):
            m.d.comb += self.out.eq(Cat(self._pair(kept, unit.elements, p, 4) for p in range(count)))
        with m.Else():
            m.d.comb += self.out.eq(Cat(self._pair(kept, unit.elements, p, 8) for p in range(count)))

        groups: list[Value] = []  # of each block, the scales of four columns
        for b in range(blocks):
            earlier = Signal(8 * (_FOUR - 1), name=f"earlier{b}", reset_less=True)
            scale = unit.scale[8 * b : 8 * b + 8]
            with m.If(comes):
                m.d.sync += earlier.eq(Cat(earlier[8:], scale))
            groups.append(
                Mux(fault("the scales of a group come in the wrong order"), Cat(scale, earlier), Cat(earlier, scale))
            )
        self._places(m, groups)
        return m

    @staticmethod
    def _pair(first: Value, second: Value, p: int, bits: int) -> Value:
        """Both columns of partition p in elements of so many bits, repeated over 64."""
        codes = [column[32 * p + 8 * q : 32 * p + 8 * q + bits] for column in (first, second) for q in range(_FOUR)]
        return Cat(*codes).replicate(8 // bits)

    def _places(self, m: Module, groups: list[Value]) -> None:
        """Where a block's scales lie depends on the slot, but no lane belongs to two blocks."""
        count = self.cfg.partitions
        slots = range(4)
        for b, group in enumerate(groups):
            row = MX_ROWS * b
            active = self.partitions[row] | fault("blocks outside the operand have scales too")
            for slot in slots:
                lane = mx_scale_partition(row, slot, count)
                chosen = (
                    self.slot == slot if slot else (self.slot == slot) | fault("scales go to the partitions of slot 0")
                )
                m.d.comb += [
                    self.scales[64 * lane : 64 * lane + 64].eq(group.replicate(2)),
                    self.scale_lanes[lane].eq(active & chosen),
                ]
        assert block(count) // MX_ROWS * len(slots) <= block(count)

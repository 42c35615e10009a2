"""Scales of MX blocks: from a slot of SBUF's partitions to a byte for every row of the array."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config
from rtl.contract.isa import block
from rtl.contract.kinds import SCALE_ROWS, Kind, scale_partition, scale_slots
from rtl.tensor.read_ahead import ReadAhead, forwarded, reading_ports

__all__ = ["ScaleFeed"]

_SLOT_BITS = 2


class ScaleFeed(wiring.Component):
    """A ReadAhead of the partitions that hold scales, spread to the rows of a row group: kinds.scale_partition.

    Ports as those of ReadAhead; `active`: rows of the operand, which say in what quadrants its scales are; `data`:
    a whole word of SBUF. `scale`: that of row r at bits 8r, while `valid`. A word holds those of 8 elements.
    """

    def __init__(self, cfg: Config, group: int = 0, *, reverse: bool = False):
        self.cfg = cfg
        self.rows = cfg.tensor.rows // cfg.tensor.groups
        self.first = group * self.rows
        self.reverse = reverse
        self.kinds = [kind for kind in SCALE_ROWS if kind == Kind.QUAD or cfg.tensor.nvfp4]
        self.rows_a_lane = min(SCALE_ROWS[kind] for kind in self.kinds)
        rows = self.rows
        super().__init__(
            {
                **reading_ports(cfg, cfg.partitions),
                "kind": In(3),
                "active": In(rows),
                "scale": Out(8 * rows),
            }
        )

    def _places(self) -> dict[int, list[int]]:
        """Partition of each lane's scales by what ReadAhead picks: slot, and above it whether it is NVFP4."""
        rows = range(self.first, self.first + self.rows, self.rows_a_lane)
        return {
            slot | (kind != Kind.QUAD) << _SLOT_BITS: [
                scale_partition(kind, self.cfg.partitions, slot, row) for row in rows
            ]
            for kind in self.kinds
            for slot in range(scale_slots(kind))
        }

    def _slot(self) -> Value:
        """The slot that `pattern` names."""
        size = block(self.cfg.partitions)
        place = self.pattern.partition_start & (size - 1)
        slots = {kind: place >> (size // SCALE_ROWS[kind]).bit_length() - 1 for kind in self.kinds}
        return Mux(self.kind == Kind.QUAD, slots[Kind.QUAD], slots[self.kinds[-1]])[:_SLOT_BITS]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        share = self.cfg.partitions // QUADRANTS
        lanes = self.rows // self.rows_a_lane
        m.submodules.words = words = ReadAhead(self.cfg, lanes, reverse=self.reverse)
        places = self._places()
        pick = Signal(_SLOT_BITS + 1)
        used = [self.active.word_select(lane, self.rows_a_lane).any() for lane in range(lanes)]
        m.d.comb += [
            pick.eq(Cat(Mux(fault("scales come from the first slot"), 0, self._slot()), self.kind != Kind.QUAD)),
            *forwarded(self, words, "data"),
            words.size.eq(0),
            words.pick.eq(pick),
        ]
        with m.Switch(pick):
            for code, partitions in places.items():
                with m.Case(code):
                    for q in range(QUADRANTS):
                        here = [use for use, p in zip(used, partitions, strict=True) if p // share == q]
                        m.d.comb += words.quadrants[q].eq(Cat(*here).any())

        # a read's answer comes in the next cycle
        picked = Signal(_SLOT_BITS + 1)
        m.d.sync += picked.eq(words.picks)
        with m.If(self.arrived):
            with m.Switch(picked):
                for code, partitions in places.items():
                    with m.Case(code):
                        m.d.comb += words.data.eq(Cat(self.data.word_select(p, 64) for p in partitions))

        column = Signal(3)
        m.d.comb += column.eq(words.place ^ fault("scales are those of the element beside it"))
        with m.If(words.valid):
            scales = [words.words.word_select(lane, 64).word_select(column, 8) for lane in range(lanes)]
            other = [scales[lane ^ 1] for lane in range(lanes)] if lanes > 1 else scales
            turned = fault("two blocks of rows exchange their scales")
            for row in range(self.rows):
                lane = row // self.rows_a_lane
                m.d.comb += self.scale.word_select(row, 8).eq(Mux(turned, other[lane], scales[lane]))
        return m

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

__all__ = ["ScaleFeed", "scale_lanes", "scale_places"]

_SLOT_BITS = 2


def _kinds(cfg: Config) -> list[Kind]:
    return [kind for kind in SCALE_ROWS if kind == Kind.QUAD or cfg.tensor.nvfp4]


def _rows_a_lane(cfg: Config) -> int:
    """Rows that have a scale in common, whatever the kind."""
    return min(SCALE_ROWS[kind] for kind in _kinds(cfg))


def scale_lanes(cfg: Config) -> int:
    """Scales that the rows of a group have."""
    return cfg.tensor.rows // cfg.tensor.groups // _rows_a_lane(cfg)


def scale_places(cfg: Config, group: int) -> dict[int, list[int]]:
    """Partition of each scale of a row group by what ScaleFeed picks: slot, and above it whether it is NVFP4."""
    lanes = scale_lanes(cfg)
    rows = [lane * _rows_a_lane(cfg) for lane in range(group * lanes, (group + 1) * lanes)]
    return {
        slot | (kind != Kind.QUAD) << _SLOT_BITS: [scale_partition(kind, cfg.partitions, slot, row) for row in rows]
        for kind in _kinds(cfg)
        for slot in range(scale_slots(kind))
    }


class ScaleFeed(wiring.Component):
    """A ReadAhead of the partitions that hold scales, spread to the rows of a row group: kinds.scale_partition.

    Ports as those of ReadAhead; `group`: which one, a constant; `active`: rows of the operand, which say in what
    quadrants its scales are; `data`: words of the partitions of scale_places(cfg, group)[picked].
    `scale`: that of row r at bits 8r, while `valid`. A word holds those of 8 elements.
    """

    def __init__(self, cfg: Config, *, reverse: bool = False):
        self.cfg = cfg
        self.reverse = reverse
        self.kinds = _kinds(cfg)
        rows = cfg.tensor.rows // cfg.tensor.groups
        super().__init__(
            {
                **reading_ports(cfg, scale_lanes(cfg)),
                "kind": In(3),
                "group": In(range(max(2, cfg.tensor.groups))),
                "active": In(rows),
                "picked": Out(_SLOT_BITS + 1),
                "scale": Out(8 * rows),
            }
        )

    def _slot(self) -> Value:
        """The slot that `pattern` names."""
        size = block(self.cfg.partitions)
        place = self.pattern.partition_start & (size - 1)
        slots = {kind: place >> (size // SCALE_ROWS[kind]).bit_length() - 1 for kind in self.kinds}
        return Mux(self.kind == Kind.QUAD, slots[Kind.QUAD], slots[self.kinds[-1]])[:_SLOT_BITS]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        share = cfg.partitions // QUADRANTS
        lanes = scale_lanes(cfg)
        rows_a_lane = _rows_a_lane(cfg)
        m.submodules.words = words = ReadAhead(cfg, lanes, reverse=self.reverse)
        pick = Signal(_SLOT_BITS + 1)
        used = [self.active.word_select(lane, rows_a_lane).any() for lane in range(lanes)]
        m.d.comb += [
            pick.eq(Cat(Mux(fault("scales come from the first slot"), 0, self._slot()), self.kind != Kind.QUAD)),
            *forwarded(self, words),
            words.size.eq(0),
            words.pick.eq(pick),
        ]
        with m.Switch(Cat(pick, self.group)):
            for group in range(cfg.tensor.groups):
                for code, partitions in scale_places(cfg, group).items():
                    with m.Case(code | group << len(pick)):
                        for q in range(QUADRANTS):
                            here = [use for use, p in zip(used, partitions, strict=True) if p // share == q]
                            m.d.comb += words.quadrants[q].eq(Cat(*here).any())

        # a read's answer comes in the next cycle
        m.d.sync += self.picked.eq(words.picks)

        column = Signal(3)
        m.d.comb += column.eq(words.place ^ fault("scales are those of the element beside it"))
        with m.If(words.valid):
            scales = [words.words.word_select(lane, 64).word_select(column, 8) for lane in range(lanes)]
            other = [scales[lane ^ 1] for lane in range(lanes)] if lanes > 1 else scales
            turned = fault("two blocks of rows exchange their scales")
            for row in range(lanes * rows_a_lane):
                lane = row // rows_a_lane
                m.d.comb += self.scale.word_select(row, 8).eq(Mux(turned, other[lane], scales[lane]))
        return m

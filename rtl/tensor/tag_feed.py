"""Tags of a sparse stationary operand: from elements of four columns in SBUF to a tag for every row."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config
from rtl.contract.kinds import TAG_COLUMNS
from rtl.contract.sparsity import PATTERNS, TAG_BITS
from rtl.tensor.read_ahead import ReadAhead, forwarded, reading_ports

__all__ = ["PHASE_BITS", "TagFeed", "last_phase"]

PHASE_BITS = TAG_COLUMNS.bit_length() - 1


def last_phase(counts: list[Value]) -> Value:
    """Place of the last column in its element of tags; `counts` are those of the columns' dimensions."""
    low: Value = Const(1, PHASE_BITS)
    for count in counts:
        low = (low * count[:PHASE_BITS])[:PHASE_BITS]
    return (low - 1)[:PHASE_BITS]


class TagFeed(wiring.Component):
    """A ReadAhead of the operand's partitions, backwards, whose elements serve four columns each.

    Ports as those of ReadAhead. Of the beat that is sent next: `first` of its command, then `phase` is the place of
    its tags in their element; `sparsity` and `active` as the beat has them. `tags`: that of row r at bits 4r, while
    `valid`. `wrong`: tags of an active bus do not ascend, or are not below the group. A word of SBUF holds those of
    16 columns.
    """

    def __init__(self, cfg: Config, rows: int):
        self.cfg = cfg
        self.rows = rows
        super().__init__(
            {
                **reading_ports(cfg, rows),
                "quadrants": In(QUADRANTS),
                "first": In(1),
                "phase": In(PHASE_BITS),
                "sparsity": In(3),
                "active": In(rows),
                "tags": Out(TAG_BITS * rows),
                "wrong": Out(1),
            }
        )

    def _is(self, *kept: int) -> Value:
        """Whether the pattern has a bus of so many rows."""
        return (Const(sum(1 << p.code for p in PATTERNS.values() if p.kept in kept), 8) >> self.sparsity)[0]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = ReadAhead(self.cfg, self.rows, reverse=True)
        following = Signal(PHASE_BITS)
        column = Signal(PHASE_BITS)
        m.d.comb += [
            *forwarded(self, words, "take"),
            words.size.eq(1),
            words.quadrants.eq(self.quadrants),
            words.take.eq(self.take & (column == 0)),
            column.eq(
                Mux(
                    self.first,
                    self.phase ^ fault("columns of the last element are counted from its end").replicate(PHASE_BITS),
                    following,
                )
            ),
        ]
        with m.If(self.take):
            m.d.sync += following.eq(column - 1)

        limit = Signal(TAG_BITS + 1)
        with m.Switch(self.sparsity):
            for pattern in PATTERNS.values():
                with m.Case(pattern.code):
                    m.d.comb += limit.eq(pattern.group)
        by_two = self._is(2, 4) & ~fault("tags may repeat or descend")
        by_four = self._is(4) & ~fault("tags may repeat or descend")
        place = Signal(TAG_BITS)
        m.d.comb += place.eq(Cat(column ^ fault("tags are those of the column beside it"), words.place[1:]))
        tags = [self.tags.word_select(row, TAG_BITS) for row in range(self.rows)]
        bad = Signal(self.rows)
        with m.If(words.valid):
            for row, tag in enumerate(tags):
                m.d.comb += tag.eq(words.words.word_select(row, 64).word_select(place, TAG_BITS))
                beyond = (tag >= limit) & ~fault("tags may lie beyond the group")
                if row % 2:
                    beyond |= by_two & (tag <= tags[row - 1])
                elif row % 4:
                    beyond |= by_four & (tag <= tags[row - 1])
                m.d.comb += bad[row].eq(beyond)
        m.d.comb += self.wrong.eq((bad & self.active).any())
        return m

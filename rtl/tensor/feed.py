"""From an operand in SBUF to a column of the array a cycle: its elements, the scales of their blocks, their tags."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.contract.isa import block
from rtl.tensor.row_feed import RowFeed, feed_ports
from rtl.tensor.scale_feed import scale_places

__all__ = ["Feed", "reach"]


def reach(cfg: Config, group: int) -> int:
    """Quadrants of SBUF, a bit each, that the feeds of a row group read: where its rows and their scales are."""
    rows = cfg.tensor.rows // cfg.tensor.groups
    share = cfg.partitions // QUADRANTS
    size = block(cfg.partitions) if cfg.tensor.mx else 1
    first = group * rows // size * size
    last = ((group + 1) * rows - 1) // size * size + size - 1
    return sum(1 << q for q in range(first // share, last // share + 1))


class Feed(wiring.Component):
    """Turns a command into elements of the rows of a row group, one a cycle, in the order of the pattern or `reverse`.

    `valid`: the element at `data` (the group's row r at bits 64r, those of its format lowest, don't care above) may be
    sent, with `mode` (ports.MODE_BITS) and, with a kind that has scales, that of row r in bits 8r of `scale`, with one
    that has tags, that in bits 4r of `tags`; `take` sends it. `failed`: tags of the command, up to this element, are
    wrong. Only a feed in reverse, of a stationary operand, has tags.
    `holds`: there is a command that has not sent its last element; `started`: `first`, `awaits` and what else
    describes its beats are known. `refused`: SBUF refused a read in this cycle.
    Timing: an element is there 5 cycles after its command, one more with scales or tags, and later if `reverse`
    (LastElement); then one a cycle, across commands too, as far as the port gives a word of 8 bytes of each partition
    a cycle: words of scales and tags go first. Up to four words of each are read ahead, so a refusal costs a bubble
    only when none is left. A group without a row of the operand reads nothing, and sends don't-care bits as fast.
    """

    def __init__(self, cfg: Config, group: int = 0, *, reverse: bool = False):
        self.cfg = cfg
        self.group = group
        self.reverse = reverse
        super().__init__({**feed_ports(cfg), "sbuf": Out(SbufReadSignature(cfg))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rows = cfg.tensor.rows // cfg.tensor.groups
        first = self.group * rows
        name = "tensor_feed_stationary" if self.reverse else "tensor_feed_moving"
        m.submodules.rows = inner = Placed(name, lambda: RowFeed(cfg, reverse=self.reverse), faults=True)
        connect(m, flipped(self.command), inner.command)
        for port, member in feed_ports(cfg).items():
            if port != "command":
                mine, its = getattr(self, port), getattr(inner, port)
                m.d.comb += its.eq(mine) if member.flow == In else mine.eq(its)
        m.d.comb += [
            inner.group.eq(self.group),
            self.sbuf.valid.eq(inner.asks.any()),
            self.sbuf.quadrants.eq(inner.asks),
            *(self.sbuf.word[q].eq(inner.word) for q in range(QUADRANTS)),
            inner.ready.eq(self.sbuf.ready),
            inner.rows.eq(self.sbuf.data[64 * first : 64 * (first + rows)]),
        ]
        if cfg.tensor.mx:
            with m.If(inner.scales_come):
                with m.Switch(inner.scale_pick):
                    for code, partitions in scale_places(cfg, self.group).items():
                        with m.Case(code):
                            m.d.comb += inner.scale_words.eq(Cat(self.sbuf.data.word_select(p, 64) for p in partitions))
        return m

"""From an operand in SBUF to a column of the array a cycle: its elements, and the scales of their blocks."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.base.pattern import partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import block
from rtl.contract.kinds import SCALE_ROWS, group_bytes, kinds_of
from rtl.tensor.fp4_map import Fp4Map
from rtl.tensor.read_ahead import ReadAhead
from rtl.tensor.scale_feed import ScaleFeed

__all__ = ["COMMANDS", "ORDER_BITS", "Feed", "feed_command", "reach"]

ORDER_BITS = 3
"""Counts of loads and swaps wrap here; a feed holds at most five commands, so that they stay distinct."""

COMMANDS = 4  # being walked or sent; one more waits
_MAP_BITS = 128


def feed_command() -> data.StructLayout:
    """What a feed is told: the operand, and what its beats must know."""
    return data.StructLayout(
        {
            "pattern": PATTERN_LAYOUT,
            "scales": PATTERN_LAYOUT,
            "kind": 3,
            "map": _MAP_BITS,  # E4M3FN codes of E2M1 numbers
            "sequence": 8,
            "tile": 2,  # of how many rows: 0 all, 1 half, 2 a quarter
            "swap": 1,  # streams: take the weights loaded before
            "awaits": ORDER_BITS,  # streams: loads sent, loads: swaps entered, before the first beat
        }
    )


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

    `valid`: the element at `data` (the group's row r at bits 64r, those of its format lowest, rubbish above) may be
    sent, with `mode` (ports.MODE_BITS) and, with a kind that has scales, that of row r in bits 8r of `scale`; `take`
    sends it.
    `holds`: there is a command that has not sent its last element; `started`: `first`, `awaits` and what else
    describes its beats are known. `refused`: SBUF refused a read in this cycle.
    Timing: an element is there 5 cycles after its command, one more with scales, and later if `reverse`
    (LastElement); then one a cycle, across commands too, as far as the port gives a word of 8 bytes of each partition
    a cycle: words of scales go first. Up to four words of either are read ahead, so a refusal costs a bubble only
    when none is left. A group without a row of the operand reads nothing and sends rubbish at the same pace.
    """

    FAULTS = {
        **ReadAhead.FAULTS,
        12: "the row mask of the next command is used",
        13: "elements do not wait for their scales",
        **ScaleFeed.FAULTS,
        **Fp4Map.FAULTS,
    }

    def __init__(self, cfg: Config, group: int = 0, *, reverse: bool = False, plant: ValueLike = 0):
        self.cfg = cfg
        self.group = group
        self.reverse = reverse
        self.plant = plant
        rows = cfg.tensor.rows // cfg.tensor.groups
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "sbuf": Out(SbufReadSignature(cfg)),
                "valid": Out(1),
                "take": In(1),
                "first": Out(1),
                "last": Out(1),
                "data": Out(64 * rows),
                "scale": Out(8 * rows),
                "active": Out(rows),
                "mode": Out(7),
                "ticket": Out(8),
                "tile": Out(2),
                "swap": Out(1),
                "awaits": Out(ORDER_BITS),
                "start": Out(8),  # partitions of the operand
                "count": Out(8),
                "holds": Out(1),
                "started": Out(1),
                "refused": Out(1),
            }
        )

    def _size(self, m: Module, waiting: data.View) -> Value:
        """Logarithm of the bytes of an element of the operand."""
        size = Signal(2)
        with m.Switch(Cat(waiting.pattern.dtype, waiting.kind)):
            for kind, formats in kinds_of(self.cfg.tensor).items():
                for name in formats:
                    with m.Case(FORMATS[name].code | kind << 4):
                        m.d.comb += size.eq(group_bytes(kind, name).bit_length() - 1)
        return size

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rows = cfg.tensor.rows // cfg.tensor.groups
        first = self.group * rows
        mx = cfg.tensor.mx
        e2m1, e4m3fn = FORMATS["e2m1"].code, FORMATS["e4m3fn"].code
        about = data.StructLayout(
            {"active": rows, "mode": 7, "scaled": 1, "mapped": 1, "map": _MAP_BITS if mx else 0}
            | {"sequence": 8, "tile": 2, "swap": 1, "awaits": ORDER_BITS, "start": 8, "count": 8}
        )
        m.submodules.elements = elements = ReadAhead(cfg, rows, reverse=self.reverse, plant=self.plant)
        m.submodules.commands = commands = Fifo(about, COMMANDS)

        # one command waits here while the walkers are busy with the one before
        waiting = Signal(feed_command())
        is_waiting = Signal()
        into_walker = Signal()
        prepared = Signal()
        entry = Signal(about)
        quadrants = Signal(QUADRANTS)
        start = waiting.pattern.partition_start
        count = waiting.pattern.partition_count
        size = cfg.partitions // QUADRANTS
        mine = [partition_mask(start, count, cfg.tensor.rows)[first + r] for r in range(rows)]
        of_quadrant = [[mine[r] for r in range(rows) if (first + r) // size == q] for q in range(QUADRANTS)]
        m.d.comb += [
            prepared.eq(elements.prepared & elements.ready),
            into_walker.eq(is_waiting & prepared & commands.i.ready),
            self.command.ready.eq(~is_waiting),
            quadrants.eq(Cat(Cat(*of_quadrant[q]).any() for q in range(QUADRANTS))),
            elements.pattern.eq(waiting.pattern),
            elements.size.eq(self._size(m, waiting)),
            elements.quadrants.eq(quadrants),
            elements.prepare.eq(is_waiting),
            elements.start.eq(into_walker),
            entry.active.eq(Cat(*mine)),
            entry.mode.eq(Cat(waiting.pattern.dtype, waiting.kind)),
            entry.sequence.eq(waiting.sequence),
            entry.tile.eq(waiting.tile),
            entry.swap.eq(waiting.swap),
            entry.awaits.eq(waiting.awaits),
            entry.start.eq(start),
            entry.count.eq(count),
            commands.i.payload.eq(entry),
            commands.i.valid.eq(into_walker),
        ]
        if mx:
            mapped = waiting.pattern.dtype == e2m1
            m.d.comb += [
                entry.mapped.eq(mapped),
                entry.map.eq(waiting.map),
                entry.mode[:4].eq(Mux(mapped, e4m3fn, waiting.pattern.dtype)),
                entry.scaled.eq(Cat(waiting.kind == kind for kind in SCALE_ROWS).any()),
            ]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [waiting.eq(self.command.payload), is_waiting.eq(1)]
        with m.Elif(into_walker):
            m.d.sync += is_waiting.eq(0)

        # reads
        granted = Signal()
        asks = Signal(QUADRANTS)
        wants = Signal()
        arrived = Signal()
        m.d.sync += arrived.eq(granted)
        m.d.comb += [
            wants.eq(elements.ask),
            asks.eq(elements.asks),
            self.sbuf.valid.eq(wants & asks.any()),
            self.sbuf.quadrants.eq(asks),
            granted.eq(wants & (self.sbuf.ready | ~asks.any())),
            elements.granted.eq(granted),
            elements.arrived.eq(arrived),
            elements.data.eq(self.sbuf.data[64 * first : 64 * (first + rows)]),
            self.refused.eq(self.sbuf.valid & ~self.sbuf.ready),
        ]
        m.d.comb += [self.sbuf.word[q].eq(elements.word) for q in range(QUADRANTS)]

        # beats
        head = commands.o.payload
        began = Signal()
        sent = self.take & self.valid
        m.d.comb += [
            self.valid.eq(elements.valid),
            elements.take.eq(sent),
            self.last.eq(elements.last),
            self.first.eq(~began),
            commands.o.ready.eq(sent & self.last),
            self.active.eq(head.active),
            self.mode.eq(head.mode),
            self.ticket.eq(head.sequence),
            self.tile.eq(head.tile),
            self.swap.eq(head.swap),
            self.awaits.eq(head.awaits),
            self.start.eq(head.start),
            self.count.eq(head.count),
            self.started.eq(commands.o.valid),
            self.holds.eq(is_waiting | commands.o.valid),
        ]
        with m.If(planted(self.plant, 12) & is_waiting):
            m.d.comb += self.active.eq(entry.active)
        with m.If(sent):
            m.d.sync += began.eq(~self.last)
        plain = Signal(64 * rows)
        with m.Switch(elements.place):
            for k in range(8):
                with m.Case(k):
                    m.d.comb += plain.eq(elements.words[8 * k :])
        m.d.comb += self.data.eq(plain)
        if mx:
            m.submodules.scales = scales = ScaleFeed(cfg, self.group, reverse=self.reverse, plant=self.plant)
            scaled = entry.scaled
            m.d.comb += [
                scales.pattern.eq(waiting.scales),
                scales.kind.eq(waiting.kind),
                scales.active.eq(entry.active),
                scales.prepare.eq(is_waiting & scaled),
                scales.start.eq(into_walker & scaled),
                prepared.eq(elements.prepared & elements.ready & ((scales.prepared & scales.ready) | ~scaled)),
                scales.take.eq(sent & head.scaled),
                self.scale.eq(scales.scale),
                self.valid.eq(elements.valid & (scales.valid | ~head.scaled | planted(self.plant, 13))),
            ]
            of_scales = Signal()  # the word that arrives
            with m.If(scales.ask):
                m.d.comb += [wants.eq(1), asks.eq(scales.asks)]
                m.d.comb += [self.sbuf.word[q].eq(scales.word) for q in range(QUADRANTS)]
            m.d.comb += [
                scales.granted.eq(granted & scales.ask),
                elements.granted.eq(granted & ~scales.ask),
                scales.arrived.eq(arrived & of_scales),
                elements.arrived.eq(arrived & ~of_scales),
                scales.data.eq(self.sbuf.data),
            ]
            m.d.sync += of_scales.eq(scales.ask)
            m.submodules.fp4 = fp4 = Fp4Map(rows, plant=self.plant)
            m.d.comb += [fp4.enable.eq(head.mapped), fp4.map.eq(head.map), fp4.codes.eq(plain)]
            with m.If(head.mapped):
                m.d.comb += self.data.eq(fp4.out)
        return m

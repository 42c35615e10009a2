"""From an operand in SBUF to a column of the array a cycle: its elements, the scales of their blocks, their tags."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.base.pattern import partition_mask
from rtl.base.pick import pick
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import block
from rtl.contract.kinds import SCALE_ROWS, Kind, group_bytes, kinds_of, moving_bytes
from rtl.contract.sparsity import PATTERNS, TAG_BITS
from rtl.tensor.fp4_map import fp4_map
from rtl.tensor.ports import MODE_BITS
from rtl.tensor.read_ahead import ReadAhead
from rtl.tensor.scale_feed import ScaleFeed
from rtl.tensor.tag_feed import PHASE_BITS, TagFeed, last_phase

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
            "scales": PATTERN_LAYOUT,  # or tags
            "kind": 3,
            "sparsity": 3,
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
        rows = cfg.tensor.rows // cfg.tensor.groups
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "sbuf": Out(SbufReadSignature(cfg)),
                "valid": Out(1),
                "take": In(1),
                "first": Out(1),
                "last": Out(1),
                "failed": Out(1),
                "data": Out(64 * rows),
                "scale": Out(8 * rows),
                "tags": Out(TAG_BITS * rows),
                "active": Out(rows),
                "mode": Out(MODE_BITS),
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
        if self.cfg.tensor.sparsity and not self.reverse:
            narrow = sum(1 << p.code for p in PATTERNS.values() if moving_bytes(p) == 4)
            with m.If(waiting.kind == Kind.SPARSE):
                m.d.comb += size.eq(Mux((Const(narrow, 8) >> waiting.sparsity)[0], 2, 3))
        return size

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rows = cfg.tensor.rows // cfg.tensor.groups
        first = self.group * rows
        mx = cfg.tensor.mx
        e2m1, e4m3fn = FORMATS["e2m1"].code, FORMATS["e4m3fn"].code
        about = data.StructLayout(
            {"active": rows, "mode": MODE_BITS, "scaled": 1, "tagged": 1, "phase": PHASE_BITS}
            | {"mapped": 1, "map": _MAP_BITS if mx else 0}
            | {"sequence": 8, "tile": 2, "swap": 1, "awaits": ORDER_BITS, "start": 8, "count": 8}
        )
        m.submodules.elements = elements = ReadAhead(cfg, rows, reverse=self.reverse)
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
            into_walker.eq(is_waiting & prepared & commands.i.ready),
            self.command.ready.eq(~is_waiting),
            quadrants.eq(Cat(Cat(*of_quadrant[q]).any() for q in range(QUADRANTS))),
            elements.pattern.eq(waiting.pattern),
            elements.size.eq(self._size(m, waiting)),
            elements.quadrants.eq(quadrants),
            elements.prepare.eq(is_waiting),
            elements.start.eq(into_walker),
            entry.active.eq(Cat(*mine)),
            entry.mode.eq(Cat(waiting.pattern.dtype, waiting.kind, waiting.sparsity)),
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

        # what goes with the elements of some kinds: the feed, whether the command that comes and the beat have it
        head = commands.o.payload
        beside: list[tuple[ScaleFeed | TagFeed, Value, Value]] = []
        if mx:
            m.submodules.scales = scales = ScaleFeed(cfg, self.group, reverse=self.reverse)
            beside.append((scales, entry.scaled, head.scaled))
        if cfg.tensor.sparsity and self.reverse:
            m.submodules.tags = tags = TagFeed(cfg, rows)
            beside.append((tags, entry.tagged, head.tagged))
        ready = ((one.prepared & one.ready) | ~has for one, has, _ in beside)
        m.d.comb += prepared.eq(Cat(elements.prepared, elements.ready, *ready).all())

        # reads: the first that asks
        readers = [*(one for one, _, _ in beside), elements]
        granted = Signal()
        asks = Signal(QUADRANTS)
        turn = Signal(len(readers))
        arrived = Signal(len(readers))
        m.d.sync += arrived.eq(Mux(granted, turn, 0))
        m.d.comb += [
            self.sbuf.valid.eq(asks.any()),
            self.sbuf.quadrants.eq(asks),
            granted.eq(turn.any() & (self.sbuf.ready | ~asks.any())),
            elements.data.eq(self.sbuf.data[64 * first : 64 * (first + rows)]),
            self.refused.eq(self.sbuf.valid & ~self.sbuf.ready),
        ]
        for n, reader in reversed(list(enumerate(readers))):
            with m.If(reader.ask):
                m.d.comb += [turn.eq(1 << n), asks.eq(reader.asks)]
                m.d.comb += [self.sbuf.word[q].eq(reader.word) for q in range(QUADRANTS)]
            m.d.comb += [reader.granted.eq(granted & turn[n]), reader.arrived.eq(arrived[n])]
        for one, has, _ in beside:
            m.d.comb += [
                one.pattern.eq(waiting.scales),
                one.prepare.eq(is_waiting & has),
                one.start.eq(into_walker & has),
            ]

        # beats
        began = Signal()
        sent = self.take & self.valid
        there = (one.valid | ~has | fault("elements do not wait for their scales and tags") for one, _, has in beside)
        m.d.comb += [
            self.valid.eq(Cat(elements.valid, *there).all()),
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
        with m.If(fault("the row mask of the next command is used") & is_waiting):
            m.d.comb += self.active.eq(entry.active)
        with m.If(sent):
            m.d.sync += began.eq(~self.last)
        m.submodules.pick = picked = pick(rows)
        m.d.comb += [
            picked.enable.eq(elements.valid),
            picked.place.eq(elements.place),
            picked.word.eq(elements.words),
            self.data.eq(picked.out),
        ]
        if mx:
            m.d.comb += [
                scales.kind.eq(waiting.kind),
                scales.active.eq(entry.active),
                scales.data.eq(self.sbuf.data),
                scales.take.eq(sent & head.scaled),
                self.scale.eq(scales.scale),
            ]
            m.submodules.fp4 = fp4 = fp4_map(rows)
            m.d.comb += [
                fp4.enable.eq(head.mapped),
                fp4.map.eq(head.map),
                fp4.codes.eq(picked.out),
                self.data.eq(fp4.out),
            ]
        if cfg.tensor.sparsity and self.reverse:
            failed = Signal()  # an element of the command before this one
            m.d.comb += [
                entry.tagged.eq(waiting.kind == Kind.SPARSE),
                entry.phase.eq(last_phase([waiting.pattern[f"count{i}"] for i in range(DIMENSIONS)])),
                tags.quadrants.eq(quadrants),
                tags.data.eq(elements.data),
                tags.take.eq(sent & head.tagged),
                tags.first.eq(~began),
                tags.phase.eq(head.phase),
                tags.sparsity.eq(head.mode[7:]),
                tags.active.eq(head.active),
                self.tags.eq(tags.tags),
                self.failed.eq(head.tagged & (failed | tags.wrong)),
            ]
            with m.If(sent):
                m.d.sync += failed.eq(self.failed & ~self.last)
        return m

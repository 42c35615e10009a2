"""What the feeds of all row groups have in common: commands, reading ahead, beats of elements, scales and tags."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.memory_port import QUADRANTS, sbuf_word_bits
from rtl.base.pattern import partition_mask
from rtl.base.pick import pick
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.kinds import SCALE_ROWS, Kind, group_bytes, kinds_of, moving_bytes
from rtl.contract.sparsity import PATTERNS, TAG_BITS
from rtl.tensor.feed_command import COMMANDS, MAP_BITS, ORDER_BITS, feed_command
from rtl.tensor.fp4_map import fp4_map
from rtl.tensor.ports import MODE_BITS
from rtl.tensor.read_ahead import PICK_BITS, ReadAhead
from rtl.tensor.scale_feed import ScaleFeed, scale_lanes
from rtl.tensor.tag_feed import PHASE_BITS, TagFeed, last_phase

__all__ = ["RowFeed", "feed_ports"]


def feed_ports(cfg: Config) -> dict[str, wiring.Member]:
    """Ports of a Feed, all but that to SBUF."""
    rows = cfg.tensor.rows // cfg.tensor.groups
    return {
        "command": In(stream.Signature(feed_command())),
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


class RowFeed(wiring.Component):
    """A Feed, but for what it takes from the answers of SBUF: converted once, placed for each row group.

    `group`: which one this is, a constant. `asks`: quadrants of SBUF that are to give the word `word`; with `ready`
    they do, and in the next cycle `rows` is that word of each row of the group. If `scales_come` then, it is a word of
    scales, and `scale_words` those of the partitions that scale_places(cfg, group) lists under `scale_pick`.
    All else as Feed has it.
    """

    def __init__(self, cfg: Config, *, reverse: bool = False):
        self.cfg = cfg
        self.reverse = reverse
        rows = cfg.tensor.rows // cfg.tensor.groups
        super().__init__(
            {
                **feed_ports(cfg),
                "group": In(range(max(2, cfg.tensor.groups))),
                "asks": Out(QUADRANTS),
                "word": Out(sbuf_word_bits(cfg)),
                "ready": In(1),
                "rows": In(64 * rows),
                "scales_come": Out(1),
                "scale_pick": Out(PICK_BITS),
                "scale_words": In(64 * scale_lanes(cfg)),
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
        mx = cfg.tensor.mx
        e2m1, e4m3fn = FORMATS["e2m1"].code, FORMATS["e4m3fn"].code
        about = data.StructLayout(
            {"active": rows, "mode": MODE_BITS, "scaled": 1, "tagged": 1, "phase": PHASE_BITS}
            | {"mapped": 1, "map": MAP_BITS if mx else 0}
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
        mine = Signal(rows)
        with m.Switch(self.group):
            for group in range(cfg.tensor.groups):
                first = group * rows
                of_quadrant = [[r for r in range(rows) if (first + r) // size == q] for q in range(QUADRANTS)]
                with m.Case(group):
                    m.d.comb += [
                        mine.eq(partition_mask(start, count, cfg.tensor.rows)[first : first + rows]),
                        quadrants.eq(Cat(Cat(mine[r] for r in of_quadrant[q]).any() for q in range(QUADRANTS))),
                    ]
        m.d.comb += [
            into_walker.eq(is_waiting & prepared & commands.i.ready),
            self.command.ready.eq(~is_waiting),
            elements.pattern.eq(waiting.pattern),
            elements.size.eq(self._size(m, waiting)),
            elements.quadrants.eq(quadrants),
            elements.prepare.eq(is_waiting),
            elements.start.eq(into_walker),
            entry.active.eq(mine),
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
            m.submodules.scales = scales = ScaleFeed(cfg, reverse=self.reverse)
            beside.append((scales, entry.scaled, head.scaled))
        if cfg.tensor.sparsity and self.reverse:
            m.submodules.tags = tags = TagFeed(cfg, rows)
            beside.append((tags, entry.tagged, head.tagged))
        ready = ((one.prepared & one.ready) | ~has for one, has, _ in beside)
        m.d.comb += prepared.eq(Cat(elements.prepared, elements.ready, *ready).all())

        # reads: the first that asks
        readers = [*(one for one, _, _ in beside), elements]
        granted = Signal()
        turn = Signal(len(readers))
        arrived = Signal(len(readers))
        m.d.sync += arrived.eq(Mux(granted, turn, 0))
        m.d.comb += [
            granted.eq(turn.any() & (self.ready | ~self.asks.any())),
            elements.data.eq(self.rows),
            self.refused.eq(self.asks.any() & ~self.ready),
        ]
        for n, reader in reversed(list(enumerate(readers))):
            with m.If(reader.ask):
                m.d.comb += [turn.eq(1 << n), self.asks.eq(reader.asks), self.word.eq(reader.word)]
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
                scales.group.eq(self.group),
                scales.data.eq(self.scale_words),
                self.scales_come.eq(scales.arrived),
                self.scale_pick.eq(scales.picked),
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

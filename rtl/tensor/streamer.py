"""Moving feed: the columns of a MULTIPLY_MOVING, one a cycle, the first with the swap of weights."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.contract.config import Config
from rtl.contract.timing import MATMUL_MIN_CYCLES, STALLS, Engine
from rtl.tensor.feed import Feed
from rtl.tensor.feed_command import ORDER_BITS, feed_command
from rtl.tensor.gang import is_first, is_last
from rtl.tensor.guard import Guard
from rtl.tensor.ports import moving_beat

__all__ = ["Streamer"]

_STALLS = STALLS[Engine.TENSOR]


class Streamer(wiring.Component):
    """Sends a row group's beats of one stream after another without a gap.

    `target` comes with the command to the last group of its tile only, where the sums leave.
    `loads`: how many loads have been sent so far; a stream that swaps waits until that is its `awaits`.
    `willing`, `go`, `ticket`, `tile`: as those of the Loader.
    `beat` is 1 in every cycle in which a moving beat enters, `swapped` when it carries a swap. `state`
    is for dispatch.EngineStatusSignature and has a meaning while `holds`.
    Timing: a beat a cycle; first beats are at least MATMUL_MIN_CYCLES apart; the swap beat may follow
    the last beat of its load in the next cycle.
    """

    def __init__(self, cfg: Config, group: int = 0):
        self.cfg = cfg
        self.group = group
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "target": In(stream.Signature(PATTERN_LAYOUT)),
                "sbuf": Out(SbufReadSignature(cfg)),
                "beats": Out(moving_beat(cfg)).array(QUADRANTS // cfg.tensor.groups),
                "loads": In(ORDER_BITS),
                "willing": Out(1),
                "go": In(1),
                "ticket": Out(8),
                "tile": Out(2),
                "beat": Out(1),
                "swapped": Out(1),
                "holds": Out(1),
                "state": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feed = feed = Feed(self.cfg, self.group)
        m.submodules.guard = guard = Guard(self.cfg)
        connect(m, flipped(self.target), guard.command)
        connect(m, flipped(self.command), feed.command)
        connect(m, feed.sbuf, flipped(self.sbuf))

        since = Signal(range(MATMUL_MIN_CYCLES), init=MATMUL_MIN_CYCLES - 1)  # cycles after a first beat
        loaded = Signal()
        spaced = Signal()
        last = is_last(self.cfg, feed.tile, self.group)
        swap = Signal()
        m.d.comb += [
            loaded.eq(~feed.swap | (self.loads == feed.awaits) | fault("a stream does not wait for its load")),
            spaced.eq(since == MATMUL_MIN_CYCLES - 1),
            self.willing.eq(feed.valid & ~(guard.blocked & last) & (~feed.first | (loaded & spaced))),
            self.ticket.eq(feed.ticket),
            self.tile.eq(feed.tile),
            guard.step.eq(self.beat & last),
            feed.take.eq(self.go),
            swap.eq(feed.first & feed.swap),
            self.beat.eq(self.go),
            self.swapped.eq(self.beat & swap),
            self.holds.eq(feed.holds),
        ]
        with m.If(self.beat & feed.first):
            m.d.sync += since.eq(0)
        with m.Elif(~spaced):
            m.d.sync += since.eq(since + 1)

        load = 2 + _STALLS.index("load")
        sbuf = 2 + _STALLS.index("sbuf")
        fill = 2 + _STALLS.index("fill")
        waits_for_load = feed.started & feed.first & ~loaded
        # within a stream SBUF is the reason, or rarely the guard
        late = feed.refused | (~feed.first & ~feed.valid)
        m.d.comb += self.state.eq(Mux(self.beat, 0, Mux(waits_for_load, load, Mux(late, sbuf, fill))))

        rows = self.cfg.tensor.rows // QUADRANTS
        for q, beat in enumerate(self.beats):
            m.d.comb += [
                beat.valid.eq(self.beat),
                beat.mode.eq(feed.mode),
                beat.scale.eq(feed.scale[8 * q * rows : 8 * (q + 1) * rows]),
                beat.ticket.eq(feed.ticket),
                beat.swap.eq(swap & ~fault("the first beat carries no swap")),
                beat.head.eq(is_first(self.cfg, feed.tile, self.group) if q == 0 else 0),
                beat.tail.eq(last if q == len(self.beats) - 1 else 0),
                beat.active.eq(feed.active[q * rows : (q + 1) * rows]),
                beat.data.eq(feed.data[64 * q * rows : 64 * (q + 1) * rows]),
            ]
        return m

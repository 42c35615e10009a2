"""Moving feed: the columns of a MULTIPLY_MOVING, one a cycle, the first with the swap of weights."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.timing import MATMUL_MIN_CYCLES, STALLS, Engine
from rtl.tensor.feed import ORDER_BITS, Feed, feed_command
from rtl.tensor.guard import Guard
from rtl.tensor.ports import moving_beat

__all__ = ["Streamer"]

_STALLS = STALLS[Engine.TENSOR]


class Streamer(wiring.Component):
    """Sends the beats of one stream after another without a gap.

    `loads`: how many loads have been sent so far; a stream that swaps waits until that is its `awaits`.
    `beat` is 1 in every cycle in which a moving beat enters, `swapped` when it carries a swap. `state`
    is for dispatch.EngineStatusSignature and has a meaning while `holds`.
    Timing: a beat a cycle; first beats are at least MATMUL_MIN_CYCLES apart; the swap beat may follow
    the last beat of its load in the next cycle.
    """

    FAULTS = {
        **Feed.FAULTS,
        **Guard.FAULTS,
        31: "a stream does not wait for its load",
        32: "the first beat carries no swap",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "target": In(stream.Signature(PATTERN_LAYOUT)),  # with command
                "sbuf": Out(SbufReadSignature(cfg)),
                "beats": Out(moving_beat(cfg)).array(QUADRANTS),
                "loads": In(ORDER_BITS),
                "beat": Out(1),
                "swapped": Out(1),
                "holds": Out(1),
                "state": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feed = feed = Feed(self.cfg, plant=self.plant)
        m.submodules.guard = guard = Guard(self.cfg, plant=self.plant)
        connect(m, flipped(self.target), guard.command)
        connect(m, flipped(self.command), feed.command)
        connect(m, feed.sbuf, flipped(self.sbuf))

        since = Signal(range(MATMUL_MIN_CYCLES), init=MATMUL_MIN_CYCLES - 1)  # cycles after a first beat
        loaded = Signal()
        spaced = Signal()
        go = Signal()
        swap = Signal()
        m.d.comb += [
            loaded.eq(~feed.swap | (self.loads == feed.awaits) | planted(self.plant, 31)),
            spaced.eq(since == MATMUL_MIN_CYCLES - 1),
            go.eq(~guard.blocked & (~feed.first | (loaded & spaced))),
            guard.step.eq(self.beat),
            feed.take.eq(go),
            swap.eq(feed.first & feed.swap),
            self.beat.eq(feed.valid & go),
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
        for q in range(QUADRANTS):
            beat = self.beats[q]
            m.d.comb += [
                beat.valid.eq(self.beat),
                beat.mode.eq(feed.dtype),
                beat.ticket.eq(feed.sequence),
                beat.swap.eq(swap & ~planted(self.plant, 32)),
                beat.head.eq(q == 0),
                beat.tail.eq(q == QUADRANTS - 1),
                beat.active.eq(feed.active[q * rows : (q + 1) * rows]),
                beat.data.eq(feed.data[64 * q * rows : 64 * (q + 1) * rows]),
            ]
        return m

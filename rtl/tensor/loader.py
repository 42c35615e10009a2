"""Stationary feed: the columns of a LOAD_STATIONARY, last column first, into the shadow plane."""

from amaranth.hdl import Module, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.tensor.feed import ORDER_BITS, Feed, feed_command
from rtl.tensor.ports import stationary_beat

__all__ = ["Loader"]


class Loader(wiring.Component):
    """Sends the beats of one load after another, each as soon as the weights before it have been taken.

    `swaps`: how many swaps have entered the array so far; a load whose `awaits` differs waits, so that
    no stream loses its weights. `swapping`: one enters in this cycle. `sent` pulses with the last beat.
    Timing: a beat a cycle; the first may enter beside the swap beat: a PE that meets both takes the old
    shadow weight into use before the new one replaces it.
    """

    FAULTS = {
        **Feed.FAULTS,
        21: "a load does not wait for the stream that needs the weights before it",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "sbuf": Out(SbufReadSignature(cfg)),
                "beats": Out(stationary_beat(cfg)).array(QUADRANTS),
                "swaps": In(ORDER_BITS),
                "swapping": In(1),
                "sent": Out(1),
                "holds": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feed = feed = Feed(self.cfg, reverse=True, plant=self.plant)
        connect(m, flipped(self.command), feed.command)
        connect(m, feed.sbuf, flipped(self.sbuf))
        go = Signal()
        taken = Signal(ORDER_BITS)
        m.d.comb += [
            taken.eq(self.swaps + self.swapping),
            go.eq((taken == feed.awaits) | planted(self.plant, 21)),
            feed.take.eq(go),
            self.sent.eq(feed.valid & go & feed.last),
            self.holds.eq(feed.holds),
        ]
        rows = self.cfg.tensor.rows // QUADRANTS
        for q in range(QUADRANTS):
            beat = self.beats[q]
            m.d.comb += [
                beat.valid.eq(feed.valid & go),
                beat.mode.eq(feed.mode),
                beat.scale.eq(feed.scale[8 * q * rows : 8 * (q + 1) * rows]),
                beat.active.eq(feed.active[q * rows : (q + 1) * rows]),
                beat.data.eq(feed.data[64 * q * rows : 64 * (q + 1) * rows]),
            ]
        return m

"""Stationary feed: the columns of a LOAD_STATIONARY, last column first, into the shadow plane."""

from amaranth.hdl import Module, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.sparsity import TAG_BITS
from rtl.tensor.feed import ORDER_BITS, Feed, feed_command
from rtl.tensor.gang import is_first, is_last
from rtl.tensor.ports import stationary_beat

__all__ = ["Loader"]


class Loader(wiring.Component):
    """Sends a row group's beats of one load after another, each as soon as the weights before it have been taken.

    `swaps`: how many swaps have entered the group so far; a load whose `awaits` differs waits, so that
    no stream loses its weights. `swapping`: one enters in this cycle. `willing`: its next beat may enter, if that
    of all other groups of the tile may: `go` (rtl.tensor.gang). `ticket`, `tile`: what that beat belongs to.
    `sent` pulses with the last beat, `ended` too if no group of the tile lies south of this one; `failed` then: tags of
    this group or of those above it (`failed_above`), as far as they are of the tile, are wrong.
    Timing: a beat a cycle; the first may enter beside the swap beat: a PE that meets both takes the old
    shadow weight into use before the new one replaces it.
    """

    FAULTS = {
        **Feed.FAULTS,
        21: "a load does not wait for the stream that needs the weights before it",
        63: "wrong tags of a row group north of the last one are not told",
    }

    def __init__(self, cfg: Config, group: int = 0, plant: ValueLike = 0):
        self.cfg = cfg
        self.group = group
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(feed_command())),
                "sbuf": Out(SbufReadSignature(cfg)),
                "beats": Out(stationary_beat(cfg)).array(QUADRANTS // cfg.tensor.groups),
                "swaps": In(ORDER_BITS),
                "swapping": In(1),
                "willing": Out(1),
                "go": In(1),
                "ticket": Out(8),
                "tile": Out(2),
                "failed_above": In(1),
                "sent": Out(1),
                "ended": Out(1),
                "failed": Out(1),
                "holds": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feed = feed = Feed(self.cfg, self.group, reverse=True, plant=self.plant)
        connect(m, flipped(self.command), feed.command)
        connect(m, feed.sbuf, flipped(self.sbuf))
        taken = Signal(ORDER_BITS)
        m.d.comb += [
            taken.eq(self.swaps + self.swapping),
            self.willing.eq(feed.valid & ((taken == feed.awaits) | planted(self.plant, 21))),
            self.ticket.eq(feed.ticket),
            self.tile.eq(feed.tile),
            feed.take.eq(self.go),
            self.sent.eq(self.go & feed.last),
            self.ended.eq(self.sent & is_last(self.cfg, feed.tile, self.group)),
            self.failed.eq(
                feed.failed
                | (self.failed_above & ~is_first(self.cfg, feed.tile, self.group) & ~planted(self.plant, 63))
            ),
            self.holds.eq(feed.holds),
        ]
        rows = self.cfg.tensor.rows // QUADRANTS
        for q, beat in enumerate(self.beats):
            m.d.comb += [
                beat.valid.eq(self.go),
                beat.mode.eq(feed.mode),
                beat.scale.eq(feed.scale[8 * q * rows : 8 * (q + 1) * rows]),
                beat.tags.eq(feed.tags[TAG_BITS * q * rows : TAG_BITS * (q + 1) * rows]),
                beat.active.eq(feed.active[q * rows : (q + 1) * rows]),
                beat.data.eq(feed.data[64 * q * rows : 64 * (q + 1) * rows]),
            ]
        return m

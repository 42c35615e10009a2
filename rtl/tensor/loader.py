"""Stationary feed: columns of a LOAD_STATIONARY or TENSOR_TRANSPOSE, last one first, to the shadow plane; shifts."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS, SbufReadSignature
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import TAG_BITS
from rtl.tensor.feed import Feed
from rtl.tensor.feed_command import ORDER_BITS, feed_command
from rtl.tensor.gang import is_first, is_last
from rtl.tensor.ports import stationary_beat

__all__ = ["Loader"]


class Loader(wiring.Component):
    """Sends a row group's beats of one load after another, each as soon as the weights before it have been taken.

    `swaps`: how many swaps have entered the group so far; a load whose `awaits` differs waits, so that
    no stream loses its weights. `swapping`: one enters in this cycle. `willing`: its next beat may enter, if that
    of all other groups of the tile may: `go` (rtl.tensor.gang). `ticket`, `tile`: what that beat belongs to.
    `sent` pulses with the last beat, `ended` too, of a load, if no group of the tile lies south of this one.
    `failed` then: tags of this group or of those above it (`failed_above`), as far as they are of the tile, are wrong.
    Behind the columns of a TENSOR_TRANSPOSE come as many shifts as the tile has rows; of the rows that leave, those
    of the operand have a tail. 16 bits are the upper half of a raw word.
    Timing: a beat a cycle; the first may enter beside the swap beat: a PE that meets both takes the old
    shadow weight into use before the new one replaces it.
    """

    def __init__(self, cfg: Config, group: int = 0):
        self.cfg = cfg
        self.group = group
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
        m.submodules.feed = feed = Feed(self.cfg, self.group, reverse=True)
        connect(m, flipped(self.command), feed.command)
        connect(m, feed.sbuf, flipped(self.sbuf))
        taken = Signal(ORDER_BITS)
        every = self.cfg.tensor.rows
        raw = feed.mode[4:7] == Kind.RAW
        turning = Signal()  # the columns are there, their rows leave
        turned = Signal(data.StructLayout({"ticket": 8, "tile": 2, "start": 8, "count": 8}))
        row = Signal(range(every))  # of the tile, which leaves with the next shift
        leaves = Signal()
        m.d.comb += [
            taken.eq(self.swaps + self.swapping),
            self.willing.eq(
                turning
                | (
                    feed.valid
                    & (
                        (taken == feed.awaits)
                        | fault("a load does not wait for the stream that needs the weights before it")
                    )
                )
            ),
            self.ticket.eq(Mux(turning, turned.ticket, feed.ticket)),
            self.tile.eq(Mux(turning, turned.tile, feed.tile)),
            feed.take.eq(self.go & ~turning),
            self.sent.eq(self.go & Mux(turning, row == 0, feed.last & ~raw)),
            self.ended.eq(self.sent & ~turning & is_last(self.cfg, feed.tile, self.group)),
            self.failed.eq(
                feed.failed
                | (
                    self.failed_above
                    & ~is_first(self.cfg, feed.tile, self.group)
                    & ~fault("wrong tags of a row group north of the last one are not told")
                )
            ),
            self.holds.eq(feed.holds | turning),
        ]
        most = (Const(every - 1, row.shape()) >> feed.tile) - fault("a transpose shifts once too little")
        first = turned.start & (Const(every - 1, row.shape()) >> turned.tile)
        inside = (row >= first) & (row < first + turned.count)
        m.d.comb += leaves.eq(
            (inside | fault("rows outside the operand of a transpose leave too"))
            & is_last(self.cfg, self.tile, self.group)
        )
        with m.If(self.go & turning):
            m.d.sync += [row.eq(row - 1), turning.eq(row != 0)]
        with m.Elif(self.go & feed.last & raw):
            m.d.sync += [turning.eq(1), row.eq(most)]
            m.d.sync += [turned[name].eq(getattr(feed, name)) for name in ("ticket", "tile", "start", "count")]
        rows = self.cfg.tensor.rows // QUADRANTS
        words = Signal.like(feed.data)
        m.d.comb += words.eq(feed.data)
        with m.If(
            raw & (feed.mode[:4] != FORMATS["fp32"].code) & ~fault("16 bits of a transpose stay in the lower half")
        ):
            whole = range(0, len(words), 64)
            m.d.comb += words.eq(Cat(Cat(Const(0, 16), feed.data[at : at + 16], Const(0, 32)) for at in whole))
        for q, beat in enumerate(self.beats):
            m.d.comb += [
                beat.valid.eq(self.go),
                beat.mode.eq(feed.mode),
                beat.scale.eq(feed.scale[8 * q * rows : 8 * (q + 1) * rows]),
                beat.tags.eq(feed.tags[TAG_BITS * q * rows : TAG_BITS * (q + 1) * rows]),
                beat.active.eq(feed.active[q * rows : (q + 1) * rows]),
                beat.ticket.eq(self.ticket),
                beat.shift.eq(turning),
                beat.head.eq(turning & is_first(self.cfg, self.tile, self.group) & (not q)),
                beat.tail.eq(turning & leaves if q == len(self.beats) - 1 else 0),
                beat.data.eq(words[64 * q * rows : 64 * (q + 1) * rows]),
            ]
        return m

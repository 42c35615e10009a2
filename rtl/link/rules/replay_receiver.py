"""Which payload flit fits: the receiving half of go-back-N replay."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.contract.link_config import LinkConfig
from rtl.link.rules.replay_sender import NAK_ID_BITS

__all__ = ["ReplayReceiver"]


class ReplayReceiver(wiring.Component):
    """Accepts payload flits in order. `ack` is the number of the last one; `pending`: a gap waits for its replay.

    A flit ahead of what fits, or another one that states a number ahead, is a gap: if it was sent under the newest
    nak id (its epoch), the nak id moves on. What was sent before the nak was heard asks for nothing.
    Timing: `deliver` to `spurious` are combinational with `good`, the others registers.
    """

    def __init__(self, cfg: LinkConfig):
        bits = ceil_log2(cfg.sequence_numbers)
        self.unanswered = Signal()  # no payload flit has been heard under the newest nak id
        super().__init__(
            {
                "clear": In(1),
                "good": In(1),
                "is_payload": In(1),
                "seq": In(bits),
                "epoch": In(NAK_ID_BITS),
                "room": In(1),
                "deliver": Out(1),
                "overrun": Out(1),
                "duplicate": Out(1),
                "gap": Out(1),
                "spurious": Out(1),
                "ack": Out(bits),
                "nak_id": Out(NAK_ID_BITS),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ahead = Signal.like(self.ack)
        payload, fits, new, answer = Signal(), Signal(), Signal(), Signal()
        wrong = (fault("a flit that was accepted before is accepted again") & ahead.all()) | (
            fault("a flit ahead of the sequence is accepted") & (ahead == 1)
        )
        m.d.comb += [
            payload.eq(self.good & self.is_payload),
            ahead.eq(self.seq - self.ack - self.is_payload),
            fits.eq(payload & ((ahead == 0) | wrong)),
            self.deliver.eq(fits & (self.room | fault("a flit without room is accepted"))),
            self.overrun.eq(fits & ~self.room & ~fault("a flit without room is accepted")),
            new.eq((self.epoch == self.nak_id) | fault("the epoch is ignored: every gap is a nak")),
            self.gap.eq(
                self.good
                & (ahead != 0)
                & ~ahead[-1]
                & ~fits
                & new
                & ~(fault("a NOP ahead of the sequence is no gap") & ~self.is_payload)
            ),
            self.duplicate.eq(payload & ahead[-1] & ~fits),
            answer.eq(payload & (self.epoch == self.nak_id) & self.unanswered),
            self.spurious.eq(self.duplicate & answer),
        ]
        with m.If(answer):
            m.d.sync += self.unanswered.eq(0)
        with m.If(self.deliver):
            m.d.sync += [
                self.ack.eq(self.seq),
                self.pending.eq(self.pending & fault("a gap once filled stays pending")),
            ]
        with m.If(self.gap):
            m.d.sync += [self.nak_id.eq(self.nak_id + 1), self.pending.eq(1), self.unanswered.eq(1)]
        with m.If(self.clear):
            m.d.sync += [self.ack.eq(0), self.nak_id.eq(0), self.pending.eq(0), self.unanswered.eq(0)]
        return m

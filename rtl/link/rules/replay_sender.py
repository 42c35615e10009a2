"""Which payload flit goes next, and which ones have to be kept: the sending half of go-back-N replay."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.contract.link import REPEAT_FLITS
from rtl.contract.link_config import LinkConfig

__all__ = ["NAK_ID_BITS", "ReplaySender", "buffer_slots"]

NAK_ID_BITS = 2


def buffer_slots(cfg: LinkConfig) -> int:
    """Slots of the retry buffer: the window, rounded up to a power of two so that a number's low bits name its slot."""
    return max(2, 1 << ceil_log2(cfg.window_flits))


class ReplaySender(wiring.Component):
    """Numbers of payload flits, modulo cfg.sequence_numbers: `acked` the last one known to be accepted, `pos` goes
    next, `fresh` the first never sent, `next` the one a new flit gets.

    A good flit of the partner frees up to `ack`; a nak id that is the epoch + 1 (or another one, more than
    REPEAT_FLITS good flits in a row) becomes the epoch and sends everything after `acked` again.
    `left` is `in_flight` with what this cycle acknowledges and puts in.
    Timing: `seq`, `payload`, `index`, `epoch`, `room` come from registers (and `may`), the strobes are
    combinational with `heard`. A flit that starts in the cycle of `heard` is from before it.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        bits = ceil_log2(cfg.sequence_numbers)
        # seen by proofs too
        self.next = Signal(bits, init=1)
        self.acked = Signal(bits)
        self.pos = Signal(bits, init=1)
        self.fresh = Signal(bits, init=1)
        super().__init__(
            {
                "clear": In(1),
                "enqueue": In(1),
                "room": Out(1),
                "put_index": Out(range(buffer_slots(cfg))),
                "slot": In(1),
                "may": In(1),
                "payload": Out(1),
                "seq": Out(bits),
                "index": Out(range(buffer_slots(cfg))),
                "epoch": Out(NAK_ID_BITS),
                "heard": In(1),
                "ack": In(bits),
                "nak_id": In(NAK_ID_BITS),
                "in_flight": Out(bits),
                "left": Out(bits),
                "moved": Out(1),
                "bad_ack": Out(1),
                "replay": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        next_, acked, pos, fresh = self.next, self.acked, self.pos, self.fresh
        bits = len(pos)
        unsent, gained, outstanding, before = (
            Signal(bits, name=n) for n in ("unsent", "gained", "outstanding", "before")
        )
        pos_sent, fresh_sent = Signal(bits), Signal(bits)  # after the flit that starts now
        acked_heard, pos_heard = Signal(bits), Signal(bits)  # after the flit that is heard now, too
        unlike = Signal(
            range(REPEAT_FLITS + 1)
        )  # flits in a row whose nak id is neither the epoch nor the one after it
        ahead = Signal(NAK_ID_BITS)
        window = self.cfg.window_flits

        m.d.comb += [
            self.in_flight.eq(next_ - 1 - acked),
            unsent.eq(next_ - fresh),
            self.room.eq((self.in_flight < window + fault("the window is one flit too wide")) & (unsent < 2)),
            self.payload.eq(self.may & (pos != next_)),
            self.seq.eq(
                Mux(self.payload, pos, Mux(fault("a NOP states the highest number that was ever sent"), fresh, pos) - 1)
            ),
            self.index.eq(pos),
            self.put_index.eq(next_),
            pos_sent.eq(pos),
            fresh_sent.eq(fresh),
        ]
        with m.If(self.slot & self.payload):
            m.d.comb += pos_sent.eq(pos + 1)
            with m.If(pos == fresh):
                m.d.comb += fresh_sent.eq(fresh + 1)
        with m.If(self.enqueue):
            m.d.sync += next_.eq(next_ + 1)

        m.d.comb += [
            gained.eq(self.ack - acked),
            outstanding.eq(fresh_sent - 1 - acked),
            before.eq(pos_sent - 1 - acked),
            self.moved.eq(
                self.heard
                & (gained != 0)
                & (
                    (gained <= outstanding)
                    | (fault("an acknowledgement of what was never sent is believed") & ~gained[-1])
                )
            ),
            self.bad_ack.eq(self.heard & (gained > outstanding) & ~gained[-1]),
            acked_heard.eq(Mux(self.moved, self.ack, acked)),
            self.left.eq(next_ + self.enqueue - 1 - acked_heard),
            ahead.eq(self.nak_id - self.epoch),
            self.replay.eq(
                self.heard
                & (
                    (ahead == 1)
                    | ((ahead != 0) & ((unlike == REPEAT_FLITS) | fault("any nak id but the epoch is obeyed at once")))
                )
            ),
            pos_heard.eq(pos_sent),
        ]
        with m.If(self.replay & ~fault("a nak does not send again")):
            m.d.comb += pos_heard.eq(acked_heard + 1)
        with m.Elif(self.moved & (gained > before) & ~fault("an acknowledgement does not move the position past it")):
            m.d.comb += pos_heard.eq(self.ack + 1)
        with m.If(self.replay):
            m.d.sync += self.epoch.eq(self.nak_id)
        with m.If(self.heard):
            m.d.sync += unlike.eq(Mux((ahead != 0) & ~self.replay, unlike + 1, 0))
        m.d.sync += [pos.eq(pos_heard), fresh.eq(fresh_sent), acked.eq(acked_heard)]

        with m.If(self.clear):
            m.d.sync += [next_.eq(1), acked.eq(0), pos.eq(1), fresh.eq(1), self.epoch.eq(0), unlike.eq(0)]
        return m

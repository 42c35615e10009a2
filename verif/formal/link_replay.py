"""Replay of one direction: a sender and a receiver of 8 numbers, a FIFO each way in which any flit may be lost.

In every cycle anything may happen. Payload is one of three colours, kept in a retry buffer: any number of white, one
red, one blue, white again, the moment chosen by the prover; it must be delivered as it entered, which shows a loss, a
repeat or a change of order anywhere in the stream. What is acknowledged was delivered, no duplicate comes and no replay
is for nothing. After `CALM` cycles without loss in which both ends send and hear all the time, nothing waits any more.
"""

import dataclasses

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.contract.link_config import LINKS
from rtl.link.rules.replay_receiver import ReplayReceiver
from rtl.link.rules.replay_sender import ReplaySender
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "ReplayProof"]

_CFG = dataclasses.replace(LINKS["x8"], sequence_numbers=8, window_flits=3)
DEPTH = 1
CALM = 14


class _Wire:
    """Up to DEPTH flits; the oldest one is heard or lost, then one may enter."""

    def __init__(self, m: Module, name: str, width: int, enter: Value, flit: Value, leave: Value):
        flits = [Signal(width, name=f"{name}_{n}") for n in range(DEPTH)]
        self.old = flits[0]
        self.level = Signal(range(DEPTH + 1), name=f"{name}_level")
        left = Signal(range(DEPTH + 1), name=f"{name}_left")
        self.room = left != DEPTH
        m.d.comb += left.eq(self.level - (leave & (self.level != 0)))
        with m.If(leave):
            m.d.sync += [young.eq(older) for young, older in zip(flits, flits[1:])]
        for n, place in enumerate(flits):
            with m.If(enter & (left == n)):
                m.d.sync += place.eq(flit)
        m.d.sync += self.level.eq(left + (enter & self.room))


class ReplayProof(wiring.Component):
    """Both units with the wires between them."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sender = sender = ReplaySender(_CFG)
        m.submodules.receiver = receiver = ReplayReceiver(_CFG)
        without_reset(m)
        bits = len(sender.seq)
        calm = Signal()  # nothing is lost, and everything moves
        send, answer, keep_there, keep_back, leave_there, leave_back = (Signal(name=f"any_{n}") for n in range(6))
        m.d.comb += [
            calm.eq(AnySeq(1)),
            sender.enqueue.eq(AnySeq(1) & sender.room & ~calm),
            sender.may.eq(AnySeq(1) | calm),
            *(s.eq(AnySeq(1) | calm) for s in (send, answer, keep_there, keep_back, leave_there, leave_back)),
            receiver.room.eq(1),
        ]

        # the colours that enter, and those that came out: white before, red out, blue out
        colour, entered, came = Signal(2), Signal(2), Signal(2)
        slots = [Signal(2, name=f"slot_{n}") for n in range(1 << len(sender.index))]
        m.d.comb += colour.eq(Mux(entered == 0, AnySeq(1), Mux(entered == 1, 2, 0)))
        with m.If(sender.enqueue):
            m.d.sync += [
                Array(slots)[sender.put_index].eq(colour),
                entered.eq(Mux(entered == 0, colour, 2)),
            ]

        # there: payload, seq, epoch and the colour
        there = _Wire(
            m,
            "there",
            1 + bits + 2 + 2,
            send,
            Cat(sender.payload, sender.seq, sender.epoch, Array(slots)[sender.index]),
            leave_there,
        )
        m.d.comb += sender.slot.eq(send & there.room)
        heard = leave_there & keep_there & (there.level != 0)
        out = there.old[1 + bits + 2 :]
        m.d.comb += [
            receiver.good.eq(heard),
            Cat(receiver.is_payload, receiver.seq, receiver.epoch).eq(there.old),
        ]
        with m.If(receiver.deliver):
            m.d.comb += Assert(out == Mux(came == 0, out[0], Mux(came == 1, 2, 0)))
            m.d.sync += came.eq(Mux(came == 0, out, 2))

        # back: ack and nak id
        back = _Wire(m, "back", bits + 2, answer, Cat(receiver.ack, receiver.nak_id), leave_back)
        m.d.comb += [
            sender.heard.eq(leave_back & keep_back & (back.level != 0)),
            Cat(sender.ack, sender.nak_id).eq(back.old),
        ]

        # for covers alone: once a nak was lost on its way; once a flit that was sent again was
        nak_lost, resent_lost, replayed = Signal(), Signal(), Signal()
        with m.If(leave_back & ~keep_back & (back.level != 0) & (back.old[bits:] != sender.epoch)):
            m.d.sync += nak_lost.eq(1)
        with m.If(sender.replay):
            m.d.sync += replayed.eq(1)
        with m.If(leave_there & ~keep_there & (there.level != 0) & there.old[0] & replayed):
            m.d.sync += resent_lost.eq(1)

        quiet = Signal(range(CALM + 1))
        m.d.sync += quiet.eq(Mux(calm, Mux(quiet == CALM, CALM, quiet + 1), 0))
        m.d.comb += [
            Assert((receiver.ack - sender.acked)[:bits] <= sender.in_flight),
            Assert(sender.in_flight <= _CFG.window_flits),
            Assert(~receiver.duplicate),
            Assert(~receiver.spurious),
            Assert(~receiver.overrun),
            Assert(~sender.bad_ack),
            Assert((quiet != CALM) | (sender.in_flight == 0)),
            Cover(receiver.gap & receiver.is_payload),
            Cover(receiver.gap & ~receiver.is_payload),
            Cover(receiver.gap & receiver.pending),
            Cover(sender.replay & (sender.in_flight == _CFG.window_flits)),
            Cover(sender.replay & sender.slot & sender.payload & sender.moved),
            Cover(sender.in_flight == _CFG.window_flits),
            Cover((receiver.ack == 1) & (came == 2) & (sender.in_flight == 0)),
            Cover((quiet == CALM) & (came == 2)),
            Cover(receiver.good & receiver.is_payload & receiver.pending & (receiver.epoch != receiver.nak_id)),
            Cover(sender.heard & (sender.ack - sender.acked == _CFG.window_flits)),
            Cover(sender.replay & nak_lost),
            Cover(sender.replay & resent_lost),
        ]
        return m


PROOFS = (
    Proof(
        name="link_replay",
        make=ReplayProof,
        engine="abc pdr",
        states=True,
        depth=1,
        cover_depth=18,
        fault_depth=14,
        # those that a link without repeats shows within a few cycles; the bench plants all
        faults=(
            "the window is one flit too wide",
            "a NOP states the highest number that was ever sent",
            "the epoch is ignored: every gap is a nak",
            "a flit ahead of the sequence is accepted",
        ),
    ),
)

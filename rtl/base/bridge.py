"""Between the root clock and an engine that runs on some of its edges."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.clock_gate import ClockGate
from rtl.base.dispatch import OPCODE_BITS, EngineSignature
from rtl.base.fault import fault
from rtl.base.memory_port import PsumReadSignature, PsumWriteSignature, SbufReadSignature, SbufWriteSignature
from rtl.contract.config import Config

__all__ = ["Bridge", "ReadHold"]


class ReadHold(wiring.Component):
    """Keeps read data, on the port for one root cycle, until the engine's next edge takes them.

    Timing: `held` shows the data from the root cycle after `data_valid` on; with `bypass`, needed if the
    engine's edges can be one root cycle apart, in the very cycle too.
    """

    def __init__(self, width: int, *, bypass: bool):
        self.bypass = bypass
        super().__init__({"data": In(width), "data_valid": In(1), "held": Out(width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = Signal.like(self.data, reset_less=True)
        # on a clock of its own: what an engine makes of the data costs a simulator nothing while none come
        m.domains.taken = ClockDomain(local=True, reset_less=True)
        m.submodules.gate = gate = ClockGate()
        m.d.comb += [gate.enable.eq(self.data_valid), ClockSignal("taken").eq(gate.gated)]
        m.d.taken += kept.eq(self.data)
        at_once = (self.data_valid if self.bypass else 0) | fault("read data are not held until the engine's edge")
        m.d.comb += self.held.eq(Mux(at_once, self.data, kept))
        return m


class Bridge(wiring.Component):
    """The ports of an engine: outside in root cycles, `inner_*` in cycles of the engine's clock.

    `tick` is 1 in the root cycles that end with an edge of the engine's clock; `active` says that the
    engine has work. What the engine drives is stable between its edges, so a handshake is made in a root
    cycle with `tick` and in no other: a refused request is offered again at the next tick, `done` lasts
    one root cycle. Read data are at `inner_*` in the engine's cycle after the grant. The status that the
    engine showed at its last edge lives on until the next; without work it is idle.
    `adjacent`: whether ticks can be in neighbouring root cycles.
    """

    def __init__(self, cfg: Config, *, adjacent: bool):
        self.cfg = cfg
        self.adjacent = adjacent
        super().__init__(
            {
                "tick": In(1),
                "active": In(1),
                "queue": In(EngineSignature()),
                "sbuf_read": Out(SbufReadSignature(cfg)),
                "sbuf_write": Out(SbufWriteSignature(cfg)),
                "psum_read": Out(PsumReadSignature(cfg)),
                "psum_write": Out(PsumWriteSignature(cfg)),
                "inner_queue": Out(EngineSignature()),
                "inner_sbuf_read": In(SbufReadSignature(cfg)),
                "inner_sbuf_write": In(SbufWriteSignature(cfg)),
                "inner_psum_read": In(PsumReadSignature(cfg)),
                "inner_psum_write": In(PsumWriteSignature(cfg)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        always = fault("requests are made between the engine's edges too")
        for outer, inner in (
            (self.sbuf_write, self.inner_sbuf_write),
            (self.sbuf_read, self.inner_sbuf_read),
            (self.psum_read, self.inner_psum_read),
            (self.psum_write, self.inner_psum_write),
        ):
            connect(m, flipped(inner), flipped(outer))
        # later statements win: valid only at ticks, data by way of the holds
        m.d.comb += [
            self.sbuf_write.valid.eq(self.inner_sbuf_write.valid & (self.tick | always)),
            self.sbuf_read.valid.eq(self.inner_sbuf_read.valid & (self.tick | always)),
            self.psum_read.valid.eq(self.inner_psum_read.valid & (self.tick | always)),
            self.psum_write.valid.eq(self.inner_psum_write.valid & (self.tick | always)),
        ]
        for name, outer, inner in (
            ("sbuf", self.sbuf_read, self.inner_sbuf_read),
            ("psum", self.psum_read, self.inner_psum_read),
        ):
            hold = ReadHold(len(outer.data), bypass=self.adjacent)
            m.submodules[f"hold_{name}"] = hold
            m.d.comb += [
                hold.data.eq(outer.data),
                hold.data_valid.eq(outer.data_valid),
                inner.data.eq(hold.held),
            ]

        engine = self.inner_queue
        holds = Signal()
        state = Signal(4)
        draining = Signal()
        opcode = Signal(OPCODE_BITS)
        with m.If(self.tick):
            m.d.sync += [
                holds.eq(engine.status.holds),
                state.eq(engine.status.state),
                draining.eq(engine.status.draining),
                opcode.eq(engine.status.opcode),
            ]
        m.d.comb += [
            engine.command.valid.eq(self.queue.command.valid),
            engine.command.payload.eq(self.queue.command.payload),
            self.queue.command.ready.eq(engine.command.ready & self.tick),
            self.queue.cause.eq(engine.cause),
            self.queue.address.eq(engine.address),
            self.queue.done.eq(engine.done & (self.tick | fault("done lasts until the engine's next edge"))),
            self.queue.status.holds.eq(holds & self.active),
            self.queue.status.state.eq(state),
            self.queue.status.opcode.eq(opcode),
            self.queue.status.draining.eq(draining & self.active),
        ]
        return m

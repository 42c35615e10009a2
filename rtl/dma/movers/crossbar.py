"""Crossbar: reads of one mover from the partitions of another, and of indices. One 16-byte unit a cycle in all."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.dma.layouts import fetch_layout, lanes

__all__ = ["Crossbar"]


class Crossbar(wiring.Component):
    """`ask[k]`: requests of lane k (first all movers' first lanes; behind all lanes, with dma.indirect, those of a
    class's indices), `answer_valid` its answers in order. `serve` stands
    at the group whose bit of `serve_valid` is set until its bit of `serve_ready`; `data[e]` is the read data of group e
    in the cycle after.
    Those of lanes for the class that goes first, and of indices, go before others.
    Timing: one request a cycle over all lanes, in turn; its answer 2 cycles after it was taken, or later.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        movers = cfg.dma.engines
        askers = movers * lanes(cfg) + cfg.dma.indirect * cfg.dma.classes
        fetch = fetch_layout(cfg)
        super().__init__(
            {
                "ask": In(stream.Signature(fetch)).array(askers),
                "data": In(128).array(movers),
                "serve_valid": Out(movers),
                "serve_ready": In(movers),
                "serve": Out(fetch),
                "answer_valid": Out(askers),
                "answer": Out(128),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        movers = self.cfg.dma.engines
        asks = self.ask
        m.submodules.turn = turn = RoundRobin(len(asks))
        held = Signal()
        request = Signal(fetch_layout(self.cfg))
        asker = Signal(len(asks))
        moves = Signal()  # the held request, if any, is served now
        answering = Signal(len(asks))
        source = Signal(ceil_log2(movers))
        chosen: Value = Mux(turn.grant[0], Value.cast(asks[0].payload), 0)
        for k in range(1, len(asks)):
            chosen = chosen | Mux(turn.grant[k], Value.cast(asks[k].payload), 0)
        wants, first = Signal(len(asks)), Signal(len(asks))
        slow = fault("the crossbar has no class that goes first")
        m.d.comb += [
            wants.eq(Cat(ask.valid for ask in asks)),
            first[movers:].eq(wants[movers:]),
            turn.requests.eq(Mux(first.any() & ~slow, first, wants)),
            turn.accept.eq(moves),
            moves.eq(~held | (self.serve_ready & self.serve_valid).any()),
            self.serve.eq(request),
            self.serve_valid.eq(Mux(held, 1 << request.group, 0)),
            self.answer_valid.eq(answering),
            self.busy.eq(held | answering.any()),
        ]
        for k, ask in enumerate(asks):
            m.d.comb += ask.ready.eq(moves & turn.grant[k])
        with m.If(moves):
            m.d.sync += [held.eq(turn.grant.any()), asker.eq(turn.grant), Value.cast(request).eq(chosen)]
        m.d.sync += answering.eq(Mux(held & moves, asker, 0))
        with m.If(held & moves):
            m.d.sync += source.eq(request.group)
        with m.If(answering.any()):
            m.d.comb += self.answer.eq(Array(self.data)[source])
        return m

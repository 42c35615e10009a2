"""What every engine beside the array has: ports in the root domain, a bridge, a pipeline on a clock of its own."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.bridge import Bridge
from rtl.base.dispatch import EngineSignature
from rtl.base.limits import limit_ports
from rtl.base.memory_port import PsumReadSignature, PsumWriteSignature, SbufReadSignature, SbufWriteSignature
from rtl.contract.config import Config

__all__ = ["MEMORY_PORTS", "EngineFrame", "engine_ports"]

MEMORY_PORTS = ("sbuf_read", "sbuf_write", "psum_read", "psum_write")


def engine_ports(cfg: Config) -> dict[str, wiring.Member]:
    """The queue that commands an engine, and its ports to the memories."""
    return {
        "queue": In(EngineSignature()),
        "sbuf_read": Out(SbufReadSignature(cfg)),
        "sbuf_write": Out(SbufWriteSignature(cfg)),
        "psum_read": Out(PsumReadSignature(cfg)),
        "psum_write": Out(PsumWriteSignature(cfg)),
    }


class EngineFrame(wiring.Component):
    """A pipeline with the ports `engine_ports`, `active` and perhaps `clocks`, behind a bridge. Its ports are in
    "sync", the root clock; the pipeline works in `domain`, whose clock has `clock_mhz`.

    `tick` is 1 in the root cycles that end with an edge of `domain`; `active` says that there is work, so that the
    clock may stand still while neither it nor `queue.command.valid` is 1. `clocks`: one bit for each of
    `part_domains` that needs the edges of `domain` too. `more`: ports that a subclass connects.
    """

    def __init__(
        self,
        cfg: Config,
        pipeline: wiring.Component,
        *,
        domain: str,
        clock_mhz: int,
        part_domains: Sequence[str] = (),
        limits: Sequence[str] = (),
        more: Mapping[str, wiring.Member] | None = None,
    ):
        self.cfg = cfg
        self.domain = domain
        self.clock_mhz = clock_mhz
        self.part_domains = tuple(part_domains)
        self.limits = tuple(limits)
        self.more = dict(more or {})
        self._pipeline = pipeline
        clocks = {"clocks": Out(len(part_domains))} if part_domains else {}
        ports = {**engine_ports(cfg), **self.limit_ports, "tick": In(1), "active": Out(1), **clocks, **self.more}
        super().__init__(ports)

    @property
    def limit_ports(self) -> dict[str, wiring.Member]:
        """Those of `limits`, which the pipeline has too."""
        return limit_ports(self.cfg, *self.limits) if self.limits else {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pipeline = self._pipeline
        m.submodules.bridge = bridge = Bridge(self.cfg, adjacent=self.domain in self.cfg.close_clocks)
        m.submodules.pipeline = DomainRenamer(self.domain)(pipeline)
        connect(m, flipped(self.queue), bridge.queue)
        connect(m, bridge.inner_queue, pipeline.queue)
        for name in MEMORY_PORTS:
            connect(m, getattr(bridge, name), flipped(getattr(self, name)))
            connect(m, getattr(pipeline, name), getattr(bridge, f"inner_{name}"))
        m.d.comb += [
            bridge.tick.eq(self.tick),
            bridge.active.eq(pipeline.active),
            self.active.eq(pipeline.active),
        ]
        m.d.comb += [getattr(pipeline, name).eq(getattr(self, name)) for name in self.limit_ports]
        if self.part_domains:
            m.d.comb += self.clocks.eq(pipeline.clocks)
        return m

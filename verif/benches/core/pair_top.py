"""Two cores joined by two ports and a wire that may refuse flits."""

import dataclasses

from amaranth.hdl import DomainRenamer, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.axi import AxiSignature
from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.clock_ratio import ClockRatio
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.contract.link import LinkCause
from rtl.contract.link_config import LINKS
from rtl.core import Core
from rtl.link.beat import beat_layout
from rtl.link.core_side.core_port import CorePort

__all__ = ["WIRE_BEATS", "PairTop"]

WIRE_BEATS = 26
"""How long a beat is on its way, in link cycles: 6 flits and a half."""

_LINK = dataclasses.replace(LINKS["x8"], name="x8 of few credits", shared_flits=32)
"""Less than the default, so that the cores wait for credits: one that is lost stops them."""

_CORE_FAULTS = (
    "a signal to an endpoint does not wait for the writes before it",
    "the memories' clock does not wait for the DMA",
    "a start that keeps semaphores clears them",
)
_PINS = {
    "host_valid": In(1),
    "host_write": In(1),
    "host_address": In(16),
    "host_wdata": In(64),
    "host_rdata": Out(64),
    "done": Out(1),
    "fault": Out(1),
}
_PORT_PINS = wiring.Signature(
    {
        "refuse": In(1),
        "restart": In(1),
        "state": Out(4),
        "in_flight": Out(8),
        "counts": Out(32 * len(LinkCause)),
    }
)


class PairTop(wiring.Component):
    """Cores 0 and 1, each at a port of a link x8; `core[n]` has the pins of core n, `port[n]` those of its port.

    The ports run on the clock of the link, some edges of that of the cores. A flit whose last beat arrives at port n
    with `refuse` is refused. `counts`: 32 bits for each LinkCause.
    """

    def __init__(self, cfg: Config, form: str = "native"):
        self.cfg = cfg
        self.form = form
        of_core = wiring.Signature({**_PINS, "axi": Out(AxiSignature(cfg.hbm.port_bytes))})
        super().__init__({"core": Out(of_core).array(2), "port": Out(_PORT_PINS).array(2)})

    def _core(self) -> Core:
        return Core(self.cfg, self.form, link=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = _LINK
        m.submodules.ratio = ratio = ClockRatio.of_mhz(link.clock_mhz, self.cfg.tensor.clock_mhz)
        m.submodules.gate = gate = ClockGate()
        gated_domain(m, "link", gate)
        m.d.comb += gate.enable.eq(ratio.tick)

        cores = [Placed("linked_core", self._core, hier_block=True, faults=_CORE_FAULTS) for _ in range(2)]
        ports = [CorePort(link, self.form) for _ in range(2)]
        for n, (core, port) in enumerate(zip(cores, ports, strict=True)):
            m.submodules[f"core{n}"] = core
            m.submodules[f"port{n}"] = DomainRenamer("link")(port)
            connect(m, core.axi[0], flipped(self.core[n].axi))
            for kind in ("request", "response"):
                connect(m, getattr(core, f"{kind}_out"), getattr(port, f"{kind}_out"))
                connect(m, getattr(port, f"{kind}_in"), getattr(core, f"{kind}_in"))
            pins = self.port[n]
            m.d.comb += [
                core.core_id.eq(n),
                core.down.eq(port.down),
                core.request_room.eq(port.request_room),
                port.foreign.eq(core.foreign),
                port.link_address.eq(core.link_address),
                core.link_value.eq(port.link_value),
                port.tx_width.eq(link.lanes),
                port.rx_width.eq(link.lanes),
                port.tick.eq(ratio.tick),
                port.session_init.eq(100 * (n + 1)),
                port.aligned.eq(1),
                port.restart.eq(pins.restart),
                port.i_refuse.eq(pins.refuse),
                port.o.ready.eq(1),
                pins.state.eq(port.state),
                pins.in_flight.eq(port.in_flight),
                pins.counts.eq(port.counts.as_value()),
            ]
            for name, member in _PINS.items():
                inside, outside = getattr(core, name), getattr(self.core[n], name)
                m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        for n in range(2):
            self._wire(m, n, ports[n], ports[1 - n])
        return m

    @staticmethod
    def _wire(m: Module, number: int, sender: CorePort, receiver: CorePort) -> None:
        """A ring of beats: what is put in comes out when its place comes round again."""
        on_wire = data.StructLayout({"valid": 1, "beat": beat_layout(sender.cfg)})
        memory = Memory(shape=on_wire, depth=WIRE_BEATS, init=[])
        m.submodules[f"wire{number}"] = DomainRenamer("link")(memory)
        write = memory.write_port()
        read = memory.read_port(domain="comb")
        at = Signal(range(WIRE_BEATS), name=f"wire{number}_at")
        m.d.link += at.eq(Mux(at == WIRE_BEATS - 1, 0, at + 1))
        m.d.comb += [
            write.en.eq(1),
            write.addr.eq(at),
            write.data.valid.eq(sender.o.valid),
            write.data.beat.eq(sender.o.payload),
            read.addr.eq(at),
            receiver.i_valid.eq(read.data.valid),
            receiver.i.eq(read.data.beat),
        ]

"""Two cores whose packet streams are joined."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.axi import AxiSignature
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.core import Core

__all__ = ["PairTop"]

_PINS = {
    "host_valid": In(1),
    "host_write": In(1),
    "host_address": In(16),
    "host_wdata": In(64),
    "host_rdata": Out(64),
    "done": Out(1),
    "fault": Out(1),
    "refused": Out(32),
}


class PairTop(wiring.Component):
    """Cores 0 and 1; core n's pins begin with `core{n}_`. What one sends the other takes in the same cycle."""

    def __init__(self, cfg: Config, form: str = "structural"):
        self.cfg = cfg
        self.form = form
        ports: dict[str, wiring.Member] = {}
        for n in range(2):
            ports |= {f"core{n}_{name}": member for name, member in _PINS.items()}
            ports[f"core{n}_axi0"] = Out(AxiSignature(cfg.hbm.port_bytes))
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cores = [Placed("linked_core", lambda: Core(self.cfg, self.form, link=True)) for _ in range(2)]
        for n, core in enumerate(cores):
            m.submodules[f"core{n}"] = core
            other = cores[1 - n]
            connect(m, core.axi0, flipped(getattr(self, f"core{n}_axi0")))
            connect(m, core.request_out, other.request_in)
            connect(m, core.response_out, other.response_in)
            m.d.comb += core.core_id.eq(n)
            for name, member in _PINS.items():
                inside, outside = getattr(core, name), getattr(self, f"core{n}_{name}")
                m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        return m

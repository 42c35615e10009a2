"""A component whose clocks are ports in a stated order: Amaranth's own, of clocks that nobody has made, come in any."""

from collections.abc import Sequence

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

__all__ = ["WithClocks"]


class WithClocks(wiring.Component):
    """`inside`, with the ports of its own and (domain)_clk and (domain)_rst for each of `domains`."""

    def __init__(self, inside: wiring.Component, domains: Sequence[str]):
        self._inside, self._domains = inside, domains
        clocks = {f"{domain}_{what}": In(1) for domain in domains for what in ("clk", "rst")}
        super().__init__({**dict(inside.signature.members.items()), **clocks})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inside = self._inside
        for domain in self._domains:
            m.domains += ClockDomain(domain)
            m.d.comb += [
                ClockSignal(domain).eq(getattr(self, f"{domain}_clk")),
                ResetSignal(domain).eq(getattr(self, f"{domain}_rst")),
            ]
        for name, member in self._inside.signature.members.items():
            mine, its = getattr(self, name), getattr(self._inside, name)
            if member.is_signature or member.dimensions:
                connect(m, flipped(mine), its)
            else:
                m.d.comb += its.eq(mine) if member.flow == In else mine.eq(its)
        return m

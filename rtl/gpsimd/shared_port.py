"""Two that use one port of SBUF."""

from amaranth.hdl import Module, Mux, Value
from amaranth.lib.wiring import Out, PureInterface

__all__ = ["share_port"]


def share_port(m: Module, port: PureInterface, first: PureInterface, second: PureInterface, is_first: Value) -> None:
    """`port` is for `first` in cycles with `is_first`, else for `second`; what is read, both see."""
    for name, member in port.signature.members.items():
        outer, one, other = (getattr(side, name) for side in (port, first, second))
        if name == "ready":
            m.d.comb += [one.eq(outer & is_first), other.eq(outer & ~is_first)]
        elif member.flow == Out:
            m.d.comb += outer.eq(Mux(is_first, one, other))
        else:
            m.d.comb += [one.eq(outer), other.eq(outer)]

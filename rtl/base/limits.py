"""Ports for the limits of a core (rtl/contract/limits.py) and of its parts."""

from amaranth.lib.wiring import In, Member

from rtl.contract.config import Config
from rtl.contract.limits import LIMIT_BITS, limits

__all__ = ["limit_ports"]


def limit_ports(cfg: Config, *names: str) -> dict[str, Member]:
    """`limit_NAME` of each, all without names: what is built if nobody drives them. They stand still from reset on, and
    none is above that."""
    built = limits(cfg)
    return {f"limit_{name}": In(LIMIT_BITS[name], init=built[name]) for name in names or LIMIT_BITS}

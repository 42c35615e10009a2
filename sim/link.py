"""The door of docs/link.md: a Verilated port that anyone can attach a partner to."""

from sim.systems.link.device import PortDevice, link_config

__all__ = ["PortDevice", "link_config"]

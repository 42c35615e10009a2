"""Configurations of a link. A run takes parameters instead, so `plexus list configs` names none."""

from rtl.contract.link_config import LINKS, LinkConfig
from sim.systems.configurations import Configurations

__all__ = ["CONFIGURATIONS"]

CONFIGURATIONS = Configurations(kind="link", type=LinkConfig, named=LINKS, title="A link")

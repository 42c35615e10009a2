"""Configurations of a switch."""

from rtl.contract.switch_config import SWITCHES, SwitchConfig
from sim.systems.configurations import Configurations

__all__ = ["CONFIGURATIONS"]


def _about(cfg: SwitchConfig) -> str:
    return f"switch of {cfg.ports} ports x{cfg.link.lanes}, {cfg.matching} matching, {cfg.link.clock_mhz} MHz"


CONFIGURATIONS = Configurations(
    kind="switch",
    type=SwitchConfig,
    named=SWITCHES,
    title="A switch; `link.` are fields of its links",
    about=_about,
)

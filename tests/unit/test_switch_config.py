"""Configurations of a switch: what is refused, and with which words."""

from typing import Any

import pytest

from rtl.contract.config import ConfigError
from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SWITCHES, SwitchConfig

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"ports": 3}, "switch.ports"),
    ({"ports": 73}, "switch.ports"),
    ({"matching": "random"}, "merged, wavefront or islip, not 'random'"),
    ({"keep_slots": 0}, "switch.keep_slots"),
    ({"length_cap_flits": 128}, "switch.length_cap_flits"),
    ({"islip_iterations": 0}, "switch.islip_iterations"),
    ({"ports": 64, "link": LINKS["x16"]}, "ports must be at most 63 at x16, not 64: a port has 1,031 input pins"),
    ({"link": LinkConfig(window_flits=8)}, "window_flits must be at least 9, not 8"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SwitchConfig(**changes)


def test_names_and_values() -> None:
    assert {name: cfg.ports for name, cfg in SWITCHES.items()} == {
        "sw4": 4,
        "sw16": 16,
        "sw20": 20,
        "sw40": 40,
        "sw72": 72,
    }
    assert all(cfg.link.pool_flits >= 128 for cfg in SWITCHES.values())
    assert SwitchConfig(name="other").hash == SWITCHES["sw16"].hash
    assert SwitchConfig(ports=8).hash != SWITCHES["sw16"].hash

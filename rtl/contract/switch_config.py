"""Configurations of a switch: frozen, complete, refused in a sentence when they make no sense."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from rtl.contract.config_fields import check, choice, flag, need, number
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LINKS, LinkConfig

__all__ = ["MATCHINGS", "TOP_INPUT_BITS_MAX", "SWITCHES", "SwitchConfig"]

TOP_INPUT_BITS_MAX = (1 << 16) - 2
"""Bits of all inputs of a top together: Amaranth numbers them and two constants with 16 bits (Net.from_cell)."""
_COMMON_INPUT_BITS = 16 + 1 + 16 + 64 + 2  # of a switch: session, write, address, value, clock and reset

MATCHINGS = ("merged", "wavefront", "islip")


def _port(name: str) -> LinkConfig:
    """A named link with buffers of 128 flits for one class and kind: 4 dedicated, 124 shared."""
    return dataclasses.replace(LINKS[name], shared_flits=124)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchConfig:
    """Everything an architect would vary about a switch; all its ports are alike.

    Weights, the strict class and its cap, the number of classes and the sizes of a port's buffers are those of `link`.
    """

    name: str = "sw16"
    ports: int = number(
        "ports", 4, 72, 16, unit="ports", also="at most what Amaranth's 65,534 input bits of a top allow"
    )
    link: LinkConfig = field(default_factory=lambda: _port("x8"))
    matching: str = choice("how inputs and outputs are matched", MATCHINGS, "merged")
    keep_slots: int = number("flit times that a match may be kept while others wait", 1, 255, 16, unit="flit times")
    length_cap_flits: int = number("where the length of a queue stops to count", 1, 127, 31, unit="flits")
    islip_iterations: int = number("rounds of islip matching in a flit time", 1, 8, 2, unit="rounds")
    bypass: bool = flag("a flit that meets nobody does not wait for the scheduler", True)

    def __post_init__(self) -> None:
        check("switch", self)
        most = (TOP_INPUT_BITS_MAX - _COMMON_INPUT_BITS) // self.port_input_bits
        need(
            self.ports <= most,
            f"switch.ports must be at most {most} at x{self.link.lanes}, not {self.ports}: a port has "
            f"{self.port_input_bits:,} input pins, and Amaranth allows {TOP_INPUT_BITS_MAX:,} in all",
        )
        least = 2 * UNIT_FLITS_MAX + 1  # a unit that is granted, one that was, and a place that stays free
        need(
            self.link.window_flits >= least,
            f"switch.link.window_flits must be at least {least}, not {self.link.window_flits}",
        )

    @property
    def slot_cycles(self) -> int:
        """Link cycles of a slot: the time of a flit."""
        return self.link.flit_cycles

    @property
    def port_input_bits(self) -> int:
        """Input pins of a port of a switch without lanes: a beat and 4 flags of it, restart, disabled, flip."""
        return 8 * self.link.beat_bytes + 7

    @property
    def outputs(self) -> int:
        """Columns of the crossbar: the ports, and behind them the responder, which answers refused reads."""
        return self.ports + 1

    @property
    def inputs(self) -> int:
        """Rows of the crossbar: the ports, and the responder."""
        return self.ports + 1

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return dataclasses.asdict(self)

    @property
    def hash(self) -> str:
        """Twelve hex digits that name the values (not the names) of this configuration."""
        values = {k: v for k, v in self.as_dict().items() if k != "name"}
        values["link"] = {k: v for k, v in values["link"].items() if k != "name"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


SWITCHES: dict[str, SwitchConfig] = {
    "sw4": SwitchConfig(name="sw4", ports=4),
    "sw16": SwitchConfig(),
    "sw20": SwitchConfig(name="sw20", ports=20),  # 160 lanes
    "sw40": SwitchConfig(name="sw40", ports=40),  # 320 lanes
    "sw72": SwitchConfig(name="sw72", ports=72, link=_port("x4")),
}
"""Named switches."""

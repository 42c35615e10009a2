"""Configurations of a link: frozen, complete, refused in a sentence when they make no sense."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from rtl.contract.config_fields import Role, check, choice, need, number, numbers
from rtl.contract.link import CLASSES, CREDIT_MODULUS, DEDICATED_FLITS, FLIT_BYTES, SEQUENCE_MODULUS

__all__ = ["COVERS_WINDOW", "LINKS", "LinkConfig"]

COVERS_WINDOW = -1
"""`shared_flits` by the window: one class of one kind keeps the line up to the round trip that the window covers."""
_CREDIT_LAG_FLITS = 16
"""What one class and kind has beyond the window: a flit is acknowledged when it has come, its credit returns when its
unit is whole (3 flits more), read out (4) and told (2); up to 3 are too few for the next unit; 2 flits wait."""
_SHARED_MAX = CREDIT_MODULUS // 2 - 1

_WIDTHS = (1, 2, 4, 8, 16)
_LANE_BYTES = 8  # a lane moves 8 bytes a link cycle


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """Everything an architect would vary about one link; both ends have the same."""

    name: str = "x8"
    clock_mhz: int = number("link clock; no hardware depends on it", 1, 10_000, 1000, unit="MHz", role=Role.HOST)
    lanes: int = choice("lanes at full width, 8 bytes a cycle each", _WIDTHS, 8, unit="lanes")
    spare_lanes: int = number("lanes beside them that take the place of dead ones", 0, 2, 2, unit="lanes")
    window_flits: int = number(
        "flits on their way without an acknowledgement; also the depth of the retry buffer",
        1,
        SEQUENCE_MODULUS // 2 - 1,
        128,
        unit="flits",
        also="less than half of link.sequence_numbers",
    )
    sequence_numbers: int = number("sequence numbers of flits", 8, SEQUENCE_MODULUS, SEQUENCE_MODULUS, of_two=True)
    classes: int = number("traffic classes; a class has the virtual channel of its number", 1, CLASSES, 8)
    weights: tuple[int, ...] = numbers("flits a round, by class", CLASSES, 1, 64, (1,) * CLASSES)
    strict_class: int = number(
        "class that is served before the others; -1 none", -1, CLASSES - 1, -1, also="less than link.classes"
    )
    strict_cap: int = number("flits of 64 that the strict class may take while others wait", 1, 64, 16, unit="flits")
    shared_flits: int = number(
        "places of the receive pool that all classes of a kind share; -1: what one class needs to keep the line for "
        "the window's round trip",
        COVERS_WINDOW,
        _SHARED_MAX,
        COVERS_WINDOW,
        unit="flits",
    )
    send_beats: int = number("64-byte beats that wait in each (class, kind) of the sender", 16, 1024, 64, unit="beats")
    weak_corrections: int = number("FEC corrections in a marker interval that make a lane weak", 1, 4095, 64)

    def __post_init__(self) -> None:
        check("link", self)
        for name, most in (("window_flits", self.sequence_numbers // 2 - 1), ("strict_class", self.classes - 1)):
            low, value = 1 if name == "window_flits" else -1, getattr(self, name)
            need(value <= most, f"link.{name} must be from {low} to {most}, not {value}")
        if self.shared_flits == COVERS_WINDOW:
            shared = self.window_flits + _CREDIT_LAG_FLITS - DEDICATED_FLITS
            object.__setattr__(self, "shared_flits", shared)
        # half of what the 12 bits of a credit count tell
        need(
            0 <= self.shared_flits <= _SHARED_MAX,
            f"link.shared_flits must be from 0 to {_SHARED_MAX}, not {self.shared_flits}",
        )

    @property
    def beat_bytes(self) -> int:
        """Datapath: 128 bytes at x16, else 64."""
        return max(64, _LANE_BYTES * self.lanes)

    @property
    def beats(self) -> int:
        """Beats of a flit."""
        return FLIT_BYTES // self.beat_bytes

    @property
    def beat_cycles(self) -> int:
        """Link cycles between two beats on the wire at full width."""
        return self.beat_bytes // (_LANE_BYTES * self.lanes)

    @property
    def flit_cycles(self) -> int:
        """Link cycles of a flit at full width."""
        return self.beats * self.beat_cycles

    @property
    def queues(self) -> int:
        """(class, kind) pairs, numbered class * 2 + kind."""
        return self.classes * 2

    @property
    def accounts(self) -> int:
        """Credit accounts: a dedicated one for each queue, then the two shared ones by kind."""
        return self.queues + 2

    @property
    def pool_flits(self) -> int:
        """Flits that a receiver can hold: its RAM has 2,048 bits for each."""
        return self.queues * DEDICATED_FLITS + 2 * self.shared_flits

    @property
    def reach_flits(self) -> int:
        """Flits of one class and kind that a receiver can hold."""
        return DEDICATED_FLITS + self.shared_flits

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return dataclasses.asdict(self)

    @property
    def hash(self) -> str:
        """Twelve hex digits that name the values (not the name) of this configuration."""
        values = {k: v for k, v in self.as_dict().items() if k != "name"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


LINKS: dict[str, LinkConfig] = {
    "x1": LinkConfig(name="x1", lanes=1, spare_lanes=0),
    "x2": LinkConfig(name="x2", lanes=2),
    "x4": LinkConfig(name="x4", lanes=4),
    "x8": LinkConfig(),
    "x16": LinkConfig(name="x16", lanes=16, window_flits=256),
}
"""Named links."""

"""Configurations of a link: frozen, complete, refused in a sentence when they make no sense."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from rtl.contract.config_sections import need, within
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
    clock_mhz: int = 1000
    lanes: int = 8
    spare_lanes: int = 2
    window_flits: int = 128  # also the depth of the retry buffer
    sequence_numbers: int = SEQUENCE_MODULUS
    classes: int = 8  # a class has the virtual channel of its number
    weights: tuple[int, ...] = (1,) * CLASSES  # flits a round, by class
    strict_class: int = -1  # served before the others; -1 none
    strict_cap: int = 16  # flits of 64 that the strict class may take while others wait
    shared_flits: int = COVERS_WINDOW  # places of the receive pool that all classes of a kind share
    send_beats: int = 64  # 64-byte beats that wait in each (class, kind) of the sender
    weak_corrections: int = 64  # FEC corrections in a marker interval that make a lane weak

    def __post_init__(self) -> None:
        need(self.lanes in _WIDTHS, f"link.lanes must be 1, 2, 4, 8 or 16, not {self.lanes}")
        within("link.spare_lanes", self.spare_lanes, 0, 2)
        within("link.clock_mhz", self.clock_mhz, 1, 10_000)
        need(
            self.sequence_numbers & (self.sequence_numbers - 1) == 0 and 8 <= self.sequence_numbers <= SEQUENCE_MODULUS,
            f"link.sequence_numbers must be a power of two from 8 to {SEQUENCE_MODULUS}, not {self.sequence_numbers}",
        )
        within("link.window_flits", self.window_flits, 1, self.sequence_numbers // 2 - 1)
        within("link.classes", self.classes, 1, CLASSES)
        need(
            len(self.weights) == CLASSES and all(1 <= w <= 64 for w in self.weights),
            f"link.weights must be {CLASSES} numbers from 1 to 64, not {', '.join(map(str, self.weights))}",
        )
        within("link.strict_class", self.strict_class, -1, self.classes - 1)
        within("link.strict_cap", self.strict_cap, 1, 64)
        if self.shared_flits == COVERS_WINDOW:
            shared = self.window_flits + _CREDIT_LAG_FLITS - DEDICATED_FLITS
            object.__setattr__(self, "shared_flits", shared)
        need(
            0 <= self.shared_flits <= _SHARED_MAX,
            f"link.shared_flits must be from 0 to {_SHARED_MAX}, less than half of what the 12 bits of a credit count "
            f"tell, not {self.shared_flits}",
        )
        within("link.send_beats", self.send_beats, 16, 1024)
        within("link.weak_corrections", self.weak_corrections, 1, 4095)

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

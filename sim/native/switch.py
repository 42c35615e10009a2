"""The C functions of switch.cpp as Python calls: a switch on RTL with an endpoint at every port."""

from ctypes import POINTER, c_char_p, c_double, c_int, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.contract.link import CLASSES
from rtl.contract.switch_config import SwitchConfig
from sim.errors import PlexusError
from sim.native.library import open_library, opened
from sim.native.partner import link_numbers

__all__ = ["CLASS_INPUTS", "PORTS_MAX", "SWITCH_SOURCES", "TRAFFIC", "NativeSwitch", "SwitchCounts", "SwitchTraffic"]

SWITCH_SOURCES = (Path(__file__).resolve().parent / "switch.cpp",)
"""C++ of the driver: build("switch", cfg, kind="native", extra_cpp=SWITCH_SOURCES)."""

TRAFFIC = ("uniform", "permutation", "hotspot", "diagonal", "unbalanced", "probe")
CLASS_INPUTS = ("same", "different", "mixed")
PORTS_MAX = 72
_BINS, _PHASES, _PHASE_BINS = 1 << 14, 32, 256

_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_switch_create": (c_void_p, [POINTER(c_double), POINTER(c_uint64)]),
    "px_switch_destroy": (None, [c_void_p]),
    "px_switch_run": (c_int, [c_void_p, c_uint64, c_int, c_uint64]),
    "px_switch_up": (c_int, [c_void_p]),
    "px_switch_seconds": (c_double, [c_void_p]),
    "px_switch_write": (c_int, [c_void_p, c_uint64, c_uint64]),
    "px_switch_read": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "px_switch_disable": (c_int, [c_void_p, c_uint64, c_int]),
    "px_switch_restart": (c_int, [c_void_p, c_uint64, c_int]),
    "px_switch_totals": (None, [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "px_switch_classes": (None, [c_void_p, POINTER(c_uint64)]),
    "px_switch_waiting": (None, [c_void_p, POINTER(c_uint64)]),
    "px_switch_latency": (None, [c_void_p, POINTER(c_uint64), POINTER(c_uint64), c_int]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTraffic:
    """What goes through a switch. `routes`: port by endpoint; `partitions`: by port; `weights`: of the classes in use.

    `strict_class` -1: none. `silent_port`: its source sends nothing; -1: all do.
    """

    traffic: str
    load: float
    flits: tuple[int, int]
    weights: tuple[int, ...]
    senders: int
    routes: tuple[int, ...]
    partitions: tuple[int, ...]
    class_inputs: str = "same"
    responses: float = 0.0
    backlog_flits: int = 128
    strict_class: int = -1
    strict_cap: int = 16
    silent_port: int = -1
    flit_error_rate: float = 0.0
    delay_flits: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchCounts:
    """What has happened so far: `Totals` of switch.cpp and `LedgerCounts` of ledger.h, in their orders.

    `outstanding`, `lost`: units between ports whose sessions have held; `unsettled`: between others, not come.
    `foreign_sent`: units for another partition. `by_class`, `by_source`, `by_output`: flits delivered.
    """

    cycles: int
    offered_flits: int
    blocked_flits: int
    waiting_flits: int
    payload_flits: int
    resent: int
    damaged: int
    refused: int
    replays: int
    spurious: int
    corrected: int
    downs: int
    retrains: int
    unresolved: int
    odd: int
    units_sent: int
    units_delivered: int
    flits_delivered: int
    lost: int
    unsettled: int
    duplicated: int
    reordered: int
    corrupted: int
    misdelivered: int
    foreign_sent: int
    outstanding: int
    latency_max: int
    by_class: tuple[int, ...]
    by_source: tuple[int, ...]
    by_output: tuple[int, ...]


_TOTALS = 15
_PLAIN = len(SwitchCounts.__dataclass_fields__) - 3


class NativeSwitch:
    """A switch with an endpoint at every port. Errors: PlexusError with the driver's sentence."""

    def __init__(self, library: Path, cfg: SwitchConfig, traffic: SwitchTraffic):
        self._lib = open_library(library, _FUNCTIONS)
        self.cfg = cfg
        classes = len(traffic.weights)
        none = (1 << 32) - 1
        values: list[int] = [
            *link_numbers(cfg.link),
            cfg.link.flit_cycles,
            cfg.link.beat_bytes,
            traffic.delay_flits,
            TRAFFIC.index(traffic.traffic),
            CLASS_INPUTS.index(traffic.class_inputs),
            cfg.ports,
            traffic.senders,
            classes,
            *traffic.flits,
            traffic.backlog_flits,
            traffic.strict_class if traffic.strict_class >= 0 else none,
            traffic.strict_cap,
            traffic.silent_port if traffic.silent_port >= 0 else none,
            traffic.seed,
            *traffic.weights,
            *(1 for _ in range(CLASSES - classes)),
            len(traffic.routes),
            *traffic.routes,
            *traffic.partitions,
        ]
        rates = (c_double * 3)(traffic.flit_error_rate, traffic.load, traffic.responses)
        numbers = (c_uint64 * len(values))(*values)
        self._switch: int | None = self._lib.px_switch_create(rates, numbers)
        if not self._switch:
            raise PlexusError(self._lib.px_error().decode())

    @property
    def _model(self) -> int:
        return opened(self._switch, "the switch")

    def close(self) -> None:
        """Free the model."""
        if self._switch:
            self._lib.px_switch_destroy(self._switch)
            self._switch = None

    def _check(self, code: int) -> None:
        if code < 0:
            raise PlexusError(self._lib.px_error().decode())

    def run(self, cycles: int, *, sending: bool, milliseconds: int = 250) -> None:
        """At most so many link cycles, and about so long."""
        self._check(self._lib.px_switch_run(self._model, cycles, sending, milliseconds))

    @property
    def up(self) -> bool:
        """Every link is UP at both ends."""
        return bool(self._lib.px_switch_up(self._model))

    @property
    def seconds(self) -> float:
        """Wall time inside `run` so far."""
        return self._lib.px_switch_seconds(self._model)

    def write(self, address: int, value: int) -> None:
        """A register of the switch."""
        self._check(self._lib.px_switch_write(self._model, address, value))

    def read(self, address: int) -> int:
        """A register of the switch."""
        value = c_uint64()
        self._check(self._lib.px_switch_read(self._model, address, value))
        return value.value

    def take_out(self, port: int, out: bool = True) -> None:
        """Hold a port of the switch in DISABLED, or put it back."""
        self._check(self._lib.px_switch_disable(self._model, port, out))

    def restart(self, port: int, *, endpoint: bool) -> None:
        """Hot reset of a port, or of the endpoint at it."""
        self._check(self._lib.px_switch_restart(self._model, port, endpoint))

    def counts(self) -> SwitchCounts:
        """What has happened so far."""
        totals = (c_uint64 * _TOTALS)()
        ledger = (c_uint64 * (_PLAIN - _TOTALS + CLASSES + 2 * PORTS_MAX))()
        self._lib.px_switch_totals(self._model, totals, ledger)
        names = list(SwitchCounts.__dataclass_fields__)[:_PLAIN]
        plain: dict[str, Any] = dict(zip(names, [*totals, *ledger[: _PLAIN - _TOTALS]], strict=True))
        lists = ledger[_PLAIN - _TOTALS :]
        return SwitchCounts(
            **plain,
            by_class=tuple(lists[:CLASSES]),
            by_source=tuple(lists[CLASSES : CLASSES + self.cfg.ports]),
            by_output=tuple(lists[CLASSES + PORTS_MAX :][: self.cfg.ports]),
        )

    def classes(self) -> list[int]:
        """By port, bits of the classes that its source sends; 0 if it sends nothing."""
        masks = (c_uint64 * PORTS_MAX)()
        self._lib.px_switch_classes(self._switch, masks)
        return list(masks[: self.cfg.ports])

    def waiting(self) -> list[int]:
        """By port, flits that wait at its source, those sent and not yet acknowledged too."""
        flits = (c_uint64 * PORTS_MAX)()
        self._lib.px_switch_waiting(self._model, flits)
        return list(flits[: self.cfg.ports])

    def latency(self, *, forget: bool = False) -> tuple[list[list[int]], list[list[int]]]:
        """Units by latency in cycles: a histogram for each class, and one for each cycle of a flit time.

        `forget`: begin anew.
        """
        by_class = (c_uint64 * (CLASSES * _BINS))()
        by_phase = (c_uint64 * (_PHASES * _PHASE_BINS))()
        self._lib.px_switch_latency(self._model, by_class, by_phase, forget)
        return (
            [by_class[n * _BINS : (n + 1) * _BINS] for n in range(CLASSES)],
            [by_phase[n * _PHASE_BINS : (n + 1) * _PHASE_BINS] for n in range(self.cfg.slot_cycles)],
        )

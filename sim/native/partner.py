"""A port on RTL and an endpoint in C++ at the two ends of a link, as the switch's driver has many of them."""

from ctypes import POINTER, c_char_p, c_double, c_int, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.contract.link_config import LinkConfig
from sim.errors import PlexusError
from sim.native.library import open_library, opened

__all__ = ["PARTNER_SOURCES", "NativePartner", "PartnerCounts", "link_numbers"]

PARTNER_SOURCES = (Path(__file__).resolve().parent / "partner.cpp",)
"""C++ of the two: build("port_device", cfg, kind="native", extra_cpp=PARTNER_SOURCES)."""

_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_partner_create": (c_void_p, [POINTER(c_double), POINTER(c_uint64)]),
    "px_partner_destroy": (None, [c_void_p]),
    "px_partner_run": (c_int, [c_void_p, c_uint64, c_int]),
    "px_partner_up": (c_int, [c_void_p]),
    "px_partner_restart": (None, [c_void_p]),
    "px_partner_counts": (None, [c_void_p, POINTER(c_uint64)]),
    "px_endpoint_rate": (c_double, [c_uint64]),
}


def link_numbers(cfg: LinkConfig) -> tuple[int, ...]:
    """`LinkNumbers` of link_end.h in its order."""
    return cfg.lanes, cfg.spare_lanes, cfg.window_flits, cfg.sequence_numbers, cfg.classes, cfg.shared_flits


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerCounts:
    """What has happened; `Counts` of partner.cpp in its order. Pairs: sent by the endpoint, sent by the port.

    `wrong`: packets that are not the one due in their queue; `odd`: everything that only a fault of an end explains.
    """

    sent: tuple[int, int]
    delivered: tuple[int, int]
    wrong: tuple[int, int]
    outstanding: tuple[int, int]
    flits: int
    resent: int
    refused: int
    replays: int
    spurious: int
    corrected: int
    port_refused: int
    port_replays: int
    port_spurious: int
    port_corrected: int
    overruns: int
    downs: int
    retrains: int
    unresolved: int
    odd: int


class NativePartner:
    """The two with random traffic both ways. Rates are a flit's.

    `slots_a_flit`: places that the endpoint reads out in a flit time, 0 all at once.
    Errors: PlexusError with the driver's sentence.
    """

    def __init__(
        self,
        library: Path,
        cfg: LinkConfig,
        *,
        flit_error_rate: float = 0.0,
        burst_rate: float = 0.0,
        repeat_rate: float = 0.0,
        slots_a_flit: float = 0.0,
        delay_flits: int = 0,
        seed: int = 0,
    ):
        self._lib = open_library(library, _FUNCTIONS)
        rates = (c_double * 4)(flit_error_rate, burst_rate, repeat_rate, slots_a_flit)
        numbers = (c_uint64 * 8)(*link_numbers(cfg), delay_flits, seed)
        self._pair: int | None = self._lib.px_partner_create(rates, numbers)
        if not self._pair:
            raise PlexusError(self._lib.px_error().decode())

    @property
    def _model(self) -> int:
        return opened(self._pair, "the pair")

    def close(self) -> None:
        """Free the model."""
        if self._pair:
            self._lib.px_partner_destroy(self._pair)
            self._pair = None

    def run(self, flits: int, *, sending: bool = True) -> None:
        """So many flit times."""
        if self._lib.px_partner_run(self._model, flits, sending) < 0:
            raise PlexusError(self._lib.px_error().decode())

    def restart(self) -> None:
        """Hot reset of the endpoint in the next flit time."""
        self._lib.px_partner_restart(self._model)

    @property
    def up(self) -> bool:
        """Both ends are UP."""
        return bool(self._lib.px_partner_up(self._model))

    def counts(self) -> PartnerCounts:
        """What has happened so far."""
        raw = (c_uint64 * 23)()
        self._lib.px_partner_counts(self._model, raw)
        pairs: list[Any] = [tuple(raw[2 * n : 2 * n + 2]) for n in range(4)]
        names = list(PartnerCounts.__dataclass_fields__)
        return PartnerCounts(**dict(zip(names, [*pairs, *raw[8:]], strict=True)))

    def endpoint_rate(self, flits: int = 200_000) -> float:
        """Flits a second that are made, coded, decoded and checked on one processor."""
        return self._lib.px_endpoint_rate(flits)

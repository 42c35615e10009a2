"""The C functions of port.cpp and link_pair.cpp as Python calls."""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint8, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path

from rtl.contract.link import CLASSES, FLIT_BYTES, PACKET_BYTES_MAX, PACKET_HEADER_BYTES, SIGNAL_BYTES
from rtl.contract.link_config import LinkConfig
from sim.errors import PlexusError
from sim.native.library import open_library, opened

__all__ = ["PAIR_SOURCES", "PORT_SOURCES", "LinkCounts", "LinkEnd", "NativeLink", "NativePort", "Wires"]

_HERE = Path(__file__).resolve().parent

PORT_SOURCES = (_HERE / "port.cpp",)
"""C++ of one port: build("port_device", cfg, kind="native", extra_cpp=PORT_SOURCES)."""

PAIR_SOURCES = (_HERE / "link_pair.cpp",)
"""C++ of two ports and the wires between them: the same with "port_lanes"."""

_BINS = 1 << 14  # of latency; the last one holds all beyond
_BYTES = POINTER(c_uint8)
_PORT: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_port_create": (c_void_p, [c_uint64, c_char_p]),
    "px_port_destroy": (None, [c_void_p]),
    "px_port_step": (c_int, [c_void_p, c_char_p, c_char_p]),
    "px_port_send": (c_int, [c_void_p, c_uint64, c_char_p, c_uint64]),
    "px_port_take": (c_int, [c_void_p, _BYTES, c_char_p]),
    "px_port_restart": (None, [c_void_p]),
    "px_port_set": (c_int, [c_void_p, c_char_p, c_uint64]),
    "px_port_get": (c_int, [c_void_p, c_char_p, POINTER(c_uint64)]),
    "px_port_cycles": (c_uint64, [c_void_p]),
}
_PAIR: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_link_create": (c_void_p, [POINTER(c_double), POINTER(c_uint64)]),
    "px_link_destroy": (None, [c_void_p]),
    "px_link_run": (c_int, [c_void_p, c_uint64, c_int, c_uint64]),
    "px_link_gaps": (None, [c_void_p, c_int]),
    "px_link_up": (c_int, [c_void_p]),
    "px_link_seconds": (c_double, [c_void_p]),
    "px_link_latency": (None, [c_void_p, POINTER(c_uint64)]),
    "px_link_counts": (None, [c_void_p, POINTER(c_uint64)]),
    "px_link_aim": (None, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "px_link_mark": (None, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "px_link_end": (None, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "px_link_plant": (c_int, [c_void_p, c_uint64]),
}


class NativePort:
    """One port's model, a flit time a call. Errors: PlexusError with the driver's sentence."""

    def __init__(self, library: Path, *, session: int, waves: Path | None = None):
        self._lib = open_library(library, _PORT)
        self._port: int | None = self._lib.px_port_create(session, str(waves).encode() if waves else b"")
        if not self._port:
            raise PlexusError(self._lib.px_error().decode())
        self._sent = ctypes.create_string_buffer(FLIT_BYTES)
        self._packet = ctypes.create_string_buffer(PACKET_HEADER_BYTES + PACKET_BYTES_MAX + SIGNAL_BYTES)

    @property
    def _model(self) -> int:
        return opened(self._port, "the port")

    def close(self) -> None:
        """Free the model; writes the waves out."""
        if self._port:
            self._lib.px_port_destroy(self._port)
            self._port = None

    def _check(self, code: int) -> None:
        if code < 0:
            raise PlexusError(self._lib.px_error().decode())

    def step(self, flit: bytes | None) -> bytes:
        """A flit time: one flit in, None for one that must be refused, and the one sent meanwhile."""
        self._check(self._lib.px_port_step(self._model, flit, self._sent))
        return self._sent.raw

    def send(self, cls: int, packet: bytes) -> bool:
        """Hand over a packet; False if its class has no room now."""
        return bool(self._lib.px_port_send(self._model, cls, packet, len(packet)))

    def take(self) -> tuple[int, bytes] | None:
        """The oldest packet delivered and its class."""
        cls = c_uint8()
        count = self._lib.px_port_take(self._model, ctypes.byref(cls), self._packet)
        return None if count < 0 else (cls.value, self._packet.raw[:count])

    def restart(self) -> None:
        """Hot reset in the next cycle in which the port is not in DOWN."""
        self._lib.px_port_restart(self._model)

    def set(self, pin: str, value: int) -> None:
        """An input pin: disabled or take."""
        self._check(self._lib.px_port_set(self._model, pin.encode(), value))

    def get(self, pin: str) -> int:
        """A pin of at most 64 bits, as it was in the last cycle."""
        value = c_uint64()
        self._check(self._lib.px_port_get(self._model, pin.encode(), ctypes.byref(value)))
        return value.value

    @property
    def cycles(self) -> int:
        """Link cycles since reset."""
        return self._lib.px_port_cycles(self._model)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCounts:
    """What both directions of a link add up to; `Counts` of link_pair.cpp in its order.

    `cycles` are link cycles; `resent`: payload flits sent again; `damaged`: flits damaged beyond repair;
    `round_trip_sum` over `round_trips`: cycles from a flit's way on the wire to its next one, for the first flit of
    each replay; `ack_sum` over `acks`: to its acknowledgement; `longest_gap`: cycles in which an end delivered nothing,
    while gaps count; `width`: lanes in use now, of the narrower direction; `latency_max`: longest time of a packet from
    the port that took it to its delivery, while gaps count; `flits`: of any kind that have begun on the wires.
    """

    cycles: int
    sent: int
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    corrupted: int
    payload_bytes: int
    payload_flits: int
    resent: int
    damaged: int
    bursts: int
    refused: int
    malformed: int
    corrections: int
    replays: int
    round_trip_sum: int
    round_trips: int
    ack_sum: int
    acks: int
    outstanding: int
    unresolved: int
    spurious: int
    retrained: int
    downs: int
    longest_gap: int
    width: int
    latency_max: int
    flits: int
    by_class: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """What has passed over the lanes of one end.

    `flits`: begun since power-up; `since`: since its last marker; `refused`: that `refuse` damaged; `newest`: number of
    the newest payload flit sent; `in_flight`, `number`, `replaying`: the sender when its last marker went.
    """

    flits: int
    since: int
    markers: int
    refused: int
    newest: int
    in_flight: int
    number: int
    replaying: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """What goes over a link and what happens to it there. `delay_flits`: one way.

    From link cycle `kill_cycle` on, lane `kill_lane` of one direction gives only zeros.
    """

    flit_error_rate: float = 0.0
    burst_rate: float = 0.0
    burst_bytes: int = 3
    packet_bytes: int = 256
    classes: int = 1
    responses: bool = False
    delay_flits: int = 4
    burst_lanes: int = 0  # mask of the lanes that bursts hit; 0: all but the spares
    kill_lane: int = 0
    kill_cycle: int = (1 << 64) - 1
    seed: int = 0


class NativeLink:
    """Two ports with saturating traffic, joined by wires. Errors: PlexusError with the driver's sentence.

    plant: number of a fault in both, in a build with planted faults.
    """

    def __init__(self, library: Path, cfg: LinkConfig, wires: Wires, *, plant: int = 0):
        self._lib = open_library(library, _PAIR)
        rates = (c_double * 2)(wires.flit_error_rate, wires.burst_rate)
        numbers = (c_uint64 * 12)(
            wires.burst_bytes,
            cfg.lanes,
            cfg.lanes + cfg.spare_lanes,
            cfg.sequence_numbers,
            wires.packet_bytes,
            wires.classes,
            wires.responses,
            wires.delay_flits,
            wires.kill_lane,
            wires.kill_cycle,
            wires.seed,
            wires.burst_lanes or (1 << cfg.lanes) - 1,
        )
        self._link: int | None = self._lib.px_link_create(rates, numbers)
        if not self._link:
            raise PlexusError(self._lib.px_error().decode())
        if plant and self._lib.px_link_plant(self._model, plant) < 0:
            raise PlexusError(self._lib.px_error().decode())

    @property
    def _model(self) -> int:
        return opened(self._link, "the link")

    def close(self) -> None:
        """Free both models."""
        if self._link:
            self._lib.px_link_destroy(self._link)
            self._link = None

    def run(self, cycles: int, *, sending: bool, milliseconds: int = 250) -> None:
        """At most so many link cycles, and about so long."""
        if self._lib.px_link_run(self._model, cycles, sending, milliseconds) < 0:
            raise PlexusError(self._lib.px_error().decode())

    def count_gaps(self, on: bool) -> None:
        """From now on, whether times without a delivery count for `longest_gap`, and packets for `latency`."""
        self._lib.px_link_gaps(self._model, on)

    @property
    def up(self) -> bool:
        """Both ends are in UP."""
        return bool(self._lib.px_link_up(self._model))

    @property
    def seconds(self) -> float:
        """Wall time inside `run` so far."""
        return self._lib.px_link_seconds(self._model)

    def end(self, end: int) -> LinkEnd:
        """Where an end is."""
        names = list(LinkEnd.__dataclass_fields__)
        raw = (c_uint64 * len(names))()
        self._lib.px_link_end(self._model, end, raw)
        return LinkEnd(**dict(zip(names, raw, strict=True)))

    def refuse(self, end: int, first: int, count: int = 1) -> None:
        """The partner refuses flits `first` to `first + count - 1` of this end, by number since power-up."""
        self._lib.px_link_aim(self._model, end, first, count)

    def damage_markers(self, end: int, lanes: int, times: int = 1) -> None:
        """The next markers of this end are wrong on the lanes of the mask."""
        self._lib.px_link_mark(self._model, end, lanes, times)

    def latency(self) -> list[list[int]]:
        """Packets by cycles from the port that took them to their delivery, a histogram for each class."""
        bins = (c_uint64 * (CLASSES * _BINS))()
        self._lib.px_link_latency(self._model, bins)
        return [bins[n * _BINS : (n + 1) * _BINS] for n in range(CLASSES)]

    def counts(self) -> LinkCounts:
        """What has happened so far."""
        plain = len(LinkCounts.__dataclass_fields__) - 1
        raw = (c_uint64 * (plain + CLASSES))()
        self._lib.px_link_counts(self._model, raw)
        names = list(LinkCounts.__dataclass_fields__)[:plain]
        return LinkCounts(**dict(zip(names, raw[:plain], strict=True)), by_class=tuple(raw[plain:]))

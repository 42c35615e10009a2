"""A Verilated port that anyone can attach a partner to, a flit time a call."""

from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rtl.contract.config import NAMED, Config
from rtl.contract.config_sections import ConfigError
from rtl.contract.link import (
    FLIT_BYTES,
    PACKET_BYTES_MAX,
    PACKET_HEADER,
    PACKET_HEADER_BYTES,
    PAYLOAD_OPCODES,
    SIGNAL_BYTES,
    LinkCause,
    LinkState,
    PacketFlag,
    PacketOpcode,
)
from rtl.contract.link_config import COVERS_WINDOW, LINKS, LinkConfig
from rtl.link.codec.codec import FORM_ERROR, FORMS
from sim.build.model import build
from sim.errors import PlexusError
from sim.native.ports import PORT_SOURCES, NativePort

__all__ = ["PortDevice", "link_config"]


_DEFAULT = "x8"
_powered_up: Counter[int] = Counter()


def _session(seed: int) -> int:
    """Session before the first one of a device that is powered up now: another for each device of a seed.

    An end keeps its session number through power cycles, or its partner could not see that it has begun again.
    """
    _powered_up[seed] += 1
    return (seed * 40503 + 257 * (_powered_up[seed] - 1)) & 0xFFFF


def link_config(config: LinkConfig | Config | Mapping[str, Any] | str) -> LinkConfig:
    """A configuration, the name of one, or fields that differ from the one named by `name`.

    Without a name, and for a core's configuration or its name, it is x8; with another window, the receive pool covers
    that one. Errors: PlexusError, one sentence.
    """
    if isinstance(config, LinkConfig):
        return config
    if isinstance(config, Config) or (isinstance(config, str) and config in NAMED):
        return LINKS[_DEFAULT]
    if not isinstance(config, (str, Mapping)):
        raise PlexusError(f"a link is a LinkConfig, the name of one or fields of one, not {config!r}")
    fields: dict[str, Any] = {"name": config} if isinstance(config, str) else dict(config)
    name = fields.pop("name", _DEFAULT)
    if not isinstance(name, str) or name not in LINKS:
        raise PlexusError(f"there is no link {name!r}; there are {', '.join(LINKS)}")
    base = LINKS[name].as_dict()
    for key in fields:
        if key not in base:
            raise PlexusError(f"a link has no field {key!r}; it has {', '.join(base)}")
    if "window_flits" in fields:
        base["shared_flits"] = COVERS_WINDOW
    for key, value in fields.items():
        many = isinstance(base[key], (tuple, list))
        if not (_whole(value) if not many else isinstance(value, (tuple, list)) and all(map(_whole, value))):
            raise PlexusError(f"link.{key} must be {'whole numbers' if many else 'a whole number'}, not {value!r}")
    values: dict[str, Any] = base | fields
    values["weights"] = tuple(values["weights"])
    try:
        return LinkConfig(**values)
    except ConfigError as error:
        raise PlexusError(str(error)) from None


def _whole(value: object) -> bool:
    """An integer, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _bytes(what: str, given: object) -> bytes:
    """What a caller gave as bytes. PlexusError if it is something else."""
    if not isinstance(given, (bytes, bytearray, memoryview)):
        raise PlexusError(f"{what} is bytes, not {type(given).__name__}")
    return bytes(given)


def _stated_bytes(packet: bytes) -> int:
    """Length of a packet by its opcode, flags and length; its own if the opcode is unknown."""
    header = PACKET_HEADER.unpack(int.from_bytes(packet[:PACKET_HEADER_BYTES], "little"))
    if header["opcode"] not in set(PacketOpcode) - {PacketOpcode.END}:
        return len(packet)
    payload = header["length_bytes"] if header["opcode"] in PAYLOAD_OPCODES else 0
    return PACKET_HEADER_BYTES + payload + (SIGNAL_BYTES if header["flags"] & PacketFlag.SIGNAL else 0)


class PortDevice:
    """One port on RTL at flit granularity, without lanes: `step` is a flit time, flits are not scrambled.

    `seed` chooses the first session; the next device of the same seed in a process has another one, as an end that was
    powered up again. A context manager; leaving frees the model. docs/link.md tells what the flits mean.
    `form`: of the codec; `plant`: the name of a fault to plant. Errors: PlexusError, one sentence.
    """

    def __init__(
        self,
        config: LinkConfig | Config | Mapping[str, Any] | str = _DEFAULT,
        seed: int = 0,
        *,
        form: str = "structural",
        plant: str = "",
    ):
        self.cfg = link_config(config)
        if form not in FORMS:
            raise PlexusError(FORM_ERROR.format(form))
        if not _whole(seed) or seed < 0:
            raise PlexusError(f"the seed must be a whole number of at least 0, not {seed!r}")
        options = {"form": form}
        built = build(
            "port_device", self.cfg, kind="native", options=options, planted=bool(plant), extra_cpp=PORT_SOURCES
        )
        self._port = NativePort(built.binary, session=_session(seed))
        if plant:
            self._port.set("plant", built.plant(plant))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the model."""
        self._port.close()

    def step(self, rx: bytes | None) -> bytes:
        """A flit time: takes 256 bytes, None for a flit that the receiver must refuse; returns the 256 bytes sent."""
        if rx is not None and len(_bytes("a flit", rx)) != FLIT_BYTES:
            raise PlexusError(f"a flit has {FLIT_BYTES} bytes, not {len(rx)}")
        return self._port.step(None if rx is None else bytes(rx))

    def send(self, cls: int, packet: bytes) -> bool:
        """Hand over a packet (header, payload, signal) in this class; False if there is no room for it now.

        Requests and responses of a class have room of their own. A packet with an unknown opcode or flag is taken,
        counted as `bad_packet` and not sent.
        """
        if not _whole(cls) or not 0 <= cls < self.cfg.classes:
            raise PlexusError(f"the class must be from 0 to {self.cfg.classes - 1}, not {cls!r}")
        longest = PACKET_HEADER_BYTES + PACKET_BYTES_MAX + SIGNAL_BYTES
        if not PACKET_HEADER_BYTES <= len(_bytes("a packet", packet)) <= longest:
            raise PlexusError(f"a packet has {PACKET_HEADER_BYTES} to {longest} bytes, not {len(packet)}")
        if (size := _stated_bytes(packet)) != len(packet):
            raise PlexusError(f"the packet's header states {size} bytes with it, not {len(packet)}")
        return self._port.send(cls, bytes(packet))

    def take(self) -> list[tuple[int, bytes]]:
        """All packets delivered since the last call, with their classes, in the order in which they came."""
        taken: list[tuple[int, bytes]] = []
        while (packet := self._port.take()) is not None:
            taken.append(packet)
        return taken

    def restart(self) -> None:
        """Hot reset in the next step: DOWN, one new session; what was in the retry buffer counts as unresolved."""
        self._port.restart()

    def disable(self, disabled: bool = True) -> None:
        """Hold the port in DISABLED, or let it go."""
        self._port.set("disabled", int(disabled))

    def hold(self, *, requests: bool = False, responses: bool = False) -> None:
        """Do not take these from the port: a slow receiver, whose credits run out."""
        self._port.set("take", int(not requests) | int(not responses) << 1)

    def status(self) -> dict[str, Any]:
        """`state` by name, `up`, `session`, `partner` (its session as last seen), `in_flight` (flits), `cycles`, and a
        counter for each LinkCause by its lower-case name."""
        state = LinkState(self._port.get("state"))
        return {
            "state": state.name.lower(),
            "up": state == LinkState.UP,
            "session": self._port.get("session"),
            "partner": self._port.get("partner"),
            "in_flight": self._port.get("in_flight"),
            "cycles": self._port.cycles,
            **{c.name.lower(): self._port.get(f"count_{c.name.lower()}") for c in LinkCause},
        }

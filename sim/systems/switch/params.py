"""What `plexus run switch` takes: parameters, their rules, and the configuration they make."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firmware.views import KernelError
from firmware.workload import Param, parse_params
from rtl.contract.config_changes import changed, settings
from rtl.contract.link import CLASSES, ENDPOINT_BITS, UNIT_FLITS_MAX
from rtl.contract.link_config import LINKS
from rtl.contract.switch_config import MATCHINGS, SWITCHES, SwitchConfig
from sim.errors import PlexusError
from sim.native.switch import CLASS_INPUTS, TRAFFIC, SwitchTraffic
from sim.run.variant import default_folder
from sim.systems.weights import parse_weights

__all__ = ["SWITCH_DOC", "SWITCH_PARAMS", "SwitchRun", "parse_switch", "read_routes"]

SWITCH_DOC = "a switch with an endpoint at every port, every flit checked"
SWITCH_PARAMS: dict[str, Param] = {
    "ports": Param(type=int, default=None, doc="the configuration's if not given", minimum=4, maximum=72),
    "traffic": Param(type=str, default="uniform", doc="who sends to whom", choices=TRAFFIC),
    "load": Param(
        type=float, default=1.0, doc="flits a source makes in a flit time, above 0; 1: never idle", minimum=0, maximum=1
    ),
    "packet_flits": Param(type=str, default="1", doc="flits of a unit, 1 to 4, or a range as in 1..4"),
    "weights": Param(type=str, default="1", doc="weights of the classes in use, as in 3:1"),
    "senders": Param(type=int, default=None, doc="sources of hotspot; all if not given", minimum=1, maximum=72),
    "class_inputs": Param(type=str, default="same", doc="which classes a source sends", choices=CLASS_INPUTS),
    "strict_class": Param(type=int, default=-1, doc="goes before the others; -1 none", minimum=-1, maximum=CLASSES - 1),
    "responses": Param(type=float, default=0.0, doc="share of units that are responses", minimum=0, maximum=1),
    "warmup_slots": Param(type=int, default=5_000, doc="flit times before the measurement", minimum=0, maximum=1 << 40),
    "slots": Param(type=int, default=20_000, doc="flit times that are measured", minimum=100, maximum=1 << 40),
    "flit_error_rate": Param(
        type=float, default=0.0, doc="share of flits refused, on every wire", minimum=0, maximum=1
    ),
    "delay": Param(type=int, default=0, doc="flit times on the wires, one way", minimum=0, maximum=200),
    "lanes": Param(type=int, default=None, doc="of a port; the configuration's if not given", minimum=1, maximum=16),
    "matching": Param(type=str, default=None, doc="who sends to whom in a flit time", choices=MATCHINGS),
    "codec": Param(type=str, default="native", doc="form of CRC and FEC", choices=("native", "structural")),
    "partitions": Param(type=int, default=1, doc="port p is in partition p mod so many", minimum=1, maximum=16),
    "routes": Param(type=str, default=None, doc="JSON file: a list of ports, by endpoint"),
    "dead_port": Param(
        type=int, default=None, doc="taken out during the run; its source is silent", minimum=0, maximum=71
    ),
    "dead_at": Param(type=int, default=None, doc="measured flit time at which; the middle", minimum=0, maximum=1 << 40),
    "back_at": Param(type=int, default=None, doc="and at which it is put back; never", minimum=1, maximum=1 << 40),
    "restarts": Param(
        type=int, default=0, doc="ports that restart or are taken out a while", minimum=0, maximum=10_000
    ),
    "backlog": Param(type=int, default=128, doc="flits that wait in a source at most", minimum=4, maximum=1 << 20),
    "seed": Param(type=int, default=None, doc="of everything random; the run's seed if not given", minimum=0),
}


def parse_switch(settings: Sequence[str]) -> dict[str, Any]:
    """All parameters from texts `name=value`. Errors: KernelError, one sentence."""
    values = {name: p.default for name, p in SWITCH_PARAMS.items()} | parse_params(settings, SWITCH_PARAMS, "switch")
    if values["load"] == 0:
        raise KernelError("load must be above 0: a switch without traffic has nothing to measure")
    weights = parse_weights(values["weights"])
    _flits(values["packet_flits"])
    if values["lanes"] is not None and f"x{values['lanes']}" not in LINKS:
        raise KernelError(f"lanes must be 1, 2, 4, 8 or 16, not {values['lanes']}")
    if values["strict_class"] >= len(weights):
        raise KernelError(
            f"strict_class must be one of the {len(weights)} classes in use, not {values['strict_class']}"
        )
    if values["senders"] is not None and values["traffic"] != "hotspot":
        raise KernelError(f"senders belongs to traffic=hotspot, not {values['traffic']}")
    if values["dead_port"] is None and (values["dead_at"] is not None or values["back_at"] is not None):
        raise KernelError("dead_at and back_at need dead_port")
    if values["dead_port"] is not None and values["restarts"]:
        raise KernelError("dead_port and restarts do not go together")
    return values


def _flits(text: str) -> tuple[int, int]:
    """Fewest and most flits of a unit."""
    low, _, high = text.partition("..")
    high = high or low
    if not (low.isdecimal() and high.isdecimal() and 1 <= int(low) <= int(high) <= UNIT_FLITS_MAX):
        raise KernelError(f"packet_flits must be 1 to {UNIT_FLITS_MAX}, or a range of these as in 1..4, not {text!r}")
    return int(low), int(high)


def read_routes(path: Path, ports: int) -> tuple[int, ...]:
    """The port of each endpoint. PlexusError, one sentence, if a unit would not arrive by it."""
    try:
        table = json.loads(path.read_text())
    except OSError as error:
        raise PlexusError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise PlexusError(f"{path} is no valid JSON: {error}") from None
    if not isinstance(table, list) or len(table) > 1 << ENDPOINT_BITS:
        raise PlexusError(f"{path} must be a list of at most {1 << ENDPOINT_BITS} ports, by endpoint")
    for endpoint in range(max(ports, len(table))):
        port = table[endpoint] if endpoint < len(table) else None
        if port is None:
            raise PlexusError(f"{path} has a hole: endpoint {endpoint} has no port")
        if type(port) is not int or not 0 <= port < ports:
            raise PlexusError(f"{path}: endpoint {endpoint} must go to a port from 0 to {ports - 1}, not {port!r}")
        if endpoint < ports and port != endpoint:
            raise PlexusError(
                f"{path} has a loop: endpoint {endpoint} is at port {endpoint}, "
                f"but is sent to port {port}, which sends it back"
            )
    return tuple(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRun:
    """What is asked for; `config`: a named switch, or "" for the smallest that has the ports.

    `out`: folder of the report, by default under build/.
    """

    params: Mapping[str, Any]
    config: str = ""
    settings: Sequence[str] = ()  # of --set
    seed: int = 0
    out: Path | None = None

    @property
    def cfg(self) -> SwitchConfig:
        """The named switch with the parameters' changes. Errors: PlexusError, ConfigError."""
        p = self.params
        if self.config and self.config not in SWITCHES:
            raise PlexusError(f"there is no switch {self.config!r}; there are {', '.join(SWITCHES)}")
        wanted = p["ports"]
        if self.config:
            base = SWITCHES[self.config]
        else:
            least = 16 if wanted is None else wanted
            base = next(c for c in sorted(SWITCHES.values(), key=lambda c: c.ports) if c.ports >= least)
        ports = base.ports if wanted is None else wanted
        if ports > base.ports:
            raise PlexusError(f"ports must be at most {base.ports}, which {base.name} has, not {ports}")
        link = base.link
        if p["lanes"] is not None:
            link = replace(LINKS[f"x{p['lanes']}"], shared_flits=link.shared_flits)
        weights = parse_weights(p["weights"])
        link = replace(link, weights=weights + (1,) * (CLASSES - len(weights)), strict_class=p["strict_class"])
        matching = base.matching if p["matching"] is None else p["matching"]
        return changed(replace(base, ports=ports, link=link, matching=matching), settings(self.settings), "a setting")

    def traffic(self, cfg: SwitchConfig) -> SwitchTraffic:
        """What goes through it. Errors: PlexusError."""
        p = self.params
        for name, limit in (("dead_port", cfg.ports - 1), ("senders", cfg.ports)):
            if p[name] is not None and p[name] > limit:
                raise PlexusError(f"{name} must be at most {limit} with {cfg.ports} ports, not {p[name]}")
        routes = read_routes(Path(p["routes"]), cfg.ports) if p["routes"] else tuple(range(cfg.ports))
        return SwitchTraffic(
            traffic=p["traffic"],
            load=p["load"],
            flits=_flits(p["packet_flits"]),
            weights=parse_weights(p["weights"]),
            senders=p["senders"] or cfg.ports,
            routes=routes,
            partitions=tuple(port % p["partitions"] for port in range(cfg.ports)),
            class_inputs=p["class_inputs"],
            responses=p["responses"],
            backlog_flits=p["backlog"],
            strict_class=p["strict_class"],
            strict_cap=cfg.link.strict_cap,
            silent_port=-1 if p["dead_port"] is None else p["dead_port"],
            flit_error_rate=p["flit_error_rate"],
            delay_flits=p["delay"],
            seed=self.seed if p["seed"] is None else p["seed"],
        )

    @property
    def folder(self) -> Path:
        """Where report.json goes."""
        asked = dict(self.params) | {"run_seed": self.seed} | ({"set": list(self.settings)} if self.settings else {})
        plain = parse_switch(()) | {"run_seed": 0}
        return self.out or default_folder("switch", SWITCHES[self.cfg.name], asked, plain)

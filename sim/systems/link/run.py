"""`plexus run link`: two ports on RTL, saturating traffic both ways, faults on the wires, every packet checked."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from firmware.views import KernelError
from firmware.workload import Param, parse_params
from rtl.contract.lanes import LANE_WORD_BYTES
from rtl.contract.link import CLASSES, FLIT_BYTES, FLIT_PAYLOAD_BYTES, PACKET_BYTES_MAX
from rtl.contract.link_config import COVERS_WINDOW, LINKS, LinkConfig
from sim.build.model import build
from sim.errors import PlexusError
from sim.native.ports import PAIR_SOURCES, LinkCounts, NativeLink, Wires
from sim.report.report_json import write_report
from sim.run.cycles_bar import cycles_bar
from sim.run.repeat import configured
from sim.run.variant import changes, default_folder
from sim.systems.link.model import line_share, what_limits
from sim.systems.quantiles import quantiles
from sim.systems.series import Series, save_series, stops
from sim.systems.weights import parse_weights
from sim.toolchain import tool_versions

__all__ = ["LINK_DOC", "LINK_PARAMS", "LinkRun", "parse_link", "run_link"]

LINK_DOC = "two ports, saturated both ways, with faults on the wires"
LINK_PARAMS: dict[str, Param] = {
    "flits": Param(type=int, default=10_000, doc="flit times that are measured", minimum=100, maximum=1 << 40),
    "flit_error_rate": Param(type=float, default=0.0, doc="share of flits the receiver refuses", minimum=0, maximum=1),
    "burst_rate": Param(type=float, default=0.0, doc="share of flits with a burst on one lane", minimum=0, maximum=1),
    "burst_bytes": Param(
        type=int, default=3, doc="consecutive bytes of a lane that a burst damages", minimum=1, maximum=16
    ),
    "burst_lanes": Param(
        type=str, default=None, doc="lanes that bursts hit, as in 2:5; those first in use if not given"
    ),
    "lanes": Param(type=int, default=8, doc="lanes at full width", minimum=1, maximum=16),
    "spare_lanes": Param(type=int, default=None, doc="beside them; the link's if not given", minimum=0, maximum=2),
    "packet_bytes": Param(type=int, default=256, doc="payload of a packet", minimum=0, maximum=PACKET_BYTES_MAX),
    "weights": Param(type=str, default="1", doc="weights of the classes in use, as in 3:1"),
    "responses": Param(type=bool, default=False, doc="read responses beside the writes"),
    "delay": Param(type=int, default=4, doc="flit times on the wires, one way", minimum=1, maximum=200),
    "window": Param(type=int, default=None, doc="flits; the link's if not given", minimum=1, maximum=511),
    "shared_flits": Param(
        type=int,
        default=None,
        doc="places of the receive pool for all classes of a kind; as many as cover the window if not given",
        minimum=0,
    ),
    "kill_lane": Param(type=int, default=None, doc="a lane of one direction that dies", minimum=0, maximum=17),
    "kill_at": Param(type=int, default=1000, doc="flit time at which it does", minimum=0, maximum=1 << 40),
    "codec": Param(type=str, default="structural", doc="form of CRC and FEC", choices=("structural", "native")),
    "seed": Param(type=int, default=None, doc="of packets and faults; the run's seed if not given", minimum=0),
}
_UP_FLITS = 5_000  # until both ends are up
_WARM_FLITS = 500
_DRAIN_FLITS = 200_000
_SLICE = 4_096


def parse_link(settings: Sequence[str]) -> dict[str, Any]:
    """All parameters from texts `name=value`. Errors: KernelError, one sentence."""
    values = {name: p.default for name, p in LINK_PARAMS.items()} | parse_params(settings, LINK_PARAMS, "link")
    parse_weights(values["weights"])
    if f"x{values['lanes']}" not in LINKS:
        raise KernelError(f"lanes must be 1, 2, 4, 8 or 16, not {values['lanes']}")
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRun:
    """What is asked for; `config`: a named link, if not the one of so many lanes; `settings`: its fields, key=value;
    parameters that are given come after them; `out`: folder of the report, by default under build/."""

    params: Mapping[str, Any]
    config: str = ""
    settings: tuple[str, ...] = ()
    seed: int = 0
    out: Path | None = None

    @property
    def cfg(self) -> LinkConfig:
        """The link with all changes. Errors: ConfigError, PlexusError."""
        base = configured(self.config or f"x{self.params['lanes']}", self.settings)
        if not isinstance(base, LinkConfig):
            raise PlexusError(f"{self.config} is no configuration of a link; there are {', '.join(LINKS)}")
        given = parse_weights(self.params["weights"])
        weights = base.weights if given == (1,) else given + (1,) * (CLASSES - len(given))
        set_alone = any(text.partition("=")[0].strip() == "shared_flits" for text in self.settings)
        shared = base.shared_flits if set_alone else COVERS_WINDOW
        window = base.window_flits if self.params["window"] is None else self.params["window"]
        spares = base.spare_lanes if self.params["spare_lanes"] is None else self.params["spare_lanes"]
        shared = shared if self.params["shared_flits"] is None else self.params["shared_flits"]
        return replace(
            base,
            window_flits=window,
            spare_lanes=spares,
            shared_flits=shared,
            weights=weights,
        )

    @property
    def folder(self) -> Path:
        """Where report.json goes."""
        settings, plain = dict(self.params) | {"run_seed": self.seed}, parse_link(()) | {"run_seed": 0}
        cfg = self.cfg if self.settings else LINKS[self.cfg.name]
        return self.out or default_folder("link", cfg, settings, plain)


def _bring_up(link: NativeLink, flit_cycles: int) -> None:
    for _ in range(_UP_FLITS // 50):
        link.run(50 * flit_cycles, sending=False)
        if link.up:
            link.run(_WARM_FLITS * flit_cycles, sending=True, milliseconds=60_000)
            return
    raise PlexusError(f"the link is not up after {_UP_FLITS} flit times; with these faults it may never be")


def _measure(link: NativeLink, flits: int, flit_cycles: int, console: Console) -> Series:
    """Saturated for so many flit times, with progress where somebody can see it."""
    cycles = flits * flit_cycles
    series = Series(flit_cycles=flit_cycles)
    begin = link.counts().cycles
    with cycles_bar(console, "simulate link", cycles) as watch:
        for at in [0, *stops(cycles, flit_cycles)]:
            while (done := link.counts().cycles - begin) < at:
                watch(done)
                link.run(min(_SLICE, at - done), sending=True)
            _note(series, link.counts(), begin)
    return series


def _note(series: Series, counts: LinkCounts, begin: int) -> None:
    """A sample of the measurement that began in cycle `begin`; what is offered, delivered and waits are packets."""
    series.cycle.append(counts.cycles - begin)
    series.offered.append(counts.sent)
    series.blocked.append(0)
    series.payload_flits.append(counts.payload_flits)
    series.delivered.append(counts.delivered)
    series.by_class.append(counts.by_class)
    series.waiting.append([counts.outstanding])
    series.refused.append(counts.refused)
    series.replays.append(counts.replays)
    series.downs.append(counts.downs)


def _burst_lanes(text: str | None, cfg: LinkConfig) -> int:
    """Mask of the lanes that bursts hit, 0 if none are named. PlexusError if there is no such lane."""
    parts = text.split(":") if text is not None else []
    last = cfg.lanes + cfg.spare_lanes - 1
    if not all(p.isdecimal() and int(p) <= last for p in parts):
        raise PlexusError(f"burst_lanes must be numbers from 0 to {last} with : between them, not {text!r}")
    return sum(1 << lane for lane in {int(p) for p in parts})


def _killed(p: Mapping[str, Any], cfg: LinkConfig) -> dict[str, int]:
    """The lane that dies, and when, as Wires takes it. PlexusError if there is no such lane."""
    lane = p["kill_lane"]
    if lane is None:
        return {}
    if lane >= cfg.lanes + cfg.spare_lanes:
        raise PlexusError(f"kill_lane must be from 0 to {cfg.lanes + cfg.spare_lanes - 1}, not {lane}")
    return {"kill_lane": lane, "kill_cycle": p["kill_at"] * cfg.flit_cycles}


def run_link(run: LinkRun, console: Console) -> dict[str, Any]:
    """Everything that `plexus run link` does but printing. Returns the report, which is on disk too.

    Errors: PlexusError, one sentence.
    """
    p = run.params
    seed = run.seed if p["seed"] is None else p["seed"]
    cfg = run.cfg
    begin = time.monotonic()
    built = build("port_lanes", cfg, kind="native", options={"form": p["codec"]}, extra_cpp=PAIR_SOURCES)
    wires = Wires(
        flit_error_rate=p["flit_error_rate"],
        burst_rate=p["burst_rate"],
        burst_bytes=p["burst_bytes"],
        burst_lanes=_burst_lanes(p["burst_lanes"], cfg),
        packet_bytes=p["packet_bytes"],
        classes=len(parse_weights(p["weights"])),
        responses=p["responses"],
        delay_flits=p["delay"],
        seed=seed,
        **_killed(p, cfg),
    )
    link = NativeLink(built.binary, cfg, wires)
    try:
        _bring_up(link, cfg.flit_cycles)
        before = link.counts()
        link.count_gaps(True)
        series = _measure(link, p["flits"], cfg.flit_cycles, console)
        link.count_gaps(False)
        during = link.counts()
        for _ in range(_DRAIN_FLITS * cfg.flit_cycles // _SLICE):
            if link.counts().outstanding == 0:
                break
            link.run(_SLICE, sending=False, milliseconds=60_000)
        after = link.counts()
        seconds = link.seconds
        series.latency = [bins for bins in link.latency()]
    finally:
        link.close()
    report = _report(run, cfg, seed, before, during, after, seconds)
    report |= _latency(series, during)
    report["events"] = _events(cfg, before, during)
    report["total_seconds"] = round(time.monotonic() - begin, 3)
    if p["kill_lane"] is not None and 0 <= (at := p["kill_at"] * cfg.flit_cycles - before.cycles) < series.cycle[-1]:
        series.event_cycle, series.event_kind, series.event_port = [at], ["lane dies"], [p["kill_lane"]]
    save_series(series, run.folder)
    write_report(report, run.folder)
    return report


def _latency(series: Series, during: LinkCounts) -> dict[str, Any]:
    """Link cycles of packets delivered while it is measured, from the port that took them to their delivery."""
    whole = [sum(column) for column in zip(*series.latency, strict=True)]
    return {"latency_cycles": quantiles(whole, during.latency_max) | {"packets": sum(whole)}}


def _events(cfg: LinkConfig, before: LinkCounts, during: LinkCounts) -> dict[str, int]:
    """What has happened at both ends between the two (docs/energy.md); a word of every lane goes in each cycle."""
    cycles = during.cycles - before.cycles
    stored, resent, flits = (getattr(during, n) - getattr(before, n) for n in ("payload_flits", "resent", "flits"))
    lanes = cfg.lanes + cfg.spare_lanes
    return {
        "cycles": cycles,
        "devices": 2,
        "beats": flits * cfg.beats,
        "payload_beats": (stored + resent) * cfg.beats,
        "stored_beats": stored * cfg.beats,
        "lane_cycles": 2 * cycles,
        "wire_bits": 2 * cycles * lanes * 8 * LANE_WORD_BYTES,
    }


def _report(
    run: LinkRun,
    cfg: LinkConfig,
    seed: int,
    before: LinkCounts,
    during: LinkCounts,
    after: LinkCounts,
    seconds: float,
) -> dict[str, Any]:
    """The keys of report.json; rates are those between `before` and `during`, verdicts those of the whole run."""
    times = 2 * (during.cycles - before.cycles) / cfg.flit_cycles  # of both ends
    flits = during.payload_flits - before.payload_flits
    replays = during.replays - before.replays
    trips = during.round_trips - before.round_trips
    if trips:
        trip = (during.round_trip_sum - before.round_trip_sum) / trips / cfg.flit_cycles
    else:  # a nak is heard when the flit behind the lost one has come
        acks = max(1, during.acks - before.acks)
        trip = (during.ack_sum - before.ack_sum) / acks / cfg.flit_cycles + 1
    rate = run.params["flit_error_rate"]
    share = [d - b for d, b in zip(during.by_class, before.by_class, strict=True)]
    # What was sent and not delivered is lost, unless an end has said that it does not know.
    lost = after.lost + (after.outstanding if after.unresolved == 0 else 0)
    whole = after.duplicated == after.reordered == after.corrupted == lost == 0
    weights = parse_weights(run.params["weights"])
    traffic = {
        "delay_flits": run.params["delay"],
        "packet_bytes": run.params["packet_bytes"],
        "classes": len(weights),
        "responses": run.params["responses"],
    }
    line = line_share(cfg, **traffic)
    predicted = flits / (flits / line + replays * trip) if flits else 0.0
    return {
        "workload": "link",
        "params": dict(run.params),
        "config": cfg.name,
        "config_hash": cfg.hash,
        "config_changes": changes(cfg)[1],
        "link": cfg.as_dict(),
        "codec": run.params["codec"],
        "seed": seed,
        "tool_versions": tool_versions(),
        "match": whole,
        "end": "done" if after.outstanding == 0 else "unresolved" if after.unresolved else "stuck",
        "cycles": after.cycles,
        "nanoseconds": round(after.cycles * 1000 / cfg.clock_mhz, 3),
        "wall_seconds": round(seconds, 6),
        "cycles_per_second": round(after.cycles / seconds) if seconds else 0,
        "flit_times": after.cycles // cfg.flit_cycles,
        "packets_sent": after.sent,
        "packets_delivered": after.delivered,
        "lost": lost,
        "duplicated": after.duplicated,
        "reordered": after.reordered,
        "corrupted": after.corrupted,
        "unresolved": after.unresolved,
        "goodput": round(FLIT_PAYLOAD_BYTES * flits / (FLIT_BYTES * times), 6),
        "goodput_predicted": round(FLIT_PAYLOAD_BYTES / FLIT_BYTES * predicted, 6),
        "limited_by": "width" if after.width < cfg.lanes else what_limits(cfg, line, **traffic),
        "packet_goodput": round((during.payload_bytes - before.payload_bytes) / (FLIT_BYTES * times), 6),
        "payload_flits": flits,
        "damaged_flits": during.damaged - before.damaged,
        "refused_flits": during.refused - before.refused,
        "malformed_flits": during.malformed - before.malformed,
        "replays": replays,
        "replays_expected": round(flits * rate / (1 - rate), 3) if rate < 1 else None,
        "replayed_flits": during.resent - before.resent,
        "spurious_replays": after.spurious,
        "corrections": during.corrections - before.corrections,
        "bursts": during.bursts - before.bursts,
        "round_trip_flits": round(trip, 3),
        "recovery_flits": -(-during.longest_gap // cfg.flit_cycles),
        "width": after.width,
        "retrains": after.retrained,
        "downs": after.downs,
        "class_shares": [round(n / max(1, sum(share)), 6) for n in share[: len(weights)]],
    }

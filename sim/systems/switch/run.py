"""`plexus run switch`: a switch on RTL with an endpoint at every port, every flit checked."""

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from rtl.contract.link import LinkCause
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import (
    ResponderRegister,
    SwitchCause,
    SwitchRegister,
    SwitchSpace,
    port_address,
    route_address,
)
from sim.build.model import build
from sim.errors import PlexusError
from sim.native.switch import SWITCH_SOURCES, NativeSwitch, SwitchCounts, SwitchTraffic
from sim.report.report_json import write_report
from sim.run.cycles_bar import cycles_bar
from sim.run.variant import changes
from sim.systems.series import Series, save_series, stops
from sim.systems.switch.measures import events_of, fairness, latencies, rates, verdict
from sim.systems.switch.params import SwitchRun
from sim.toolchain import tool_versions

__all__ = ["bring_up", "run_switch"]

_UP_SLOTS = 5_000  # until every link is up
_DRAIN_SLOTS = 400_000
_SETTLE_SLOTS = 200  # after a port was taken out, before rates are taken
_OUT_SLOTS = 300  # that a port is out in a restart of that kind
_SLICE = 4_096
_QUIET_SLOTS = 2_000  # without a delivery, after which nothing more is expected
_ROUTE_VALID = 1 << 15
_WORDS = {"endpoint": "endpoint restarts", "port": "port restarts", "out": "port is taken out", "back": "port is back"}
"""Events as series.npz names them."""


def bring_up(switch: NativeSwitch, cfg: SwitchConfig, traffic: SwitchTraffic) -> None:
    """All links up, routes and partitions written."""
    for _ in range(_UP_SLOTS // 50):
        switch.run(50 * cfg.slot_cycles, sending=False, milliseconds=60_000)
        if switch.up:
            break
    else:
        raise PlexusError(f"not every link is up after {_UP_SLOTS} flit times; with these faults they may never be")
    for endpoint, port in enumerate(traffic.routes):
        if endpoint >= cfg.ports:
            switch.write(route_address(endpoint), port | _ROUTE_VALID)
    for port, partition in enumerate(traffic.partitions):
        if partition:
            switch.write(port_address(port, SwitchRegister.PARTITION), partition)


Event = tuple[int, str, int]  # cycle after the measurement's begin, what, port


def _events(run: SwitchRun, cfg: SwitchConfig, seed: int) -> list[Event]:
    """What happens to ports while it is measured, in order. PlexusError if it would be too late."""
    p, slots = run.params, run.params["slots"]
    events: list[Event] = []
    if p["dead_port"] is not None:
        dead = slots // 2 if p["dead_at"] is None else p["dead_at"]
        back = p["back_at"]
        if dead >= slots or (back is not None and not dead < back < slots):
            raise PlexusError(f"dead_at and back_at must follow each other and lie below the {slots} slots")
        events += [(dead, "out", p["dead_port"]), (dead + min(_SETTLE_SLOTS, slots // 20), "settled", p["dead_port"])]
        events += [] if back is None else [(back, "back", p["dead_port"])]
    rng = random.Random(seed)
    for n in range(p["restarts"]):
        port, at = rng.randrange(cfg.ports), (n + 1) * slots // (p["restarts"] + 1)
        kind = ("endpoint", "port", "out")[n % 3]
        events.append((at, kind, port))
        events += [(min(at + _OUT_SLOTS, slots - 1), "back", port)] if kind == "out" else []
    return [(at * cfg.slot_cycles, kind, port) for at, kind, port in sorted(events)]


def _told(switch: NativeSwitch, cfg: SwitchConfig) -> dict[str, int]:
    """What a switch has counted, by lower-case names: all ports by SwitchCause and, with link_, LinkCause; and, with
    responder_, its responder."""
    causes = [(c.name.lower(), SwitchRegister.CAUSE + 8 * c) for c in SwitchCause]
    causes += [(f"link_{c.name.lower()}", SwitchRegister.LINK_CAUSE + 8 * c) for c in LinkCause]
    ports = range(cfg.ports)
    told = {name: sum(switch.read(port_address(p, SwitchRegister.STATE) + at) for p in ports) for name, at in causes}
    registers = {f"responder_{r.name.lower()}": switch.read(SwitchSpace.RESPONDER + r) for r in ResponderRegister}
    return told | registers


def _happen(switch: NativeSwitch, kind: str, port: int) -> None:
    if kind in ("out", "back"):
        switch.take_out(port, kind == "out")
    elif kind in ("port", "endpoint"):
        switch.restart(port, endpoint=kind == "endpoint")


def _measure(
    switch: NativeSwitch, cycles: int, events: Sequence[Event], console: Console
) -> Iterator[tuple[str, int, SwitchCounts]]:
    """Run for so many link cycles, with progress where somebody can see it. Yields event, port and counts behind it."""
    begin = switch.counts().cycles
    with cycles_bar(console, "simulate switch", cycles) as watch:
        for at, kind, port in [*events, (cycles, "end", 0)]:
            while (done := switch.counts().cycles - begin) < at:
                watch(done)
                switch.run(min(_SLICE, at - done), sending=True)
            _happen(switch, kind, port)
            yield kind, port, switch.counts()


def _note(series: Series, switch: NativeSwitch, counts: SwitchCounts, begin: int) -> None:
    """A sample of the measurement that began in cycle `begin`."""
    series.cycle.append(counts.cycles - begin)
    series.offered.append(counts.offered_flits)
    series.blocked.append(counts.blocked_flits)
    series.payload_flits.append(counts.payload_flits)
    series.delivered.append(counts.flits_delivered)
    series.by_class.append(counts.by_class)
    series.waiting.append(switch.waiting())
    series.refused.append(counts.refused)
    series.replays.append(counts.replays)
    series.downs.append(counts.downs)


def _measured(
    switch: NativeSwitch, cfg: SwitchConfig, slots: int, events: Sequence[Event], console: Console
) -> tuple[list[tuple[str, SwitchCounts]], Series]:
    """Counts at the begin, behind each event and at the end; and samples between them."""
    cycles, begin = slots * cfg.slot_cycles, switch.counts()
    series, marks = Series(flit_cycles=cfg.slot_cycles), [("begin", begin)]
    _note(series, switch, begin, begin.cycles)
    samples = [(at, "sample", 0) for at in stops(cycles, cfg.slot_cycles)[:-1]]
    for kind, port, counts in _measure(switch, cycles, sorted([*events, *samples]), console):
        if kind in ("sample", "end"):
            _note(series, switch, counts, begin.cycles)
        elif kind != "settled":
            series.event_cycle.append(counts.cycles - begin.cycles)
            series.event_kind.append(_WORDS[kind])
            series.event_port.append(port)
        if kind != "sample":
            marks.append((kind, counts))
    return marks, series


def _drain(switch: NativeSwitch, cfg: SwitchConfig) -> SwitchCounts:
    """Until nothing is under way, or nothing moves."""
    moved, counts = 0, switch.counts()
    for _ in range(_DRAIN_SLOTS * cfg.slot_cycles // _SLICE):
        switch.run(_SLICE, sending=False, milliseconds=60_000)
        before, counts = counts, switch.counts()
        moved = 0 if counts.units_delivered != before.units_delivered else moved + 1
        whole = counts.outstanding == counts.waiting_flits == counts.unsettled == 0
        if whole or moved * _SLICE > _QUIET_SLOTS * cfg.slot_cycles:
            break
    return counts


def run_switch(run: SwitchRun, console: Console) -> dict[str, Any]:
    """Everything that `plexus run switch` does but printing. Returns the report, which is on disk too.

    Errors: PlexusError, one sentence.
    """
    begin = time.monotonic()
    p, cfg = run.params, run.cfg
    traffic = run.traffic(cfg)
    events = _events(run, cfg, traffic.seed)
    built = build("switch", cfg, kind="native", options={"form": p["codec"]}, extra_cpp=SWITCH_SOURCES)
    switch = NativeSwitch(built.binary, cfg, traffic)
    try:
        bring_up(switch, cfg, traffic)
        for _ in _measure(switch, p["warmup_slots"] * cfg.slot_cycles, [], console):
            pass
        switch.latency(forget=True)
        marks, series = _measured(switch, cfg, p["slots"], events, console)
        histograms = switch.latency()
        series.latency = [bins for bins in histograms[0]]
        seconds, cycles = switch.seconds, switch.counts().cycles
        classes = switch.classes()
        after = _drain(switch, cfg)
        told = _told(switch, cfg)
    finally:
        switch.close()
    report = {
        "workload": "switch",
        "params": dict(p),
        "config": cfg.name,
        "config_hash": cfg.hash,
        "config_changes": changes(cfg)[1],
        "switch": cfg.as_dict(),
        "codec": p["codec"],
        "seed": traffic.seed,
        "tool_versions": tool_versions(),
        **verdict(after, told),
        "cycles": after.cycles,
        "nanoseconds": round(after.cycles * 1000 / cfg.link.clock_mhz, 3),
        **rates(cfg, traffic, marks),
        **fairness(traffic, classes, marks[0][1], marks[-1][1]),
        **latencies(cfg, *histograms, marks[-1][1].latency_max),
        "port_counters": told,
        "events": events_of(cfg, marks[0][1], marks[-1][1]),
    }
    report["wall_seconds"] = round(seconds, 6)
    report["cycles_per_second"] = round(cycles / seconds) if seconds else 0
    report["total_seconds"] = round(time.monotonic() - begin, 3)
    save_series(series, run.folder)
    write_report(report, run.folder)
    return report

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
from sim.systems.switch.measures import fairness, latencies, rates, verdict
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
) -> Iterator[tuple[str, SwitchCounts]]:
    """Run for so many link cycles, with progress where somebody can see it. Yields counts behind each event."""
    begin = switch.counts().cycles
    with cycles_bar(console, "simulate switch", cycles) as watch:
        for at, kind, port in [*events, (cycles, "end", 0)]:
            while (done := switch.counts().cycles - begin) < at:
                watch(done)
                switch.run(min(_SLICE, at - done), sending=True)
            if kind != "end":
                _happen(switch, kind, port)
            yield kind, switch.counts()


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
        marks = [("begin", switch.counts())]
        marks += _measure(switch, p["slots"] * cfg.slot_cycles, events, console)
        histograms = switch.latency()
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
    }
    report["wall_seconds"] = round(seconds, 6)
    report["cycles_per_second"] = round(cycles / seconds) if seconds else 0
    report["total_seconds"] = round(time.monotonic() - begin, 3)
    write_report(report, run.folder)
    return report

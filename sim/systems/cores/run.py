"""A workload of several cores: build, run, compare with NumPy and the golden machines, report."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

from firmware.cores.ensemble import Ensemble, Mark
from firmware.image import build_images
from rtl.base.packet import BEAT_BYTES
from rtl.contract.config import Config
from rtl.contract.memmap import core_place
from rtl.dma.fabric.packets import CHUNK_BYTES
from sim.report.report_json import write_report
from sim.run.checking import match_of
from sim.run.compare import Comparison, compare
from sim.run.cycles_bar import cycles_bar
from sim.run.device import find_device
from sim.run.result import ENDS
from sim.run.variant import changes
from sim.systems.cores.joined import CoresResult, run_cores
from sim.systems.cores.params import CoresRun
from sim.toolchain import tool_versions

__all__ = ["link_bytes_per_cycle", "run_several"]


def link_bytes_per_cycle(cfg: Config) -> float:
    """What the movers of a link carry each way, at most what packets of CHUNK_BYTES leave of a beat of 64 bytes a
    cycle: one beat is their header, and there is a cycle between two packets (docs/endpoint.md)."""
    beats = CHUNK_BYTES // BEAT_BYTES
    return min(16.0 * cfg.dma.link_movers, CHUNK_BYTES / (beats + 2))


def run_several(run: CoresRun, console: Console) -> dict[str, Any]:
    """Everything that `plexus run` does but printing. Returns the report, which is on disk too.

    Errors: PlexusError, ConfigError, KernelError, ImageError, in a sentence.
    """
    begin = time.monotonic()
    with console.status("build the programs"):
        ensemble = run.ensemble()
    with cycles_bar(console, f"simulate {run.workload}", 1) as watch:
        result = run_cores(
            ensemble.programs,
            run.cfg,
            delay_cycles=run.params["delay"],
            threads=run.threads,
            array=run.array,
            watch=watch,
        )
    with console.status("golden machines"):
        found, against = _checked(run, ensemble, result)
    report = _report(run, ensemble, result, found, against)
    report["total_seconds"] = round(time.monotonic() - begin, 3)
    write_report(report, run.folder)
    return report


def _checked(run: CoresRun, ensemble: Ensemble, result: CoresResult) -> tuple[Comparison, str]:
    """Bits beside those of NumPy and, unless that is not wanted, all of HBM beside the golden machines'; with which it
    differs."""
    if result.end != "done":
        return Comparison(match=False, elements=0, why=f"there is nothing to compare: {ENDS[result.end]}"), ""
    for (core, name), bits in ensemble.truth.items():
        found = compare(result.results[core].outputs, {name: bits})
        if not found.match:
            return found, f"NumPy's at core {core_place(core)}"
    elements = sum(bits.size for bits in ensemble.truth.values())
    if run.check == "none":
        return Comparison(match=True, elements=elements), ""
    images = build_images(ensemble.programs)
    golden = find_device("golden_cores")(run.cfg, list(images))
    golden.load(images)
    try:
        expected = golden.run()
    except RuntimeError as error:
        return Comparison(match=False, elements=0, why=f"the golden machines cannot finish this: {error}"), ""
    for core, want in expected.items():
        end = images[core].hbm_bytes
        found = compare({"hbm": result.hbm[core]}, {"hbm": want.hbm[:end]})
        if not found.match:
            return found, f"the golden machine's of core {core_place(core)}"
    return Comparison(match=True, elements=elements), ""


def _times(result: CoresResult, marks: Sequence[Mark]) -> np.ndarray:
    """Cycles at which marked instructions ended; without those that never did."""
    times: list[int] = []
    for mark in marks:
        log = result.results[mark.core].retired
        hit = log["cycle"][(log["queue"] == mark.queue) & (log["sequence"] == mark.sequence)]
        times += [int(hit[0])] if len(hit) else []
    return np.array(times, np.int64)


def _forward(cfg: Config, p: Mapping[str, Any], times: np.ndarray) -> dict[str, Any]:
    """Rates of a wire in the later half of the tiles, when all places are in use."""
    size = 4 * cfg.partitions * p["columns"]
    late = times[len(times) // 2 :]
    period = float(late[-1] - late[0]) / (len(late) - 1) if len(late) > 1 else 0.0
    vector = 4 * cfg.partitions * cfg.vector.clock_mhz / cfg.tensor.clock_mhz
    bounds = {"link": link_bytes_per_cycle(cfg), "vector": vector, "hbm": cfg.hbm.bytes_per_cycle}
    if p["cores"] == 1:
        del bounds["link"]
    by = min(bounds, key=lambda name: bounds[name])
    return {
        "tile_bytes": size,
        "forwarded_bytes": size * p["tiles"] * (p["cores"] - 1),
        "cycles_per_tile": round(period, 3),
        "bytes_per_cycle": round(size / period, 3) if period else 0.0,
        "bound_bytes_per_cycle": round(float(bounds[by]), 3),
        "bound_by": by,
    }


def _ping_pong(cfg: Config, p: Mapping[str, Any], times: np.ndarray) -> dict[str, Any]:
    """From the wait for a signal that ends in one core to the one in the other: half a round."""
    rounds = np.diff(times)
    one_way = float(rounds.mean()) / 2 if len(rounds) else 0.0
    return {
        "signal_cycles": round(one_way, 3),
        "signal_nanoseconds": round(one_way * 1000 / cfg.tensor.clock_mhz, 3),
        "wire_cycles": p["delay"],
        "round_cycles_min": int(rounds.min()) if len(rounds) else 0,
        "round_cycles_max": int(rounds.max()) if len(rounds) else 0,
    }


def _remote(cfg: Config, p: Mapping[str, Any], times: np.ndarray) -> dict[str, Any]:
    """Rate one way from the arrival of the first tile to that of the last, of both ways if there are two."""
    size = p["columns"] * cfg.partitions * (2 if p["add"] == "bf16" else 4)
    ways = 2 if p["direction"] == "both" else 1
    took = int(times.max() - times.min()) if len(times) == ways * p["tiles"] else 0
    bounds = {"link": link_bytes_per_cycle(cfg)}
    if "hbm" in (p["near"], p["far"]):
        bounds["hbm"] = cfg.hbm.bytes_per_cycle / ways
    by = min(bounds, key=lambda name: bounds[name])
    return {
        "tile_bytes": size,
        "moved_bytes": size * p["tiles"] * ways,
        "bytes_per_cycle": round(size * (p["tiles"] - 1) / took, 3) if took else 0.0,
        "bound_bytes_per_cycle": round(bounds[by], 3),
        "bound_by": by,
    }


_METRICS = {"forward": ("added", _forward), "ping_pong": ("back", _ping_pong), "remote": ("arrived", _remote)}


def _core(core: int, result: CoresResult) -> dict[str, Any]:
    one = result.results[core]
    return {
        "core": list(core_place(core)),
        "cycles": one.cycles,
        "sent_beats": result.sent_beats[core],
        "hbm_bytes_read": one.hbm_bytes_read,
        "hbm_bytes_written": one.hbm_bytes_written,
        "instructions_retired": one.retired_total,
        "engines": {name: {"busy": e.busy, "idle": e.idle, "stall": dict(e.stall)} for name, e in one.engines.items()},
        "unfinished": dict(one.progress),
    }


def _report(run: CoresRun, ensemble: Ensemble, result: CoresResult, found: Comparison, against: str) -> dict[str, Any]:
    """The keys of report.json."""
    cfg = run.cfg
    base, changed = changes(cfg)
    mark, metrics = _METRICS[run.workload]
    times = _times(result, ensemble.marks[mark])
    return {
        "workload": run.workload,
        "params": dict(run.params),
        "config": cfg.name,
        "config_hash": cfg.hash,
        "config_file": run.file,
        "config_base": base,
        "config_changes": changed,
        "config_resolved": cfg.as_dict(),
        "array": run.array,
        "seed": run.seed,
        "tool_versions": tool_versions(),
        "match": match_of(run.check, found.match),
        "mismatch": found.first.as_dict() | {"against": against} if found.first else None,
        "not_compared": found.why,
        "end": result.end,
        "end_message": result.message or ENDS[result.end],
        "faults": [
            {"core": list(core_place(core)), "told": str(fault)}
            for core, one in result.results.items()
            for fault in one.faults
        ],
        "cycles": result.cycles,
        "nanoseconds": round(result.cycles * 1000 / cfg.tensor.clock_mhz, 3),
        "threads": run.threads,
        "simulated_cycles": result.simulated_cycles,
        "wall_seconds": round(result.seconds, 6),
        "cpu_seconds": round(result.cpu_seconds, 6),
        "cycles_per_second": round(result.simulated_cycles / result.seconds) if result.seconds else 0,
        "core_cycles_per_cpu_second": round(result.core_cycles_per_cpu_second),
        "cores": [_core(core, result) for core in result.results],
        "metrics": metrics(cfg, run.params, times),
    }

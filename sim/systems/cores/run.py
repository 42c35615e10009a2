"""A workload of several cores: build, run, compare with NumPy and the golden machines, report."""

import time
from typing import Any

from rich.console import Console

from firmware.cores.ensemble import Ensemble
from firmware.image import build_images
from rtl.contract.memmap import core_place
from sim.report.report_json import write_report
from sim.run.checking import match_of
from sim.run.compare import Comparison, compare
from sim.run.cycles_bar import cycles_bar
from sim.run.device import find_device
from sim.run.result import ENDS
from sim.run.variant import changes
from sim.systems.cores.joined import CoresResult, run_cores
from sim.systems.cores.metrics import METRICS, Measured
from sim.systems.cores.params import CoresRun
from sim.toolchain import tool_versions

__all__ = ["run_several"]


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
    metrics = METRICS[run.workload](Measured(cfg=cfg, params=run.params, ensemble=ensemble, result=result))
    if ensemble.metrics is not None and result.end == "done":
        outputs = {(core, name): bits for core, one in result.results.items() for name, bits in one.outputs.items()}
        metrics |= ensemble.metrics(outputs)
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
        "outputs_of_numpy": bool(ensemble.truth),
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
        "metrics": metrics,
    }

"""A workload on the RTL beside the golden machine: build, run, compare, report."""

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from firmware.image import Image, build_image
from firmware.program import Program
from firmware.workloads import find_workload
from rtl.contract.config import Config
from rtl.contract.roles import OF_CLASSES, Uses, covers, needed, values
from sim.advice.bounding import bounds
from sim.errors import PlexusError
from sim.native.tracing import TRACE_RECORDS
from sim.report.report_json import Subject, make_report, write_report
from sim.run.checking import checked
from sim.run.cpu_parts import CpuParts
from sim.run.cycles_bar import cycles_bar
from sim.run.evaluate import write_arrays
from sim.run.meaning import operator_metrics, with_meaning
from sim.run.result import RunResult
from sim.run.variant import changes, default_folder
from sim.run.waves import Waves
from sim.systems.configurations import by_name
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.trace.agreement import need_agreement
from sim.trace.recorded import FILE, Recorded, save_trace
from sim.trace.recording import record

__all__ = ["Run", "check_folder", "run_workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is asked for. `waves`: of what. `out`: folder of the report, by default under build/."""

    workload: str
    params: Mapping[str, Any]
    cfg: Config
    array: str = "native"
    seed: int = 0
    waves: Waves | None = None
    fast: bool = False
    trace: bool = True
    check: str = "golden"  # as checking.need_check gives it
    model: Config | None = None  # whose model runs it, if not the one that `built` says
    out: Path | None = None
    file: str | None = None  # that the configuration was read from

    def needed(self, cfg: Config) -> Config:
        """`cfg` without what this run cannot tell from nothing, as GPSIMD cores, if they have nothing to do."""
        workload = find_workload(self.workload)
        return needed(cfg, workload.uses(workload.complete(self.params)))

    @property
    def built(self) -> Config:
        """Whose model runs it: that of the named configuration it goes out from, if that serves, else its own."""
        if self.model is not None:
            return self.model
        base, own = by_name()[changes(self.cfg)[0]], self.needed(self.cfg)
        if not isinstance(base, Config):
            return own
        model = self.needed(base)
        return model if covers(model, own) and (self.by_cores(model) == self.by_cores(own)) else own

    def by_cores(self, cfg: Config) -> dict[str, Any]:
        """What of `cfg` a model must have and no more, since copies of GPSIMD cores, which nobody has seen before, are
        refused without."""
        workload = find_workload(self.workload)
        if Uses.CORES not in workload.uses(workload.complete(self.params)):
            return {}
        return {key: value for key, value in values(cfg).items() if key in ("sbuf.adders", "dma.classes")}

    @property
    def folder(self) -> Path:
        """Where report.json goes: a variant has a folder of its own."""
        if self.out:
            return self.out
        defaults = find_workload(self.workload).complete({}) | {"run_seed": 0, "array": "native"}
        settings = dict(self.params) | {"run_seed": self.seed, "array": self.array}
        return default_folder(self.workload, self.cfg, settings, defaults)


def _simulate(run: Run, program: Program, image: Image, console: Console, cpu: CpuParts) -> RunResult:
    _need_parts(run, program)
    with cpu.part("build"):
        built = build_core(run.built, array=run.array, waves=run.waves.kind if run.waves else "", fast=run.fast)
    guess = max(bounds(run.cfg, program, program.hbm_read_bytes + program.hbm_written_bytes).values())
    with cycles_bar(console, f"simulate {run.workload}", guess) as watch:
        records = TRACE_RECORDS if run.trace else 0
        device = VerilatedDevice(run.cfg, built.binary, waves=run.waves, watch=watch, trace_records=records)
        with cpu.part("run"), device:
            device.load(image)
            return device.run()


_PARTS = (
    (Uses.CORES, "GPSIMD cores", "gpsimd.enabled"),
    (Uses.CORES, "GPSIMD cores", "gpsimd.vectors"),
    (Uses.CORES, "GPSIMD cores", "sbuf.adders"),
    (Uses.CORES, "GPSIMD cores", "dma.classes"),
    (Uses.SUMS, "sums beside SBUF", "sbuf.adders"),
    *((Uses.CLASSES, "traffic classes", f"dma.{name}") for name in ("classes", *OF_CLASSES)),
)


def _need_parts(run: Run, program: Program) -> None:
    """PlexusError if the model that was given lacks what the program uses."""
    has, wants = values(run.built), values(run.cfg)
    for use, what, key in _PARTS:
        more = use != Uses.CORES and key in ("sbuf.adders", "dma.classes") and has[key] > wants[key]
        if use in program.uses and has[key] != wants[key] and not more:
            there, wanted = (str(value[key]).lower() for value in (has, wants))
            raise PlexusError(f"{run.workload} needs {what}, so {key} must be {wanted} in its model too, not {there}")


def _recorded(program: Program, result: RunResult) -> Recorded | None:
    """The trace of the run, if there is one. Errors: TraceError if it does not agree with the counters."""
    if result.trace is None or result.hbm is None:
        return None
    recorded = record(result.trace, result.retired, program)
    need_agreement(recorded, result, (result.hbm.read_beats, result.hbm.write_beats))
    return recorded


def _keep_trace(run: Run, recorded: Recorded | None) -> None:
    """trace.npz beside the report, if there shall be one; else none, that of an earlier run neither."""
    if recorded is None:
        (run.folder / FILE).unlink(missing_ok=True)
    else:
        save_trace(recorded, run.folder)


def check_folder(folder: Path) -> None:
    """Make a folder and try whether a file can be put there, before anything takes long."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise PlexusError(f"{folder} is a file, and a folder of that name is needed") from None
    except OSError as error:
        raise PlexusError(f"the folder {folder} cannot be made: {error.strerror}") from None
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PlexusError(f"nothing can be written in the folder {folder}: {error.strerror}") from None


def _check_places(run: Run) -> None:
    """Errors: PlexusError if the report or the waves could not be written where they shall go."""
    check_folder(run.folder)
    if run.waves is not None:
        if run.waves.path.is_dir():
            raise PlexusError(f"{run.waves.path} is a folder, and waves go into a file")
        check_folder(run.waves.path.absolute().parent)


def run_workload(run: Run, console: Console) -> dict[str, Any]:
    """Everything that `plexus run` does but printing. Returns the report, which is on disk too.

    `console` shows progress. Errors: PlexusError, ConfigError, KernelError, ImageError in a sentence.
    """
    workload = find_workload(run.workload)
    _check_places(run)
    begin, cpu = time.monotonic(), CpuParts()
    with console.status("build the program"), cpu.part("program"):
        program = workload.build(run.cfg, run.params, run.seed)
        image = build_image(program)
    result = _simulate(run, program, image, console, cpu)
    with console.status("golden machine"), cpu.part("check"):
        comparison = checked(run.cfg, image, result, run.check)
    metrics: dict[str, Any] = {}
    if result.end == "done" and not comparison.why:
        metrics |= program.metrics(dict(result.outputs))
        if program.meaning is not None:
            comparison = with_meaning(comparison, result.outputs, program.meaning)
            metrics |= operator_metrics(run.cfg, result, program.meaning)
    subject = Subject(
        workload=run.workload,
        params=run.params,
        cfg=run.cfg,
        file=run.file,
        array=run.array,
        fast=run.fast,
        seed=run.seed,
        program=program,
        check=run.check,
        model=run.built,
    )
    with console.status("trace and advice"), cpu.part("report"):
        recorded = _recorded(program, result)
        report = make_report(subject, result, comparison, metrics, recorded)
        _keep_trace(run, recorded)
    report["cpu_parts"] = cpu.rounded()
    report["total_seconds"] = round(time.monotonic() - begin, 3)
    write_report(report, run.folder)
    if program.out is not None and result.end == "done":
        write_arrays(program.out, program.arrays(dict(result.outputs)))
    return report

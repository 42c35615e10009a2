"""A workload on the RTL beside the golden machine: build, run, compare, report."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console

from firmware.decisions.executed import executed_program
from firmware.host_array import HostArray
from firmware.image import Image, build_image
from firmware.own_makers import find_own
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
from sim.run.host_arrays import plain_array
from sim.run.meaning import operator_metrics, with_meaning
from sim.run.result import RunResult
from sim.run.variant import changes, default_folder
from sim.run.waves import Waves
from sim.systems.configurations import by_name
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.trace.agreement import need_agreement
from sim.trace.recorded import FILE, Recorded, save_trace
from sim.trace.recording import record

__all__ = ["Ran", "Run", "Shown", "check_folder", "results_of", "run_program", "run_workload", "save_run"]


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
    own: Mapping[str, HostArray] | None = None  # arrays instead of random values
    out_arrays: Path | None = None  # .npz file for results
    program: Program | None = None  # a finished one, of no workload
    out: Path | None = None
    file: str | None = None  # that the configuration was read from

    @property
    def uses(self) -> Uses:
        """What its program may use of a machine."""
        if self.program is not None:
            return self.program.uses
        workload = find_workload(self.workload)
        return workload.uses(workload.complete(self.params))

    def needed(self, cfg: Config) -> Config:
        """`cfg` without what this run cannot tell from nothing, as GPSIMD cores, if they have nothing to do."""
        return needed(cfg, self.uses)

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
        if Uses.CORES not in self.uses:
            return {}
        return {
            key: value for key, value in values(cfg).items() if key in ("sbuf.adders", "dma.classes", "dma.indirect")
        }

    @property
    def folder(self) -> Path:
        """Where report.json goes: a variant has a folder of its own."""
        if self.out:
            return self.out
        defaults = find_workload(self.workload).complete({}) | {"run_seed": 0, "array": "native"}
        settings = dict(self.params) | {"run_seed": self.seed, "array": self.array}
        if self.own is not None:
            settings["own"] = _digest(self.own)
        return default_folder(self.workload, self.cfg, settings, defaults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a run; nothing of it is on disk."""

    report: dict[str, Any]
    result: RunResult
    recorded: Recorded | None
    results: Mapping[str, HostArray]  # as the user asked for them; none if it did not end by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How somebody who waits is told: `stage` while one lasts, `bar` with the cycles of a simulation that takes about
    so many."""

    stage: Callable[[str], AbstractContextManager[Any]]
    bar: Callable[[str, int], AbstractContextManager[Callable[[int], None]]]

    @classmethod
    def on(cls, console: Console) -> Self:
        """At once, on a terminal."""
        return cls(stage=console.status, bar=partial(cycles_bar, console))


def _digest(own: Mapping[str, HostArray]) -> str:
    found = hashlib.sha256()
    for name, array in sorted(own.items()):
        found.update(f"{name} {array}".encode())
        found.update(np.ascontiguousarray(array.bits).tobytes())
    return found.hexdigest()


def _simulate(run: Run, program: Program, image: Image, shown: Shown, cpu: CpuParts) -> RunResult:
    _need_parts(run, program)
    with cpu.part("build"):
        built = build_core(run.built, array=run.array, waves=run.waves.kind if run.waves else "", fast=run.fast)
    guess = max(bounds(run.cfg, program, program.hbm_read_bytes + program.hbm_written_bytes).values())
    with shown.bar(f"simulate {run.workload}", guess) as watch:
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
    (Uses.CORES, "GPSIMD cores", "dma.indirect"),
    (Uses.SUMS, "sums beside SBUF", "sbuf.adders"),
    (Uses.INDICES, "indices", "dma.indirect"),
    *((Uses.CLASSES, "traffic classes", f"dma.{name}") for name in ("classes", *OF_CLASSES)),
)


def _need_parts(run: Run, program: Program) -> None:
    """PlexusError if the model that was given lacks what the program uses."""
    has, wants = values(run.built), values(run.cfg)
    for use, what, key in _PARTS:
        more = use != Uses.CORES and key in ("sbuf.adders", "dma.classes", "dma.indirect") and has[key] > wants[key]
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
    if run.out_arrays is not None:
        if run.out_arrays.is_dir():
            raise PlexusError(f"{run.out_arrays} is a folder, and arrays go into a file")
        check_folder(run.out_arrays.absolute().parent)
    if run.waves is not None:
        if run.waves.path.is_dir():
            raise PlexusError(f"{run.waves.path} is a folder, and waves go into a file")
        check_folder(run.waves.path.absolute().parent)


def run_program(run: Run, program: Program, shown: Shown, cpu: CpuParts) -> Ran:
    """A program on the RTL, checked and measured. Errors: PlexusError, ImageError in a sentence."""
    with cpu.part("program"):
        image = build_image(program)
    result = _simulate(run, program, image, shown, cpu)
    with shown.stage("golden machine"), cpu.part("check"):
        comparison = checked(run.cfg, image, result, run.check)
    if result.registers:
        program = executed_program(program, result.registers)
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
    with shown.stage("trace and advice"), cpu.part("report"):
        recorded = _recorded(program, result)
        report = make_report(subject, result, comparison, metrics, recorded)
    results = results_of(program, result.outputs) if result.end == "done" else {}
    return Ran(report=report, result=result, recorded=recorded, results=results)


def results_of(program: Program, outputs: Mapping[str, np.ndarray]) -> Mapping[str, HostArray]:
    """What the user asked for, from the bits of a program's outputs; these themselves if the program says nothing."""
    if program.results is not None:
        return program.results(dict(outputs))
    return {name: HostArray(bits, program.tensors[name].dtype) for name, bits in outputs.items()}


def save_run(run: Run, ran: Ran) -> None:
    """report.json and trace.npz in the folder of the run. Errors: PlexusError."""
    _keep_trace(run, ran.recorded)
    write_report(ran.report, run.folder)


def run_workload(run: Run, console: Console) -> dict[str, Any]:
    """Everything that `plexus run` does but printing. Returns the report, which is on disk too.

    `console` shows progress. Errors: PlexusError, ConfigError, KernelError, ImageError in a sentence.
    """
    workload = find_workload(run.workload)
    _check_places(run)
    begin, cpu = time.monotonic(), CpuParts()
    with console.status("build the program"), cpu.part("program"):
        if run.own is None:
            program = workload.build(run.cfg, run.params, run.seed)
        else:
            program = find_own(run.workload).build(workload, run.cfg, run.params, run.own, run.seed)
    ran = run_program(run, program, Shown.on(console), cpu)
    ran.report["cpu_parts"] = cpu.rounded()
    ran.report["total_seconds"] = round(time.monotonic() - begin, 3)
    save_run(run, ran)
    if program.out is not None and ran.result.end == "done":
        write_arrays(program.out, program.arrays(dict(ran.result.outputs)))
    if run.out_arrays is not None and ran.result.end == "done":
        write_arrays(run.out_arrays, {name: plain_array(array) for name, array in ran.results.items()})
    return ran.report

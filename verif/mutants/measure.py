"""One unit and its mutants: the bench is green with none of them, and must turn red with each."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sim.build import Built, build
from sim.progress import Progress, progress
from sim.run import verdicts
from sim.run.runner import BenchError, BenchHangs, Verdict, run_bench
from verif.mutants.equivalent import is_equivalent
from verif.mutants.insert import MutantModel, name_of, read_mutants
from verif.mutants.mutant import Mutant
from verif.mutants.unit import Unit

__all__ = ["FATES", "Measured", "Tried", "measure"]

FATES = ("failed", "hung", "crashed", "equivalent", "survived")
"""What becomes of a mutant: a test fails; a test or the run does not end; the simulator or the bench breaks down; it is
proved to change nothing; nobody notices."""

_SHORTEST_SECONDS = 60.0
_TIMES_GREEN = 10
"""A run may take this many times what the green one took."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A mutant, its number in the model, and its fate; `told`: the first failure."""

    number: int
    mutant: Mutant
    fate: str
    told: str = ""

    @property
    def killed(self) -> bool:
        """The bench noticed."""
        return self.fate in ("failed", "hung", "crashed")


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit and what became of its mutants."""

    unit: str
    tried: tuple[Tried, ...]
    seconds: float

    def count(self, *fates: str) -> int:
        """Mutants with one of these fates."""
        counted = Counter(t.fate for t in self.tried)
        return sum(counted[fate] for fate in fates)


def _run(unit: Unit, bench: str, model: MutantModel, number: int, limit: float | None) -> Verdict:
    options: dict[str, Any] = {"options": unit.options, "altered": model, "cpu_seconds": limit}
    return run_bench(unit.top, bench, unit.cfg, plant=name_of(number) if number else "", planted=True, **options)


def _fate(unit: Unit, model: MutantModel, number: int, limits: dict[str, float]) -> tuple[str, str]:
    """Of one mutant under all benches, and the first failure."""
    for bench, limit in limits.items():
        try:
            verdict = _run(unit, bench, model, number, limit)
        except BenchHangs as error:
            return "hung", str(error).splitlines()[0]
        except BenchError as error:
            return "crashed", str(error).splitlines()[0]
        if not verdict.ok:
            case = next(c for c in verdict.cases if not c.ok)
            fates = {"SimTimeoutError": "hung", "AssertionError": "failed"}
            return fates.get(case.kind, "crashed"), verdict.first.splitlines()[0][:200]
    return "survived", ""


def _key(unit: Unit, built: Built, numbers: Sequence[int]) -> str:
    """Names everything that the fates depend on."""
    benches = [[bench, verdicts.bench_digest(bench)] for bench in unit.benches]
    by = verdicts.bench_digest("verif.mutants.measure")
    about = [unit.top, unit.cfg.as_dict(), dict(unit.options), list(numbers)]
    return verdicts.key_of({"mutants": about, "model": built.content, "benches": benches, "by": by})


def _kept(key: str, mutants: Sequence[Mutant], numbers: Sequence[int]) -> list[Tried] | None:
    folder = None if verdicts.fresh() else verdicts.find(key)
    if folder is None:
        return None
    fates = json.loads((folder / "fates.json").read_text())
    return [Tried(n, mutants[n - 1], fate, told) for n, (fate, told) in zip(numbers, fates, strict=True)]


def _keep(key: str, name: str, what: Any, folder: Path) -> None:
    place = folder / f"{name}-{key}"
    place.mkdir(exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(what))
    verdicts.keep(key, [place / f"{name}.json"])


def _is_equivalent(built: Built, mutant: Mutant) -> bool:
    """Kept by model alone: who mends a bench asks again and again."""
    by = verdicts.bench_digest("verif.mutants.equivalent")
    key = verdicts.key_of({"equivalent": str(mutant), "model": built.content, "by": by})
    found = None if verdicts.fresh() else verdicts.find(key)
    if found is not None:
        return json.loads((found / "equivalent.json").read_text())
    proved = is_equivalent(built.folder, mutant)
    _keep(key, "equivalent", proved, built.folder)
    return proved


def measure(
    unit: Unit,
    model: MutantModel,
    *,
    first: int = 0,
    only: Sequence[int] = (),
    proofs: bool = True,
    note: Callable[[Tried], None] = lambda tried: None,
) -> Measured:
    """Try the mutants of a unit: `only` those with these numbers, or the `first` ones, or all. `note`: told of each.

    Without `proofs` those that are equivalent survive, and nothing is kept.
    Errors: BenchError if a bench is red without a mutant: then the model is not the unit. BuildError, TooLargeError.
    """
    begin = time.monotonic()
    model = replace(model, files=unit.files)
    with progress(f"mutants of {unit.top}") as step:
        step.stage("build")
        built = build(unit.top, unit.cfg, kind="cocotb", options=unit.options, altered=model)
        mutants = read_mutants(built.folder)
        numbers = [n for n in only if n <= len(mutants)] or list(range(1, len(mutants) + 1))[: first or None]
        key = _key(unit, built, numbers)
        tried = _kept(key, mutants, numbers)
        if tried is None:
            tried = _try_all(unit, model, built if proofs else None, mutants, numbers, step, note)
            if proofs:
                _keep(key, "fates", [[t.fate, t.told] for t in tried], built.folder)
    return Measured(unit.top, tuple(tried), time.monotonic() - begin)


def _try_all(
    unit: Unit,
    model: MutantModel,
    proved: Built | None,
    mutants: Sequence[Mutant],
    numbers: Sequence[int],
    step: Progress,
    note: Callable[[Tried], None],
) -> list[Tried]:
    step.stage("without a mutant")
    limits: dict[str, float] = {}
    for bench in unit.benches:
        green = _run(unit, bench, model, 0, None).require()
        limits[bench] = max(_SHORTEST_SECONDS, _TIMES_GREEN * sum(case.seconds for case in green.cases))
    tried = []
    for number in numbers:
        step.title = f"mutant {number} of {unit.top}"
        step.stage("runs")
        fate, told = _fate(unit, model, number, limits)
        if fate == "survived" and proved is not None:
            step.stage("proofs")
            fate = "equivalent" if _is_equivalent(proved, mutants[number - 1]) else fate
        tried.append(Tried(number, mutants[number - 1], fate, told))
        note(tried[-1])
    step.title = f"mutants of {unit.top}"
    return tried

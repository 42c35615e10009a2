"""One run of a cocotb bench on a built model, and what came of it.

A run in which no test ran counts as a failure of the run, a failing test does not end the Python that
started it, and each run has a folder of its own.
"""

import fcntl
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rtl.contract.any_config import AnyConfig
from sim.build.children import ending_in_order
from sim.build.coverage import counting, pack
from sim.build.model import Alteration, Built, build
from sim.errors import PlexusError
from sim.run import verdicts
from sim.run.bench_process import bench_process
from sim.run.manifest import MANIFEST_VARIABLE, Manifest
from sim.run.repeat import command_line
from sim.run.waves import waves_kind
from sim.toolchain import ROOT, activate, build_root

__all__ = ["BenchError", "BenchHangs", "Case", "Verdict", "run_again", "run_bench", "verdict_of"]


class BenchError(PlexusError):
    """A bench that gave no verdict (it crashed, or nothing ran), or one that failed and had to pass."""


class BenchHangs(BenchError):
    """A run that did not end within the seconds of a processor that it was given."""


@dataclass(frozen=True, slots=True)
class Case:
    """One cocotb test. `message` is empty when it passed; `kind` is the class of the exception that ended it and
    `where` the file that raised it, from the root of the project."""

    name: str
    seconds: float
    message: str
    kind: str = ""
    where: str = ""

    @property
    def ok(self) -> bool:
        """It passed."""
        return not self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a run of a bench says. `skipped`: tests that say of themselves that they do not apply. `again`: the command
    line that repeats it."""

    bench: str
    seed: int
    plant: str
    cases: tuple[Case, ...]
    folder: Path
    skipped: tuple[str, ...] = ()
    again: str = ""

    @property
    def ran(self) -> int:
        """Tests that ran."""
        return len(self.cases)

    @property
    def failed(self) -> int:
        """Tests that failed."""
        return sum(not c.ok for c in self.cases)

    @property
    def ok(self) -> bool:
        """Something ran and nothing failed."""
        return self.ran > 0 and self.failed == 0

    @property
    def first(self) -> str:
        """Name and message of the first failing test, or nothing."""
        return next((f"{c.name}: {c.message}" for c in self.cases if not c.ok), "")

    def require(self) -> "Verdict":
        """Itself if all passed. Errors: BenchError with the first failure and where the log is."""
        if not self.ok:
            names = ", ".join(c.name for c in self.cases if not c.ok)
            raise BenchError(
                f"{self.bench} seed {self.seed}: {self.failed} of {self.ran} tests failed ({names})\n"
                f"{self.first}\nlog: {self.folder / 'run.log'}" + (f"\nagain: {self.again}" if self.again else "")
            )
        return self


def _raised_in(trace: str) -> str:
    """The file of the innermost frame of a traceback; a comparison of NumPy's belongs to who asked for it."""
    files = [f for f in re.findall(r'^ +File "([^"]+)", line \d+', trace, re.MULTILINE) if "/numpy/" not in f]
    innermost = Path(files[-1]) if files else Path()
    return innermost.relative_to(ROOT).as_posix() if innermost.is_relative_to(ROOT) else innermost.as_posix()


def verdict_of(results: Path, *, bench: str = "", seed: int = 0, plant: str = "") -> Verdict:
    """Read a JUnit file. Errors: BenchError when nothing ran."""
    cases: list[Case] = []
    skipped: list[str] = []
    for case in ElementTree.parse(results).iter("testcase"):
        if case.find("skipped") is not None:
            skipped.append(case.get("name", "?"))
            continue
        bad = case.find("failure")
        if bad is None:
            bad = case.find("error")
        message = kind = where = ""
        if bad is not None:
            text = bad.get("message") or bad.text or "failed"
            kind = bad.get("type") or bad.get("error_type") or ""
            message = f"{kind}: {text}" if kind and not text.startswith(kind) else text
            where = _raised_in(bad.text or "")
        cases.append(Case(case.get("name", "?"), float(case.get("time", 0)), message, kind, where))
    if not cases:
        why = f"all {len(skipped)} are skipped" if skipped else "a filter matched nothing, or no test is there"
        raise BenchError(f"no test ran in {bench or results.name}: {why}")
    return Verdict(
        bench=bench, seed=seed, plant=plant, cases=tuple(cases), folder=results.parent, skipped=tuple(skipped)
    )


def _tail(log: Path, lines: int = 25) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else "(no log)"


def run_bench(
    top: str,
    bench: str,
    cfg: AnyConfig,
    *,
    seed: int = 1,
    plant: str = "",
    planted: bool = False,
    options: Mapping[str, Any] | None = None,
    testcase: str | None = None,
    waves: Path | None = None,
    environment: Mapping[str, str] | None = None,
    anew: bool = False,
    altered: Alteration | None = None,
    cpu_seconds: float | None = None,
) -> Verdict:
    """Build `top` if needed and run the cocotb module `bench` on it.

    plant: the name of a fault. planted: use the build that has faults; implied by `plant`. testcase: only tests
    of that name. waves: write them there, .fst or .vcd. anew: though its verdict is kept. The run's folder is
    build/<top>/<hash>/run-<bench>-...; a second run of the same waits for the first. With PLEXUS_COVERAGE=1 a run
    without a fault is made on a model without faults that counts lines and toggles.
    altered: run on this model instead of the top's own, `plant` is one of its faults. cpu_seconds: of a processor.
    Errors: BenchError when there is no verdict (BenchHangs behind the limit); a verdict with failures is returned, not
    raised.
    """
    activate()
    verdicts.note_use(verdicts.BENCH)
    coverage = counting() and not plant and altered is None
    planted = bool(plant) or (planted and not coverage)
    kind = waves_kind(waves) if waves else ""
    own = planted and altered is None
    built = build(top, cfg, kind="cocotb", options=options, planted=own, waves=kind, coverage=coverage, altered=altered)
    number = built.plant(plant)
    label = f"{bench.rpartition('.')[2]}-s{seed}-p{number}" + (f"-{testcase}" if testcase else "")
    label = re.sub(r"[^\w.-]", "_", label)
    again = (
        ""
        if altered
        else command_line(top, bench, cfg, options=options or {}, seed=seed, plant=plant, testcase=testcase)
    )
    folder = built.folder / f"run-{label}"
    with (built.folder / f".{label}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        manifest = Manifest(
            top=top,
            config=cfg,
            options=dict(options or {}),
            plant=plant,
            plant_number=number,
            planted=planted,
            seed=seed,
            folder=folder,
        )
        manifest.write(folder / "manifest.json")
        results = folder / "results.xml"
        log = folder / "run.log"
        run = {
            MANIFEST_VARIABLE: str(folder / "manifest.json"),
            "COCOTB_RANDOM_SEED": str(seed),
            "COCOTB_RESULTS_FILE": str(results),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(build_root() / "hypothesis"),
        }
        if testcase is not None:
            run["COCOTB_TEST_FILTER"] = rf"\.{re.escape(testcase)}$"
        if plant:
            run["COCOTB_MAX_FAILURES"] = "1"  # one is enough to notice a planted fault
        key = _verdict_key(built, cfg, bench, manifest, testcase, environment)
        kept = None if waves or anew or verdicts.fresh() else verdicts.find(key)
        if kept is not None:
            verdicts.lay_out(kept, folder)
            return _told(replace(verdict_of(results, bench=bench, seed=seed, plant=plant), again=again), built, label)
        arguments = ["--trace", "--trace-file", str(Path(waves).resolve())] if waves else []
        with ending_in_order():
            process = bench_process(built.binary, bench, arguments, run)
            try:
                process.run(folder, log, run | dict(environment or {}), cpu_seconds)
            except TimeoutError:
                told = f"{bench} seed {seed} on {top} did not end within {cpu_seconds:.0f} s of a processor"
                raise BenchHangs(f"{told}\nlog: {log}\nagain: {again}") from None
        if not results.exists():
            told = f"{bench} seed {seed} on {top} ended without a verdict"
            raise BenchError(f"{told}:\n{_tail(log)}\nlog: {log}\nagain: {again}")
        verdict = replace(verdict_of(results, bench=bench, seed=seed, plant=plant), again=again)
        if coverage and verdict.ok:
            pack(folder)
        if verdict.ok != bool(plant):  # what surprises is run again
            verdicts.keep(key, [results, log, *folder.glob("coverage-*.json")])
        return _told(verdict, built, label)


def _verdict_key(
    built: Built,
    cfg: AnyConfig,
    bench: str,
    manifest: Manifest,
    testcase: str | None,
    environment: Mapping[str, str] | None,
) -> str:
    """Names everything that the verdict of a run depends on."""
    return verdicts.key_of(
        {
            "model": built.content,
            "bench": [bench, verdicts.bench_digest(bench), testcase, dict(environment or {})],
            "config": [cfg.as_dict(), manifest.options],
            "run": [manifest.plant, manifest.planted, manifest.seed],
        }
    )


def _told(verdict: Verdict, built: Built, label: str) -> Verdict:
    """Put the results where reports look; planted faults must fail, so they are no news."""
    if not verdict.plant:
        kept = build_root() / "results"
        kept.mkdir(parents=True, exist_ok=True)
        target = kept / f"{built.top}-{built.key[:8]}-{label}.xml"
        target.unlink(missing_ok=True)
        shutil.copy(verdict.folder / "results.xml", target)
    return verdict


def run_again(
    top: str,
    bench: str,
    cfg: AnyConfig,
    options: Mapping[str, Any],
    seed: int,
    plant: str,
    testcase: str | None,
    waves: Path | None,
) -> Verdict:
    """What `make test` ran, on the build that has faults; a kept verdict does not count."""
    more: dict[str, Any] = {"options": options, "testcase": testcase, "waves": waves}
    return run_bench(top, bench, cfg, seed=seed, plant=plant, planted=True, anew=True, **more)
